// The tables of the database, as numbered migrations. What was released is never edited: a change is one
// more migration at the end.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sqlite.h"

namespace voda {

// Written into the header of the file, so that a database of something else is not taken for ours.
inline constexpr std::int64_t kApplicationId = 0x566f6461;  // "Voda"

// migrations()[i] leads from version i to version i + 1 (PRAGMA user_version).
const std::vector<std::string_view>& Migrations();

// Refuses a file of something else or of a newer Voda; changes nothing.
Status CheckSchema(SqliteConnection& connection, std::size_t newest);
// Runs what is missing, each migration in a transaction of its own.
Status Migrate(SqliteConnection& connection, const std::vector<std::string_view>& migrations);

}  // namespace voda
