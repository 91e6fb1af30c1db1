// Access: who may call Voda's API where the users are those of a Kubernetes cluster. The cluster's own roles
// decide: the API server says whose a token is and what its owner may do, so that nobody can do more through
// Voda than by themselves.
//
// Answers are believed for a short while, so a right that is taken away holds that long (AccessConfig). What
// went wrong on the way to the API server is never kept. A token is kept as its SHA-256 alone; the text
// itself goes into one request.
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
  // Tokens must be for one of these; empty: for the API server, as kubectl's are.
  std::vector<std::string> audiences;
  kube::Duration authenticated{60'000};
  kube::Duration not_authenticated{10'000};
  kube::Duration allowed{30'000};
  kube::Duration denied{10'000};
  std::size_t entries = 10'000;     // of each of the two caches
  std::size_t checks_open = 1'000;  // those beyond are turned away
};

struct Verdict {
  enum class Kind : std::uint8_t { kAllowed, kUnauthenticated, kForbidden, kUnavailable };

  Kind kind = Kind::kUnavailable;
  std::string user;     // empty: not known
  std::string message;  // why not, and what to do; empty: allowed
};

class Access {
 public:
  using Then = std::function<void(Verdict)>;

  explicit Access(kube::Io& io, AccessConfig config = {});
  // Checks that are open are not answered any more. Any thread.
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  // Whether the owner of the token may do all of this; nothing needed: whether there is an owner. Any thread;
  // `then` is called once, on the I/O thread.
  void Check(const std::string& token, std::vector<Permission> needed, Then then);

 private:
  using Digest = std::array<unsigned char, 32>;
  // One call of Check, on its way through its permissions.
  struct Open {
    std::vector<Permission> needed;
    Then then;
    std::shared_ptr<const Identity> who;
    std::size_t next = 0;
  };
  using OpenPtr = std::shared_ptr<Open>;
  using Waiting = std::map<Digest, std::vector<OpenPtr>>;
  struct Owner {
    std::shared_ptr<const Identity> who;  // null: the token is nobody's
    std::string why_not;
  };

  static Digest Hash(std::string_view text);
  void Begin(const std::string& token, const Digest& digest, OpenPtr open);
  void TokenAnswered(const Digest& digest, const kube::Reply& reply);
  void Recognize(const OpenPtr& open, const Owner& owner);
  void Advance(const OpenPtr& open);
  void AccessAnswered(const Digest& digest, const kube::Reply& reply);
  void Refuse(const OpenPtr& open, const AccessAnswer& answer);
  // To all that wait for an answer that did not come.
  void Fail(const std::vector<OpenPtr>& open, const kube::Resource& review, const kube::ApiError& error);
  void Finish(const OpenPtr& open, Verdict::Kind kind, std::string message);

  kube::Io& io_;
  AccessConfig config_;
  // On the I/O thread alone.
  ExpiringCache<Digest, Owner> owners_;            // by token
  ExpiringCache<Digest, AccessAnswer> decisions_;  // by the whole question: who, and what
  Waiting asking_owner_;
  Waiting asking_access_;
  std::size_t checks_open_ = 0;
  bool failing_ = false;  // and logged
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace voda::kubeflow
