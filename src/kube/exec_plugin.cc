#include "kube/exec_plugin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <simdjson.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "kube/files.h"
#include "kube/json_text.h"

extern char** environ;  // NOLINT: POSIX

namespace voda::kube {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLookMs = 50;  // how often a cancellation is noticed

std::string ExecInfo(const ExecPlugin& plugin, const KubeConfig& config) {
  Members spec;
  if (plugin.provide_cluster_info) {
    Members cluster;
    cluster.Text("server", config.server)
        .TextIf("tls-server-name", config.tls_server_name)
        .TextIf("proxy-url", config.proxy_url);
    if (config.insecure) cluster.Flag("insecure-skip-tls-verify", true);
    std::string authority = config.authority.data.text;
    if (authority.empty() && !config.authority.file.empty()) {
      if (auto read = ReadSmallFile(config.authority.file, true)) authority = *std::move(read);
    }
    cluster.TextIf("certificate-authority-data", EncodeBase64(authority));
    spec.Raw("cluster", cluster.Object());
  }
  spec.Flag("interactive", false);
  return Members()
      .Text("kind", "ExecCredential")
      .Text("apiVersion", plugin.api_version)
      .Raw("spec", spec.Object())
      .Object();
}

// Ours, then the plug-in's own, then what it is told about us.
std::vector<std::string> Environment(const ExecPlugin& plugin, const KubeConfig& config) {
  std::vector<std::pair<std::string, std::string>> more = plugin.env;
  more.emplace_back("KUBERNETES_EXEC_INFO", ExecInfo(plugin, config));
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(more.begin(), more.end(), [&](const auto& one) { return one.first == name; });
    if (!replaced) out.emplace_back(text);
  }
  for (const auto& [name, value] : more) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> Spawn(const ExecPlugin& plugin, const KubeConfig& config, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&defaults, number);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = {plugin.command};
  words.insert(words.end(), plugin.args.begin(), plugin.args.end());
  std::vector<std::string> variables = Environment(plugin, config);
  pid_t pid = -1;
  const int code = posix_spawnp(&pid, plugin.command.c_str(), &actions, &attributes, Pointers(words).data(),
                                Pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code == 0) return pid;
  const std::string hint =
      plugin.install_hint.empty() ? "install it, or correct exec.command" : plugin.install_hint;
  return Error{fmt::format("cannot start it: {}; {}", std::strerror(code), hint)};
}

// The end of the child, whatever happened to it.
int KillAndReap(pid_t pid) {
  ::kill(-pid, SIGKILL);  // a child that has ended stays as it is, the rest of its group goes
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Takes what is in the pipe; false: too much.
bool Drain(Fd& pipe, std::size_t limit, std::string& output) {
  std::array<char, 16384> block;
  while (pipe.get() >= 0) {
    const ssize_t got = ::read(pipe.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      pipe.Close();
      break;
    }
    if (output.size() + static_cast<std::size_t>(got) > limit) return false;
    output.append(block.data(), static_cast<std::size_t>(got));
  }
  return true;
}

Result<std::string> RunProgram(const ExecPlugin& plugin, const KubeConfig& config, const ExecLimits& limits,
                               const std::atomic<bool>& canceled) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return Error{fmt::format("cannot make a pipe: {}", std::strerror(errno))};
  }
  Fd reads(ends[0]);
  Fd writes(ends[1]);
  // The child's end must block as programs expect; it is a description of its own.
  ::fcntl(writes.get(), F_SETFL, 0);
  const auto pid = Spawn(plugin, config, writes.get());
  if (!pid) return pid.error();
  writes.Close();
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (process.get() < 0) {
    KillAndReap(*pid);
    return Error{"this kernel has no pidfd_open; Linux 5.3 is needed"};
  }

  std::string output;
  std::optional<Error> broken;
  const auto deadline = Clock::now() + limits.time;
  for (bool ended = false; !ended;) {
    std::array<pollfd, 2> waiting = {{{process.get(), POLLIN, 0}, {reads.get(), POLLIN, 0}}};
    const int ready = ::poll(waiting.data(), waiting.size(), kLookMs);
    ended = ready > 0 && (waiting[0].revents & POLLIN) != 0;
    if (!Drain(reads, limits.output_bytes, output)) {
      broken = Error{fmt::format("printed more than {} bytes", limits.output_bytes)};
    } else if (!ended && canceled) {
      broken = Error{"canceled"};
    } else if (!ended && Clock::now() >= deadline) {
      broken = Error{fmt::format("no credentials within {} s; run it by hand to see what it waits for",
                                 static_cast<double>(limits.time.count()) / 1000)};
    }
    if (broken) break;
  }
  const int status = KillAndReap(*pid);
  if (broken) return *std::move(broken);
  if (WIFSIGNALED(status)) return Error{fmt::format("killed by signal {}", WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0) {
    return Error{fmt::format("exit code {}; run it by hand to see why, its message is on stderr",
                             WEXITSTATUS(status))};
  }
  return output;
}

}  // namespace

Result<ExecCredential> DecodeExecCredential(std::string_view json, std::string_view api_version) {
  namespace dom = simdjson::dom;
  dom::parser parser;
  dom::object root;
  // Nothing of what it printed is shown: it may be a token.
  if (parser.parse(json.data(), json.size(), true).get(root) != simdjson::SUCCESS) {
    return Error{"what it printed is not JSON; it must print an ExecCredential on stdout and nothing else"};
  }
  const auto text = [](const dom::object& object, std::string_view key) {
    std::string_view value;
    return object[key].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
  };
  if (text(root, "kind") != "ExecCredential") return Error{"what it printed is not an ExecCredential"};
  if (text(root, "apiVersion") != api_version) {
    return Error{fmt::format("it printed another apiVersion than {}; correct exec.apiVersion or update it",
                             api_version)};
  }
  dom::object status;
  if (root["status"].get(status) != simdjson::SUCCESS) return Error{"its ExecCredential has no status"};
  ExecCredential credential{.token = {text(status, "token")},
                            .certificate = {text(status, "clientCertificateData")},
                            .key = {text(status, "clientKeyData")}};
  if (credential.token.empty() && credential.certificate.empty()) {
    return Error{"its ExecCredential has neither token nor clientCertificateData"};
  }
  if (credential.certificate.empty() != credential.key.empty()) {
    return Error{"its ExecCredential has a certificate without a key, or a key without a certificate"};
  }
  if (const std::string expires = text(status, "expirationTimestamp"); !expires.empty()) {
    credential.expires = ParseTime(expires);
    if (!credential.expires)
      return Error{fmt::format("its expirationTimestamp \"{}\" is not RFC 3339", expires)};
  }
  return credential;
}

Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const KubeConfig& config,
                                     const ExecLimits& limits, const std::atomic<bool>& canceled) {
  const auto output = RunProgram(plugin, config, limits, canceled);
  auto credential =
      output ? DecodeExecCredential(*output, plugin.api_version) : Result<ExecCredential>(output.error());
  if (!credential)
    return Error{fmt::format("credential plug-in {}: {}", plugin.command, credential.error().message)};
  return credential;
}

}  // namespace voda::kube
