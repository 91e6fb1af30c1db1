// For tests of what is kept in a store: how to open one, and bodies that run in a process of their own, which
// may be killed, may have a disk of its own, or may break its own limits.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "store/store.h"

namespace voda::testing {

std::unique_ptr<Store> MustOpen(const std::string& path);
std::string OpenError(const std::string& path);  // empty where it opens
std::string Bytes(const std::string& path);

// Runs the body in a transaction; the message of the error, empty where all went well.
template <class Body>
std::string Transact(Store& store, Body&& body) {
  body();
  std::string error = "not committed";
  store.OnCommit([&](const Status& committed) { error = committed ? "" : committed.error().message; });
  store.Commit();
  return error;
}

// A forked process that runs `body`; it is killed when this object ends, if it still lives.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& body);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { Kill(); }

  pid_t pid() const { return pid_; }
  void Kill();
  int Wait();  // its exit code, 1 where the body failed; -1 where a signal ended it

 private:
  pid_t pid_ = -1;
};

inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline constexpr int kNoMounts = 77;

// From here on this process has mounts of its own, which end with it. Where even a user namespace is refused,
// the process ends with kNoMounts.
void OwnMounts();
// A disk of that size ("1m") in memory; with MS_REMOUNT, another size or other flags for one that is there.
void MountDisk(const std::string& folder, const std::string& size, unsigned long flags = 0);
void FillDisk(const std::string& file);  // with this file

}  // namespace voda::testing

// Calls body() in a process with mounts of its own; its failures are this test's.
#define VODA_WITH_OWN_MOUNTS(body)                                                                       \
  do {                                                                                                   \
    ::voda::testing::ChildProcess own_mounts_child([&] {                                                 \
      ::voda::testing::OwnMounts();                                                                      \
      body();                                                                                            \
    });                                                                                                  \
    const int own_mounts_code = own_mounts_child.Wait();                                                 \
    if (own_mounts_code == ::voda::testing::kNoMounts) {                                                 \
      GTEST_SKIP() << "LEFT OUT: this machine lets the test have no mounts of its own; run it as root, " \
                      "or allow user namespaces";                                                        \
    }                                                                                                    \
    EXPECT_EQ(own_mounts_code, 0) << "the failures are above";                                           \
  } while (false)
