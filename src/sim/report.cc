#include "sim/report.h"

#include <string_view>
#include <utility>

#include "base/check.h"
#include "sim/assets.h"
#include "sim/report_data.h"
#include "sim/report_text.h"

namespace voda::sim {
namespace {

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : ValidUtf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\0':
        out += "\xEF\xBF\xBD";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Puts all scripts into one scope, in the order in which they need each other.
std::string Script() {
  std::string script;
  for (const std::string_view part : {kEmbedUtilJs, kEmbedOverviewJs, kEmbedTimelinePanelJs, kEmbedTimelineJs,
                                      kEmbedChartsJs, kEmbedJobsJs, kEmbedMainJs}) {
    script += part;
  }
  return script;
}

std::string Fill(std::string_view marker, const ReportInput& input) {
  if (marker == "title")
    return EscapeHtml(input.title.empty() ? "Simulation" : std::string_view(input.title));
  if (marker == "description") return EscapeHtml(input.description);
  if (marker == "css") return std::string(kEmbedReportCss);
  if (marker == "js") return Script();
  VODA_CHECK(marker == "data");
  return ReportData(input);
}

}  // namespace

// One pass over the template: text that was filled in is never searched for markers.
std::string RenderReport(const ReportInput& input) {
  std::string out;
  std::string_view rest = kEmbedTemplateHtml;
  for (size_t open = rest.find("{{"); open != std::string_view::npos; open = rest.find("{{")) {
    const size_t close = rest.find("}}", open);
    VODA_CHECK(close != std::string_view::npos);
    out += rest.substr(0, open);
    out += Fill(rest.substr(open + 2, close - open - 2), input);
    rest.remove_prefix(close + 2);
  }
  out += rest;
  return out;
}

}  // namespace voda::sim
