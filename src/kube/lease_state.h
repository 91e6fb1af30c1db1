// LeaseState: leader election over one Lease (coordination.k8s.io/v1), as a pure state machine.
//
// A replica takes a lease over when its record has not CHANGED for the length of the lease, measured by the
// replica's own monotonic clock from when it saw the last change: clocks of other machines are never
// compared. A deleted lease still belongs to its holder for that long. The lease does not fence: a leader
// that stalls may still write. So LeaderUntil lies before the end of the lease, counted from when the
// renewal was SENT, and must be checked before each write.
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
  Duration renew_deadline{10'000};  // after this long without a renewal, a leader leads no more
  Duration retry{2'000};
  double jitter = 0.2;  // how far followers spread their tries

  // The error names what does not fit: lease > renew_deadline > 1.2 * retry.
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
// A lease as the server has it. A write keeps what others put into its metadata.
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
  Duration wait{0};   // for kWait; then call OnTimer
};

class LeaseState {
 public:
  LeaseState(LeaseRules rules, std::string identity, std::uint64_t seed);

  LeaseCommand Start();
  LeaseCommand OnGot(TimePoint now, WallTime wall, const StoredLease& lease);
  LeaseCommand OnWritten(TimePoint now, const StoredLease& lease);
  // A get or a write failed. NotFound of a get leads to a create, once the lease that we know of has run out.
  LeaseCommand OnFailed(TimePoint now, WallTime wall, const ApiError& error);
  LeaseCommand OnTimer(TimePoint now, WallTime wall);
  // To be called at LeaderUntil: a leader that could not renew leads no more from then on. A request under
  // way goes on.
  void OnDeadline(TimePoint now);
  // Ends what is under way. A leader gives the lease back first; the last command is kStopped.
  LeaseCommand Stop(TimePoint now, WallTime wall);

  // This replica leads while now < LeaderUntil().
  TimePoint LeaderUntil() const { return until_; }
  bool leading() const { return leading_; }
  std::string holder() const { return seen_ ? seen_->record.holder : std::string(); }

 private:
  static LeaseCommand Get();
  LeaseCommand Write(TimePoint now, WallTime wall);
  LeaseCommand Release(WallTime wall);
  LeaseCommand Wait(TimePoint now);
  // When the lease of another replica runs out, as far as we know; in the past if there is no such lease.
  TimePoint TheirsUntil() const;
  void Saw(TimePoint now, const StoredLease& lease);
  void NoLeader();

  LeaseRules rules_;
  std::string identity_;
  Random random_;
  std::optional<StoredLease> seen_;
  TimePoint changed_at_{};  // when we saw its record change
  TimePoint sent_at_{};     // when the write under way was sent
  TimePoint until_ = TimePoint::min();
  bool leading_ = false;
  bool writing_ = false;
  bool trusted_ = false;  // seen_ is what we wrote last, so the next renewal needs no get
  bool stopping_ = false;
};

// Writes the Lease object as JSON, and reads it back.
std::string LeaseJson(std::string_view name_space, std::string_view name, const StoredLease& lease);
Result<StoredLease> DecodeLease(std::string_view json);

}  // namespace voda::kube
