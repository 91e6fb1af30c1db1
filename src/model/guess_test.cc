#include "model/guess.h"

#include <gtest/gtest.h>

#include <memory>

namespace voda {
namespace {

TEST(Guess, ANewCategoryHasAnHourOrAsLongAsItHasRun) {
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(0, nullptr), 3600);
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(1000, nullptr), 3600);
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(9000, nullptr), 9000);
  const FinishedWork none;
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(9000, &none), 9000);
}

TEST(Guess, AJobIsTakenToDoWhatIsUsualInItsCategory) {
  const FinishedWork finished = {800, 1000, 4000};  // 1000 is usual
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(0, &finished), 1000);
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(600, &finished), 400);
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(950, &finished), 200);    // never almost done
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(1500, &finished), 2500);  // one took longer
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(3900, &finished), 780);
}

TEST(Guess, AnOutlierIsAJobOfANewCategory) {
  const FinishedWork finished = {900, 1000, 1100, 1200};  // 1050 is usual
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(2000, &finished), 400);
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(3149, &finished), 0.2 * 3149);
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(3150, &finished), 3600);
  EXPECT_DOUBLE_EQ(GuessedWorkLeft(5000, &finished), 5000);
}

TEST(Guess, IsNeverNothing) {
  for (const FinishedWork& finished : {FinishedWork{1e-6}, FinishedWork{5}, FinishedWork{1, 2, 3, 1e9}}) {
    for (const double done : {0.0, 1e-7, 4.9, 5.0, 1e5, 1e12}) EXPECT_GT(GuessedWorkLeft(done, &finished), 0);
  }
}

TEST(Guess, TellsWhereAnEstimateComesFrom) {
  Job job;
  EXPECT_EQ(EstimateOf(job), Estimate::kTold);
  job.measured = std::make_shared<const std::vector<int>>();
  EXPECT_EQ(EstimateOf(job), Estimate::kLearned);
  job.guessed = true;
  EXPECT_EQ(EstimateOf(job), Estimate::kGuessed);
}

TEST(Guess, ACurveOverAnyMaximumTakesNoSpace) {
  const CurvePtr curve = Curve::GuessedOver(*Curve::Linear(2, 60000));
  EXPECT_FALSE(curve->linear());
  EXPECT_TRUE(curve->concave());
  EXPECT_EQ(curve->NextBetter(0), 1);
  EXPECT_DOUBLE_EQ(curve->speedup(0), GuessedSpeedup(2));
  EXPECT_NEAR(GuessedSpeedup(2), 1.7411, 1e-4);
  EXPECT_NEAR(GuessedSpeedup(1024), 256, 1e-9);
  EXPECT_GT(GuessedSpeedup(1025), GuessedSpeedup(1024));
  EXPECT_EQ(GuessedSpeedup(0), 0);
  EXPECT_EQ(GuessedSpeedup(1), 1);
}

}  // namespace
}  // namespace voda
