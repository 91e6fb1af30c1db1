// Profile: the true speed-up of a kind of job, by workers and (if measured) by the nodes that they span;
// and the ways to write one down.
//
// A curve is written as
//   linear                       n workers are n times as fast as one
//   power:0.8                    n^0.8 times
//   1:1;2:1.9;4:3.5;4@2:2.8      measured: workers:speed-up, and workers@nodes:speed-up when spread that far
//   resnet50                     a profile of that name in a table
// Between measured sizes the speed-up is interpolated linearly. Beyond the largest, m, it is s(m)·(n/m)^0.5:
// holding it flat would deny a gain that usually exists and continuing the last slope would promise one that
// nobody measured. One worker is 1 by definition, whether listed or not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/curve.h"
#include "sim/workload.h"

namespace voda::sim {

class Profile {
 public:
  static Profile Linear() { return Power(1); }
  // speedup(n) = n^exponent.
  static Profile Power(double exponent);
  // Takes measured points in any order; nodes 0 means packed on as few nodes as possible. A size listed
  // only with nodes counts as packed on the fewest of them. The message of an error names the point, not
  // where it came from.
  static Result<Profile> Measured(std::vector<SpanSpeedup> points);

  double SpeedupAt(int workers) const;
  // The largest measured size; 0 if the profile is a formula.
  int largest() const { return packed_.empty() ? 0 : packed_.back().first; }
  const std::shared_ptr<const SpanTable>& spans() const { return spans_; }
  CurvePtr CurveOver(const std::vector<int>& sizes) const;

 private:
  Profile() = default;

  double exponent_ = 1;
  std::vector<std::pair<int, double>> packed_;  // ascending sizes; empty for the power law
  std::shared_ptr<const SpanTable> spans_;
};

using ProfileTable = std::map<std::string, Profile, std::less<>>;

// Reads CSV with the columns profile, workers, speedup and optionally nodes (empty or 0 means packed).
Result<ProfileTable> ReadProfiles(const std::string& path);
Result<ProfileTable> ParseProfiles(std::string name, std::string_view text);

// Makes the curves of jobs, each distinct one once, within a budget of memory: a short file can ask for much.
class CurveMaker {
 public:
  struct Made {
    CurvePtr curve;
    std::shared_ptr<const SpanTable> spans;
    double speedup_at_num = 1;
  };
  // `profiles` must outlive the maker.
  explicit CurveMaker(const ProfileTable& profiles) : profiles_(profiles) {}

  // Makes the curve that `text` describes, over the given ascending sizes, or over every integer from min
  // to max if `sizes` is empty. Errors say what is wrong with the text, not where it stands.
  Result<Made> Make(std::string_view text, int min, int num, int max, const std::vector<int>& sizes);

 private:
  Result<const Profile*> Find(std::string_view text);
  bool Charge(std::size_t points);

  const ProfileTable& profiles_;
  std::map<std::string, Profile, std::less<>> parsed_;
  std::map<std::string, CurvePtr, std::less<>> curves_;
  std::size_t points_ = 0;
};

// Writes a curve in the notation above, exact for the sizes that it allows.
std::string CurveText(const Curve& curve, const SpanTable* spans);

}  // namespace voda::sim
