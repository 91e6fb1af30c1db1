// Session: one command's conversation with the server. It finds the connection by flags, environment and
// files, and ends the command with a message and the right exit code if something goes wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/api.h"
#include "client/config.h"
#include "client/http_client.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace voda {

// Otherwise an empty value, as of a variable of a script that is not set, would mean the default.
void RefuseEmpty(CLI::Option& option);

// --server, --token-file, --data, --ca-file and --insecure. `flags` must outlive the parsing.
void AddConnectFlags(CLI::App& command, ConnectFlags& flags);

// Adds -n, by default VODA_NAMESPACE: the namespace of jobs that are named without one. Before the command
// runs, `names` are made NAMESPACE/NAME.
void AddNamespaceFlag(CLI::App& command, std::string& name_space, std::vector<std::string>* names = nullptr);
void AddNamespaceFlag(CLI::App& command, std::string& name_space, std::string& name);

enum class Output : std::uint8_t { kDefault, kWide, kJson, kYaml, kName };
// Adds -o with `formats`, such as "json|yaml"; without it, a command has a format of its own.
void AddOutputFlag(CLI::App& command, Output& output, const std::string& formats);
constexpr bool PrintsObject(Output output) {
  return output == Output::kJson || output == Output::kYaml;
}

class Session {
 public:
  // `command`, such as "voda get jobs", begins every message.
  Session(std::string command, const ConnectFlags& flags);

  HttpClient& http() { return *http_; }
  // A second connection, for requests while a stream is open.
  HttpClient& side();
  const Connection& connection() const { return connection_; }

  Value Get(const std::string& path);
  Value Send(const std::string& method, const std::string& path, const Value& body);
  // Returns the value of the answer; ends the command if there is trouble.
  Value Need(ApiAnswer answer);

  // Prints what is wrong and remembers the exit code of the first trouble; the command goes on.
  void Report(const ApiAnswer& answer, std::string_view about = "");
  // Ends the command if a trouble was reported.
  void Finish() const;

  void Warn(std::string_view message) const;
  [[noreturn]] void Stop(std::string_view message, int code) const;
  [[noreturn]] void Stop(const ApiAnswer& answer) const;
  // Prints to stdout at once. If the reader is gone, the command ends as any other program does.
  void Print(std::string_view text) const;
  void PrintObject(const Value& value, Output output) const;

 private:
  std::string MessageOf(const ApiAnswer& answer) const;

  std::string command_;
  Connection connection_;
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<HttpClient> side_;
  int first_code_ = 0;
};

int ExitCodeOf(const ApiAnswer& answer);

// Whether to use colours: on a terminal, unless NO_COLOR is set or TERM is dumb; always with FORCE_COLOR.
bool UseColor();

}  // namespace voda
