#include "kube/lease_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "document/documents.h"
#include "document/json_writer.h"

namespace voda::kube {

namespace {

int Seconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

Status LeaseRules::Check() const {
  if (retry < Duration(1)) return Error{fmt::format("lease retry of {} ms: give at least 1", retry.count())};
  if (renew_deadline * 10 <= retry * 12) {
    return Error{
        fmt::format("lease renew deadline of {} ms: give more than 1.2 times the retry period of {} ms",
                    renew_deadline.count(), retry.count())};
  }
  if (lease <= renew_deadline || lease < Duration(1000)) {
    return Error{
        fmt::format("lease duration of {} ms: give at least 1 s and more than the renew deadline of {} ms",
                    lease.count(), renew_deadline.count())};
  }
  return Ok{};
}

LeaseState::LeaseState(LeaseRules rules, std::string identity, std::uint64_t seed)
    : rules_(rules), identity_(std::move(identity)), random_(seed) {}

LeaseCommand LeaseState::Get() {
  return {.kind = LeaseCommand::Kind::kGet};
}

LeaseCommand LeaseState::Wait(TimePoint now) {
  // Followers try at different times; a leader keeps its beat.
  const double stretch = leading_ ? 1 : 1 + rules_.jitter * random_.Uniform();
  Duration wait(static_cast<Duration::rep>(static_cast<double>(rules_.retry.count()) * stretch));
  if (now < TheirsUntil()) wait = std::min(wait, TheirsUntil() - now);
  return {.kind = LeaseCommand::Kind::kWait, .wait = wait};
}

TimePoint LeaseState::TheirsUntil() const {
  if (!seen_ || seen_->record.holder.empty() || seen_->record.holder == identity_) return TimePoint::min();
  return changed_at_ + std::chrono::seconds(std::max(1, seen_->record.duration_seconds));
}

LeaseCommand LeaseState::Write(TimePoint now, WallTime wall) {
  LeaseCommand command{.kind = LeaseCommand::Kind::kCreate};
  if (seen_) {
    command.kind = LeaseCommand::Kind::kUpdate;
    command.lease = *seen_;
  }
  LeaseRecord& record = command.lease.record;
  const std::string time = MicroTime(wall);
  if (record.holder != identity_ || record.acquire_time.empty()) {
    if (seen_ && record.holder != identity_ && record.transitions < std::numeric_limits<int>::max()) {
      ++record.transitions;
    }
    record.acquire_time = time;
  }
  record.holder = identity_;
  record.duration_seconds = Seconds(rules_.lease);
  record.renew_time = time;
  sent_at_ = now;
  writing_ = true;
  return command;
}

LeaseCommand LeaseState::Release(WallTime wall) {
  LeaseCommand command{.kind = LeaseCommand::Kind::kUpdate, .lease = *seen_};
  command.lease.record.holder.clear();
  command.lease.record.duration_seconds = 1;
  command.lease.record.renew_time = MicroTime(wall);
  command.lease.record.acquire_time = command.lease.record.renew_time;
  writing_ = true;
  return command;
}

void LeaseState::Saw(TimePoint now, const StoredLease& lease) {
  if (!seen_ || !(seen_->record == lease.record)) changed_at_ = now;
  seen_ = lease;
}

void LeaseState::NoLeader() {
  leading_ = false;
  trusted_ = false;
  until_ = TimePoint::min();
}

void LeaseState::OnDeadline(TimePoint now) {
  if (leading_ && now >= until_) NoLeader();
}

LeaseCommand LeaseState::Start() {
  return Get();
}

LeaseCommand LeaseState::OnGot(TimePoint now, WallTime wall, const StoredLease& lease) {
  Saw(now, lease);
  OnDeadline(now);
  const bool ours = lease.record.holder == identity_;
  if (stopping_) return ours ? Release(wall) : LeaseCommand{.kind = LeaseCommand::Kind::kStopped};
  if (leading_ && !ours) NoLeader();
  if (now < TheirsUntil()) return Wait(now);
  return Write(now, wall);
}

LeaseCommand LeaseState::OnWritten(TimePoint now, const StoredLease& lease) {
  writing_ = false;
  Saw(now, lease);
  if (stopping_) return {.kind = LeaseCommand::Kind::kStopped};
  trusted_ = true;
  // A late answer may be about a lease that has ended since.
  const TimePoint until = sent_at_ + rules_.renew_deadline;
  if (now < until) {
    leading_ = true;
    until_ = until;
  } else {
    NoLeader();
  }
  return Wait(now);
}

LeaseCommand LeaseState::OnFailed(TimePoint now, WallTime wall, const ApiError& error) {
  const bool of_a_write = std::exchange(writing_, false);
  trusted_ = false;
  OnDeadline(now);
  if (stopping_) return {.kind = LeaseCommand::Kind::kStopped};
  if (error.reason == Reason::kNotFound) {
    if (now < TheirsUntil()) return Wait(now);  // the holder leads until it cannot renew
    seen_.reset();
    if (!of_a_write) return Write(now, wall);
  }
  // Somebody else wrote the lease: a leader must learn at once whether it still leads.
  if (of_a_write && leading_ && error.reason == Reason::kConflict) return Get();
  return Wait(now);
}

LeaseCommand LeaseState::OnTimer(TimePoint now, WallTime wall) {
  OnDeadline(now);
  return leading_ && trusted_ ? Write(now, wall) : Get();
}

LeaseCommand LeaseState::Stop(TimePoint, WallTime wall) {
  const bool may_hold = leading_ || writing_ || (seen_ && seen_->record.holder == identity_);
  const bool known = trusted_ && !writing_ && leading_;
  NoLeader();
  stopping_ = true;
  if (!may_hold) return {.kind = LeaseCommand::Kind::kStopped};
  return known ? Release(wall) : Get();
}

std::string LeaseJson(std::string_view name_space, std::string_view name, const StoredLease& lease) {
  JsonWriter out;
  out.Object().Field("apiVersion", "coordination.k8s.io/v1").Field("kind", "Lease");
  out.Key("metadata").Object().Field("name", name).Field("namespace", name_space);
  out.FieldIf("resourceVersion", lease.resource_version);
  if (!lease.labels.empty()) out.Key("labels").Raw(lease.labels);
  if (!lease.annotations.empty()) out.Key("annotations").Raw(lease.annotations);
  out.End();
  out.Key("spec").Object();
  out.Field("holderIdentity", lease.record.holder)
      .Field("leaseDurationSeconds", lease.record.duration_seconds)
      .FieldIf("acquireTime", lease.record.acquire_time)
      .FieldIf("renewTime", lease.record.renew_time)
      .Field("leaseTransitions", lease.record.transitions);
  return out.End().End().Take();
}

Result<StoredLease> DecodeLease(std::string_view json) {
  const auto root = ParseJson(json);
  if (!root || !(*root)["metadata"].map()) return Error{"the answer is not a Lease"};
  const Value& metadata = (*root)["metadata"];
  const auto raw = [&](std::string_view key) {
    return metadata[key].map() ? ToJson(metadata[key]) : std::string();
  };
  StoredLease lease{.resource_version = metadata["resourceVersion"].Text(),
                    .labels = raw("labels"),
                    .annotations = raw("annotations")};
  if (lease.resource_version.empty()) return Error{"a Lease without resourceVersion"};
  const Value& spec = (*root)["spec"];
  const auto number = [&](std::string_view key) {
    const std::int64_t value = spec[key].ExactWhole().value_or(0);
    return value >= 0 && value <= 1'000'000'000 ? static_cast<int>(value) : 0;
  };
  lease.record = {.holder = spec["holderIdentity"].Text(),
                  .duration_seconds = number("leaseDurationSeconds"),
                  .acquire_time = spec["acquireTime"].Text(),
                  .renew_time = spec["renewTime"].Text(),
                  .transitions = number("leaseTransitions")};
  return lease;
}

}  // namespace voda::kube
