#include "local/log_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/untrusted_file.h"
#include "local/start_files.h"

namespace voda::local {

LogSink::LogSink(std::string folder, std::int64_t bytes)
    : folder_(std::move(folder)), piece_bytes_(std::max<std::int64_t>(bytes / 2, 1)) {
  Open();
}

void LogSink::Write(std::string_view text) {
  while (!text.empty()) {
    if (size_ >= piece_bytes_) NextPiece();
    const auto room = static_cast<std::size_t>(piece_bytes_ - size_);
    Append(text.substr(0, room));
    text.remove_prefix(std::min(room, text.size()));
  }
}

void LogSink::Say(std::string_view line) {
  Write(fmt::format("voda: {}\n", line));
}

bool LogSink::Reopen() {
  if (SameFile(LogPath(folder_, piece_), file_.get())) return false;
  const Fd before = std::move(file_);
  Open();
  char chunk[16384];
  for (off_t at = 0; before.ok() && at < piece_bytes_;) {
    const ssize_t got = ::pread(before.get(), chunk, sizeof chunk, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    Append({chunk, static_cast<std::size_t>(got)});
    at += got;
  }
  return true;
}

bool LogSink::Open() {
  file_ = MakeUntrusted(LogPath(folder_, piece_), O_RDWR | O_APPEND);
  size_ = 0;
  return file_.ok();
}

void LogSink::NextPiece() {
  ++piece_;
  if (piece_ >= 2) ::unlink(LogPath(folder_, piece_ - 2).c_str());
  Open();
}

void LogSink::Append(std::string_view text) {
  if (!file_.ok() && !Open()) {
    why_lost_ = errno;
    lost_ += static_cast<std::int64_t>(text.size());
    return;
  }
  if (lost_ > 0 && !said_) {
    const std::string note = fmt::format("voda: output of the worker could not be written and is lost: {}\n",
                                         std::strerror(why_lost_));
    if (::write(file_.get(), note.data(), note.size()) == static_cast<ssize_t>(note.size())) said_ = true;
  }
  while (!text.empty()) {
    const ssize_t written = ::write(file_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      why_lost_ = errno;
      lost_ += static_cast<std::int64_t>(text.size());
      return;
    }
    size_ += written;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace voda::local
