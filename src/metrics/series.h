// The table of all series: the one place where a name, its labels and its meaning are written.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/indexed.h"
#include "metrics/metrics.h"

namespace voda {

struct SeriesInfo {
  enum class Kind : std::uint8_t { kCounter, kGauge, kHistogram };

  Series series;
  std::string_view name;
  Kind kind;
  std::vector<std::string_view> labels;
  int roles;  // a sum of Metrics::Role
  std::string_view help;
  std::vector<double> buckets;  // upper bounds, for a histogram
};

const IndexedVector<Series, SeriesInfo>& SeriesTable();
const SeriesInfo& InfoOf(Series series);
std::string_view Name(SeriesInfo::Kind kind);  // "counter"

}  // namespace voda
