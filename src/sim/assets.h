// The files of src/sim/report and the table of speed-ups, as cmake/EmbedReport.cmake compiles them in.
#pragma once

#include <string_view>

namespace voda {

extern const std::string_view kEmbedTemplateHtml;
extern const std::string_view kEmbedReportCss;
extern const std::string_view kEmbedUtilJs;
extern const std::string_view kEmbedOverviewJs;
extern const std::string_view kEmbedTimelineJs;
extern const std::string_view kEmbedTimelinePanelJs;
extern const std::string_view kEmbedChartsJs;
extern const std::string_view kEmbedJobsJs;
extern const std::string_view kEmbedMainJs;
extern const std::string_view kEmbedSpeedupsCsv;

}  // namespace voda
