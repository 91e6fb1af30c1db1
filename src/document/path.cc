#include "document/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "document/json_text.h"

namespace voda {

namespace {

constexpr std::size_t kLongestKey = 60;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool Identifier(std::string_view key) {
  if (key.empty() || key.size() > kLongestKey) return false;
  return std::all_of(key.begin(), key.end(), [](char c) {
    const char lower = Lower(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Insertions, deletions and replacements between the two, letters alike in either case.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string MemberPath(std::string_view parent, std::string_view key) {
  if (!Identifier(key)) return fmt::format("{}[{}]", parent, QuotedBrief(key));
  return parent.empty() ? std::string(key) : fmt::format("{}.{}", parent, key);
}

std::string ItemPath(std::string_view parent, std::size_t index) {
  return fmt::format("{}[{}]", parent, index);
}

std::string_view NearestName(std::string_view name, std::span<const std::string_view> known) {
  std::string_view nearest;
  if (name.empty() || name.size() > kLongestKey) return nearest;
  std::size_t best = std::min<std::size_t>(2, name.size() / 2) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = Distance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace voda
