#include "kubeflow/access.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <utility>

#include "base/log.h"

namespace voda::kubeflow {

namespace {

constexpr std::size_t kMostToken = std::size_t{16} << 10;
constexpr std::size_t kShown = 300;  // bytes of a name or a reason that a message shows

std::string Brief(const std::string& text) {
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

kube::ApiError BadAnswer(const Error& error) {
  return {.reason = kube::Reason::kBadAnswer, .message = error.message};
}

// What the operator of Voda has to do about the error.
std::string Advice(const kube::Resource& review, const kube::ApiError& error) {
  switch (error.reason) {
    case kube::Reason::kForbidden:
      return fmt::format(
          "Voda's account may not create {}.{}; bind it to the ClusterRole system:auth-delegator",
          review.plural, review.group);
    case kube::Reason::kUnauthorized:
    case kube::Reason::kCredentials:
      return fmt::format("the API server does not take Voda's own credentials ({}); look at Voda's account",
                         Brief(error.message));
    case kube::Reason::kNotFound:
    case kube::Reason::kMethodNotAllowed:
      return fmt::format("the API server has no {}.{}; is it Kubernetes, and does Voda reach it directly?",
                         review.plural, review.group);
    default:
      return fmt::format("asking the API server (create {}) failed: {}; try again", review.plural,
                         Brief(error.Text()));
  }
}

}  // namespace

Access::Access(kube::Io& io, AccessConfig config)
    : io_(io), config_(std::move(config)), owners_(config_.entries), decisions_(config_.entries) {}

Access::~Access() {
  io_.RunAndWait([this] { *alive_ = false; });
}

Access::Digest Access::Hash(std::string_view text) {
  static_assert(sizeof(Digest) == SHA256_DIGEST_LENGTH);
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

void Access::Check(const std::string& token, std::vector<Permission> needed, Then then) {
  std::string refusal;
  if (token.empty()) {
    refusal =
        "no token; send `Authorization: Bearer TOKEN` with a token of this cluster, for example that of "
        "`kubectl create token ACCOUNT`";
  } else if (token.size() > kMostToken) {
    refusal = fmt::format("the token has {} bytes, the limit is {}", token.size(), kMostToken);
  }
  auto open = std::make_shared<Open>(Open{std::move(needed), std::move(then), nullptr, 0});
  io_.Post([this, alive = alive_, open = std::move(open), refusal = std::move(refusal),
            token = token.size() <= kMostToken ? token : std::string()] {
    if (!*alive) return;
    ++checks_open_;
    if (!refusal.empty()) return Finish(open, AccessResult::Kind::kUnauthenticated, refusal);
    if (checks_open_ > config_.checks_open) {
      return Finish(open, AccessResult::Kind::kUnavailable,
                    fmt::format("{} requests wait for the API server's answers already; try again later",
                                config_.checks_open));
    }
    Begin(token, Hash(token), open);
  });
}

void Access::Begin(const std::string& token, const Digest& digest, OpenPtr open) {
  if (const Owner* owner = owners_.Find(digest, io_.Now())) return Recognize(open, Owner(*owner));
  std::vector<OpenPtr>& waiting = asking_owner_[digest];
  waiting.push_back(std::move(open));
  if (waiting.size() > 1) return;
  io_.Send(TokenReview(token, config_.audiences), [this, alive = alive_, digest](const kube::Reply& reply) {
    if (*alive) TokenAnswered(digest, reply);
  });
}

void Access::TokenAnswered(const Digest& digest, const kube::Reply& reply) {
  const std::vector<OpenPtr> waiting = std::move(asking_owner_.extract(digest).mapped());
  if (!reply.ok()) return Fail(waiting, kTokenReviews, *reply.error);
  auto answer = ReadTokenReview(reply.body, config_.audiences);
  if (!answer) return Fail(waiting, kTokenReviews, BadAnswer(answer.error()));
  failing_ = false;
  Owner owner;
  if (answer->authenticated) {
    owner.who = std::make_shared<const Identity>(std::move(answer->who));
  } else {
    owner.why_not = Brief(answer->why_not);
  }
  owners_.Put(digest, owner, io_.Now(),
              answer->authenticated ? config_.authenticated : config_.not_authenticated);
  const auto alive = alive_;
  for (const OpenPtr& open : waiting) {
    if (*alive) Recognize(open, owner);
  }
}

void Access::Recognize(const OpenPtr& open, const Owner& owner) {
  if (owner.who == nullptr) {
    return Finish(open, AccessResult::Kind::kUnauthenticated,
                  fmt::format("the token is not valid{}{}; get a new one, for example with: kubectl create "
                              "token ACCOUNT{}",
                              owner.why_not.empty() ? "" : ": ", owner.why_not,
                              config_.audiences.empty() ? "" : " --audience " + config_.audiences[0]));
  }
  open->who = owner.who;
  Advance(open);
}

// Asks for one permission after the other; the first that is denied is the answer.
void Access::Advance(const OpenPtr& open) {
  for (; open->next < open->needed.size(); ++open->next) {
    kube::Request request = AccessReview(*open->who, open->needed[open->next]);
    const Digest digest = Hash(request.body);
    if (const AccessAnswer* answer = decisions_.Find(digest, io_.Now())) {
      if (answer->allowed) continue;
      return Refuse(open, AccessAnswer(*answer));
    }
    std::vector<OpenPtr>& waiting = asking_access_[digest];
    waiting.push_back(open);
    if (waiting.size() > 1) return;
    io_.Send(std::move(request), [this, alive = alive_, digest](const kube::Reply& reply) {
      if (*alive) AccessAnswered(digest, reply);
    });
    return;
  }
  Finish(open, AccessResult::Kind::kAllowed, "");
}

void Access::AccessAnswered(const Digest& digest, const kube::Reply& reply) {
  const std::vector<OpenPtr> waiting = std::move(asking_access_.extract(digest).mapped());
  if (!reply.ok()) return Fail(waiting, kAccessReviews, *reply.error);
  auto answer = ReadAccessReview(reply.body);
  if (!answer) return Fail(waiting, kAccessReviews, BadAnswer(answer.error()));
  failing_ = false;
  answer->reason = Brief(answer->reason);
  decisions_.Put(digest, *answer, io_.Now(), answer->allowed ? config_.allowed : config_.denied);
  const auto alive = alive_;
  for (const OpenPtr& open : waiting) {
    if (!*alive) return;
    if (!answer->allowed) {
      Refuse(open, *answer);
      continue;
    }
    ++open->next;
    Advance(open);
  }
}

void Access::Refuse(const OpenPtr& open, const AccessAnswer& answer) {
  const Permission& denied = open->needed[open->next];
  const bool named = denied.told.empty();
  Finish(open, AccessResult::Kind::kForbidden,
         fmt::format("user {} may not {}{}; ask whoever runs the cluster for a role that allows it",
                     Brief(open->who->user), named ? Text(denied) : denied.told,
                     !named || answer.reason.empty() ? "" : " (" + answer.reason + ")"));
}

void Access::Fail(const std::vector<OpenPtr>& open, const kube::Resource& review,
                  const kube::ApiError& error) {
  const std::string advice = Advice(review, error);
  if (!failing_) Log(LogLevel::kWarn, "the rights of callers cannot be checked", {{"why", advice}});
  failing_ = true;
  const auto alive = alive_;
  for (const OpenPtr& one : open) {
    if (*alive)
      Finish(one, AccessResult::Kind::kUnavailable, "the rights of callers cannot be checked: " + advice);
  }
}

// This must come last: `then` may destroy the Access.
void Access::Finish(const OpenPtr& open, AccessResult::Kind kind, std::string message) {
  --checks_open_;
  open->then({kind, open->who == nullptr ? "" : open->who->user, std::move(message)});
}

}  // namespace voda::kubeflow
