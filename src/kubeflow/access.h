// Access: who may call Voda's API if the users are those of a Kubernetes cluster. The cluster's own roles
// decide: the API server says whose a token is and what its owner may do, so that nobody can do more
// through Voda than by themselves.
//
// Answers are cached for a short while, so a right that is taken away still holds that long (AccessConfig).
// Errors on the way to the API server are never cached. A token is kept only as its SHA-256; its text goes
// into one request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/io.h"
#include "kubeflow/expiring_cache.h"
#include "kubeflow/review.h"

namespace voda::kubeflow {

struct AccessConfig {
  // Tokens must be for one of these; if empty, for the API server, as kubectl's are.
  std::vector<std::string> audiences;
  kube::Duration authenticated{60'000};
  kube::Duration not_authenticated{10'000};
  kube::Duration allowed{30'000};
  kube::Duration denied{10'000};
  std::size_t entries = 10'000;     // of each of the two caches
  std::size_t checks_open = 1'000;  // further checks are turned away
};

struct AccessResult {
  enum class Kind : std::uint8_t { kAllowed, kUnauthenticated, kForbidden, kUnavailable };

  Kind kind = Kind::kUnavailable;
  std::string user;     // empty if unknown
  std::string message;  // why it is not allowed, and what to do; empty if it is
};

class Access {
 public:
  using Then = std::function<void(AccessResult)>;

  explicit Access(kube::Io& io, AccessConfig config = {});
  // Open checks are not answered any more. Any thread may call this.
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  // Checks whether the owner of the token may do all of this or, if nothing is needed, whether the token
  // has an owner. Any thread may call this; `then` is called once, on the I/O thread.
  void Check(const std::string& token, std::vector<Permission> needed, Then then);

 private:
  using Digest = std::array<unsigned char, 32>;
  // One call of Check, which asks for its permissions one by one.
  struct Open {
    std::vector<Permission> needed;
    Then then;
    std::shared_ptr<const Identity> who;
    std::size_t next = 0;
  };
  using OpenPtr = std::shared_ptr<Open>;
  using Waiting = std::map<Digest, std::vector<OpenPtr>>;
  struct Owner {
    std::shared_ptr<const Identity> who;  // null if the token is nobody's
    std::string why_not;
  };

  static Digest Hash(std::string_view text);
  void Begin(const std::string& token, const Digest& digest, OpenPtr open);
  void TokenAnswered(const Digest& digest, const kube::Reply& reply);
  void Recognize(const OpenPtr& open, const Owner& owner);
  void Advance(const OpenPtr& open);
  void AccessAnswered(const Digest& digest, const kube::Reply& reply);
  void Refuse(const OpenPtr& open, const AccessAnswer& answer);
  // Tells all waiting checks that no answer came.
  void Fail(const std::vector<OpenPtr>& open, const kube::Resource& review, const kube::ApiError& error);
  void Finish(const OpenPtr& open, AccessResult::Kind kind, std::string message);

  kube::Io& io_;
  AccessConfig config_;
  // Used only on the I/O thread.
  ExpiringCache<Digest, Owner> owners_;            // by token
  ExpiringCache<Digest, AccessAnswer> decisions_;  // by the whole question: who, and what
  Waiting asking_owner_;
  Waiting asking_access_;
  std::size_t checks_open_ = 0;
  bool failing_ = false;  // whether a failure was logged
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace voda::kubeflow
