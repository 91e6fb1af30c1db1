// A whole `voda up` under load: 10,000 jobs over 64 connections while rounds run and 1,000 event streams are
// open, 20 of everything and the others of one job each. Fails when a request fails, a job is lost (also by
// kill -9 right after), or a stream misses or reorders an event without being told. Usage: load_bench VODA
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <unordered_map>

#include "load_client.h"

namespace voda::load {
namespace {

constexpr int kWatched = 980;  // jobs with a stream of their own
constexpr int kJobs = 10'000;
constexpr int kChanges = 3;  // of each watched job, among the submissions
constexpr int kOfEverything = 20;
constexpr int kConnections = 64;
enum Kind { kSubmission, kChange };

std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// `voda up` on a folder of its own.
class Up {
 public:
  explicit Up(std::string binary) : binary_(std::move(binary)) {
    char name[] = "/tmp/voda-load-XXXXXX";
    if (mkdtemp(name) == nullptr) Fail("cannot make a folder");
    folder_ = name;
    Start();
  }
  ~Up() {
    End(SIGTERM);
    std::filesystem::remove_all(folder_);
  }
  Up(const Up&) = delete;
  Up& operator=(const Up&) = delete;

  void Start() {
    std::filesystem::remove(folder_ + "/server");
    fflush(stdout);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (freopen((folder_ + "/log").c_str(), "a", stderr) == nullptr) _exit(1);
      if (freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
      execl(binary_.c_str(), binary_.c_str(), "up", "--data", folder_.c_str(), "--listen", "127.0.0.1:0",
            "--nodes", "a:2,b:2", "--rate-limit", "0s", "--log-level", "warn", nullptr);
      _exit(127);
    }
    for (int i = 0; i < 600 && !std::filesystem::exists(folder_ + "/server"); ++i) usleep(100'000);
    const std::string url = Slurp(folder_ + "/server");
    if (url.empty()) Fail("voda up does not start: " + Slurp(folder_ + "/log"));
    server_ = {std::atoi(url.c_str() + url.rfind(':') + 1), Slurp(folder_ + "/token")};
    while (!server_.token.empty() && server_.token.back() == '\n') server_.token.pop_back();
  }
  void End(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  const Server& server() const { return server_; }
  const std::string& folder() const { return folder_; }
  std::string Memory(const char* field) const {
    const std::string status = Slurp(fmt::format("/proc/{}/status", pid_));
    const auto at = status.find(field);
    return at == std::string::npos ? "?" : fmt::format("{} MiB", std::atol(&status[at] + 7) / 1024);
  }

 private:
  std::string binary_, folder_;
  Server server_;
  pid_t pid_ = 0;
};

std::string JobText(int number) {
  return fmt::format(
      R"({{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{{"name":"load-{}"}},"spec":{{"elasticPolicy":{{"minReplicas":1,"maxReplicas":4}},"pytorchReplicaSpecs":{{"Worker":{{"replicas":2,"template":{{"spec":{{"containers":[{{"name":"pytorch","command":["sleep","600"]}}]}}}}}}}}}}}})",
      number);
}

std::string Between(const std::string& text, std::string_view before, char after) {
  const auto at = text.find(before);
  if (at == std::string::npos) return {};
  return text.substr(at + before.size(), text.find(after, at + before.size()) - at - before.size());
}

// What one stream saw.
struct Seen {
  std::uint64_t last = 0;
  std::uint64_t events = 0;
  std::uint64_t submitted = 0, changed = 0, rounds = 0;
  bool ordered = true, whole = true, lagged = false;
};

// All streams with one thread that reads them.
class Streams {
 public:
  explicit Streams(const Server& server) : server_(server), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    thread_ = std::thread([this] { Loop(); });
  }
  ~Streams() {
    stop_ = true;
    thread_.join();
    close(epoll_);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // `job` empty: everything from now on; else all of that job since the first stream was opened.
  void Open(const std::string& job) {
    const std::lock_guard lock(mutex_);
    auto seen = std::make_unique<Seen>();
    Seen* into = seen.get();
    const bool first = all_.empty();
    auto stream = std::make_unique<Stream>(
        server_,
        job.empty() ? "/api/v1/events" : fmt::format("/api/v1/events?after={}&job={}", began_ - 1, job),
        [this, into, job, first](const SseEvent& event) { Take(*into, job, first, event); });
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.ptr = stream.get();
    epoll_ctl(epoll_, EPOLL_CTL_ADD, stream->fd(), &wanted);
    all_.push_back({std::move(stream), std::move(seen), job});
  }

  void AwaitOpen(std::size_t count) {
    for (int i = 0; i < 600 && CountOpen() < count; ++i) usleep(100'000);
    if (CountOpen() < count) Fail("streams do not open");
  }
  std::size_t CountOpen() {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(all_.begin(), all_.end(), [](const One& one) { return one.stream->open(); }));
  }

  struct Total {
    int complete = 0, lagged = 0, broken = 0;
    std::uint64_t events = 0, rounds = 0;
    bool settled = false;
  };
  // What each stream must have seen is what the first stream of everything saw.
  Total Judge(std::uint64_t submitted, std::uint64_t changed) {
    const std::lock_guard lock(mutex_);
    Total total;
    const Seen& first = *all_.front().seen;
    total.rounds = first.rounds;
    total.settled = first.lagged || (first.submitted == submitted && first.changed == changed);
    for (const One& one : all_) {
      const Seen& seen = *one.seen;
      total.events += seen.events;
      const bool complete = one.job.empty()
                                ? seen.submitted == submitted && seen.changed == changed && seen.whole
                                : seen.events == of_job_[one.job];
      if (seen.lagged) {
        ++total.lagged;
      } else if (complete && seen.ordered) {
        ++total.complete;
      } else {
        ++total.broken;
      }
    }
    return total;
  }

 private:
  struct One {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Seen> seen;
    std::string job;
  };

  void Take(Seen& seen, const std::string& job, bool first, const SseEvent& event) {
    if (event.type == "lagged") {
      seen.lagged = true;
      return;
    }
    const std::uint64_t seq = std::strtoull(event.id.c_str(), nullptr, 10);
    if (seq <= seen.last) seen.ordered = false;
    if (seen.events > 0 && seq != seen.last + 1) seen.whole = false;
    seen.last = seq;
    ++seen.events;
    if (event.type == "job.submitted") ++seen.submitted;
    if (event.type == "job.changed") ++seen.changed;
    if (event.type == "round") ++seen.rounds;
    // Not a job that a round changed, which is named further inside.
    const std::string of = Between(event.data, fmt::format(R"("type":"{}","job":")", event.type), '"');
    if (!job.empty() && of != job) seen.ordered = false;
    if (!first) return;
    if (began_ == 0) began_ = seq;
    if (!of.empty()) ++of_job_[of];
  }

  void Loop() {
    std::vector<epoll_event> events(256);
    std::string buffer(1 << 18, '\0');
    while (!stop_) {
      const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 50);
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < n; ++i) {
        auto* stream = static_cast<Stream*>(events[static_cast<std::size_t>(i)].data.ptr);
        stream->Read(buffer);
        if (stream->ended()) epoll_ctl(epoll_, EPOLL_CTL_DEL, stream->fd(), nullptr);
      }
    }
  }

  Server server_;
  int epoll_;
  std::mutex mutex_;
  std::vector<One> all_;
  std::unordered_map<std::string, std::uint64_t> of_job_;  // events that the first stream saw
  std::uint64_t began_ = 0;                                // the first of them
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Submits jobs, and changes each of `watched` now and then; returns the names of the jobs.
std::vector<std::string> Submit(Connections& connections, const Server& server, int jobs,
                                const std::vector<std::string>& watched, std::vector<double>& seconds) {
  std::vector<std::string> names;
  int sent = 0;
  const int changes = kChanges * static_cast<int>(watched.size());
  int changed = 0;
  connections.Run(
      [&](Connections::Request& request) {
        const bool change = changed < changes && (sent == jobs || changed * 3 < sent);
        if (change) {
          const std::string& job = watched[static_cast<std::size_t>(changed) % watched.size()];
          request.kind = kChange;
          request.text = RequestText(
              server, "PATCH", "/api/v1/jobs/" + job,
              fmt::format(R"({{"priority":{}}})", 1 + changed / static_cast<int>(watched.size())));
          ++changed;
          return true;
        }
        if (sent == jobs) return false;
        request.kind = kSubmission;
        request.text = RequestText(server, "POST", "/api/v1/jobs", JobText(sent++));
        return true;
      },
      [&](int kind, double took, const Response& response) {
        if (response.status != (kind == kChange ? 200 : 201)) {
          Fail(fmt::format("a request was answered {}: {}", response.status, response.body));
        }
        if (kind == kChange) return;
        seconds.push_back(took);
        names.push_back(Between(response.body, "\"name\":\"", '"'));
      });
  return names;
}

double Percentile(std::vector<double> values, double which) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(which * static_cast<double>(values.size() - 1))];
}

void MustHold(const Server& server, const std::vector<std::string>& names, const char* when) {
  Connections connections(server, 1);
  const Response all = connections.Ask(RequestText(server, "GET", "/api/v1/jobs"));
  std::map<std::string, int, std::less<>> there;
  for (std::size_t at = 0; (at = all.body.find("\"name\":\"", at)) != std::string::npos; ++at) {
    ++there[all.body.substr(at + 8, all.body.find('"', at + 8) - at - 8)];
  }
  for (const std::string& name : names) {
    if (there[name] != 1) Fail(fmt::format("{}: {} is listed {} times", when, name, there[name]));
  }
  fmt::print("{}: all {} jobs are there, each once\n", when, names.size());
}

void Main(const std::string& binary) {
  Up up(binary);
  Connections connections(up.server(), kConnections);
  std::vector<double> seconds;
  std::vector<std::string> names;
  {
    Streams streams(up.server());
    for (int i = 0; i < kOfEverything; ++i) streams.Open("");
    streams.AwaitOpen(kOfEverything);
    const std::vector<std::string> watched = Submit(connections, up.server(), kWatched, {}, seconds);
    for (const std::string& job : watched) streams.Open(job);
    streams.AwaitOpen(kOfEverything + watched.size());
    fmt::print("streams open: {}\n", streams.CountOpen());
    const std::uint64_t rounds_before = streams.Judge(0, 0).rounds;

    seconds.clear();
    const double began = Now();
    names = Submit(connections, up.server(), kJobs, watched, seconds);
    const double took = Now() - began;
    names.insert(names.end(), watched.begin(), watched.end());

    Streams::Total total;
    for (int i = 0; i < 1200 && !total.settled; ++i) {
      usleep(100'000);
      total = streams.Judge(names.size(), kChanges * watched.size());
    }
    sleep(1);
    total = streams.Judge(names.size(), kChanges * watched.size());
    fmt::print("{} jobs and {} changes over {} connections in {:.2f} s: {:.0f} requests/s\n", kJobs,
               kChanges * watched.size(), kConnections, took,
               (kJobs + static_cast<double>(kChanges * watched.size())) / took);
    fmt::print("submission: p50 {:.1f} ms, p99 {:.1f} ms, longest {:.1f} ms, no error\n",
               1e3 * Percentile(seconds, 0.5), 1e3 * Percentile(seconds, 0.99), 1e3 * Percentile(seconds, 1));
    fmt::print("rounds meanwhile: {}\n", total.rounds - rounds_before);
    fmt::print(
        "streams: {} complete and in order, {} told that they fell behind, {} broken; {} events delivered\n",
        total.complete, total.lagged, total.broken, total.events);
    if (total.broken > 0) Fail("a stream missed or reordered events");
    fmt::print("resident: {} with the streams open, {} at most\n", up.Memory("VmRSS:"), up.Memory("VmHWM:"));
  }

  std::vector<double> lists;
  for (int i = 0; i < 20; ++i) {
    const double asked = Now();
    connections.Ask(RequestText(up.server(), "GET", "/api/v1/jobs"));
    lists.push_back(Now() - asked);
  }
  std::vector<double> commands;
  const std::string command = fmt::format("{} get jobs --data {} > /dev/null", binary, up.folder());
  for (int i = 0; i < 10; ++i) {
    const double asked = Now();
    if (std::system(command.c_str()) != 0) Fail("voda get jobs failed");
    commands.push_back(Now() - asked);
  }
  const double ten_thousand = 1e4 / static_cast<double>(names.size());
  fmt::print("GET /api/v1/jobs of {}: median {:.0f} ms, longest {:.0f} ms\n", names.size(),
             1e3 * Percentile(lists, 0.5), 1e3 * Percentile(lists, 1));
  fmt::print("voda get jobs of {}: median {:.0f} ms, {:.0f} ms for each 10,000 (goal: 100 ms)\n",
             names.size(), 1e3 * Percentile(commands, 0.5), 1e3 * ten_thousand * Percentile(commands, 0.5));

  MustHold(up.server(), names, "after the load");
  up.End(SIGKILL);
  up.Start();
  MustHold(up.server(), names, "after kill -9 and a new start");
  Connections last(up.server(), 1);
  for (const char* node : {"a", "b"}) {
    last.Ask(RequestText(up.server(), "POST", fmt::format("/api/v1/nodes/{}/drain", node)));
  }
  for (int i = 0; i < 300; ++i) {
    if (Between(last.Ask(RequestText(up.server(), "GET", "/api/v1/info")).body, "\"gpus_used\":", ',') == "0")
      return;
    usleep(100'000);
  }
  Fail("workers did not stop");
}

}  // namespace
}  // namespace voda::load

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: load_bench VODA\n");
    return 2;
  }
  voda::load::Main(argv[1]);
}
