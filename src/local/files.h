// The file operations of job folders. Whatever must survive a crash between two steps replaces a file as a
// whole (base/files.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"

namespace voda::local {

using voda::Durable;
using voda::ReplaceFile;

// The last bytes of a file of a job, at most `limit`; empty if it cannot be read.
std::string ReadEnd(const std::string& path, std::size_t limit);

// Makes the folder and its parents; it may exist already.
Status MakeFolder(const std::string& path, mode_t mode);
bool Exists(const std::string& path);
// The names in a folder, sorted; none where there is no such folder. Any other trouble is an error, and so
// are more than kMostNames names: a job may make millions of files.
inline constexpr std::size_t kMostNames = 1'000'000;
Result<std::vector<std::string>> ListFolder(const std::string& path);
void RemoveTree(const std::string& path);

// Identifies the boot of this machine that UptimeNow() counts from.
std::string BootId();

}  // namespace voda::local
