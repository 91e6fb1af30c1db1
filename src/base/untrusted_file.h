// Files in folders that others write to, as a job does to its own. They can put anything in the place of a
// file of ours, such as a pipe that nobody writes to, a link, or an endless file. Everything that is read in
// such a folder is opened here, so that no reader waits, leaves the folder or runs out of memory.
//
// Only a file that is not there counts as absent. An error means that it cannot be told now, for example
// because there is no free descriptor: the caller tries again later and concludes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace voda {

// A descriptor for reading; none where there is no such file, or where there is something else than a regular
// file, which is none of ours.
Result<Fd> OpenUntrusted(const std::string& path);

// All bytes of the file; nothing also where there are more than `limit`, because nobody of ours wrote those.
Result<std::optional<std::string>> ReadUntrusted(const std::string& path, std::size_t limit);

// At most `most` bytes from `offset` on; empty at the end of the file and where OpenUntrusted has no
// descriptor.
Result<std::string> ReadUntrustedAt(const std::string& path, std::int64_t offset, std::size_t most);

// The size of the file; 0 where it is no regular file or cannot be looked at.
std::int64_t UntrustedSize(const std::string& path);

// Whether the path still names the open file.
bool SameFile(const std::string& path, int file);

// A new file for writing, in the place of whatever is there. Without one, errno says why.
Fd MakeUntrusted(const std::string& path, int flags);

}  // namespace voda
