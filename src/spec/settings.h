// The settings that Voda reads from a job's environment and annotations, and the sizes they make.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "document/field.h"
#include "spec/job_spec.h"
#include "spec/pod_template.h"

namespace voda::spec {

// A number and where it stands.
struct Setting {
  int value = 0;
  std::string path;
};

struct Sizes {
  std::optional<Setting> min;  // workers
  std::optional<Setting> num;
  std::optional<Setting> max;
};

// NUM_PROC and its kin, divided by `slots` processes per worker.
Sizes ReadSizes(const Replica& source, int slots, Report& report);

// min, num and max of the job: num is Worker.replicas where it is not set, min and max are num.
void DecideSizes(const Sizes& sizes, const Replica& workers, JobSpec& spec, Report& report);

// Whether it is the name of a variable that decides a job's size, priority or epochs.
bool IsSetting(std::string_view variable);

// EPOCHS, JOB_PRIORITY, JOB_NAME.
void ReadSettings(const Replica& source, JobSpec& spec, Report& report);

// metadata.annotations, which win over the environment.
void ReadAnnotations(const Field& annotations, JobSpec& spec);

}  // namespace voda::spec
