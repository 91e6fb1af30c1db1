// MPIJob: one process, the launcher. Its size is the list of hosts that Elastic Horovod polls; the nodes of
// its workers are nominal, for all of them are on this machine.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "local/files.h"
#include "local/job_runner.h"
#include "local/mpi_hosts.h"

namespace voda::local {

namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kLook = 0.25;       // between two counts of processes
constexpr double kTrimAtLeast = 20;  // what Horovod gets to notice a shorter list, in seconds
constexpr double kTrimPatience = 5;  // between SIGTERM and SIGKILL then

class MpiRunner final : public JobRunner {
 public:
  MpiRunner(Machine& machine, ClusterJob job) : JobRunner(machine, std::move(job)) {}

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

  void OnAdopted() override {
    const Worker* launcher = workers_.Find(0);
    if (launcher == nullptr) return RemoveSeats(path());
    seats_ = ReadSeats(path());
    if (seats_.empty()) seats_.push_back({launcher->start.spec->node, launcher->start.spec->devices});
    // A shrink may have been under way: the list follows what the scheduler is told.
    if (const Status written = WriteHosts(path(), Slots(seats_.size())); !written)
      Log(LogLevel::kWarn, "hosts not written", {{"job", job_.name}, {"error", written.error().message}});
  }

  void OnEnd(StartRecord start, double now) override {
    if (start.exit->success()) {
      Close(start, {Verdict::Kind::kCompleted, 0});
      return Complete(now);
    }
    if (order_ && order_->started.contains(start.serial)) order_->failed = Message(start, "at its start");
    lost_.insert(0);
    if (Judged(start, now) && order_ && order_->failed.empty() && order_->kind != ActionKind::kHalt)
      order_->failed = fmt::format("the launcher {}", Describe(*start.exit));
  }

  bool Consider(double) override {
    if (workers_.Find(0) == nullptr && !order_ && !seats_.empty()) Clear();
    return true;
  }

  bool Step(double now) override {
    Order& order = *order_;
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
      return false;  // Complete or OnEnd will say
    }
    if (!order.started.empty()) return Settled(now) && Done(now);
    return Resize(order, now);
  }

  double NextOfKind(double now) const override {
    return order_ && order_->trim_at > 0 && look_at_ > now ? look_at_ : kForever;
  }

 private:
  const std::string& path() const { return workers_.folder().path(); }
  int Slots(std::size_t workers) const {
    return static_cast<int>(workers) * std::max(1, job_.spec.slots_per_worker);
  }

  void Clear() {
    seats_.clear();
    RemoveSeats(path());
  }

  // The seats of an order: those that stay keep their devices.
  Result<std::vector<MpiSeat>> Seats(const Order& order) {
    const std::vector<MpiSeat> before = std::exchange(seats_, {});
    Status taken = Ok{};
    for (std::size_t i = 0; i < order.seats.size(); ++i) {
      const bool stays = i < before.size() && before[i].node == order.seats[i];
      seats_.push_back(stays ? before[i] : MpiSeat{.node = order.seats[i], .devices = {}});
    }
    for (std::size_t i = 0; i < seats_.size() && taken; ++i) {
      if (seats_[i].node.empty() || (i < before.size() && before[i].node == seats_[i].node)) continue;
      auto devices = machine_.FreeDevices(seats_[i].node, job_.spec.gpus_per_worker);
      if (devices) {
        seats_[i].devices = std::move(devices->indices);
      } else {
        taken = devices.error();
      }
    }
    std::vector<MpiSeat> after = std::exchange(seats_, before);
    if (!taken) return taken.error();
    return after;
  }

  Status Take(std::vector<MpiSeat> seats) {
    if (const Status made = MakeFolder(path(), 0700); !made) return made.error();
    if (const Status written = WriteSeats(path(), seats); !written) return written.error();
    seats_ = std::move(seats);
    return WriteHosts(path(), Slots(seats_.size()));
  }

  bool Launch(Order& order, double now) {
    seats_.clear();
    auto seats = Seats(order);
    Status ready = seats ? Take(std::move(*seats)) : Status(seats.error());
    if (ready) ready = StartLauncher(order);
    if (!ready) order.failed = ready.error().message;
    return ready ? Settled(now) && Done(now) : Step(now);
  }

  Status StartLauncher(const Order& order) {
    Seat seat{.worker = 0, .node = seats_.empty() ? "" : seats_[0].node};
    seat.incarnation = workers_.last_incarnation() + 1;
    // Its environment cannot change when it grows: all GPUs of its nodes, its own first, then free ones.
    const auto add = [&seat](const std::vector<int>& devices) {
      for (const int device : devices) {
        if (std::find(seat.devices.begin(), seat.devices.end(), device) == seat.devices.end())
          seat.devices.push_back(device);
      }
    };
    for (const MpiSeat& own : seats_) add(own.devices);
    for (const bool free : {true, false}) {
      for (const std::string& node : order.nodes) {
        const auto all = machine_.DevicesOf(node);
        seat.has_devices = seat.has_devices || all.known;
        if (!free) {
          add(all.indices);
          continue;
        }
        for (int count = static_cast<int>(all.indices.size()); count > 0; --count) {
          const auto left = machine_.FreeDevices(node, count);
          if (!left) continue;
          add(left->indices);
          break;
        }
      }
    }
    const std::int64_t each = job_.spec.worker.memory_bytes;
    const std::int64_t launcher = job_.spec.launcher ? job_.spec.launcher->memory_bytes : 0;
    if (each > 0 && launcher > 0) seat.memory_bytes = launcher + each * job_.spec.max;
    return Start(seat, order.kind == ActionKind::kStart ? "start" : "repair");
  }

  bool Resize(Order& order, double now) {
    if (order.seats.size() < seats_.size()) return Shrink(order, now);
    auto seats = Seats(order);
    const bool grows = order.seats.size() > seats_.size();
    const Status taken = seats ? Take(std::move(*seats)) : Status(seats.error());
    if (!taken) return Failed(taken.error().message);
    if (grows) changed_at_ = now;
    return Done(now);
  }

  // The list first, then the processes; what is held shrinks when they are gone.
  bool Shrink(Order& order, double now) {
    const int slots = Slots(order.seats.size());
    if (order.trim_at == 0) {
      if (const Status written = WriteHosts(path(), slots); !written) return Failed(written.error().message);
      order.trim_at = now + std::max(kTrimAtLeast, static_cast<double>(job_.spec.grace_seconds));
      changed_at_ = now;
      look_at_ = now;
    }
    if (now < look_at_) return false;
    const std::vector<RankProcess> ranks = RankProcesses(path());
    const auto allowed = static_cast<std::size_t>(slots);
    if (ranks.size() > allowed) {
      look_at_ = now + kLook;
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
    std::vector<MpiSeat> seats(seats_.begin(),
                               seats_.begin() + static_cast<std::ptrdiff_t>(order.seats.size()));
    if (const Status written = WriteSeats(path(), seats); !written)
      Log(LogLevel::kWarn, "seats not written", {{"job", job_.name}, {"error", written.error().message}});
    seats_ = std::move(seats);
    return Done(now);
  }

  std::vector<MpiSeat> seats_;
  double look_at_ = 0;
};

}  // namespace

std::unique_ptr<JobRunner> MakeMpiRunner(Machine& machine, ClusterJob job) {
  return std::make_unique<MpiRunner>(machine, std::move(job));
}

}  // namespace voda::local
