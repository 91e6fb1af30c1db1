#include "kube/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "base/files.h"
#include "kube/base64.h"
#include "kube/exec_plugin.h"
#include "kube/request.h"

namespace voda::kube {

namespace {

constexpr Duration kTokenAge{60'000};
constexpr Duration kPemAge{300'000};
constexpr Duration kErrorAge{1'000};
constexpr std::chrono::seconds kExpiryLead{10};
constexpr std::size_t kMaxToken = 65536;

std::string Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

bool FitsHeader(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7F'; });
}

}  // namespace

class Credentials::Impl {
 public:
  Impl(const KubeConfig& config, Counters& counters, std::function<void()> on_change)
      : config_(config), counters_(counters), on_change_(std::move(on_change)) {}

  ~Impl() {
    canceled_ = true;
    if (runner_.joinable()) runner_.join();
  }

  std::optional<Result<GrantPtr>> Get(TimePoint now, WallTime wall) {
    if (failed_ && now < failed_until_) return Result<GrantPtr>(*failed_);
    failed_.reset();
    if (config_.login.exec && !TakeExec(now, wall)) return std::nullopt;
    if (!failed_ && (!grant_ || stale_ || now >= next_load_)) Load(now);
    if (failed_) {
      failed_until_ = now + kErrorAge;
      return Result<GrantPtr>(*failed_);
    }
    return Result<GrantPtr>(grant_);
  }

  bool Refused(const GrantPtr& grant) {
    const bool changes =
        config_.login.exec || !config_.login.token_file.empty() || !config_.login.certificate.file.empty();
    if (changes && grant == grant_) {
      stale_ = true;
      exec_.reset();
    }
    return changes;
  }

 private:
  // Returns false while the plug-in is running.
  bool TakeExec(TimePoint now, WallTime wall) {
    {
      const std::lock_guard lock(mutex_);
      if (running_) return false;
      if (finished_) {
        Result<ExecCredential> result = *std::move(finished_);
        finished_.reset();
        if (result) {
          exec_ = *std::move(result);
          exec_at_ = now;
          stale_ = true;
        } else {
          failed_ = result.error();
          return true;
        }
      }
    }
    // A credential that has already expired when it arrives is still used for a while: our clock may be
    // wrong, and the server will tell.
    if (exec_ && (!exec_->expires || wall < *exec_->expires - kExpiryLead || now < exec_at_ + kExpiryLead)) {
      return true;
    }
    Run();
    return false;
  }

  void Run() {
    if (runner_.joinable()) runner_.join();
    running_ = true;
    ++counters_.credential_loads;
    runner_ = std::thread([this] {
      auto result = RunExecPlugin(*config_.login.exec, config_, {}, canceled_);
      {
        const std::lock_guard lock(mutex_);
        finished_ = std::move(result);
        running_ = false;
      }
      on_change_();
    });
  }

  void Load(TimePoint now) {
    auto loaded = Read();
    if (!loaded) {
      failed_ = loaded.error();
      return;
    }
    stale_ = false;
    next_load_ = now + (config_.login.token_file.empty() ? kPemAge : kTokenAge);
    const bool same = grant_ && grant_->headers == loaded->headers && grant_->key.text == loaded->key.text &&
                      grant_->certificate.text == loaded->certificate.text &&
                      grant_->authority.text == loaded->authority.text;
    if (!same) grant_ = std::make_shared<const Grant>(*std::move(loaded));
  }

  Result<Grant> Read() {
    const Login& login = config_.login;
    Grant grant;
    for (const auto& [pem, out] : {std::pair<const Pem&, Secret&>{config_.authority, grant.authority},
                                   {login.certificate, grant.certificate},
                                   {login.key, grant.key}}) {
      out = pem.data;
      if (!out.empty() || pem.file.empty()) continue;
      auto text = ReadFile(pem.file, kMaxSmallFile, FileKind::kRegular);
      if (!text) return text.error();
      if (text->find("-----BEGIN") == std::string::npos) return Error{fmt::format("{} is not PEM", pem.file)};
      out.text = *std::move(text);
    }
    Secret token = login.token;
    if (!login.token_file.empty()) {
      ++counters_.credential_loads;
      const auto text = ReadFile(login.token_file, kMaxToken, FileKind::kRegular);
      if (!text) return text.error();
      token.text = Trimmed(*text);
      if (token.empty()) return Error{fmt::format("{} holds no token", login.token_file)};
    }
    if (exec_) {
      if (!exec_->token.empty()) token = exec_->token;
      if (!exec_->certificate.empty()) {
        grant.certificate = exec_->certificate;
        grant.key = exec_->key;
      }
    }
    if (!token.empty()) {
      grant.headers.push_back("Authorization: Bearer " + token.text);
    } else if (!login.username.empty()) {
      grant.headers.push_back("Authorization: Basic " +
                              EncodeBase64(login.username + ":" + login.password.text));
    }
    AddImpersonation(login.as, grant.headers);
    if (!std::all_of(grant.headers.begin(), grant.headers.end(), FitsHeader)) {
      return Error{
          "a token or name of the kubeconfig has a line break or control character in it; remove it"};
    }
    return grant;
  }

  static void AddImpersonation(const Impersonation& as, std::vector<std::string>& headers) {
    if (as.user.empty()) return;
    headers.push_back("Impersonate-User: " + as.user);
    if (!as.uid.empty()) headers.push_back("Impersonate-Uid: " + as.uid);
    for (const std::string& group : as.groups) headers.push_back("Impersonate-Group: " + group);
    for (const auto& [key, values] : as.extra) {
      for (const std::string& value : values) {
        headers.push_back(fmt::format("Impersonate-Extra-{}: {}", EscapeSegment(key), value));
      }
    }
  }

  const KubeConfig config_;
  Counters& counters_;
  const std::function<void()> on_change_;
  GrantPtr grant_;
  TimePoint next_load_{};
  bool stale_ = false;
  std::optional<ExecCredential> exec_;
  TimePoint exec_at_{};
  std::optional<Error> failed_;
  TimePoint failed_until_{};

  std::mutex mutex_;
  bool running_ = false;                            // guarded by mutex_
  std::optional<Result<ExecCredential>> finished_;  // guarded by mutex_
  std::atomic<bool> canceled_ = false;
  std::thread runner_;
};

Credentials::Credentials(const KubeConfig& config, Counters& counters, std::function<void()> on_change)
    : impl_(std::make_unique<Impl>(config, counters, std::move(on_change))) {}
Credentials::~Credentials() = default;

std::optional<Result<GrantPtr>> Credentials::Get(TimePoint now, WallTime wall) {
  return impl_->Get(now, wall);
}

bool Credentials::Refused(const GrantPtr& grant) {
  return impl_->Refused(grant);
}

}  // namespace voda::kube
