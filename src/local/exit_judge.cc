#include "local/exit_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/utf8.h"
#include "local/files.h"

namespace voda::local {

namespace {

constexpr std::size_t kLines = 20;
constexpr std::size_t kBytes = 4096;
constexpr std::size_t kReadBytes = 16384;

// Length of the UTF-8 sequence at the front; 0 if it is invalid or a control character.
std::size_t Printable(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 0;
  const std::size_t length = CharacterBytes(text);
  const bool c1_control = length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0;
  return c1_control ? 0 : length;
}

// Length of a terminal's control sequence at the front, such as a colour; 0 if there is none.
std::size_t ControlSequence(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b' || text[1] != '[') return 0;
  const std::size_t end = text.find_first_not_of("0123456789;?", 2);
  return end == std::string_view::npos ? text.size() : end + 1;
}

std::string SafeLine(std::string_view line) {
  std::string safe;
  while (!line.empty()) {
    if (const std::size_t skipped = ControlSequence(line)) {
      line.remove_prefix(skipped);
      continue;
    }
    const std::size_t length = Printable(line);
    if (length > 0) {
      safe += line.substr(0, length);
    } else {
      safe += line[0] == '\t' ? ' ' : '?';
    }
    line.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return safe;
}

}  // namespace

ExitJudgement JudgeExit(const JobSpec& spec, const EndFacts& facts, double disturbed_seconds) {
  using Kind = ExitVerdict::Kind;
  if (facts.disturbed && facts.disturbed_row < kDisturbedMax) {
    // A worker that had run for long had made progress.
    const int row = facts.ran > disturbed_seconds ? 1 : facts.disturbed_row + 1;
    return {{Kind::kDisturbed, row}, "right after a change of the job's workers"};
  }
  const int failures = facts.failures + 1;
  if (spec.restart_policy == RestartPolicy::kNo) return {{Kind::kFatal, failures}, "restartPolicy Never"};
  if (spec.restart_policy == RestartPolicy::kExitCode && facts.exit.status() < 128)
    return {{Kind::kFatal, failures}, "restartPolicy ExitCode: codes 1 to 127 are not retried"};
  return {{failures > spec.backoff_limit ? Kind::kFatal : Kind::kFailure, failures},
          fmt::format("failure {}, backoffLimit {}", failures, spec.backoff_limit)};
}

std::string Describe(const ExitRecord& exit) {
  if (exit.signal == 0) return fmt::format("exited with code {}", exit.code);
  return fmt::format("was killed by signal {} ({}{})", exit.signal, ::strsignal(exit.signal),
                     exit.out_of_memory ? ", its memory limit was reached" : "");
}

std::string LastLines(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  while (!text.empty() && lines.size() < kLines) {
    const std::size_t newline = text.rfind('\n');
    std::string_view line = newline == std::string_view::npos ? text : text.substr(newline + 1);
    text = newline == std::string_view::npos ? std::string_view() : text.substr(0, newline);
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    // A progress bar rewrites its line again and again: only the last state is kept.
    if (const std::size_t again = line.rfind('\r'); again != std::string_view::npos)
      line.remove_prefix(again + 1);
    std::string safe = SafeLine(line);
    if (bytes + safe.size() + 1 > kBytes) {
      if (!lines.empty()) break;
      std::size_t from = safe.size() - (kBytes - 1);
      while (from < safe.size() && (static_cast<unsigned char>(safe[from]) & 0xc0) == 0x80) ++from;
      safe.erase(0, from);
    }
    bytes += safe.size() + 1;
    lines.push_back(std::move(safe));
  }
  std::reverse(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string LastLinesOf(const std::string& folder) {
  std::string text;
  const auto pieces = LogPieces(folder);
  for (auto piece = pieces.rbegin(); piece != pieces.rend() && text.size() < kReadBytes; ++piece) {
    text.insert(0, ReadEnd(*piece, kReadBytes - text.size()));
  }
  return LastLines(text);
}

}  // namespace voda::local
