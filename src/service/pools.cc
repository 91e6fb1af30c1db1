#include "service/pools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "service/means.h"

namespace voda {

namespace {

constexpr double kMostRateLimit = 86400;

}  // namespace

std::string AlgorithmText(const std::string& algorithm, const PolicyOptions& options) {
  std::string text = algorithm;
  for (const auto& [key, value] : options) text += fmt::format(" {}={}", key, value);
  return text;
}

void Account(const Pool& pool, JobRecord& record) {
  const State& state = pool.state();
  const JobIndex index = FindJob(state, record.name);
  if (index == kNoJob) return;
  const ActiveJob& active = state.active[index];
  const Job& observed = state.world.job(index);
  record.waited = active.waited;
  record.ran = active.ran;
  record.gpu_seconds = active.gpu_seconds;
  record.attained = observed.attained_gpu_seconds;
  record.waiting = observed.waiting_seconds;
  record.running = observed.running_seconds;
  record.work_done = observed.work_done;
  record.accounted = active.accrued_at;
}

std::shared_ptr<const Decider> DeciderOf(const Pool& pool, double now) {
  return std::make_shared<const Decider>(Decider{View(pool.state(), now), pool.scheduler->policy()});
}

class Pools::Port final : public Cluster {
 public:
  Port(const Pools& pools, std::string gpu_type, Cluster& port)
      : pools_(pools), gpu_type_(std::move(gpu_type)), port_(port) {}
  void Execute(const Action& action, const PerNode<Node>& nodes) override {
    if (const Pool* pool = pools_.Find(gpu_type_)) pools_.before_(action, *pool);
    port_.Execute(action, nodes);
  }

 private:
  const Pools& pools_;
  std::string gpu_type_;
  Cluster& port_;
};

Pools::Pools(const ServiceConfig& config, JobCluster& cluster, History& history, Before before)
    : config_(config), cluster_(cluster), history_(history), before_(std::move(before)) {}

Pool* Pools::Find(const std::string& gpu_type) {
  const auto at = pools_.find(gpu_type);
  return at == pools_.end() ? nullptr : &at->second;
}

const Pool* Pools::Find(const std::string& gpu_type) const {
  const auto at = pools_.find(gpu_type);
  return at == pools_.end() ? nullptr : &at->second;
}

std::vector<std::string> Pools::Types() const {
  std::vector<std::string> types;
  for (const auto& [gpu_type, pool] : pools_) types.push_back(gpu_type);
  return types;
}

std::string Pools::NoSuchType(const std::string& gpu_type) const {
  return fmt::format(
      "\"{:.80}\" is not a GPU type of this cluster; {}", gpu_type,
      pools_.empty() ? "it has no node yet" : fmt::format("its types are {}", fmt::join(Types(), ", ")));
}

// The algorithm that was set for the type, else the one of the flags.
Result<std::unique_ptr<Policy>> Pools::PolicyFor(Pool& pool) const {
  const auto stored = settings_.find("algorithm/" + pool.gpu_type);
  if (!config_.algorithm_given && stored != settings_.end()) {
    const std::vector<std::string_view> words = SplitWords(stored->second);
    PolicyOptions options;
    for (const std::string_view word : words) {
      const auto equals = word.find('=');
      if (equals != word.npos) options.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    const std::string name(words.empty() ? std::string_view() : words.front());
    auto policy = MakePolicy(name, options);
    if (policy) {
      pool.algorithm = name;
      pool.options = std::move(options);
      return policy;
    }
    Log(LogLevel::kWarn, "stored algorithm cannot be used, the default is",
        {{"gpu_type", pool.gpu_type}, {"stored", stored->second}, {"why", policy.error().message}});
  }
  return config_.make_policy(pool.algorithm, pool.options);
}

Result<Pool*> Pools::For(const std::string& gpu_type) {
  if (Pool* known = Find(gpu_type)) return known;
  Pool pool;
  pool.gpu_type = gpu_type;
  pool.algorithm = config_.algorithm;
  pool.options = config_.options;
  auto policy = PolicyFor(pool);
  if (!policy) return policy.error();
  CoreConfig core = config_.core;
  if (const auto limit = settings_.find("ratelimit/" + gpu_type);
      !config_.rate_limit_given && limit != settings_.end()) {
    core.rate_limit = std::clamp(std::strtod(limit->second.c_str(), nullptr), 0.0, kMostRateLimit);
  }
  pool.port = std::make_unique<Port>(*this, gpu_type, cluster_.PortFor(gpu_type));
  pool.scheduler = std::make_unique<Scheduler>(core, std::move(*policy), *pool.port);
  const auto rounds = history_.Rounds(gpu_type, 0, 1);
  if (!rounds) return rounds.error();
  if (!rounds->empty()) pool.scheduler->ResumeRounds(rounds->front().round);
  const auto means = history_.Means();
  if (!means) return means.error();
  Pool& added = pools_.emplace(gpu_type, std::move(pool)).first->second;
  RestoreMeans(added, *means);
  return &added;
}

void Pools::RestoreMeans(Pool& pool, const std::vector<MeanRecord>& means) const {
  for (const MeanRecord& mean : means) {
    if (mean.gpu_type != pool.gpu_type || RestoreMean(mean, pool.collector)) continue;
    Log(LogLevel::kWarn, "stored estimate ignored",
        {{"category", mean.category}, {"kind", mean.kind}, {"value", mean.value}});
  }
}

}  // namespace voda
