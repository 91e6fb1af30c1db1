#include "local/nudge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace voda::local {
namespace {

TEST(Nudge, TheListIsOffForAMomentLaterEachTime) {
  Nudge nudge;
  EXPECT_TRUE(std::isinf(nudge.due()));
  EXPECT_FALSE(nudge.Off(5, false));
  nudge.Begin(100);
  std::vector<double> changes;
  bool off = false;
  while (!std::isinf(nudge.due())) {
    const double now = nudge.due();
    EXPECT_EQ(nudge.Off(now - 0.1, false), off) << "not yet";
    if (nudge.Off(now, false) == off) continue;
    off = !off;
    changes.push_back(now - 100);
  }
  EXPECT_EQ(changes, (std::vector<double>{10, 12.5, 32.5, 35, 75, 77.5, 157.5, 160}));
  EXPECT_FALSE(off);
}

TEST(Nudge, WhoFollowsIsLeftAlone) {
  Nudge nudge;
  nudge.Begin(100);
  EXPECT_FALSE(nudge.Off(110, true));
  EXPECT_TRUE(std::isinf(nudge.due()));
  nudge.Begin(200);
  EXPECT_TRUE(nudge.Off(210, false));
  EXPECT_FALSE(nudge.Off(212.5, true)) << "the whole list comes back in any case";
  EXPECT_FALSE(nudge.Off(232.5, true));
  EXPECT_TRUE(std::isinf(nudge.due()));
}

}  // namespace
}  // namespace voda::local
