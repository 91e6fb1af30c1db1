#include "cli/io.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace voda {

Result<std::string> ReadInput(const std::string& path, std::size_t limit) {
  const bool standard = path == "-";
  const auto close = [&](std::FILE* file) {
    if (!standard) std::fclose(file);
  };
  std::unique_ptr<std::FILE, decltype(close)> file(standard ? stdin : std::fopen(path.c_str(), "rb"), close);
  const std::string name = standard ? "stdin" : path;
  if (!file) return Error{fmt::format("cannot read {}: {}", name, std::strerror(errno))};
  if (standard && ::isatty(STDIN_FILENO) == 1)
    std::fputs("reading from the terminal, end with Ctrl-D\n", stderr);

  constexpr std::size_t kChunk = std::size_t{1} << 16;
  std::string text;
  // Unused pages cost no memory, and growing would need two copies.
  text.reserve(limit + 2 * kChunk);
  for (;;) {
    const std::size_t old = text.size();
    text.resize(old + kChunk);
    const std::size_t got = std::fread(text.data() + old, 1, kChunk, file.get());
    text.resize(old + got);
    if (text.size() > limit) return Error{fmt::format("{} is larger than {} MiB", name, limit >> 20)};
    if (got < kChunk) break;
  }
  if (std::ferror(file.get()) != 0)
    return Error{fmt::format("cannot read {}: {}", name, std::strerror(errno))};
  return text;
}

Status WriteOutput(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    return Error{fmt::format("cannot write to stdout: {}", std::strerror(errno))};
  }
  return Ok{};
}

}  // namespace voda
