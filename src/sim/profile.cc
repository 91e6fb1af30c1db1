#include "sim/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "model/job.h"
#include "sim/csv.h"

namespace voda::sim {
namespace {

constexpr double kMaxSpeedup = 1e9;
constexpr double kMaxExponent = 1.5;
constexpr std::size_t kMaxCurvePoints = 20'000'000;  // about half a gigabyte
constexpr std::size_t kNamesShown = 12;

constexpr std::string_view kPower = "power:";

std::optional<Error> CheckPoint(const SpanSpeedup& point) {
  if (point.workers < 1 || point.workers > kMaxWorkers) {
    return Error{fmt::format("has a size of {} workers; sizes go from 1 to {}", point.workers, kMaxWorkers)};
  }
  if (point.nodes < 0 || point.nodes > point.workers) {
    return Error{
        fmt::format("has {} workers on {} nodes; a worker is on one node", point.workers, point.nodes)};
  }
  if (!(point.speedup > 0 && point.speedup <= kMaxSpeedup)) {
    return Error{fmt::format("has speed-up {} at {} workers; it must be positive and finite", point.speedup,
                             point.workers)};
  }
  if (point.workers == 1 && point.speedup != 1) {
    return Error{fmt::format("has speed-up {} at 1 worker; speed-ups are over one worker, so that is 1",
                             point.speedup)};
  }
  return std::nullopt;
}

// "4:3.5" or "4@2:2.8".
std::optional<SpanSpeedup> ParsePoint(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view size = text.substr(0, colon);
  std::optional<std::int64_t> nodes = 0;
  if (const std::size_t at = size.find('@'); at != std::string_view::npos) {
    nodes = ParseInt(size.substr(at + 1));
    if (nodes && *nodes < 1) return std::nullopt;
    size = size.substr(0, at);
  }
  const auto workers = ParseInt(size);
  const auto speedup = ParseNumber(text.substr(colon + 1));
  if (!workers || !nodes || !speedup) return std::nullopt;
  if (*workers < 1 || *workers > kMaxWorkers || *nodes > kMaxWorkers) return std::nullopt;
  return SpanSpeedup{static_cast<int>(*workers), static_cast<int>(*nodes), *speedup};
}

Result<Profile> ParseInline(std::string_view text) {
  std::vector<SpanSpeedup> points;
  for (const std::string_view entry : Split(text, ';')) {
    const auto point = ParsePoint(entry);
    if (!point) {
      return Error{
          fmt::format("has an entry {}; write workers:speed-up or workers@nodes:speed-up, up to {} workers",
                      Quoted(entry), kMaxWorkers)};
    }
    points.push_back(*point);
  }
  return Profile::Measured(std::move(points));
}

Result<ProfileTable> ReadTable(Result<CsvReader> opened) {
  if (!opened) return opened.error();
  CsvReader& reader = *opened;
  std::map<std::string, std::vector<SpanSpeedup>, std::less<>> points;
  while (reader.Next()) {
    const std::string_view name = reader.Text(0);
    if (!IsName(name) || name.find(':') != std::string_view::npos || name == "linear") {
      reader.Fail(0,
                  "cannot name a profile: up to 253 visible ASCII characters without ':', and not 'linear'");
    }
    SpanSpeedup point{.workers = reader.Int(1, 1, kMaxWorkers), .nodes = 0, .speedup = 0};
    point.speedup = reader.Number(2, 0, kMaxSpeedup);
    if (reader.Has(3)) point.nodes = reader.Int(3, 0, kMaxWorkers);
    if (reader.failed()) break;
    if (const auto error = CheckPoint(point))
      reader.FailRow(fmt::format("profile {} {}", name, error->message));
    auto found = points.find(name);
    if (found == points.end()) found = points.emplace(name, std::vector<SpanSpeedup>()).first;
    found->second.push_back(point);
  }
  if (reader.failed()) return reader.error();

  ProfileTable table;
  for (auto& [name, measured] : points) {
    Result<Profile> profile = Profile::Measured(std::move(measured));
    if (!profile) {
      reader.FailRow(fmt::format("profile {} {}", name, profile.error().message));
      return reader.error();
    }
    table.emplace(name, *std::move(profile));
  }
  return table;
}

CsvSchema TableSchema() {
  return {.columns = {{"profile"}, {"workers"}, {"speedup"}, {"nodes", false}}, .allow_unknown = false};
}

}  // namespace

Profile Profile::Power(double exponent) {
  Profile profile;
  profile.exponent_ = exponent;
  return profile;
}

Result<Profile> Profile::Measured(std::vector<SpanSpeedup> points) {
  std::sort(points.begin(), points.end(), [](const SpanSpeedup& a, const SpanSpeedup& b) {
    return std::tie(a.workers, a.nodes) < std::tie(b.workers, b.nodes);
  });
  Profile profile;
  SpanTable spans;
  if (points.empty() || points.front().workers > 1) profile.packed_.emplace_back(1, 1.0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SpanSpeedup& point = points[i];
    if (auto error = CheckPoint(point)) return *std::move(error);
    if (i > 0 && points[i - 1].workers == point.workers && points[i - 1].nodes == point.nodes) {
      return Error{fmt::format("has {} workers{} twice; keep one", point.workers,
                               point.nodes > 0 ? fmt::format(" on {} nodes", point.nodes) : "")};
    }
    if (profile.packed_.empty() || profile.packed_.back().first != point.workers) {
      profile.packed_.emplace_back(point.workers, point.speedup);
    }
    if (point.nodes > 0) spans.push_back(point);
  }
  if (!spans.empty()) profile.spans_ = std::make_shared<const SpanTable>(std::move(spans));
  return profile;
}

double Profile::SpeedupAt(int workers) const {
  if (packed_.empty()) return exponent_ == 1 ? workers : std::pow(workers, exponent_);
  const auto above = std::lower_bound(packed_.begin(), packed_.end(), workers,
                                      [](const auto& point, int size) { return point.first < size; });
  if (above == packed_.end()) {
    const auto& [size, speedup] = packed_.back();
    return speedup * std::sqrt(static_cast<double>(workers) / size);
  }
  if (above->first == workers) return above->second;
  const auto below = std::prev(above);  // sizes begin at 1
  const double share = static_cast<double>(workers - below->first) / (above->first - below->first);
  return below->second + share * (above->second - below->second);
}

CurvePtr Profile::CurveOver(const std::vector<int>& sizes) const {
  std::vector<double> speedup;
  speedup.reserve(sizes.size());
  bool linear = true;
  for (const int size : sizes) {
    speedup.push_back(SpeedupAt(size));
    linear = linear && speedup.back() == size;
  }
  return linear ? Curve::LinearOver(sizes) : Curve::Of(sizes, std::move(speedup));
}

Result<ProfileTable> ReadProfiles(const std::string& path) {
  return ReadTable(CsvReader::Open(path, TableSchema()));
}

Result<ProfileTable> ParseProfiles(std::string name, std::string_view text) {
  return ReadTable(CsvReader::FromText(std::move(name), text, TableSchema()));
}

bool CurveMaker::Charge(std::size_t points) {
  points_ += points;
  return points_ <= kMaxCurvePoints;
}

Result<const Profile*> CurveMaker::Find(std::string_view text) {
  if (const auto found = parsed_.find(text); found != parsed_.end()) return &found->second;
  if (text == "linear") return &parsed_.emplace(text, Profile::Linear()).first->second;
  if (text.substr(0, kPower.size()) == kPower) {
    const auto exponent = ParseNumber(text.substr(kPower.size()));
    if (!exponent || *exponent < 0 || *exponent > kMaxExponent) {
      return Error{fmt::format("has no exponent from 0 to {} after 'power:'", kMaxExponent)};
    }
    return &parsed_.emplace(text, Profile::Power(*exponent)).first->second;
  }
  if (text.find(':') != std::string_view::npos) {
    if (!Charge(std::count(text.begin(), text.end(), ':'))) {
      return Error{fmt::format("takes the curves of this workload over {} points; use a table of profiles",
                               kMaxCurvePoints)};
    }
    Result<Profile> profile = ParseInline(text);
    if (!profile) return profile.error();
    return &parsed_.emplace(text, *std::move(profile)).first->second;
  }
  if (const auto found = profiles_.find(text); found != profiles_.end()) return &found->second;
  std::string known;
  std::size_t shown = 0;
  for (const auto& [name, profile] : profiles_) {
    if (shown++ == kNamesShown) break;
    known += fmt::format(", {}", name);
  }
  return Error{fmt::format(
      "is not a curve; write linear, power:0.8, 1:1;2:1.9;4:3.5 or the name of a profile{}{}",
      known.empty() ? " (no table of profiles was given)" : known, shown > kNamesShown ? ", …" : "")};
}

Result<CurveMaker::Made> CurveMaker::Make(std::string_view text, int min, int num, int max,
                                          const std::vector<int>& sizes) {
  const Result<const Profile*> found = Find(text);
  if (!found) return found.error();
  const Profile& profile = **found;

  std::string key = fmt::format("{}|{}-{}", text, min, max);
  if (!sizes.empty()) key += fmt::format("|{}", fmt::join(sizes, ";"));
  auto made = curves_.find(key);
  if (made == curves_.end()) {
    const bool linear = text == "linear" && sizes.empty();  // needs no space
    const std::size_t count = sizes.empty() ? static_cast<std::size_t>(max - min + 1) : sizes.size();
    if (!Charge(linear ? 1 : count)) {
      return Error{
          fmt::format("takes the curves of this workload over {} points; give fewer sizes", kMaxCurvePoints)};
    }
    CurvePtr curve;
    if (linear) {
      curve = Curve::Linear(min, max);
    } else if (sizes.empty()) {
      std::vector<int> every(count);
      std::iota(every.begin(), every.end(), min);
      curve = profile.CurveOver(every);
    } else {
      curve = profile.CurveOver(sizes);
    }
    made = curves_.emplace(std::move(key), std::move(curve)).first;
  }
  return Made{.curve = made->second, .spans = profile.spans(), .speedup_at_num = profile.SpeedupAt(num)};
}

std::string CurveText(const Curve& curve, const SpanTable* spans) {
  if (curve.linear() && (spans == nullptr || spans->empty())) return "linear";
  std::string text;
  const auto separator = [&text] { return text.empty() ? "" : ";"; };
  for (int i = 0; i < curve.count(); ++i) {
    text += fmt::format("{}{}:{}", separator(), curve.size(i), curve.speedup(i));
  }
  if (spans != nullptr) {
    for (const SpanSpeedup& span : *spans) {
      text += fmt::format("{}{}@{}:{}", separator(), span.workers, span.nodes, span.speedup);
    }
  }
  return text;
}

}  // namespace voda::sim
