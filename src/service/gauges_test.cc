#include "service/gauges.h"

#include "service/test_parts.h"

namespace voda {
namespace {

class GaugesTest : public testing::PartsTest {
 protected:
  // Whether the line is exported now.
  bool Says(const std::string& line) {
    gauges_.Update();
    return Exports(line);
  }

  Gauges gauges_{pools_, nodes_, hub_, metrics_};
};

TEST_F(GaugesTest, JobsAndGpusAreCounted) {
  Declare({{"a", 4, "cpu", {}}, {"b", 2, "cpu", {}}});
  Arrive("x", 5, 5);
  Arrive("y", 3, 3);
  Advance();
  EXPECT_TRUE(Says(R"(voda_jobs{gpu_type="cpu",status="Running"} 0)"));
  EXPECT_TRUE(Says(R"(voda_plan_divergence_workers{gpu_type="cpu"} 5)")) << "its workers are not there yet";
  Settle();
  EXPECT_TRUE(Says(R"(voda_plan_divergence_workers{gpu_type="cpu"} 0)"));
  EXPECT_TRUE(Says(R"(voda_jobs{gpu_type="cpu",status="Running"} 1)"));
  EXPECT_TRUE(Says(R"(voda_jobs{gpu_type="cpu",status="Waiting"} 1)"));
  EXPECT_TRUE(Says(R"(voda_jobs_cross_node{gpu_type="cpu"} 1)"));
  EXPECT_TRUE(Says(R"(voda_gpus{gpu_type="cpu",node="a"} 4)"));
  EXPECT_TRUE(Says(R"(voda_gpus_used{gpu_type="cpu",node="a"} 4)"));
  EXPECT_TRUE(Says(R"(voda_gpus_used{gpu_type="cpu",node="b"} 1)"));
  EXPECT_TRUE(Says(R"(voda_scheduler_info{gpu_type="cpu",algorithm="ElasticFIFO"} 1)"))
      << metrics_.Text(Metrics::Role::kAll);
}

TEST_F(GaugesTest, ANodeThatIsGoneIsNotExported) {
  Declare({{"a", 4, "cpu", {}}, {"b", 2, "cpu", {}}});
  EXPECT_TRUE(Says(R"(voda_gpus{gpu_type="cpu",node="b"} 2)"));
  nodes_.Remove("b", [](const std::optional<Refusal>& refused) { EXPECT_FALSE(refused); });
  ledger_.Flush();
  EXPECT_TRUE(Says(R"(voda_gpus{gpu_type="cpu",node="a"} 4)"));
  EXPECT_FALSE(Says(R"(voda_gpus{gpu_type="cpu",node="b"} 2)"));
}

TEST_F(GaugesTest, StreamsAreCounted) {
  EXPECT_TRUE(Says("voda_event_streams 1"));
  hub_.Subscribe(std::make_shared<testing::EventText>(), "x", {});
  EXPECT_TRUE(Says("voda_event_streams 2"));
}

}  // namespace
}  // namespace voda
