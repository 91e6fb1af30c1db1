// Whatever comes in, ParseJobs ends with a message or with jobs that keep their promises.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "document/json_text.h"
#include "model/job.h"
#include "support/check.h"
#include "support/job_files.h"

namespace voda::spec {
namespace {

using voda::testing::Check;

void CheckPromises(const JobSpec& job) {
  RC_ASSERT(1 <= job.limits.min && job.limits.min <= job.limits.num && job.limits.num <= job.limits.max &&
            job.limits.max <= kMaxWorkers);
  RC_ASSERT(job.gpus_per_worker >= 1 && job.slots_per_worker >= 1);
  RC_ASSERT(!job.name.empty() && job.name.size() <= 32u && !job.category.empty());
  RC_ASSERT(job.launcher.has_value() == (job.kind == JobKind::kMpiJob));
  const Container& runs = job.launcher ? *job.launcher : job.worker;
  RC_ASSERT(!runs.command.empty() || !runs.args.empty());
  RC_ASSERT(job.backoff_limit >= 0 && job.grace_seconds >= 0 && job.epochs >= 0);
  const auto again = ParseJobs(job.document);
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->size() == 1u);
  RC_ASSERT(again->front() == job);
}

// One of the given, more often the first ones.
template <class T>
T Pick(const std::vector<T>& options) {
  return options[*rc::gen::inRange<int>(0, static_cast<int>(options.size()))];
}

bool Sometimes() {
  return *rc::gen::arbitrary<bool>();
}

std::string Number(int lo, int hi) {
  return std::to_string(*rc::gen::inRange(lo, hi));
}

std::string AnyText() {
  return Pick<std::string>({"plain", "with space", "", "$(EPOCHS)", "yes", "0400", "1e3", "a: b", "#x", "'",
                            "\"q\"", "\xC3\xA9\xF0\x9F\x98\x80", "line\nline", "tab\t", "\x7F", "<<", "~",
                            "- x", "\\"});
}

// The value as YAML: in quotes, as JSON writes it.
std::string Quote(const std::string& text) {
  return Quoted(text);
}

std::string Env(const std::vector<std::string>& settings) {
  std::string env = "            env:\n            - {name: FREE, value: " + Quote(AnyText()) + "}\n";
  for (const std::string& name : settings) {
    if (Sometimes()) env += "            - {name: " + name + ", value: \"" + Number(1, 9) + "\"}\n";
  }
  return env;
}

std::string Pod(const std::string& env, bool gpus) {
  std::string pod = "      template:\n        spec:\n";
  if (Sometimes()) pod += "          nodeSelector: {vodascheduler/accelerator: v100}\n";
  if (Sometimes()) pod += "          terminationGracePeriodSeconds: " + Number(0, 100) + "\n";
  if (Sometimes()) pod += "          volumes: [{name: v, secret: {defaultMode: 0400}}]\n";
  pod += "          containers:\n          - name: pytorch\n            command: [run, " + Quote(AnyText()) +
         "]\n";
  if (Sometimes()) pod += "            args: [" + Quote(AnyText()) + ", " + Quote(AnyText()) + "]\n";
  if (Sometimes()) pod += "            image: example\n";
  if (gpus && Sometimes()) {
    pod += "            resources: {limits: {nvidia.com/gpu: " + Number(1, 5) +
           ", memory: " + Pick<std::string>({"1Gi", "1.5G", "1e9", "\"5\"", "7"}) + ", cpu: 0.5}}\n";
  }
  return pod + env;
}

// Mostly good jobs: what is wrong in them is how the sizes go together.
std::string AnyJob() {
  const bool mpi = Sometimes();
  const std::string version = mpi ? Pick<std::string>({"v1", "v2beta1"}) : "v1";
  std::string text =
      "apiVersion: kubeflow.org/" + version + "\nkind: " + (mpi ? "MPIJob" : "PyTorchJob") +
      "\nmetadata:\n  " +
      Pick<std::string>({"name: a", "generateName: a-", "name: a-20210101-000000", "name: a-b-2"}) + "\n";
  if (Sometimes()) {
    text += "  annotations: {vodascheduler/priority: \"" + Number(-5, 5) + "\", note: " + Quote(AnyText()) +
            "}\n";
  }
  text += "spec:\n";
  const std::vector<std::string> settings = {"NUM_PROC",     "MIN_NUM_PROC", "MAX_NUM_PROC", "EPOCHS",
                                             "JOB_PRIORITY", "MIN_NP",       "MAX_NP"};
  if (Sometimes()) text += "  runPolicy: {backoffLimit: " + Number(0, 9) + ", suspend: true}\n";
  if (mpi) {
    if (Sometimes()) text += "  slotsPerWorker: " + Number(1, 3) + "\n";
    text += "  mpiReplicaSpecs:\n    Launcher:\n" + Pod(Env(settings), false) + "    Worker:\n";
  } else {
    if (Sometimes()) {
      text += "  elasticPolicy: {minReplicas: " + Number(1, 5) + ", maxReplicas: " + Number(3, 9) +
              ", maxRestarts: " + Number(0, 500) + "}\n";
    }
    text += "  pytorchReplicaSpecs:\n";
    if (*rc::gen::inRange(0, 4) == 0) text += "    Master:\n" + Pod("", true);
    text += "    Worker:\n";
  }
  if (Sometimes()) text += "      replicas: " + Number(1, 9) + "\n";
  return text + Pod(Env(mpi ? std::vector<std::string>{} : settings), true);
}

TEST(JobSpecProperties, JobsKeepTheirPromisesAndTheirDocumentIsTheJob) {
  int accepted = 0;
  int refused = 0;
  Check([&] {
    const std::string text = AnyJob();
    const auto jobs = ParseJobs(text);
    if (!jobs) {
      ++refused;
      const std::string& message = jobs.error().message;
      // Only sizes, GPU types and text that is no command line can be wrong here.
      RC_ASSERT(message.find("spec.") != std::string::npos);
      RC_ASSERT(message.find("unknown") == std::string::npos);
      RC_ASSERT(message.find("YAML") == std::string::npos);
      return;
    }
    ++accepted;
    for (const JobSpec& job : *jobs) CheckPromises(job);
  });
  EXPECT_GT(accepted, refused / 4) << "the generator makes jobs that are accepted";
}

TEST(JobSpecProperties, NoBytesCrashIt) {
  const std::vector<std::string> seeds = {
      MpiV1(), MpiV2(), PyTorch(), WithMaster(), Parsed(MpiV2()).document, Parsed(PyTorch()).document};
  const std::vector<std::string> pieces = {"[",
                                           "]",
                                           "{",
                                           "}",
                                           ":",
                                           "- ",
                                           "? ",
                                           "&a ",
                                           "*a",
                                           "!!int ",
                                           "\n",
                                           "---\n",
                                           "|",
                                           ">",
                                           "\"",
                                           "'",
                                           "\t",
                                           "  ",
                                           "#",
                                           "<<: *mounts",
                                           "99999999999999999999",
                                           "-1",
                                           "null",
                                           "true",
                                           std::string(1, '\0'),
                                           "\xFF",
                                           "%",
                                           "\\",
                                           ",",
                                           "1e9"};
  Check([&] {
    std::string text = Pick(seeds);
    const int edits = *rc::gen::inRange(1, 6);
    for (int i = 0; i < edits; ++i) {
      const std::size_t at = *rc::gen::inRange<int>(0, static_cast<int>(text.size()) + 1);
      const std::size_t length = *rc::gen::inRange(0, 30);
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          text.insert(at, Pick(pieces));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(at / 2, length));
          break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(*rc::gen::inRange(0, 256));
          break;
      }
    }
    const auto jobs = ParseJobs(text);
    if (!jobs) {
      RC_ASSERT(!jobs.error().message.empty());
      RC_ASSERT(jobs.error().message.size() < 2000u);
      return;
    }
    for (const JobSpec& job : *jobs) CheckPromises(job);
  });
}

TEST(JobSpecProperties, RandomBytes) {
  Check([](const std::string& text) { RC_ASSERT(!ParseJobs(text).has_value()); });
}

}  // namespace
}  // namespace voda::spec
