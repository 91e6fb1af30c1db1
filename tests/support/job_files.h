// For tests only: job files to begin from, and edits to them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "spec/job_spec.h"

namespace voda::spec {

inline std::string ReadJobFile(const std::string& path) {
  std::ifstream file(std::string(VODA_SOURCE_DIR) + "/" + path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline const std::string& MpiV1() {
  static const std::string text = ReadJobFile("examples/jobs/seeds-keras-mnist-elastic.yaml");
  return text;
}
inline const std::string& MpiV2() {
  static const std::string text = ReadJobFile("tests/data/jobs/mpi_v2beta1.yaml");
  return text;
}
inline const std::string& PyTorch() {
  static const std::string text = ReadJobFile("tests/data/jobs/pytorch_elastic.yaml");
  return text;
}
inline const std::string& WithMaster() {
  static const std::string text = ReadJobFile("tests/data/jobs/pytorch_master.yaml");
  return text;
}

// The text with the first `from` replaced, which must be there.
inline std::string Edit(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "no \"" << from << "\" to edit";
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

inline JobSpec Parsed(std::string_view text) {
  auto jobs = ParseJobs(text);
  EXPECT_TRUE(jobs.has_value()) << jobs.error().message << "\n" << text;
  if (!jobs) return {};
  EXPECT_EQ(jobs->size(), 1u);
  return jobs->front();
}

inline std::string Refused(std::string_view text, const SpecLimits& limits = {}) {
  const auto jobs = ParseJobs(text, limits);
  EXPECT_FALSE(jobs.has_value()) << "accepted:\n" << text.substr(0, 4000);
  return jobs ? "" : jobs.error().message;
}

}  // namespace voda::spec
