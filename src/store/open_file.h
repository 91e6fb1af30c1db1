// Opening the database file: everything that can be wrong with it is found, and said, before anything is
// changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/sqlite.h"

namespace voda {

// Larger files are opened without looking at every page, which would delay the start by seconds.
inline constexpr std::int64_t kCheckedBytes = std::int64_t{256} << 20;

// Locked for this process until the connection is closed (SQLite's locks: they end with the process, however
// it ends, and no child inherits them), checked, in WAL mode, durable at each commit, migrated.
Result<std::unique_ptr<SqliteConnection>> OpenDatabaseFile(const std::string& path,
                                                           std::int64_t checked_bytes = kCheckedBytes);

}  // namespace voda
