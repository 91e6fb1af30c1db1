#include "kube/exec_plugin.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/files.h"
#include "document/documents.h"
#include "document/json_writer.h"
#include "kube/base64.h"
#include "kube/time.h"
#include "os/run.h"

extern char** environ;  // NOLINT: POSIX

namespace voda::kube {

namespace {

std::string ExecInfo(const ExecPlugin& plugin, const KubeConfig& config) {
  JsonWriter out;
  out.Object().Field("kind", "ExecCredential").Field("apiVersion", plugin.api_version);
  out.Key("spec").Object();
  if (plugin.provide_cluster_info) {
    out.Key("cluster").Object().Field("server", config.server);
    out.FieldIf("tls-server-name", config.tls_server_name).FieldIf("proxy-url", config.proxy_url);
    if (config.insecure) out.Field("insecure-skip-tls-verify", true);
    std::string authority = config.authority.data.text;
    if (authority.empty() && !config.authority.file.empty()) {
      if (auto read = ReadFile(config.authority.file, kMaxSmallFile, FileKind::kRegular))
        authority = *std::move(read);
    }
    out.FieldIf("certificate-authority-data", EncodeBase64(authority)).End();
  }
  return out.Field("interactive", false).End().End().Take();
}

// Our environment, then the plug-in's own, then what it is told about us.
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

Result<std::string> RunProgram(const ExecPlugin& plugin, const KubeConfig& config, const ExecLimits& limits,
                               const std::atomic<bool>& canceled) {
  using Kind = os::RunEnd::Kind;
  os::Program program{.argv = {plugin.command}, .environment = Environment(plugin, config)};
  program.argv.insert(program.argv.end(), plugin.args.begin(), plugin.args.end());
  const double seconds = static_cast<double>(limits.time.count()) / 1000;
  auto end = os::Run(std::move(program), std::nullopt,
                     {.seconds = seconds, .output_bytes = limits.output_bytes, .canceled = &canceled});
  if (!end) return end.error();
  switch (end->kind) {
    case Kind::kNotStarted:
      return Error{fmt::format(
          "cannot start it: {}; {}", std::strerror(end->number),
          plugin.install_hint.empty() ? "install it, or correct exec.command" : plugin.install_hint)};
    case Kind::kExited:
      if (end->number == 0) return std::move(end->output);
      return Error{
          fmt::format("exit code {}; run it by hand to see why, its message is on stderr", end->number)};
    case Kind::kSignaled:
      return Error{fmt::format("killed by signal {}", end->number)};
    case Kind::kTooMuch:
      return Error{fmt::format("printed more than {} bytes", limits.output_bytes)};
    case Kind::kTooLate:
      return Error{
          fmt::format("no credentials within {} s; run it by hand to see what it waits for", seconds)};
    case Kind::kCanceled:
      return Error{"canceled"};
    case Kind::kLost:
      break;
  }
  return Error{"its exit code was lost"};
}

}  // namespace

Result<ExecCredential> DecodeExecCredential(std::string_view json, std::string_view api_version) {
  const auto root = ParseJson(json);
  // The output is never shown: it may hold a token.
  if (!root || !root->map()) {
    return Error{"what it printed is not JSON; it must print an ExecCredential on stdout and nothing else"};
  }
  if ((*root)["kind"].Text() != "ExecCredential") return Error{"what it printed is not an ExecCredential"};
  if ((*root)["apiVersion"].Text() != api_version) {
    return Error{fmt::format("it printed another apiVersion than {}; correct exec.apiVersion or update it",
                             api_version)};
  }
  const Value& status = (*root)["status"];
  if (!status.map()) return Error{"its ExecCredential has no status"};
  ExecCredential credential{.token = {status["token"].Text()},
                            .certificate = {status["clientCertificateData"].Text()},
                            .key = {status["clientKeyData"].Text()}};
  if (credential.token.empty() && credential.certificate.empty()) {
    return Error{"its ExecCredential has neither token nor clientCertificateData"};
  }
  if (credential.certificate.empty() != credential.key.empty()) {
    return Error{"its ExecCredential has a certificate without a key, or a key without a certificate"};
  }
  if (const std::string& expires = status["expirationTimestamp"].Text(); !expires.empty()) {
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
