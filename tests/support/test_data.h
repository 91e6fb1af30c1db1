// For tests only: small files of a test's own, and the public data that lies outside the repository.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace voda::sim {

#ifdef VODA_SOURCE_DIR
inline const std::filesystem::path kSourceDir = VODA_SOURCE_DIR;
#else
inline const std::filesystem::path kSourceDir = std::filesystem::path(__FILE__).parent_path() / "../..";
#endif

// A folder that lives as long as the test.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "voda_test_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string Write(std::string_view name, std::string_view text) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  std::string Path(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// The folder of the public data; it need not exist.
inline std::filesystem::path DataDir() {
  const char* set = std::getenv("VODA_DATA");
  return set != nullptr ? std::filesystem::path(set) : kSourceDir / "../shared/data";
}

}  // namespace voda::sim

#define VODA_NEEDS_DATA(folder)                                                                             \
  if (!std::filesystem::exists(::voda::sim::DataDir() / (folder))) {                                        \
    GTEST_SKIP() << "LEFT OUT: the reader of '" << (folder) << "' is not tested on its real data, because " \
                 << (::voda::sim::DataDir() / (folder))                                                     \
                 << " does not exist. Point VODA_DATA at the folder of "                                    \
                 << "public traces (docs/WORKLOADS.md says where each comes from).";                        \
  }
