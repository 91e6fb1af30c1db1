#include "policy/accounts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/builders.h"

namespace voda {
namespace {

using testing::JobBuilder;
using testing::SnapshotBuilder;

// One job for each key, submitted in this order.
Snapshot JobsInTurn(std::size_t count) {
  SnapshotBuilder builder;
  builder.Nodes(1, 4);
  for (std::size_t i = 0; i < count; ++i) {
    builder.Add(JobBuilder("job-" + std::to_string(i)).Submit(static_cast<double>(i)));
  }
  return builder.Build();
}

RC_GTEST_PROP(Accounts, OneKeyOrdersAsAStableSortWould, (std::vector<double> keys, bool many)) {
  // Few different values, so that there are ties; both signs, both zeros and very different magnitudes.
  for (double& key : keys) {
    if (key > 1e3 || key < -1e3) key = key < 0 ? -0.0 : 1e300;
  }
  constexpr std::size_t kMany = 600;
  for (std::size_t i = 0; many && !keys.empty() && keys.size() < kMany; ++i) keys.push_back(keys[i] / 2);
  const Snapshot snapshot = JobsInTurn(keys.size());
  const Accounts accounts(snapshot);
  const auto key_of = [&](JobIndex job) { return keys[static_cast<std::size_t>(job)]; };
  std::vector<JobIndex> expected = accounts.jobs();
  std::stable_sort(expected.begin(), expected.end(),
                   [&](JobIndex a, JobIndex b) { return key_of(a) < key_of(b); });
  const auto order = accounts.Ordered([&](JobIndex job) { return Accounts::Keys{.first = key_of(job)}; });
  RC_ASSERT(order == expected);
}

TEST(Accounts, PriorityComesBeforeEveryKeyAndTheSecondKeyAfterTheFirst) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Nodes(1, 4)
                                .Add(JobBuilder("a").Submit(1))
                                .Add(JobBuilder("b").Submit(2).Priority(1))
                                .Add(JobBuilder("c").Submit(3))
                                .Add(JobBuilder("d").Submit(4).Priority(1))
                                .Build();
  const Accounts accounts(snapshot);
  const auto keys = [&](JobIndex job) {
    const double number = static_cast<int>(job);
    return Accounts::Keys{.first = 0, .second = -number};
  };
  EXPECT_EQ(accounts.Admission(keys), (std::vector<JobIndex>{3, 1, 2, 0}));
  EXPECT_EQ(accounts.Ordered(keys), (std::vector<JobIndex>{3, 2, 1, 0}));
  EXPECT_FALSE(accounts.one_priority());
}

}  // namespace
}  // namespace voda
