// voda doctor: what is missing or wrong on this machine and on the way to the server, and how to fix it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/machine_checks.h"
#include "cli/session.h"
#include "client/text.h"

namespace voda {

namespace {

using Grade = Finding::Grade;

constexpr const char* kFooter =
    R"(Each line is ok, warn or fail, what was looked at, what was found, and what to do about it. A warning is
something that some jobs need; a failure keeps Voda itself from working.
Exit codes: 0 no failure, 1 a failure, 2 a flag, variable or config file that is not usable.)";

std::string Line(const Finding& finding, bool color) {
  const char* word = finding.grade == Grade::kOk ? "ok" : finding.grade == Grade::kWarn ? "warn" : "fail";
  const char* shade = finding.grade == Grade::kOk     ? "\x1b[32m"
                      : finding.grade == Grade::kWarn ? "\x1b[33m"
                                                      : "\x1b[31m";
  return fmt::format("{}{:<4}{}  {}: {}{}{}\n", color ? shade : "", word, color ? "\x1b[0m" : "",
                     finding.what, Printable(finding.found), finding.fix.empty() ? "" : "; ", finding.fix);
}

std::vector<Finding> CheckServer(Session& session) {
  const std::string& server = session.connection().http.server;
  const std::string named = fmt::format("{} (from {})", server, session.connection().server_from);
  const ApiAnswer answer = GetJson(session.http(), "/api/v1/info");
  if (answer.trouble == Trouble::kUnreachable) {
    return {{Grade::kWarn, "server", fmt::format("{}: {}", named, answer.message), ""}};
  }
  if (answer.trouble == Trouble::kUnauthorized) {
    const std::string from = session.connection().token_from;
    return {{Grade::kFail, "server",
             fmt::format("{} refuses {}", named,
                         from.empty() ? "requests without a token" : "the token of " + from),
             "name the token with --token-file or VODA_TOKEN_FILE, or its folder with --data"}};
  }
  if (!answer.ok()) {
    return {{Grade::kFail, "server", fmt::format("{}: {}", named, answer.message), "correct --server"}};
  }
  std::vector<Finding> findings = {
      {Grade::kOk, "server",
       fmt::format("{}, version {}, {} of {} in use", named, Printable(answer.value["version"].Text()),
                   answer.value["gpus_used"].Whole(), Counted(answer.value["gpus"].Whole(), "GPU")),
       ""}};
  const double apart = answer.value["now"].Number() - WallNow();
  if (answer.value["now"].number() && std::abs(apart) > 30) {
    findings.push_back({Grade::kWarn, "clocks",
                        fmt::format("this machine and the server are {:.0f} s apart", apart),
                        "let both follow a time server"});
  }
  return findings;
}

Finding CheckPort(int port, const ClientConfig& config) {
  const std::string what = fmt::format("port {}", port);
  if (PortIsFree(port)) return {Grade::kOk, what, "free", ""};
  ClientConfig plain;
  plain.server = fmt::format("{}://127.0.0.1:{}", config.server.substr(0, config.server.find(':')), port);
  plain.ca_file = config.ca_file;
  plain.timeout_seconds = 3;
  const auto answer = HttpClient(plain).Get("/livez");
  if (answer && answer->status == 200) return {Grade::kOk, what, "Voda answers", ""};
  return {Grade::kWarn, what, "another program listens there",
          "stop it, or give `voda up --listen` another port"};
}

void Run(const ConnectFlags& flags) {
  Session session("voda doctor", flags);
  const bool color = UseColor();
  bool failed = false;
  const auto show = [&](const Finding& finding) {
    failed = failed || finding.grade == Grade::kFail;
    session.Print(Line(finding, color));
  };
  const auto show_all = [&](const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) show(finding);
  };
  show(CheckKernel());
  show(CheckClock());
  show(CheckSharedMemory());
  show(CheckMemoryGroups());
  show(CheckGpus());
  show_all(CheckTorch());
  show(CheckHorovod());
  show_all(CheckDataFolder(session.connection().data));
  for (const int port : {55587, 55588, 55589}) show(CheckPort(port, session.connection().http));
  show_all(CheckServer(session));
  if (failed) throw CLI::RuntimeError(kExitError);
}

}  // namespace

void AddDoctor(CLI::App& app) {
  auto* command = app.add_subcommand("doctor", "say what is missing or wrong on this machine, and the fix")
                      ->group("Tools");
  const auto flags = std::make_shared<ConnectFlags>();
  AddConnectFlags(*command, *flags);
  command->footer(kFooter);
  command->callback([flags] { Run(*flags); });
}

}  // namespace voda
