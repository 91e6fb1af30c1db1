// Small files, read whole and bounded, written in one step, and what goes wrong with files.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace voda {

// "cannot DOING: what errno means".
Error SystemError(std::string_view doing, int code);

// Writes all of it; false, with errno, where that is not possible.
bool WriteAll(int fd, std::string_view text);

enum class FileKind {
  kAny,      // a pipe is read to its end, however long that takes
  kRegular,  // anything else is an error: for files that others may replace, so that reading never waits
};

// The bytes of a file. An error names the file and says why; more than `limit` bytes is one.
Result<std::string> ReadFile(const std::string& path, std::size_t limit, FileKind kind = FileKind::kAny);
// The same, and nothing where there is no such file. No other error counts as absence.
Result<std::optional<std::string>> ReadFileIfAny(const std::string& path, std::size_t limit,
                                                 FileKind kind = FileKind::kAny);
// The bytes of a file that is open; `path` is for messages.
Result<std::string> ReadOpenFile(const Fd& file, const std::string& path, std::size_t limit,
                                 FileKind kind = FileKind::kAny);

enum class Durable { kNo, kYes };  // whether the file is on the disk when the call returns
// Replaces the file in one step, by way of a temporary file beside it: nobody sees half of it.
Status ReplaceFile(const std::string& path, std::string_view text, mode_t mode, Durable durable);
// The same where there is no such file; one that is there stays as it is, also one that another process makes
// at the same time. The file is durable.
Status MakeFile(const std::string& path, std::string_view text, mode_t mode);

}  // namespace voda
