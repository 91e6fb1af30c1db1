// ParseSnapshot: a reader of the snapshot schema on JSON events. A field is checked where it stands; what
// needs several fields (min <= max, sizes, speed-ups) at the end of its job; what needs all jobs and nodes at
// the end.
#include "codec/snapshot_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codec/curve_pool.h"
#include "codec/list_pool.h"
#include "codec/snapshot_fields.h"
#include "document/json_reader.h"
#include "document/json_text.h"
#include "model/guess.h"

namespace voda {

namespace {

using internal::FieldKind;
using internal::JobField;
using internal::JobFieldBit;
using internal::kJobFields;

enum RootField { kNow, kNodes, kJobs };
constexpr std::string_view kRootNames[] = {"now", "nodes", "jobs"};
enum NodeField { kNodeName, kNodeGpus, kNodeState };
constexpr std::string_view kNodeNames[] = {"name", "gpus", "state"};

constexpr std::uint32_t Bit(int field) {
  return std::uint32_t{1} << field;
}

template <class Names>
int FindName(const Names& names, std::string_view name) {
  const auto at = std::find(std::begin(names), std::end(names), name);
  return at == std::end(names) ? -1 : static_cast<int>(at - std::begin(names));
}

// The whole number above 0 that a key is, written as JSON would; else 0.
std::int64_t PositiveWhole(std::string_view text) {
  constexpr std::size_t kDigits = 18;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0 && text[0] != '0' && text.size() <= kDigits ? value : 0;
}

// 0 and not 0.0: a snapshot knows no difference between whole numbers and others.
std::string Shown(const Value& scalar) {
  return scalar.number() && !scalar.integer() ? fmt::format("{}", scalar.Number()) : Show(scalar);
}

class SnapshotReader final : public JsonEvents {
 public:
  bool OnScalar(Value& scalar) override;
  bool OnKey(std::string& key) override;
  bool OnObject() override;
  bool OnObjectEnd() override;
  bool OnArray() override;
  bool OnArrayEnd() override;
  std::string Where() const override;

  // After the last event.
  Result<Snapshot> Finish() &&;

 private:
  enum class In : std::uint8_t {
    kNothing,
    kRoot,
    kNodes,
    kNode,
    kJobs,
    kJob,
    kSizes,
    kWorkers,
    kSpeedup,
    kMeasured,
    kSpans
  };

  // A node name seen, in `nodes` or as the seat of a worker.
  struct Known {
    const std::string* name;
    NodeIndex node;
  };

  bool Wrong(std::string_view value, std::string_view fix) {
    return Fail(fmt::format("{}: {}; {}", Where(), value, fix));
  }
  bool WrongType(std::string_view value, std::string_view wanted) {
    return Wrong(fmt::format("{} is not {}", value, wanted), fmt::format("give {}", wanted));
  }
  bool WrongJob(std::string_view field, std::string_view problem) {
    return Fail(fmt::format("{}: {}", JobPath(field), problem));
  }
  std::string JobPath(std::string_view field) const;
  std::string_view Expected() const;

  template <class Names>
  bool Select(const Names& names, std::string_view key);
  bool SelectJobField(std::string_view key);
  bool SelectSize(std::string_view key);
  bool SelectSpan(std::string_view key);

  bool ReadRoot(Value& scalar);
  bool ReadNode(Value& scalar);
  bool ReadJob(Value& scalar);
  bool ReadSize(Value& scalar, std::vector<int>& sizes);
  bool ReadWorker(Value& scalar);
  bool ReadSpeedup(Value& scalar);
  bool ReadSpan(Value& scalar);
  bool ReadFactor(Value& scalar, std::size_t before);
  bool ReadName(Value& scalar, std::string& name);
  bool ReadTime(Value& scalar, double& time);
  template <class Int>
  bool ReadWhole(Value& scalar, std::int64_t lo, std::int64_t hi, Int& value);

  bool EndNode();
  bool EndJob();
  bool Given(std::string_view job_field) const { return (seen_ & JobFieldBit(job_field)) != 0; }
  void FillInEstimate();
  bool CheckSizes();
  bool MakeCurve();
  bool MakeSpans();
  bool EndRoot();

  NodeIndex Intern(std::string& name);

  Snapshot snapshot_;
  In in_ = In::kNothing;
  std::uint32_t root_seen_ = 0;
  std::uint32_t seen_ = 0;  // fields of the node or job being read
  int root_field_ = -1;
  int field_ = -1;

  Node node_;
  NodeIndex node_id_ = kNoNode;
  std::int64_t cluster_gpus_ = 0;

  Job job_;
  std::vector<int> sizes_;
  std::int64_t size_ = 0;  // the key of `speedup` being read
  std::vector<std::pair<std::int64_t, double>> speedup_;
  std::vector<double> values_;
  std::vector<int> measured_;
  SpanSpeedup span_;  // the key of `span_speedup` being read; 0 workers: none
  SpanTable spans_;

  std::unordered_map<std::string, NodeIndex> ids_;
  PerNode<Known>
      known_;  // in the order in which they were seen; Job::workers hold such positions until Finish
  internal::CurvePool curves_;
  internal::ListPool<int> measured_pool_;
  internal::ListPool<SpanSpeedup> span_pool_;
};

std::string SnapshotReader::JobPath(std::string_view field) const {
  std::string path = fmt::format("jobs[{}]", snapshot_.jobs.size());
  if (!field.empty()) path += fmt::format(".{}", field);
  if (!job_.name.empty()) path += fmt::format(" (job {})", QuotedBrief(job_.name));
  return path;
}

std::string SnapshotReader::Where() const {
  const auto job_field = [&] { return field_ < 0 ? std::string_view() : kJobFields[field_].name; };
  switch (in_) {
    case In::kNothing:
      return "snapshot";
    case In::kRoot:
      return root_field_ < 0 ? "snapshot" : std::string(kRootNames[root_field_]);
    case In::kNodes:
      return fmt::format("nodes[{}]", snapshot_.nodes.size());
    case In::kNode:
      return fmt::format("nodes[{}]{}{}{}", snapshot_.nodes.size(), field_ < 0 ? "" : ".",
                         field_ < 0 ? "" : kNodeNames[field_],
                         node_.name.empty() ? "" : fmt::format(" (node {})", QuotedBrief(node_.name)));
    case In::kJobs:
      return fmt::format("jobs[{}]", snapshot_.jobs.size());
    case In::kJob:
      return JobPath(job_field());
    case In::kSizes:
      return JobPath(fmt::format("sizes[{}]", sizes_.size()));
    case In::kWorkers:
      return JobPath(fmt::format("workers[{}]", job_.workers.size()));
    case In::kSpeedup:
      return JobPath(size_ == 0 ? "speedup" : fmt::format("speedup.{}", size_));
    case In::kMeasured:
      return JobPath(fmt::format("measured[{}]", measured_.size()));
    case In::kSpans:
      return JobPath(span_.workers == 0 ? "span_speedup"
                                        : fmt::format("span_speedup.{}@{}", span_.workers, span_.nodes));
  }
  return "snapshot";
}

// What the value at this place has to be.
std::string_view SnapshotReader::Expected() const {
  switch (in_) {
    case In::kNothing:
      return "an object with nodes and jobs";
    case In::kRoot:
      return root_field_ == kNow ? "a finite number" : "an array";
    case In::kNodes:
      return "an object with name and gpus";
    case In::kNode:
      return field_ == kNodeName   ? "a string"
             : field_ == kNodeGpus ? "a whole number"
                                   : "one of ready, cordoned, lost";
    case In::kJobs:
      return "an object with name, min and max";
    case In::kJob:
      switch (kJobFields[field_].kind) {
        case FieldKind::kName:
          return "a string";
        case FieldKind::kWhole:
          return "a whole number";
        case FieldKind::kTime:
          return "a finite number";
        case FieldKind::kMaybeTime:
        case FieldKind::kFirstStart:
          return "a finite number or null";
        case FieldKind::kSeconds:
        case FieldKind::kTotal:
        case FieldKind::kWorkDone:
          return "a finite number of at least 0";
        case FieldKind::kFlag:
          return "true or false";
        case FieldKind::kSizes:
          return "an array of whole numbers";
        case FieldKind::kWorkers:
          return "an array of node names";
        case FieldKind::kSpeedup:
          return "an object such as {\"1\": 1, \"2\": 1.9}";
        case FieldKind::kMeasured:
          return "an array of whole numbers or null";
        case FieldKind::kSpans:
          return "an object such as {\"4@2\": 2.8}, which is 4 workers on 2 nodes";
      }
      return "";
    case In::kSizes:
    case In::kMeasured:
      return "a whole number";
    case In::kWorkers:
      return "the name of a node";
    case In::kSpeedup:
    case In::kSpans:
      return "a finite number above 0";
  }
  return "";
}

bool SnapshotReader::OnObject() {
  switch (in_) {
    case In::kNothing:
      in_ = In::kRoot;
      return true;
    case In::kNodes:
      if (static_cast<int>(snapshot_.nodes.size()) >= kMaxSnapshotNodes) {
        return Wrong("too many nodes", fmt::format("give at most {}", kMaxSnapshotNodes));
      }
      in_ = In::kNode;
      node_ = Node{};
      seen_ = 0;
      field_ = -1;
      return true;
    case In::kJobs:
      if (static_cast<int>(snapshot_.jobs.size()) >= kMaxSnapshotJobs) {
        return Wrong("too many jobs", fmt::format("give at most {}", kMaxSnapshotJobs));
      }
      in_ = In::kJob;
      job_ = Job{};
      seen_ = 0;
      field_ = -1;
      sizes_.clear();
      speedup_.clear();
      measured_.clear();
      spans_.clear();
      return true;
    case In::kJob:
      switch (kJobFields[field_].kind) {
        case FieldKind::kSpeedup:
          in_ = In::kSpeedup;
          size_ = 0;
          return true;
        case FieldKind::kSpans:
          in_ = In::kSpans;
          span_ = {};
          return true;
        default:
          break;
      }
      break;
    default:
      break;
  }
  return WrongType("an object", Expected());
}

bool SnapshotReader::OnArray() {
  if (in_ == In::kRoot && root_field_ != kNow) {
    in_ = root_field_ == kNodes ? In::kNodes : In::kJobs;
    return true;
  }
  if (in_ == In::kJob) {
    switch (kJobFields[field_].kind) {
      case FieldKind::kSizes:
        in_ = In::kSizes;
        return true;
      case FieldKind::kWorkers:
        in_ = In::kWorkers;
        return true;
      case FieldKind::kMeasured:
        in_ = In::kMeasured;
        return true;
      default:
        break;
    }
  }
  return WrongType("an array", Expected());
}

bool SnapshotReader::OnArrayEnd() {
  switch (in_) {
    case In::kMeasured:
      job_.measured = measured_pool_.Of(measured_);
      [[fallthrough]];
    case In::kSizes:
    case In::kWorkers:
      in_ = In::kJob;
      return true;
    default:
      in_ = In::kRoot;
      root_field_ = -1;
      return true;
  }
}

bool SnapshotReader::OnObjectEnd() {
  switch (in_) {
    case In::kNode:
      return EndNode();
    case In::kJob:
      return EndJob();
    case In::kSpeedup:
      in_ = In::kJob;
      return true;
    case In::kSpans:
      in_ = In::kJob;
      return MakeSpans();
    default:
      root_field_ = -1;
      return EndRoot();
  }
}

template <class Names>
bool SnapshotReader::Select(const Names& names, std::string_view key) {
  const bool root = in_ == In::kRoot;
  int& field = root ? root_field_ : field_;
  std::uint32_t& seen = root ? root_seen_ : seen_;
  field = -1;
  const int found = FindName(names, key);
  if (found < 0) {
    return Wrong(fmt::format("unknown field {}", QuotedBrief(key)),
                 fmt::format("known are {}", fmt::join(std::begin(names), std::end(names), ", ")));
  }
  field = found;
  if ((seen & Bit(found)) != 0) return Wrong("given twice", "give it once");
  seen |= Bit(found);
  return true;
}

bool SnapshotReader::SelectJobField(std::string_view key) {
  constexpr int kCount = static_cast<int>(kJobFields.size());
  // Fields mostly come in one order, so the search begins behind the last one.
  int found = -1;
  for (int i = 1; i <= kCount && found < 0; ++i) {
    const int candidate = (field_ + i) % kCount;
    if (kJobFields[candidate].name == key) found = candidate;
  }
  if (found < 0) {
    std::string known;
    for (const JobField& field : kJobFields)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", field.name);
    field_ = -1;
    return Wrong(fmt::format("unknown field {}", QuotedBrief(key)), fmt::format("known are {}", known));
  }
  field_ = found;
  if ((seen_ & Bit(found)) != 0) return Wrong("given twice", "give it once");
  seen_ |= Bit(found);
  return true;
}

bool SnapshotReader::SelectSize(std::string_view key) {
  size_ = PositiveWhole(key);
  if (size_ > 0) return true;
  return Wrong(fmt::format("key {} is not a number of workers", QuotedBrief(key)),
               "give keys such as \"1\" and \"16\"");
}

bool SnapshotReader::SelectSpan(std::string_view key) {
  span_ = {};
  const std::size_t at = std::min(key.find('@'), key.size());
  const std::int64_t workers = PositiveWhole(key.substr(0, at));
  const std::int64_t nodes = at < key.size() ? PositiveWhole(key.substr(at + 1)) : 0;
  const auto wrong = [&](std::string_view problem, std::string_view fix) {
    return Wrong(fmt::format("key {} {}", QuotedBrief(key), problem), fix);
  };
  if (workers == 0 || nodes == 0) return wrong("is not WORKERS@NODES", "give keys such as \"4@2\"");
  if (nodes > workers) return wrong("has more nodes than workers", "give at most one node for each worker");
  if (workers > kMaxWorkers)
    return wrong("is out of range", fmt::format("give at most {} workers", kMaxWorkers));
  span_ = {.workers = static_cast<int>(workers), .nodes = static_cast<int>(nodes)};
  return true;
}

bool SnapshotReader::OnKey(std::string& key) {
  switch (in_) {
    case In::kRoot:
      return Select(kRootNames, key);
    case In::kNode:
      return Select(kNodeNames, key);
    case In::kJob:
      return SelectJobField(key);
    case In::kSpans:
      return SelectSpan(key);
    default:
      return SelectSize(key);
  }
}

bool SnapshotReader::OnScalar(Value& scalar) {
  switch (in_) {
    case In::kRoot:
      return ReadRoot(scalar);
    case In::kNode:
      return ReadNode(scalar);
    case In::kJob:
      return ReadJob(scalar);
    case In::kSizes:
      return ReadSize(scalar, sizes_);
    case In::kWorkers:
      return ReadWorker(scalar);
    case In::kSpeedup:
      return ReadSpeedup(scalar);
    case In::kMeasured:
      return ReadSize(scalar, measured_);
    case In::kSpans:
      return ReadSpan(scalar);
    default:
      return WrongType(Shown(scalar), Expected());
  }
}

bool SnapshotReader::ReadName(Value& scalar, std::string& name) {
  if (!scalar.text()) return WrongType(Shown(scalar), Expected());
  if (scalar.Text().empty()) return Wrong("the name is empty", "give a name");
  name = std::move(scalar.MutableText());
  return true;
}

bool SnapshotReader::ReadTime(Value& scalar, double& time) {
  if (!scalar.number()) return WrongType(Shown(scalar), Expected());
  time = scalar.Number();
  return true;
}

template <class Int>
bool SnapshotReader::ReadWhole(Value& scalar, std::int64_t lo, std::int64_t hi, Int& value) {
  const auto whole = scalar.ExactWhole();
  if (!whole && !scalar.number()) return WrongType(Shown(scalar), "a whole number");
  if (!whole || *whole < lo || *whole > hi) {
    return Wrong(fmt::format("{} is {}", Shown(scalar), whole ? "out of range" : "not a whole number"),
                 fmt::format("give a whole number from {} to {}", lo, hi));
  }
  value = static_cast<Int>(*whole);
  return true;
}

bool SnapshotReader::ReadRoot(Value& scalar) {
  if (root_field_ != kNow) return WrongType(Shown(scalar), Expected());
  return ReadTime(scalar, snapshot_.now);
}

bool SnapshotReader::ReadNode(Value& scalar) {
  if (field_ == kNodeGpus) return ReadWhole(scalar, 0, kMaxNodeGpus, node_.gpus);
  if (field_ == kNodeName) {
    if (!ReadName(scalar, node_.name)) return false;
    node_id_ = Intern(node_.name);
    const NodeIndex twin = known_[node_id_].node;
    if (twin != kNoNode) {
      return Wrong(fmt::format("nodes[{}] has this name too", static_cast<int>(twin)),
                   "names must be unique");
    }
    return true;
  }
  if (scalar.text()) {
    for (const NodeState state : {NodeState::kReady, NodeState::kCordoned, NodeState::kLost}) {
      if (scalar.Text() != Name(state)) continue;
      node_.state = state;
      return true;
    }
  }
  return WrongType(Shown(scalar), Expected());
}

bool SnapshotReader::EndNode() {
  for (const int required : {kNodeName, kNodeGpus}) {
    field_ = required;
    if ((seen_ & Bit(required)) == 0) return Wrong("missing", fmt::format("give {}", Expected()));
  }
  cluster_gpus_ += node_.gpus;
  if (cluster_gpus_ > kMaxClusterGpus) {
    return Wrong(fmt::format("with {} this and the nodes before it have more than {} GPUs", node_.gpus,
                             kMaxClusterGpus),
                 "split the cluster");
  }
  known_[node_id_].node = snapshot_.nodes.end_index();
  snapshot_.nodes.push_back(std::move(node_));
  in_ = In::kNodes;
  return true;
}

bool SnapshotReader::ReadJob(Value& scalar) {
  const JobField& field = kJobFields[field_];
  const bool null = scalar.null();
  switch (field.kind) {
    case FieldKind::kName:
      return ReadName(scalar, job_.name);
    case FieldKind::kWhole:
      return ReadWhole(scalar, field.lo, field.hi, job_.*field.whole);
    case FieldKind::kTime:
      return ReadTime(scalar, job_.*field.real);
    case FieldKind::kMaybeTime:
      return null || ReadTime(scalar, job_.*field.real);
    case FieldKind::kFirstStart:
      return null || ReadTime(scalar, job_.first_start.emplace());
    case FieldKind::kSeconds:
    case FieldKind::kTotal:
    case FieldKind::kWorkDone:
      if (!ReadTime(scalar, job_.*field.real)) return false;
      return scalar.Number() >= 0 || Wrong(fmt::format("{} is negative", Shown(scalar)), "give at least 0");
    case FieldKind::kFlag:
      if (!scalar.boolean()) break;
      job_.*field.flag = scalar.Flag();
      return true;
    case FieldKind::kMeasured:
      if (!null) break;
      return true;
    default:
      break;
  }
  return WrongType(Shown(scalar), Expected());
}

bool SnapshotReader::ReadSize(Value& scalar, std::vector<int>& sizes) {
  int size = 0;
  if (!ReadWhole(scalar, 1, kMaxWorkers, size)) return false;
  if (!sizes.empty() && size <= sizes.back()) {
    return Wrong(fmt::format("{} after {} is not ascending", size, sizes.back()),
                 "give each size once, smallest first");
  }
  sizes.push_back(size);
  return true;
}

bool SnapshotReader::ReadWorker(Value& scalar) {
  if (static_cast<int>(job_.workers.size()) >= kMaxWorkers) {
    return Wrong("too many workers", fmt::format("a job has at most {}", kMaxWorkers));
  }
  if (scalar.null()) {
    job_.workers.push_back(kNoNode);
    return true;
  }
  if (!scalar.text()) return WrongType(Shown(scalar), Expected());
  if (scalar.Text().empty()) return Wrong("the name is empty", "give the name of a node");
  const NodeIndex id = Intern(scalar.MutableText());
  if (id >= kMaxSnapshotNodes)
    return Wrong("too many nodes", fmt::format("name at most {}", kMaxSnapshotNodes));
  job_.workers.push_back(id);
  return true;
}

bool SnapshotReader::ReadFactor(Value& scalar, std::size_t before) {
  if (!scalar.number()) return WrongType(Shown(scalar), Expected());
  if (!(scalar.Number() > 0))
    return Wrong(fmt::format("{} is not above 0", Shown(scalar)), "give a speed-up above 0");
  if (before >= kMaxWorkers) {
    return Wrong("too many sizes", fmt::format("name at most {}", kMaxWorkers));
  }
  return true;
}

bool SnapshotReader::ReadSpeedup(Value& scalar) {
  if (!ReadFactor(scalar, speedup_.size())) return false;
  speedup_.emplace_back(size_, scalar.Number());
  return true;
}

bool SnapshotReader::ReadSpan(Value& scalar) {
  if (!ReadFactor(scalar, spans_.size())) return false;
  span_.speedup = scalar.Number();
  spans_.push_back(span_);
  return true;
}

NodeIndex SnapshotReader::Intern(std::string& name) {
  const auto [entry, added] = ids_.try_emplace(name, known_.end_index());
  if (added) known_.push_back({&entry->first, kNoNode});
  return entry->second;
}

bool SnapshotReader::EndJob() {
  for (const std::string_view required : {"name", "min", "max"}) {
    if (!Given(required)) {
      return WrongJob(required, required == "name" ? "missing; give a name"
                                                   : "missing; give a whole number of workers of at least 1");
    }
  }
  if (job_.min > job_.max) {
    return WrongJob("min", fmt::format("{} is above max, {}; give min <= max", job_.min, job_.max));
  }
  if (!Given("num")) job_.num = job_.min;
  if (job_.num < job_.min || job_.num > job_.max) {
    return WrongJob("num", fmt::format("{} is outside min {} to max {}; give min <= num <= max", job_.num,
                                       job_.min, job_.max));
  }
  if (job_.held() > job_.max) {
    return WrongJob("workers", fmt::format("{} workers are more than max, {}; raise max or leave some out",
                                           job_.held(), job_.max));
  }
  if (Given("sizes")) {
    if (!CheckSizes()) return false;
  }
  if (Given("speedup")) {
    if (!MakeCurve()) return false;
  } else {
    job_.curve = sizes_.empty() ? curves_.Linear(job_.min, job_.max) : curves_.Of(sizes_, {});
  }
  FillInEstimate();
  snapshot_.jobs.push_back(std::move(job_));
  in_ = In::kJobs;
  return true;
}

// What a job does not say of itself is guessed.
void SnapshotReader::FillInEstimate() {
  if (!Given("guessed")) job_.guessed = !Given("remaining_seconds");
  if (!job_.guessed) {
    if (!Given("total_seconds")) job_.total_seconds = job_.remaining_seconds;
    return;
  }
  if (!Given("speedup")) {
    job_.curve = curves_.GuessedOver(job_.curve);
    if (!Given("measured")) job_.measured = measured_pool_.Of({});
  }
  if (!Given("work_done")) job_.work_done = job_.running_seconds * GuessedSpeedup(job_.held());
  const double remaining = job_.remaining_seconds;
  const double total = job_.total_seconds;
  GuessAnew(job_);
  if (Given("remaining_seconds")) {
    job_.remaining_seconds = remaining;
    job_.total_seconds = job_.work_done + remaining;
  }
  if (Given("total_seconds")) job_.total_seconds = total;
}

bool SnapshotReader::CheckSizes() {
  if (sizes_.empty()) return WrongJob("sizes", "empty; name at least min, num and max, or leave it out");
  for (const std::size_t i : {std::size_t{0}, sizes_.size() - 1}) {
    if (sizes_[i] >= job_.min && sizes_[i] <= job_.max) continue;
    return WrongJob(fmt::format("sizes[{}]", i),
                    fmt::format("{} is outside min {} to max {}; give sizes between them", sizes_[i],
                                job_.min, job_.max));
  }
  for (const auto& [name, size] :
       {std::pair{"min", job_.min}, std::pair{"num", job_.num}, std::pair{"max", job_.max}}) {
    if (std::binary_search(sizes_.begin(), sizes_.end(), size)) continue;
    return WrongJob("sizes", fmt::format("{} is missing, which is {}; min, num and max must be allowed sizes",
                                         size, name));
  }
  return true;
}

bool SnapshotReader::MakeCurve() {
  if (!std::is_sorted(speedup_.begin(), speedup_.end())) std::sort(speedup_.begin(), speedup_.end());
  const auto twin = std::adjacent_find(speedup_.begin(), speedup_.end(),
                                       [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twin != speedup_.end())
    return WrongJob(fmt::format("speedup.{}", twin->first), "given twice; give it once");

  const bool every = sizes_.empty();
  const std::size_t count = every ? static_cast<std::size_t>(job_.max - job_.min + 1) : sizes_.size();
  values_.clear();
  auto entry = speedup_.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const int size = every ? job_.min + static_cast<int>(i) : sizes_[i];
    while (entry != speedup_.end() && entry->first < size) ++entry;
    if (entry == speedup_.end() || entry->first != size) {
      return WrongJob("speedup",
                      fmt::format("no value for {}, which is an allowed size; name every allowed size, "
                                  "restrict sizes, or leave speedup out (linear)",
                                  size));
    }
    values_.push_back(entry->second);
  }
  if (every) {
    for (int size = job_.min; size <= job_.max; ++size) sizes_.push_back(size);
  }
  job_.curve = curves_.Of(sizes_, values_);
  return true;
}

// An empty table says what none says: nothing is known.
bool SnapshotReader::MakeSpans() {
  const auto key = [](const SpanSpeedup& entry) { return std::pair(entry.workers, entry.nodes); };
  std::sort(spans_.begin(), spans_.end(),
            [&](const SpanSpeedup& a, const SpanSpeedup& b) { return key(a) < key(b); });
  const auto twin =
      std::adjacent_find(spans_.begin(), spans_.end(),
                         [&](const SpanSpeedup& a, const SpanSpeedup& b) { return key(a) == key(b); });
  if (twin != spans_.end()) {
    return WrongJob(fmt::format("span_speedup.{}@{}", twin->workers, twin->nodes),
                    "given twice; give it once");
  }
  if (!spans_.empty()) job_.spans = span_pool_.Of(spans_);
  return true;
}

bool SnapshotReader::EndRoot() {
  for (const int required : {kNodes, kJobs}) {
    if ((root_seen_ & Bit(required)) != 0) continue;
    return Fail(fmt::format("{}: missing; give an array, which may be empty", kRootNames[required]));
  }
  in_ = In::kNothing;
  return true;
}

Result<Snapshot> SnapshotReader::Finish() && {
  std::unordered_map<std::string_view, JobIndex> names;
  names.reserve(snapshot_.jobs.size());
  for (const JobIndex i : snapshot_.jobs.indices()) {
    const auto [entry, added] = names.try_emplace(snapshot_.jobs[i].name, i);
    if (added) continue;
    return Error{fmt::format("jobs[{}].name (job {}): jobs[{}] has this name too; names must be unique",
                             static_cast<int>(i), QuotedBrief(snapshot_.jobs[i].name),
                             static_cast<int>(entry->second))};
  }
  for (Known& known : known_) {
    if (known.node != kNoNode) continue;
    known.node = snapshot_.nodes.end_index();
    snapshot_.nodes.push_back({*known.name, 0, NodeState::kLost});
  }
  for (Job& job : snapshot_.jobs) {
    for (NodeIndex& at : job.workers) {
      if (at != kNoNode) at = known_[at].node;
    }
  }
  return std::move(snapshot_);
}

}  // namespace

Result<Snapshot> ParseSnapshot(std::string_view text) {
  if (text.size() > kMaxSnapshotBytes) {
    return Error{
        fmt::format("snapshot: larger than {} MiB; leave out what is not needed", kMaxSnapshotBytes >> 20)};
  }
  SnapshotReader reader;
  if (const Status read = ReadJson(text, reader); !read) return read.error();
  return std::move(reader).Finish();
}

}  // namespace voda
