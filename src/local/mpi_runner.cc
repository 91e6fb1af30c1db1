// MPIJob: one process, the launcher. Its size is the list of hosts that Elastic Horovod polls; the nodes of
// its workers are nominal, because all of them are on this machine.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "local/files.h"
#include "local/job_runner.h"
#include "local/mpi_hosts.h"
#include "local/network.h"
#include "local/nudge.h"
#include "local/plain_path.h"

namespace voda::local {

namespace {

constexpr double kCountEvery = 0.25;  // seconds between two counts of processes
constexpr double kTrimAtLeast = 20;   // how long Horovod may take to notice a shorter list, in seconds
constexpr double kTrimPatience = 5;   // then the time between SIGTERM and SIGKILL

// Workers are processes of the launcher, so all share one limit: that of the job's most workers and of the
// launcher. If workers have no limit, there is none, whatever the launcher says.
std::int64_t MemoryLimit(const JobSpec& spec) {
  const std::int64_t parts = std::int64_t{spec.limits.max} + 1;
  const auto part = [&](std::int64_t bytes) {
    return std::min(bytes, std::numeric_limits<std::int64_t>::max() / parts);
  };
  if (spec.worker.memory_bytes == 0) return 0;
  return part(spec.worker.memory_bytes) * spec.limits.max +
         part(spec.launcher ? spec.launcher->memory_bytes : 0);
}

class MpiRunner final : public JobRunner {
 public:
  MpiRunner(Machine& machine, AcceptedJob job) : JobRunner(machine, std::move(job)) {}

  std::vector<int> HeldDevices(const std::string& node) const override {
    std::vector<int> held;
    for (const MpiSeat& seat : seats_) {
      if (seat.node == node) held.insert(held.end(), seat.devices.begin(), seat.devices.end());
    }
    return held;
  }

 protected:
  std::string Title(int) const override { return "the launcher"; }

  std::vector<std::string> Actual() const override {
    std::vector<std::string> nodes;
    if (workers_.Find(0) == nullptr) return nodes;
    for (const MpiSeat& seat : seats_) nodes.push_back(seat.node);
    return nodes;
  }

  Status Recall() override {
    auto seats = ReadSeats(path());
    if (!seats) return seats.error();
    seats_ = std::move(*seats);
    return Ok{};
  }

  void OnAdopted() override {
    const Worker* launcher = workers_.Find(0);
    if (launcher == nullptr) return Clear();
    if (seats_.empty()) seats_.push_back({launcher->start.spec->node, launcher->start.spec->devices});
    // A shrink may have been under way: the list follows what the scheduler was told.
    List(Slots(seats_.size()));
    adopted_ = true;
  }

  void OnEnd(StartRecord start, double now) override {
    if (start.exit->success()) {
      Close(start, {ExitVerdict::Kind::kCompleted, 0});
      return Complete(now);
    }
    if (order_ && order_->started.contains(start.serial)) order_->failed = Message(start, "at its start");
    lost_.insert(0);
    if (CountEnd(start, now) && order_ && order_->failed.empty() && order_->kind != ActionKind::kHalt)
      order_->failed = fmt::format("the launcher {}", Describe(*start.exit));
  }

  bool Consider(double now) override {
    if (workers_.Find(0) == nullptr && !order_ && !seats_.empty()) Clear();
    if (std::exchange(adopted_, false)) nudge_.Begin(now);
    if (workers_.Find(0) == nullptr || seats_.empty()) nudge_.End();
    if (!order_ && now >= nudge_.due()) {
      const int slots = Slots(seats_.size());
      const auto ranks = RankProcesses(path());
      // Without ranks it does not use Horovod, or its launcher is just starting them.
      const bool follows = !ranks || ranks->empty() || ranks->size() >= static_cast<std::size_t>(slots);
      List(nudge_.Off(now, follows) ? slots - 1 : slots);
    }
    return true;
  }

  bool Step(double now) override {
    OrderInHand& order = *order_;
    const Worker* launcher = workers_.Find(0);
    if (!order.failed.empty()) {
      if (launcher != nullptr && order.started.contains(launcher->start.serial)) {
        workers_.Stop(0, now);
        return false;
      }
      if (launcher == nullptr) Clear();
      return Failed(order.failed);
    }
    if (order.kind == ActionKind::kHalt) {
      workers_.StopAll(now);
      if (launcher != nullptr) return false;
      Clear();
      return Done(now);
    }
    if (launcher != nullptr && launcher->stopping) return false;
    if (launcher == nullptr) {
      if (order.started.empty() && Releases(order.kind)) return Failed("the launcher is not running");
      if (order.started.empty()) return Launch(order, now);
      return false;  // Complete or OnEnd reports the end
    }
    if (!order.started.empty()) return TrialOver(now) && Done(now);
    return Resize(order, now);
  }

  double NextOfKind(double now) const override {
    if (order_) return order_->trim_at > 0 && look_at_ > now ? look_at_ : kForever;
    return nudge_.due();
  }

 private:
  const std::string& path() const { return workers_.folder().path(); }
  int Slots(std::size_t workers) const {
    return static_cast<int>(workers) * std::max(1, job_.spec->slots_per_worker);
  }

  void List(int slots) {
    if (const Status written = WriteHosts(path(), slots); !written)
      Log(LogLevel::kWarn, "hosts not written", {{"job", job_.name}, {"error", written.error().message}});
  }

  void Clear() {
    seats_.clear();
    RemoveSeats(path());
  }

  // The seats of an order; workers that stay keep their devices.
  Result<std::vector<MpiSeat>> Seats(const Order& order) {
    const std::vector<MpiSeat> before = std::exchange(seats_, {});
    Status taken = Ok{};
    for (std::size_t i = 0; i < order.seats.size(); ++i) {
      const bool stays = i < before.size() && before[i].node == order.seats[i];
      seats_.push_back(stays ? before[i] : MpiSeat{.node = order.seats[i], .devices = {}});
    }
    for (std::size_t i = 0; i < seats_.size() && taken; ++i) {
      if (seats_[i].node.empty() || (i < before.size() && before[i].node == seats_[i].node)) continue;
      auto devices = DevicesFor(i);
      if (devices) {
        seats_[i].devices = std::move(*devices);
      } else {
        taken = devices.error();
      }
    }
    std::vector<MpiSeat> after = std::exchange(seats_, before);
    if (!taken) return taken.error();
    return after;
  }

  // Horovod's local rank i uses the i-th device that the launcher sees, so a worker that comes later gets
  // the devices of its ranks, if they are free.
  Result<std::vector<int>> DevicesFor(std::size_t seat) const {
    const std::string& node = seats_[seat].node;
    auto some = machine_.FreeDevices(node, job_.spec->gpus_per_worker);
    if (!some) return some.error();
    const Worker* launcher = workers_.Find(0);
    if (launcher == nullptr || !some->known) return some->indices;
    const std::vector<int>& seen = launcher->start.spec->devices;
    const auto each = some->indices.size();
    if (seen.size() < (seat + 1) * each) return some->indices;
    const auto first = seen.begin() + static_cast<std::ptrdiff_t>(seat * each);
    const std::vector<int> own(first, first + static_cast<std::ptrdiff_t>(each));
    const std::vector<int> free = FreeOf(node);
    const bool all = std::all_of(own.begin(), own.end(), [&](int device) {
      return std::find(free.begin(), free.end(), device) != free.end();
    });
    if (all) return own;
    Log(LogLevel::kWarn, "an MPIJob grows onto GPUs that others hold; its launcher chose them at its start",
        {{"job", job_.name}, {"worker", seat}, {"devices", fmt::format("{}", fmt::join(own, ","))}});
    return some->indices;
  }

  std::vector<int> FreeOf(const std::string& node) const {
    for (int count = static_cast<int>(machine_.DevicesOf(node).indices.size()); count > 0; --count) {
      if (auto free = machine_.FreeDevices(node, count)) return std::move(free->indices);
    }
    return {};
  }

  Status Take(std::vector<MpiSeat> seats) {
    if (const Status made = MakeFolder(path(), 0700); !made) return made.error();
    if (const Status written = WriteSeats(path(), seats); !written) return written.error();
    seats_ = std::move(seats);
    return WriteHosts(path(), Slots(seats_.size()));
  }

  bool Launch(OrderInHand& order, double now) {
    seats_.clear();
    auto seats = Seats(order);
    Status ready = Claim();
    if (ready) ready = seats ? Take(std::move(*seats)) : Status(seats.error());
    if (ready) ready = StartLauncher(order);
    if (!ready) order.failed = ready.error().message;
    return ready ? TrialOver(now) && Done(now) : Step(now);
  }

  Status StartLauncher(const OrderInHand& order) {
    WorkerSpec start{.worker = 0,
                     .incarnation = workers_.last_incarnation() + 1,
                     .node = seats_.empty() ? "" : seats_[0].node,
                     .purpose = order.kind == ActionKind::kStart ? "start" : "repair",
                     .memory_bytes = MemoryLimit(*job_.spec),
                     .network = config().private_network ? kOwnNetwork : ""};
    const auto folder = PlainPath(config().folder);
    if (!folder) return folder.error();
    Told told;
    told.discover_hosts = DiscoverPath(*folder + path().substr(config().folder.size()));
    // Its environment cannot change when it grows, so it gets all GPUs of its nodes: its own first, then
    // free ones. A job that keeps its size sees only its own.
    const auto add = [&start](const std::vector<int>& devices) {
      for (const int device : devices) {
        if (std::find(start.devices.begin(), start.devices.end(), device) == start.devices.end())
          start.devices.push_back(device);
      }
    };
    for (const MpiSeat& own : seats_) add(own.devices);
    for (const bool free : {true, false}) {
      for (const std::string& node : order.nodes) {
        const auto all = machine_.DevicesOf(node);
        told.has_devices = told.has_devices || all.known;
        if (job_.spec->elastic) add(free ? FreeOf(node) : all.indices);
      }
    }
    return Start(std::move(start), told);
  }

  bool Resize(OrderInHand& order, double now) {
    if (order.seats.size() < seats_.size()) return Shrink(order, now);
    auto seats = Seats(order);
    const bool grows = order.seats.size() > seats_.size();
    const Status taken = seats ? Take(std::move(*seats)) : Status(seats.error());
    if (!taken) return Failed(taken.error().message);
    if (grows) {
      changed_at_ = now;
      nudge_.Begin(now);
    }
    return Done(now);
  }

  // Shortens the list first, then ends processes; the seats shrink when they are gone.
  bool Shrink(OrderInHand& order, double now) {
    const int slots = Slots(order.seats.size());
    if (order.trim_at == 0) {
      if (const Status written = WriteHosts(path(), slots); !written) return Failed(written.error().message);
      order.trim_at = now + std::max(kTrimAtLeast, static_cast<double>(job_.spec->grace_seconds));
      // A job that is starting up does not read its list yet.
      order.trim_at =
          std::max(order.trim_at, workers_.Find(0)->start.spec->started + config().launch_seconds);
      nudge_.Begin(now);
      changed_at_ = now;
      look_at_ = now;
    }
    if (now < look_at_) return false;
    const auto seen = RankProcesses(path());
    look_at_ = now + kCountEvery;
    if (!seen) return false;
    const std::vector<RankProcess>& ranks = *seen;
    const auto allowed = static_cast<std::size_t>(slots);
    if (ranks.size() > allowed) {
      if (now >= nudge_.due()) List(nudge_.Off(now, false) ? slots + 1 : slots);
      const bool kill = now >= order.trim_at + kTrimPatience;
      if (now >= order.trim_at && (kill || !order.trimmed)) {
        order.trimmed = true;
        for (std::size_t i = allowed; i < ranks.size(); ++i)
          Signal(ranks[i].process, kill ? SIGKILL : SIGTERM);
      }
      return false;
    }
    look_at_ = 0;
    changed_at_ = now;
    nudge_.End();
    List(slots);
    std::vector<MpiSeat> seats(seats_.begin(),
                               seats_.begin() + static_cast<std::ptrdiff_t>(order.seats.size()));
    if (const Status written = WriteSeats(path(), seats); !written)
      Log(LogLevel::kWarn, "seats not written", {{"job", job_.name}, {"error", written.error().message}});
    seats_ = std::move(seats);
    return Done(now);
  }

  std::vector<MpiSeat> seats_;
  double look_at_ = 0;
  Nudge nudge_;
  bool adopted_ = false;  // adopted and not looked at since
};

}  // namespace

std::unique_ptr<JobRunner> MakeMpiRunner(Machine& machine, AcceptedJob job) {
  return std::make_unique<MpiRunner>(machine, std::move(job));
}

}  // namespace voda::local
