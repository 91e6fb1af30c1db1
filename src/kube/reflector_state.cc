#include "kube/reflector_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kube/retry.h"

namespace voda::kube {

namespace {

// The server cannot serve the version that we have, so we need the newest.
bool VersionIsUseless(const ApiError& error) {
  return error.reason == Reason::kExpired || error.reason == Reason::kResourceVersionTooLarge;
}

// The version that we have is still good: the server, or the connection to it, is in trouble.
bool ServerInTrouble(const ApiError& error) {
  switch (error.reason) {
    case Reason::kInternalError:
    case Reason::kServiceUnavailable:
    case Reason::kTimeout:
    case Reason::kUnauthorized:
    case Reason::kCredentials:
    case Reason::kQueueFull:
      return true;
    default:
      return error.code >= 500;
  }
}

}  // namespace

ReflectorState::ReflectorState(ReflectorRules rules, std::uint64_t seed, ObjectSink& sink)
    : rules_(rules),
      sink_(sink),
      backoff_(rules.backoff, seed),
      random_(seed + 1),
      newest_(rules.consistent_first_list) {}

ReflectorCommand ReflectorState::Start() {
  return List();
}

ReflectorCommand ReflectorState::List() {
  ++round_;
  continue_.clear();
  ReflectorCommand command{.kind = ReflectorCommand::Kind::kList};
  if (!newest_) command.resource_version = version_.empty() ? "0" : version_;
  // A list of a given version comes whole from the server's memory; only a list from the store is worth
  // paging.
  if (newest_ && paged_) command.limit = rules_.page;
  return command;
}

ReflectorCommand ReflectorState::Watch() {
  opened_ = false;
  had_events_ = false;
  const auto from = static_cast<double>(rules_.watch_from.count());
  const auto to = static_cast<double>(rules_.watch_to.count());
  return {.kind = ReflectorCommand::Kind::kWatch,
          .resource_version = version_,
          .timeout_seconds = static_cast<int>((from + (to - from) * random_.Uniform()) / 1000)};
}

ReflectorCommand ReflectorState::Wait(TimePoint now, bool then_list, std::optional<Duration> at_least) {
  list_next_ = then_list;
  Duration wait = backoff_.Next(now);
  if (at_least) wait = std::max(wait, std::min(*at_least, kLongestRetryAfter));
  return {.kind = ReflectorCommand::Kind::kWait, .wait = wait};
}

ReflectorCommand ReflectorState::Relist(TimePoint now, const ApiError& error) {
  newest_ = VersionIsUseless(error);
  paged_ = true;
  server_errors_ = 0;
  // An expired version is nobody's fault (the server restarted, or we were away), so the first time costs
  // no wait.
  if (newest_ && backoff_.Fresh(now)) {
    backoff_.Next(now);
    return List();
  }
  return Wait(now, true, error.retry_after);
}

void ReflectorState::OnListItem(const ObjectHead& head, const JsonView& object) {
  Apply(head, object, round_);
}

ReflectorCommand ReflectorState::OnListPage(const ListHead& page) {
  if (!page.continue_token.empty()) {
    continue_ = page.continue_token;
    return {.kind = ReflectorCommand::Kind::kList, .continue_token = continue_, .limit = rules_.page};
  }
  std::vector<ObjectHead> gone;
  for (auto at = known_.begin(); at != known_.end();) {
    if (at->second.seen == round_) {
      ++at;
      continue;
    }
    gone.push_back({at->first.name_space, at->first.name, std::move(at->second.uid),
                    std::move(at->second.resource_version)});
    at = known_.erase(at);
  }
  for (const ObjectHead& head : gone) sink_.OnDelete(head, {});
  version_ = page.resource_version;
  newest_ = false;
  paged_ = true;
  if (!std::exchange(synced_, true)) sink_.OnSynced();
  return Watch();
}

ReflectorCommand ReflectorState::OnListFailed(TimePoint now, const ApiError& error) {
  const bool of_a_page = !continue_.empty();
  if (VersionIsUseless(error) && (of_a_page || !newest_)) {
    if (of_a_page) paged_ = false;  // paging takes longer than the server remembers a version
    newest_ = true;
    return List();
  }
  return Wait(now, true, error.retry_after);
}

void ReflectorState::OnWatchOpened(TimePoint now) {
  opened_ = true;
  opened_at_ = now;
}

std::optional<ReflectorCommand> ReflectorState::OnWatchEvent(TimePoint now, const WatchEvent& event) {
  if (event.type == WatchType::kError) return AfterError(now, DecodeStatusObject(event.object));
  had_events_ = true;
  server_errors_ = 0;
  switch (event.type) {
    case WatchType::kAdded:
    case WatchType::kModified:
      Apply(event.head, event.object, round_);
      break;
    case WatchType::kDeleted: {
      const auto at = known_.find({event.head.name_space, event.head.name});
      if (at != known_.end() && at->second.uid == event.head.uid) {
        known_.erase(at);
        sink_.OnDelete(event.head, event.object);
      }
      break;
    }
    case WatchType::kBookmark:
    case WatchType::kError:
      break;
  }
  version_ = event.head.resource_version;
  return std::nullopt;
}

ReflectorCommand ReflectorState::OnWatchEnded(TimePoint now, const std::optional<ApiError>& error) {
  const bool lived = opened_ && (had_events_ || now - opened_at_ >= rules_.shortest_watch);
  if (!error) return lived ? Watch() : Wait(now, false, {});
  const bool cut = error->reason == Reason::kConnection || error->reason == Reason::kNoAnswer;
  if (cut) return lived ? Watch() : Wait(now, false, {});
  return AfterError(now, *error);
}

ReflectorCommand ReflectorState::AfterError(TimePoint now, const ApiError& error) {
  if (VersionIsUseless(error)) return Relist(now, error);
  if (error.reason == Reason::kTooManyRequests) return Wait(now, false, error.retry_after);
  if (ServerInTrouble(error) && ++server_errors_ <= rules_.server_errors) {
    return Wait(now, false, error.retry_after);
  }
  return Relist(now, error);
}

ReflectorCommand ReflectorState::OnTimer() {
  return list_next_ ? List() : Watch();
}

bool ReflectorState::HasSeen(std::string_view written_version) const {
  const auto number = [](std::string_view text) {
    return !text.empty() && text.front() != '0' && text.find_first_not_of("0123456789") == text.npos;
  };
  if (!number(version_) || !number(written_version)) return version_ == written_version;
  if (version_.size() != written_version.size()) return version_.size() > written_version.size();
  return version_ >= written_version;
}

void ReflectorState::Apply(const ObjectHead& head, const JsonView& object, std::uint64_t seen) {
  const auto [at, added] = known_.try_emplace({head.name_space, head.name});
  Known& known = at->second;
  const Known before = std::exchange(known, {head.uid, head.resource_version, seen});
  if (added) return sink_.OnAdd(head, object);
  if (before.uid != head.uid) {
    sink_.OnDelete({head.name_space, head.name, before.uid, before.resource_version}, {});
    return sink_.OnAdd(head, object);
  }
  if (before.resource_version != head.resource_version) sink_.OnUpdate(head, object);
}

}  // namespace voda::kube
