// LeaseState: leader election over one Lease (coordination.k8s.io/v1), as a pure state machine.
//
// A lease is taken over when its record has not CHANGED for as long as it lasts by our own monotonic clock,
// counted from when we saw the change: clocks of other machines are never compared. A lease that was deleted
// is its holder's for as long. It does not fence: a leader that stalls may still write. So LeaderUntil lies
// before the end of the lease, counted from when the renewal was SENT, and is to be checked before each
// write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/result.h"
#include "kube/api_error.h"
#include "kube/time.h"

namespace voda::kube {

struct LeaseRules {
  Duration lease{15'000};
  Duration renew_deadline{10'000};  // a leader that could not renew for so long is none
  Duration retry{2'000};
  double jitter = 0.2;  // of followers' tries

  // Names what does not fit: lease > renew_deadline > 1.2 * retry.
  Status Check() const;
};

struct LeaseRecord {
  std::string holder;
  int duration_seconds = 0;
  std::string acquire_time;  // MicroTime text, as it stands in the object
  std::string renew_time;
  int transitions = 0;

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};
// As the server has it. What others wrote into its metadata is kept when it is written.
struct StoredLease {
  LeaseRecord record;
  std::string resource_version;
  std::string labels;  // JSON, or empty
  std::string annotations;
};

struct LeaseCommand {
  enum class Kind : std::uint8_t { kGet, kCreate, kUpdate, kWait, kStopped };
  Kind kind = Kind::kWait;
  StoredLease lease;  // kCreate, kUpdate
  Duration wait{0};   // kWait, then call OnTimer
};

class LeaseState {
 public:
  LeaseState(LeaseRules rules, std::string identity, std::uint64_t seed);

  LeaseCommand Start();
  LeaseCommand OnGot(TimePoint now, WallTime wall, const StoredLease& lease);
  LeaseCommand OnWritten(TimePoint now, const StoredLease& lease);
  // Of a get or a write. NotFound of a get leads to a create, once the lease we know of has run out.
  LeaseCommand OnFailed(TimePoint now, WallTime wall, const ApiError& error);
  LeaseCommand OnTimer(TimePoint now, WallTime wall);
  // To be called at LeaderUntil: a leader that could not renew is none from then on. What is under way goes
  // on.
  void OnDeadline(TimePoint now);
  // Ends what is under way. A leader gives the lease back, then kStopped.
  LeaseCommand Stop(TimePoint now, WallTime wall);

  // Leader while now < this.
  TimePoint LeaderUntil() const { return until_; }
  bool leading() const { return leading_; }
  std::string holder() const { return seen_ ? seen_->record.holder : std::string(); }

 private:
  static LeaseCommand Get();
  LeaseCommand Write(TimePoint now, WallTime wall);
  LeaseCommand Release(WallTime wall);
  LeaseCommand Wait(TimePoint now);
  // When the lease of somebody else runs out, as far as we know; the past: it is ours or nobody's.
  TimePoint TheirsUntil() const;
  void Saw(TimePoint now, const StoredLease& lease);
  void NoLeader();

  LeaseRules rules_;
  std::string identity_;
  Random random_;
  std::optional<StoredLease> seen_;
  TimePoint changed_at_{};  // when we saw its record change
  TimePoint sent_at_{};     // the write under way
  TimePoint until_ = TimePoint::min();
  bool leading_ = false;
  bool writing_ = false;
  bool trusted_ = false;  // seen_ is what we wrote last: the next renewal needs no get
  bool stopping_ = false;
};

// The Lease object and back.
std::string LeaseJson(std::string_view name_space, std::string_view name, const StoredLease& lease);
Result<StoredLease> DecodeLease(std::string_view json);

}  // namespace voda::kube
