#include "service/settings.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "document/json_writer.h"

namespace voda {

namespace {

constexpr double kRateLimitMax = 86400;

struct Next {
  std::string gpu_type, algorithm;
  PolicyOptions options;
};

}  // namespace

void Settings::Set(const std::string& gpu_type, const Change& change, Ledger::Done done) {
  if (!gpu_type.empty() && pools_.Find(gpu_type) == nullptr)
    return done(NotFound("gpu_type: " + pools_.NoSuchType(gpu_type)));
  if (change.rate_limit && !(*change.rate_limit >= 0 && *change.rate_limit <= kRateLimitMax)) {
    return done(Invalid(
        fmt::format("rate_limit_seconds: {} is not from 0 to {}", *change.rate_limit, kRateLimitMax)));
  }
  // Everything is tried before anything is changed.
  const std::vector<std::string> types =
      gpu_type.empty() ? pools_.Types() : std::vector<std::string>{gpu_type};
  std::map<std::string, std::string> kept;
  std::vector<Next> next;
  for (const std::string& type : types) {
    if (change.rate_limit) kept["ratelimit/" + type] = fmt::format("{}", *change.rate_limit);
    if (!change.algorithm && !change.options) continue;
    Next one{type, change.algorithm.value_or(pools_.At(type).algorithm),
             change.options.value_or(PolicyOptions())};
    if (const auto policy = MakePolicy(one.algorithm, one.options); !policy)
      return done(Invalid(policy.error().message));
    kept["algorithm/" + type] = AlgorithmText(one.algorithm, one.options);
    next.push_back(std::move(one));
  }
  ledger_.Set(kept, [this, types, next = std::move(next), rate_limit = change.rate_limit,
                     done = std::move(done)](const std::optional<Refusal>& failed) {
    if (failed) return done(failed);
    for (const Next& one : next) {
      Pool& pool = pools_.At(one.gpu_type);
      pool.scheduler->SetPolicy(std::move(*MakePolicy(one.algorithm, one.options)));
      metrics_.Remove(Series::kSchedulerInfo, {one.gpu_type, pool.algorithm});
      pool.algorithm = one.algorithm;
      pool.options = one.options;
    }
    for (const std::string& type : types) {
      Pool& pool = pools_.At(type);
      if (rate_limit) pool.scheduler->SetRateLimit(*rate_limit);
      const double limit = pool.state().config.rate_limit;
      Log(LogLevel::kInfo, "settings.changed",
          {{"gpu_type", type}, {"algorithm", pool.algorithm}, {"rate_limit", limit}});
      JsonWriter fields;
      fields.Field("algorithm", pool.algorithm).Field("rate_limit_seconds", limit);
      announcer_.Publish("settings.changed", type, {}, fields.Take());
    }
    done(std::nullopt);
  });
}

}  // namespace voda
