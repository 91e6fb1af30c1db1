// Session: one command's talk with the server. Resolves the connection from flags, environment and files, and
// ends the command with a message and the right exit code where something goes wrong.
#pragma once

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

// --server, --token-file, --data, --ca-file and --insecure. `flags` must outlive the parsing.
void AddConnectFlags(CLI::App& command, ConnectFlags& flags);

// -n, else VODA_NAMESPACE: jobs that are named without a namespace are of this one. `names` gets them back as
// NAMESPACE/NAME before the command runs.
void AddNamespaceFlag(CLI::App& command, std::string& name_space, std::vector<std::string>* names = nullptr);
void AddNamespaceFlag(CLI::App& command, std::string& name_space, std::string& name);

// -o of commands that print one or more objects; "" is the command's own format.
CLI::Option* AddOutputFlag(CLI::App& command, std::string& output, const std::string& formats);

class Session {
 public:
  // `command` begins every message, such as "voda get jobs".
  Session(std::string command, const ConnectFlags& flags);

  HttpClient& http() { return *http_; }
  // A second connection, for what is asked while a stream is open.
  HttpClient& side();
  const Connection& connection() const { return connection_; }

  JsonValue Get(const std::string& path);
  JsonValue Send(const std::string& method, const std::string& path, const JsonValue& body);
  // The value of the answer; ends the command where it is a trouble.
  JsonValue Need(ApiAnswer answer);

  // Says what is wrong and remembers the exit code of the first trouble; the command goes on.
  void Report(const ApiAnswer& answer, std::string_view about = "");
  // Ends the command if something was reported.
  void Finish() const;

  void Warn(std::string_view message) const;
  [[noreturn]] void Stop(std::string_view message, int code) const;
  [[noreturn]] void Stop(const ApiAnswer& answer) const;
  // On stdout, at once. A reader that went away ends the command as it ends any other program.
  void Print(std::string_view text) const;
  // As JSON or YAML.
  void PrintObject(const JsonValue& value, const std::string& output) const;

 private:
  std::string MessageOf(const ApiAnswer& answer) const;

  std::string command_;
  Connection connection_;
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<HttpClient> side_;
  int first_code_ = 0;
};

int ExitCodeOf(const ApiAnswer& answer);

// Colours: on a terminal unless NO_COLOR is set or TERM is dumb; FORCE_COLOR wants them always.
bool UseColor();

}  // namespace voda
