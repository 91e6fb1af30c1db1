#include "service/announcer.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "document/json_writer.h"
#include "service/job_names.h"

namespace voda {

void Announcer::Publish(const std::string& type, const std::string& gpu_type, const std::string& job,
                        const std::string& fields) {
  std::string all = fmt::format(R"("time":{:.3f},"gpu_type":{})", SteadyWallNow(), Quoted(gpu_type));
  if (!fields.empty()) all += "," + fields;
  metrics_.Add(Series::kEvents, {type});
  events_.Publish(type, job, all);
}

std::string Announcer::ToldOf(const std::string& job, const std::string& text) const {
  return namespaces_ ? WithoutOthers(text, job.substr(0, job.find('/'))) : text;
}

}  // namespace voda
