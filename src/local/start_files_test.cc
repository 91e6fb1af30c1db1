#include "local/start_files.h"

#include "support/check.h"

namespace voda::local {

namespace {

TEST(StartFiles, AWorkersSpecReadsBackAsItWasWritten) {
  testing::Check(
      [](const std::vector<std::string>& argv, const std::map<std::string, std::string>& env, int worker,
         const std::vector<int>& devices, const std::string& node, std::int64_t memory) {
        WorkerSpec spec;
        spec.worker = worker & 0xffff;
        spec.serial = 3;
        spec.incarnation = 2;
        spec.port = 20000;
        spec.node = node;
        spec.devices = devices;
        spec.purpose = "grow";
        spec.started = 12345.678901;
        spec.boot = "boot";
        spec.memory_bytes = memory;
        spec.working_dir = "/a b\n/c";
        spec.argv = argv;
        spec.argv.push_back("last");
        for (const auto& [name, value] : env) {
          if (!name.empty() && name.find('=') == std::string::npos) spec.env.push_back({name, value});
        }
        const auto back = DecodeWorkerSpec(Encode(spec));
        RC_ASSERT(back.has_value());
        RC_ASSERT(Encode(*back) == Encode(spec));
        RC_ASSERT(back->argv == spec.argv);
        RC_ASSERT(back->devices == spec.devices);
        RC_ASSERT(back->started == spec.started);
      },
      500);
}

TEST(StartFiles, ASpecThatWasCutShortIsRefused) {
  WorkerSpec spec;
  spec.argv = {"a", "b"};
  spec.env = {{"A", "1"}};
  const std::string text = Encode(spec);
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(DecodeWorkerSpec(std::string_view(text).substr(0, length))) << length;
  EXPECT_TRUE(DecodeWorkerSpec(text));
}

TEST(StartFiles, AnyBytesAreASpecOrAnError) {
  testing::Check(
      [](const std::string& text, std::size_t at, char with) {
        WorkerSpec spec;
        spec.argv = {"program"};
        spec.env = {{"NAME", "value"}};
        std::string mangled = Encode(spec);
        mangled[at % mangled.size()] = with;
        (void)DecodeWorkerSpec(mangled).has_value();
        (void)DecodeWorkerSpec("voda worker 1\n" + text).has_value();
        (void)DecodeExit(text);
        (void)DecodeVerdict(text);
        (void)DecodeLock(text);
      },
      500);
}

TEST(StartFiles, AnExitReadsBackAndAlwaysTakesTheSameRoom) {
  const ExitRecord none;
  testing::Check(
      [&](int code, bool asked, bool oom) {
        const ExitRecord record{
            .code = code, .signal = 9, .asked = asked, .out_of_memory = oom, .ended = 1234567.25};
        const auto back = DecodeExit(Encode(record));
        RC_ASSERT(back.has_value());
        RC_ASSERT(back->code == code && back->signal == 9 && back->asked == asked &&
                  back->out_of_memory == oom);
        RC_ASSERT(back->ended == 1234567.25);
        RC_ASSERT(Encode(record).size() == Encode(none).size());
      },
      200);
}

TEST(StartFiles, VerdictsAndLocksReadBack) {
  for (const auto kind : {ExitVerdict::Kind::kCompleted, ExitVerdict::Kind::kStopped,
                          ExitVerdict::Kind::kEarly, ExitVerdict::Kind::kLost, ExitVerdict::Kind::kDisturbed,
                          ExitVerdict::Kind::kFailure, ExitVerdict::Kind::kFatal}) {
    const auto back = DecodeVerdict(Encode(ExitVerdict{kind, 17}));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->kind, kind);
    EXPECT_EQ(back->number, 17);
  }
  EXPECT_FALSE(DecodeVerdict("sorry 1"));
  const LockRecord lock = DecodeLock(Encode(LockRecord{.pid = 4711, .started = true}));
  EXPECT_EQ(lock.pid, 4711);
  EXPECT_TRUE(lock.started);
  EXPECT_EQ(Encode(LockRecord{4711, true}).size(), Encode(LockRecord{4711, false}).size());
}

}  // namespace

}  // namespace voda::local
