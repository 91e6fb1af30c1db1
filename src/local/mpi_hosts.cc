#include "local/mpi_hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/untrusted_file.h"
#include "local/environment.h"
#include "local/files.h"

namespace voda::local {

namespace {

std::string SeatsPath(const std::string& job_path) {
  return job_path + "/seats";
}

std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

// Each line has a node and its devices.
Status WriteSeats(const std::string& job_path, const std::vector<MpiSeat>& seats) {
  std::string text;
  for (const MpiSeat& seat : seats) text += fmt::format("{}\t{}\n", seat.node, fmt::join(seat.devices, ","));
  return ReplaceFile(SeatsPath(job_path), text, 0600, Durable::kNo);
}

Result<std::vector<MpiSeat>> ReadSeats(const std::string& job_path) {
  std::vector<MpiSeat> seats;
  const auto text = ReadUntrusted(SeatsPath(job_path), std::size_t{16} << 20);
  if (!text) return text.error();
  for (const std::string_view line : SplitEnded(*text ? std::string_view(**text) : "")) {
    const std::size_t tab = std::min(line.find('\t'), line.size());
    MpiSeat seat{.node = std::string(line.substr(0, tab))};
    for (std::size_t at = tab + 1; at < line.size();) {
      int device = 0;
      const auto [next, code] = std::from_chars(line.data() + at, line.data() + line.size(), device);
      if (code != std::errc()) break;
      seat.devices.push_back(device);
      at = static_cast<std::size_t>(next - line.data()) + 1;
    }
    seats.push_back(std::move(seat));
  }
  return seats;
}

void RemoveSeats(const std::string& job_path) {
  ::unlink(SeatsPath(job_path).c_str());
}

Status WriteHosts(const std::string& job_path, int slots) {
  const std::string hosts = job_path + "/hosts";
  const std::string script = fmt::format("#!/bin/sh\nexec cat {}\n", ShellQuoted(hosts));
  if (const Status written = ReplaceFile(hosts, fmt::format("localhost:{}\n", slots), 0644, Durable::kNo);
      !written)
    return written.error();
  // The file is replaced only if it differs, because it may be running at this moment.
  const auto present = ReadUntrusted(DiscoverPath(job_path), std::size_t{1} << 16);
  if (present && *present == script) return Ok{};
  return ReplaceFile(DiscoverPath(job_path), script, 0755, Durable::kNo);
}

Result<std::vector<RankProcess>> RankProcesses(const std::string& job_path) {
  std::vector<RankProcess> ranked;
  std::set<pid_t> pids;
  const auto processes = ProcessesOfJob(WorkPath(job_path));
  if (!processes) return processes.error();
  for (const auto& [process, environment] : *processes) {
    const auto rank = Lookup(environment, "HOROVOD_RANK");
    if (!rank) continue;
    RankProcess entry{.rank = 0, .process = process};
    std::from_chars(rank->data(), rank->data() + rank->size(), entry.rank);
    pids.insert(process.pid);
    ranked.push_back(entry);
  }
  ranked.erase(std::remove_if(ranked.begin(), ranked.end(),
                              [&](const RankProcess& entry) { return pids.contains(entry.process.parent); }),
               ranked.end());
  std::sort(ranked.begin(), ranked.end(), [](const RankProcess& a, const RankProcess& b) {
    return std::pair(a.rank, a.process.start) < std::pair(b.rank, b.process.start);
  });
  return ranked;
}

}  // namespace voda::local
