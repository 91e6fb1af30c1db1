#include "sim/load_workload.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "sim/assets.h"
#include "sim/csv.h"
#include "sim/generate.h"
#include "sim/profile.h"
#include "sim/traces.h"
#include "sim/workload_csv.h"

namespace voda::sim {
namespace {

struct Request {
  const WorkloadSource& source;
  std::string file;    // the path without its selection
  std::string select;  // what followed '#'
  std::vector<std::string>* notes;
};

Result<ProfileTable> LoadProfiles(const WorkloadSource& source, bool look_beside) {
  if (!source.profiles.empty()) return ReadProfiles(source.profiles);
  if (look_beside) {
    const auto beside = std::filesystem::path(source.path).parent_path() / "speedups.csv";
    std::error_code ignored;
    if (std::filesystem::exists(beside, ignored)) return ReadProfiles(beside.string());
  }
  return ParseProfiles("built-in speed-ups", kEmbedSpeedupsCsv);
}

Result<Workload> LoadVoda(const Request& request) {
  const Result<ProfileTable> profiles = LoadProfiles(request.source, true);
  if (!profiles) return profiles.error();
  return ReadWorkloadCsv(request.source.path, *profiles,
                         request.source.curve.empty() ? "linear" : request.source.curve);
}

Result<Workload> LoadClusterTrace(const Request& request,
                                  Result<Workload> (*read)(const std::string&, const ClusterTraceOptions&)) {
  const Result<ProfileTable> profiles = LoadProfiles(request.source, false);
  if (!profiles) return profiles.error();
  ClusterTraceOptions options;
  options.select = request.select;
  if (!request.source.curve.empty()) options.curve = request.source.curve;
  options.profiles = &*profiles;
  options.notes = request.notes;
  return read(request.file, options);
}

Result<Workload> LoadPhilly(const Request& request) {
  return LoadClusterTrace(request, ReadPhilly);
}
Result<Workload> LoadItp(const Request& request) {
  return LoadClusterTrace(request, ReadItp);
}
Result<Workload> LoadThesis(const Request& request) {
  return ReadThesis(request.source.path);
}
Result<Workload> LoadPollux(const Request& request) {
  return ReadPollux(request.file, request.select);
}

struct Format {
  std::string_view name;
  bool takes_selection;
  bool takes_curve;
  Result<Workload> (*load)(const Request&);
};

constexpr std::array<Format, 5> kFormats{{{"voda", false, true, LoadVoda},
                                          {"thesis", false, false, LoadThesis},
                                          {"philly", true, true, LoadPhilly},
                                          {"itp", true, true, LoadItp},
                                          {"pollux", true, false, LoadPollux}}};

Result<Workload> Generate(const WorkloadSource& source) {
  const Result<ProfileTable> profiles = LoadProfiles(source, false);
  if (!profiles) return profiles.error();
  return GenerateWorkload(source.path, source.seed, *profiles, source.curve);
}

Result<Workload> Load(const WorkloadSource& source, std::vector<std::string>* notes) {
  if (std::string_view(source.path).substr(0, kGeneratorPrefix.size()) == kGeneratorPrefix)
    return Generate(source);
  std::string known;
  for (const Format& format : kFormats) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
    if (format.name != source.format) continue;
    if (!format.takes_curve && (!source.curve.empty() || !source.profiles.empty())) {
      return Error{
          fmt::format("format {} brings its own curves; leave out --curve and --profiles", format.name)};
    }
    Request request{.source = source, .file = source.path, .select = "", .notes = notes};
    if (const std::size_t hash = source.path.rfind('#');
        format.takes_selection && hash != std::string::npos) {
      request.file = source.path.substr(0, hash);
      request.select = source.path.substr(hash + 1);
    }
    return format.load(request);
  }
  return Error{fmt::format("unknown workload format {}; known are {}", Quoted(source.format), known)};
}

}  // namespace

Result<Workload> LoadWorkload(const WorkloadSource& source, std::vector<std::string>* notes) {
  Result<Workload> workload = Load(source, notes);
  if (workload && workload->jobs.empty()) {
    return Error{fmt::format("{}: holds no jobs; give at least one row", source.path)};
  }
  return workload;
}

}  // namespace voda::sim
