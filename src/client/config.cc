#include "client/config.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/files.h"
#include "base/text.h"

namespace voda {

namespace {

constexpr std::size_t kMaxFileBytes = 65536;
constexpr std::size_t kMaxTokenBytes = 4096;
constexpr const char* kByDefault = "the default";

struct ConfigFile {
  std::string server;
  std::string token_file;
  std::string data;
  std::string ca_file;
};

Result<ConfigFile> ParseConfig(const std::string& path, std::string_view text,
                               const Environment& environment) {
  ConfigFile config;
  int number = 0;
  for (const std::string_view whole : SplitEnded(text)) {
    ++number;
    const std::string_view line = Trim(whole);
    if (line.empty() || line.front() == '#') continue;
    const auto equals = line.find('=');
    const std::string_view key = Trim(line.substr(0, equals));
    std::string* field = key == "server"       ? &config.server
                         : key == "token-file" ? &config.token_file
                         : key == "data"       ? &config.data
                         : key == "ca-file"    ? &config.ca_file
                                               : nullptr;
    if (equals == line.npos || field == nullptr) {
      return Error{
          fmt::format("{}:{}: \"{}\" is not usable; lines are KEY = VALUE with the keys server, "
                      "token-file, data and ca-file",
                      path, number, key.substr(0, 80))};
    }
    *field = Trim(line.substr(equals + 1));
    if (field != &config.server && field->substr(0, 2) == "~/") {
      field->replace(0, 1, environment("HOME").value_or(""));
    }
  }
  return config;
}

// Checks that a token can stand in a header line.
Result<std::string> CheckToken(std::string_view text, const std::string& from) {
  const std::string_view token = Trim(text);
  if (token.empty()) return Error{fmt::format("{} holds no token", from)};
  if (token.size() > kMaxTokenBytes) return Error{fmt::format("{}: the token is too long", from)};
  for (const char c : token) {
    if (c <= ' ' || c > '~') return Error{fmt::format("{}: a token has no spaces or odd characters", from)};
  }
  return std::string(token);
}

Result<std::string> TokenFromFile(const std::string& path, const std::string& from) {
  const auto text = ReadFileIfAny(path, kMaxFileBytes);
  if (!text) return Error{fmt::format("{}: {}", from, text.error().message)};
  if (!text->has_value()) return Error{fmt::format("{}: there is no file {}", from, path)};
  return CheckToken(**text, path);
}

class Resolver {
 public:
  Resolver(const ConnectFlags& flags, const Environment& environment)
      : flags_(flags), environment_(environment) {}

  Result<Connection> Run() {
    out_.config_file = ConfigPath(environment_);
    if (!out_.config_file.empty()) {
      const auto text = ReadFileIfAny(out_.config_file, kMaxFileBytes);
      if (!text) return text.error();
      const auto parsed = ParseConfig(out_.config_file, text->value_or(""), environment_);
      if (!parsed) return parsed.error();
      config_ = *parsed;
    }
    ChooseFolder();
    for (const auto step : {&Resolver::ChooseServer, &Resolver::ChooseToken, &Resolver::Guard}) {
      if (const Status done = (this->*step)(); !done) return done.error();
    }
    out_.http.ca_file = !flags_.ca_file.empty() ? flags_.ca_file : Env("VODA_CA_FILE");
    if (out_.http.ca_file.empty()) out_.http.ca_file = config_.ca_file;
    if (!out_.http.ca_file.empty() && ::access(out_.http.ca_file.c_str(), R_OK) != 0) {
      return Error{
          fmt::format("cannot read the certificates of {}: {}", out_.http.ca_file, std::strerror(errno))};
    }
    return std::move(out_);
  }

 private:
  std::string Env(const char* name) const { return environment_(name).value_or(""); }

  void ChooseFolder() {
    if (!flags_.data.empty()) {
      out_.data = flags_.data;
      folder_from_ = "--data";
    } else if (const std::string home = Env("VODA_HOME"); !home.empty()) {
      out_.data = home;
      folder_from_ = "VODA_HOME";
    } else if (!config_.data.empty()) {
      out_.data = config_.data;
      folder_from_ = out_.config_file;
    } else {
      out_.data = DefaultDataFolder(environment_);
    }
  }

  // A folder named by a nearer source than the server comes first: --data before VODA_SERVER, VODA_HOME
  // before the config file.
  Status ChooseServer() {
    std::string named;
    const auto take = [&](std::string value, std::string from) {
      if (!named.empty() || value.empty()) return;
      named = std::move(value);
      out_.server_from = std::move(from);
    };
    const auto folder = [&](bool turn) -> Status {
      if (!turn || out_.data.empty()) return Ok{};
      const std::string path = out_.data + "/server";
      const auto text = ReadFileIfAny(path, kMaxFileBytes);
      if (!text && named.empty()) return text.error();
      if (!text) return Ok{};
      folder_server_ = Trim(text->value_or(""));
      take(folder_server_, path);
      return Ok{};
    };
    take(flags_.server, "--server");
    if (Status read = folder(folder_from_ == "--data"); !read) return read;
    take(Env("VODA_SERVER"), "VODA_SERVER");
    if (Status read = folder(folder_from_ == "VODA_HOME"); !read) return read;
    take(config_.server, out_.config_file);
    if (Status read = folder(folder_from_ != "--data" && folder_from_ != "VODA_HOME"); !read) return read;
    take(std::string(kDefaultServer), kByDefault);
    const auto url = NormalizeServer(named);
    if (!url) return Error{fmt::format("{}: {}", out_.server_from, url.error().message)};
    out_.http.server = *url;
    const std::string socket = out_.data + "/socket";
    struct stat found {};
    if (OfFolder() && ::stat(socket.c_str(), &found) == 0 && S_ISSOCK(found.st_mode))
      out_.http.socket = socket;
    return Ok{};
  }

  // Whether the server is the one that the folder names.
  bool OfFolder() const {
    const auto own = NormalizeServer(folder_server_);
    return own && *own == out_.http.server;
  }

  Status Keep(const Result<std::string>& token, std::string from) {
    if (!token) return token.error();
    out_.http.token = *token;
    out_.token_from = std::move(from);
    return Ok{};
  }

  Status FolderToken(bool& taken) {
    if (out_.data.empty() || !OfFolder()) return Ok{};
    const std::string path = out_.data + "/token";
    const auto text = ReadFileIfAny(path, kMaxFileBytes);
    // The folder may belong to another user: go on without a token; the server says 401 if it wants one.
    if (!text || !text->has_value()) return Ok{};
    taken = true;
    return Keep(CheckToken(**text, path), path);
  }

  Status ChooseToken() {
    bool taken = false;
    if (!flags_.token_file.empty())
      return Keep(TokenFromFile(flags_.token_file, "--token-file"), "--token-file");
    if (folder_from_ == "--data") {
      if (Status read = FolderToken(taken); !read || taken) return read;
    }
    if (const std::string token = Env("VODA_TOKEN"); !token.empty()) {
      return Keep(CheckToken(token, "VODA_TOKEN"), "VODA_TOKEN");
    }
    if (const std::string file = Env("VODA_TOKEN_FILE"); !file.empty()) {
      return Keep(TokenFromFile(file, "VODA_TOKEN_FILE"), "VODA_TOKEN_FILE");
    }
    if (folder_from_ == "VODA_HOME") {
      if (Status read = FolderToken(taken); !read || taken) return read;
    }
    if (!config_.token_file.empty()) {
      return Keep(TokenFromFile(config_.token_file, out_.config_file), out_.config_file);
    }
    return FolderToken(taken);
  }

  Status Guard() {
    const bool safe = out_.http.server.substr(0, 8) == "https://" || IsLoopbackUrl(out_.http.server);
    if (safe || out_.http.token.empty() || flags_.insecure) return Ok{};
    return Error{
        fmt::format("the token of {} would cross the network in the clear to {}; use https://, or say "
                    "--insecure if that network is yours alone",
                    out_.token_from, out_.http.server)};
  }

  const ConnectFlags& flags_;
  const Environment& environment_;
  ConfigFile config_;
  std::string folder_from_;
  std::string folder_server_;
  Connection out_;
};

std::string UnderHome(const Environment& environment, const char* variable, const char* below_home,
                      const char* name) {
  // The XDG base directory specification says that a relative path is invalid and ignored.
  if (const auto base = environment(variable); base && !base->empty() && base->front() == '/') {
    return *base + name;
  }
  const auto home = environment("HOME");
  return home && !home->empty() ? *home + below_home + name : "";
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::string ConfigPath(const Environment& environment) {
  return UnderHome(environment, "XDG_CONFIG_HOME", "/.config", "/voda/config");
}

std::string DefaultDataFolder(const Environment& environment) {
  return UnderHome(environment, "XDG_DATA_HOME", "/.local/share", "/voda");
}

Result<Connection> ResolveConnection(const ConnectFlags& flags, const Environment& environment) {
  return Resolver(flags, environment).Run();
}

}  // namespace voda
