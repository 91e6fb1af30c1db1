// Check: runs a rapidcheck property inside a gtest test, with a number of cases and a seed that do not depend
// on luck.
//
// The seed is fixed so that a change is what makes a test fail. RC_PARAMS="seed=…" (or max_success=…)
// overrides it, and VODA_PROPERTY_FACTOR=50 runs that many times as many cases: that is how the long suites
// go further.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

namespace voda::testing {

inline constexpr int kPropertyCases = 2000;

template <class Property>
void Check(Property&& property, int cases = kPropertyCases) {
  rc::detail::TestParams params;
  if (std::getenv("RC_PARAMS") != nullptr) {
    params = rc::detail::configuration().testParams;
  } else {
    params.seed = 20240229;
    params.maxSuccess = cases;
    if (const char* factor = std::getenv("VODA_PROPERTY_FACTOR")) {
      const double wanted = static_cast<double>(cases) * std::strtod(factor, nullptr);
      params.maxSuccess = wanted < 1 ? 1 : static_cast<int>(wanted);
    }
  }
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  rc::detail::TestMetadata metadata;
  metadata.id = std::string(test->test_suite_name()) + "/" + test->name();
  metadata.description = metadata.id;
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), metadata, params);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  FAIL() << message.str();
}

}  // namespace voda::testing
