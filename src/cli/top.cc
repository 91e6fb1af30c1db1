// voda top: the cluster and its jobs on a full screen. One thread asks the server, one draws.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "client/screen.h"
#include "client/text.h"
#include "client/top_view.h"

namespace voda {

namespace {

constexpr std::size_t kMaxEnded = 200;
constexpr int kRounds = 50;
constexpr std::size_t kMaxTypes = 4;

// Fetches everything that the view shows, again and again. Ended jobs are fetched once, not every second.
class Watcher {
 public:
  Watcher(const ClientConfig& config, double interval, Screen& screen)
      : http_(WithShortTimeout(config)), interval_(interval), screen_(screen), thread_([this] { Loop(); }) {}
  ~Watcher() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    http_.Cancel();
    thread_.join();
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  TopData Latest() {
    const std::lock_guard lock(mutex_);
    return data_;
  }

 private:
  static ClientConfig WithShortTimeout(ClientConfig config) {
    config.timeout_seconds = 15;
    return config;
  }

  void Loop() {
    for (;;) {
      std::string trouble;
      TopData fresh;
      const bool ok = Fetch(fresh, trouble);
      std::unique_lock lock(mutex_);
      if (stop_) return;
      if (ok) {
        data_ = std::move(fresh);
      } else {
        data_.server = http_.config().server;
        data_.trouble = trouble;
      }
      screen_.Wake();
      changed_.wait_for(lock, std::chrono::duration<double>(interval_), [&] { return stop_; });
      if (stop_) return;
    }
  }

  bool Ask(const std::string& path, Value& value, std::string& trouble) {
    ApiAnswer answer = GetJson(http_, path);
    if (!answer.ok()) trouble = answer.message;
    value = std::move(answer.value);
    return answer.ok();
  }

  bool Fetch(TopData& data, std::string& trouble) {
    data.server = http_.config().server;
    Value nodes;
    Value rounds;
    if (!Ask("/api/v1/info", data.info, trouble) || !Ask("/api/v1/nodes", nodes, trouble) ||
        !Ask(fmt::format("/api/v1/rounds?limit={}", kRounds), rounds, trouble)) {
      return false;
    }
    data.now = data.info["now"].Number();
    data.nodes = nodes["nodes"].items();
    data.rounds = rounds["rounds"].items();
    if (!Algorithms(data, trouble)) return false;
    ApiAnswer active =
        ListJobs(http_, {.statuses = {JobStatus::kSubmitted, JobStatus::kWaiting, JobStatus::kRunning}});
    if (!active.ok()) {
      trouble = active.message;
      return false;
    }
    data.jobs = std::move(active.value).TakeItems();
    if (!Ended(data.jobs, trouble)) return false;
    data.jobs.insert(data.jobs.end(), ended_.begin(), ended_.end());
    SortForTop(data.jobs);
    return true;
  }

  bool Algorithms(TopData& data, std::string& trouble) {
    std::vector<std::pair<std::string, std::string>> chosen;
    for (const Value& type : data.info["gpu_types"].items()) {
      if (chosen.size() == kMaxTypes) break;
      Value settings;
      if (!Ask("/api/v1/settings?gpu_type=" + PercentEncode(type.Text()), settings, trouble)) return false;
      chosen.emplace_back(type.Text(), settings["algorithm"].Text());
    }
    const bool same = std::all_of(chosen.begin(), chosen.end(),
                                  [&](const auto& entry) { return entry.second == chosen.front().second; });
    for (const auto& [type, algorithm] : chosen) {
      if (same) data.algorithm = algorithm;
      if (!same) data.algorithm += fmt::format("{}{}:{}", data.algorithm.empty() ? "" : " ", type, algorithm);
    }
    return true;
  }

  // Adds the jobs that have ended since the last call; the first time, all that have ended.
  bool Ended(const Value::List& active, std::string& trouble) {
    std::map<std::string, bool> now;
    for (const Value& job : active) now[job["name"].Text()] = true;
    if (!listed_) {
      ApiAnswer all =
          ListJobs(http_, {.statuses = {JobStatus::kCompleted, JobStatus::kFailed, JobStatus::kCanceled}});
      if (!all.ok()) {
        trouble = all.message;
        return false;
      }
      ended_ = std::move(all.value).TakeItems();
      listed_ = true;
    }
    for (const auto& [name, unused] : active_) {
      if (now.count(name) > 0) continue;
      ApiAnswer job = GetJson(http_, JobPath(name));
      if (job.ok() && HasEnded(job.value)) ended_.push_back(std::move(job.value));
    }
    active_ = std::move(now);
    if (ended_.size() > kMaxEnded) {
      SortForTop(ended_);
      ended_.resize(kMaxEnded);
    }
    return true;
  }

  HttpClient http_;
  double interval_;
  Screen& screen_;
  std::map<std::string, bool> active_;
  Value::List ended_;
  bool listed_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  TopData data_;
  std::thread thread_;
};

bool Utf8Terminal() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string lower = CLI::detail::to_lower(value);
    return lower.find("utf-8") != lower.npos || lower.find("utf8") != lower.npos;
  }
  return false;
}

struct Args {
  ConnectFlags connect;
  double interval = 1;
};

// Returns the signal that ended it, or 0.
int Show(Screen& screen, const Session& session, double interval) {
  Watcher watcher(session.connection().http, interval, screen);
  const bool color = UseColor();
  TopView view{.ascii = !Utf8Terminal()};
  for (;;) {
    const Screen::Size size = screen.size();
    view.width = size.width;
    view.height = size.height;
    const TopPicture picture = RenderTop(watcher.Latest(), view);
    view.scroll = picture.scroll;
    std::vector<std::string> lines;
    for (const ScreenLine& line : picture.lines) lines.push_back(ToAnsi(line, color));
    screen.Draw(lines);
    for (const Key key : screen.Wait(1000)) {
      if (key == Key::kQuit) return screen.signal();
      if (key == Key::kSuspend) screen.Suspend();
      if (key == Key::kRedraw) screen.Forget();
      if (view.help) {
        view.help = false;
        continue;
      }
      if (key == Key::kHelp) view.help = true;
      if (key == Key::kUp) --view.scroll;
      if (key == Key::kDown) ++view.scroll;
      if (key == Key::kPageUp) view.scroll -= std::max(1, picture.page);
      if (key == Key::kPageDown) view.scroll += std::max(1, picture.page);
      if (key == Key::kHome) view.scroll = 0;
      if (key == Key::kEnd) view.scroll = 1 << 20;
      view.scroll = std::max(0, view.scroll);
    }
  }
}

void Run(const Args& args) {
  Session session("voda top", args.connect);
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    session.Stop("standard input and output are not a terminal; use `voda get jobs -w` there", kExitBadInput);
  }
  // A wrong token or address is reported before the screen is taken.
  session.Get("/api/v1/info");
  int signal = 0;
  {
    const auto screen = Screen::Open();
    if (!screen) session.Stop(screen.error().message, kExitError);
    signal = Show(**screen, session, args.interval);
  }
  if (signal != 0 && signal != SIGINT) std::raise(signal);
}

}  // namespace

void AddTop(CLI::App& app) {
  auto* command =
      app.add_subcommand("top", "watch nodes, jobs and decisions on a full screen")->group("Jobs");
  const auto args = std::make_shared<Args>();
  command->add_option("--interval", args->interval, "seconds between two refreshes")
      ->capture_default_str()
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0).description(""));
  AddConnectFlags(*command, args->connect);
  command->footer("q quits, ? shows the other keys.");
  command->callback([args] { Run(*args); });
}

}  // namespace voda
