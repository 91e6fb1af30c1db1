// Files as the run folder needs them: read with a cap, replaced as a whole, listed in order. Everything that
// must survive a crash between two steps is one of these replacements.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace voda::local {

// "cannot DOING: what errno means".
Error SystemError(std::string_view doing, int code);

// Writes all of it; false, with errno, where that is not possible.
bool WriteAll(int fd, std::string_view text);

// The file's bytes, or an error; more than `limit` is one.
Result<std::string> ReadWhole(const std::string& path, std::size_t limit);

// The last bytes of a file, at most `limit`; nothing where it cannot be read.
std::string ReadEnd(const std::string& path, std::size_t limit);

enum class Durable { kNo, kYes };  // whether it is on the disk when this returns
// Puts the file in place at once, with a temporary file beside it.
Status ReplaceFile(const std::string& path, std::string_view text, mode_t mode, Durable durable);

// Makes the folder and those above it; one that exists is fine.
Status MakeFolder(const std::string& path, mode_t mode);
bool Exists(const std::string& path);
// Names in a folder, sorted; nothing where it cannot be read.
std::vector<std::string> ListFolder(const std::string& path);
void RemoveTree(const std::string& path);

// Seconds since this machine started, also while it slept; and which start that was. Times of two starts
// cannot be compared.
double BootTime();
std::string BootId();

}  // namespace voda::local
