#include "codec/allocation_json.h"

#include <fmt/format.h>

#include <unordered_set>

#include "document/json_reader.h"
#include "document/json_text.h"

namespace voda {

namespace {

constexpr std::string_view kShape = "an object such as {\"allocation\": {\"job\": 4}}";

class AllocationReader final : public JsonEvents {
 public:
  bool OnScalar(Value& scalar) override {
    if (depth_ < 2) return Wrong(Show(scalar));
    const auto whole = scalar.ExactWhole();
    if (!whole) return Fail(fmt::format("{}: {} is not a whole number of workers", Where(), Show(scalar)));
    answer_.emplace_back(std::move(job_), *whole);
    return true;
  }
  bool OnKey(std::string& key) override {
    if (depth_ == 1) {
      if (key != "allocation")
        return Fail(fmt::format("unknown field {}; give {}", QuotedBrief(key), kShape));
      if (given_) return Fail("allocation: given twice");
      given_ = true;
      return true;
    }
    job_ = key;
    if (!seen_.insert(key).second) return Fail(fmt::format("{}: given twice", Where()));
    return true;
  }
  bool OnObject() override {
    if (depth_ == 2) return Fail(fmt::format("{}: an object is not a whole number of workers", Where()));
    ++depth_;
    return true;
  }
  bool OnObjectEnd() override {
    --depth_;
    return depth_ > 0 || given_ || Fail(fmt::format("allocation: missing; give {}", kShape));
  }
  bool OnArray() override { return Wrong("an array"); }
  bool OnArrayEnd() override { return true; }
  std::string Where() const override {
    return depth_ == 2 ? fmt::format("allocation of job {}", QuotedBrief(job_)) : "answer";
  }

  NamedWorkers Take() { return std::move(answer_); }

 private:
  bool Wrong(std::string_view value) { return Fail(fmt::format("{}: {} is not {}", Where(), value, kShape)); }

  int depth_ = 0;
  bool given_ = false;
  std::string job_;
  std::unordered_set<std::string> seen_;
  NamedWorkers answer_;
};

}  // namespace

Result<NamedWorkers> ParseAllocation(std::string_view text) {
  AllocationReader reader;
  if (const Status read = ReadJson(text, reader); !read) return read.error();
  return reader.Take();
}

}  // namespace voda
