#include "service/refusals.h"

#include <gtest/gtest.h>

#include <string>

#include "base/log.h"

namespace voda {
namespace {

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(Refusals, AreCountedAndToldAsFarAsAFloodAllows) {
  SetLog({LogLevel::kInfo, false});
  Metrics metrics("test");
  Refusals refusals(metrics);
  HttpRequest request;
  request.method = "GET";
  request.path = "/api/v1/jobs";
  request.headers["host"] = "evil.example";
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) refusals.Note(request, 403, 100 + i * 0.001);
  refusals.Note(request, 401, 100 + Refusals::kSeconds);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(Count(log, "request refused method=GET path=/api/v1/jobs host=evil.example status=403"),
            static_cast<std::size_t>(Refusals::kLines))
      << log;
  EXPECT_EQ(Count(log, "more requests refused requests=990"), 1U) << log;
  EXPECT_EQ(Count(log, "status=401"), 1U) << log;
  const std::string text = metrics.Text(Metrics::Role::kAll);
  EXPECT_NE(text.find("voda_http_requests_total{route=\"refused\",method=\"GET\",code=\"403\"} 1000\n"),
            std::string::npos)
      << text;
}

TEST(Refusals, ClientsMakeNoSeriesAndNoLongLines) {
  Metrics metrics("test");
  Refusals refusals(metrics);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 9; ++i) {
    HttpRequest request;
    request.method = "METHOD" + std::to_string(i);
    request.path = std::string(10'000, 'x');
    refusals.Note(request, 401, 100);
  }
  EXPECT_LT(::testing::internal::GetCapturedStderr().size(), 9 * 500U);
  EXPECT_NE(metrics.Text(Metrics::Role::kAll).find("method=\"other\",code=\"401\"} 9\n"), std::string::npos);
}

}  // namespace
}  // namespace voda
