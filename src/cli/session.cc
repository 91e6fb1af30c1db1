#include "cli/session.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/io.h"
#include "client/yaml.h"

namespace voda {

void RefuseEmpty(CLI::Option& option) {
  option.check(CLI::Validator(
      [](const std::string& text) {
        return text.empty() ? std::string("is empty; give a value or leave the flag out") : std::string();
      },
      ""));
}

void AddConnectFlags(CLI::App& command, ConnectFlags& flags) {
  const auto add = [&](const char* name, std::string& target, const char* help, const char* type) {
    RefuseEmpty(*command.add_option(name, target, help)->type_name(type)->group("Connection"));
  };
  add("--server", flags.server, "the server; else VODA_SERVER, the config file, this machine's", "URL");
  add("--token-file", flags.token_file, "a file with the token; else VODA_TOKEN, VODA_TOKEN_FILE, ...",
      "FILE");
  add("--data", flags.data, "data folder of `voda up`, which names server and token; else VODA_HOME", "DIR");
  add("--ca-file", flags.ca_file, "certificates to trust, PEM; else VODA_CA_FILE", "FILE");
  command.add_flag("--insecure", flags.insecure, "send the token over plain http to another machine")
      ->group("Connection");
}

namespace {

void Qualify(const std::string& name_space, std::string& name) {
  if (!name_space.empty() && name.find('/') == name.npos) name = name_space + "/" + name;
}

void AddNamespaceOption(CLI::App& command, std::string& name_space) {
  command.add_option("-n,--namespace", name_space, "of jobs on Kubernetes; else VODA_NAMESPACE")
      ->type_name("NAME")
      ->envname("VODA_NAMESPACE");
}

}  // namespace

void AddNamespaceFlag(CLI::App& command, std::string& name_space, std::vector<std::string>* names) {
  AddNamespaceOption(command, name_space);
  command.parse_complete_callback([&name_space, names] {
    if (names == nullptr) return;
    for (std::string& name : *names) Qualify(name_space, name);
  });
}

void AddNamespaceFlag(CLI::App& command, std::string& name_space, std::string& name) {
  AddNamespaceOption(command, name_space);
  command.parse_complete_callback([&name_space, &name] { Qualify(name_space, name); });
}

void AddOutputFlag(CLI::App& command, Output& output, const std::string& formats) {
  const auto choose = [&output](const std::string& name) {
    output = name == "wide"   ? Output::kWide
             : name == "json" ? Output::kJson
             : name == "yaml" ? Output::kYaml
                              : Output::kName;
  };
  std::vector<std::string> known;
  for (const std::string_view format : Split(formats, '|')) known.emplace_back(format);
  command.add_option_function<std::string>("-o,--output", choose, "how to print it")
      ->type_name(formats)
      ->check(CLI::Validator(
          [known, formats](std::string& value) {
            const bool ok = std::find(known.begin(), known.end(), value) != known.end();
            return ok ? std::string() : fmt::format("\"{}\" is not one of {}", value, formats);
          },
          ""));
}

namespace {

// A list of ten thousand jobs is a tree of half a million pieces. Taking memory in large steps and keeping
// it saves a quarter of the time of such a command.
void PrepareForLargeAnswers() {
  constexpr int kStep = 64 << 20;
  mallopt(M_TOP_PAD, kStep);
  mallopt(M_TRIM_THRESHOLD, 4 * kStep);
  mallopt(M_MMAP_THRESHOLD, kStep / 2);  // the most it takes
}

}  // namespace

Session::Session(std::string command, const ConnectFlags& flags) : command_(std::move(command)) {
  PrepareForLargeAnswers();
  // A write to a connection that the other side closed must be an error, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  auto resolved = ResolveConnection(flags, ProcessEnvironment());
  if (!resolved) Stop(resolved.error().message, kExitBadInput);
  connection_ = *std::move(resolved);
  http_ = std::make_unique<HttpClient>(connection_.http);
}

HttpClient& Session::side() {
  if (!side_) side_ = std::make_unique<HttpClient>(connection_.http);
  return *side_;
}

Value Session::Get(const std::string& path) {
  return Need(GetJson(*http_, path));
}

Value Session::Send(const std::string& method, const std::string& path, const Value& body) {
  ClientRequest request{.method = method, .path = path};
  if (!body.null()) {
    request.body = ToJsonLine(body);
    request.content_type = "application/json";
  }
  return Need(ReadAnswer(http_->Send(request)));
}

Value Session::Need(ApiAnswer answer) {
  if (!answer.ok()) Stop(answer);
  return std::move(answer.value);
}

void Session::Report(const ApiAnswer& answer, std::string_view about) {
  fmt::print(stderr, "{}: {}{}{}\n", command_, about, about.empty() ? "" : ": ", MessageOf(answer));
  if (first_code_ == 0) first_code_ = ExitCodeOf(answer);
}

void Session::Finish() const {
  if (first_code_ != 0) throw CLI::RuntimeError(first_code_);
}

void Session::Warn(std::string_view message) const {
  fmt::print(stderr, "{}: warning: {}\n", command_, message);
}

void Session::Stop(std::string_view message, int code) const {
  fmt::print(stderr, "{}: {}\n", command_, message);
  throw CLI::RuntimeError(code);
}

void Session::Stop(const ApiAnswer& answer) const {
  Stop(MessageOf(answer), ExitCodeOf(answer));
}

std::string Session::MessageOf(const ApiAnswer& answer) const {
  if (answer.status != 401) return answer.message;
  // In front of a Kubernetes cluster there is no data folder: the server says where tokens come from.
  if (connection_.token_from.empty() && answer.message.find("kubectl create token") != std::string::npos) {
    return fmt::format("{}: {}; keep it in a file and name that with --token-file or VODA_TOKEN_FILE",
                       connection_.http.server, answer.message);
  }
  if (connection_.token_from.empty()) {
    return fmt::format(
        "{} wants a token and none was found; name it with --token-file, VODA_TOKEN_FILE or "
        "--data (the data folder of `voda up`)",
        connection_.http.server);
  }
  return fmt::format("{} refused the token of {}: {}", connection_.http.server, connection_.token_from,
                     answer.message);
}

void Session::Print(std::string_view text) const {
  errno = 0;
  const Status written = WriteOutput(text);
  if (written) return;
  if (errno == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  Stop(written.error().message, kExitError);
}

void Session::PrintObject(const Value& value, Output output) const {
  Print(output == Output::kJson ? ToPrettyJson(value) : ToYaml(value));
}

int ExitCodeOf(const ApiAnswer& answer) {
  switch (answer.trouble) {
    case Trouble::kNone:
      return 0;
    case Trouble::kUnreachable:
    case Trouble::kUnauthorized:
      return kExitUnreachable;
    case Trouble::kNotFound:
      return kExitNotFound;
    case Trouble::kInvalid:
      return kExitBadInput;
    case Trouble::kOther:
      return kExitError;
  }
  return kExitError;
}

bool UseColor() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  if (set("NO_COLOR")) return false;
  if (set("FORCE_COLOR")) return true;
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace voda
