#include <gtest/gtest.h>

#include <string>

#include "support/job_files.h"

namespace voda::spec {
namespace {

JobSpec AsContainers(std::string_view text) {
  auto jobs = ParseJobs(text, {}, RunAs::kContainers);
  EXPECT_TRUE(jobs.has_value()) << jobs.error().message << "\n" << text;
  return jobs ? jobs->front() : JobSpec();
}

std::string Warnings(const JobSpec& job) {
  std::string all;
  for (const std::string& warning : job.warnings) all += warning + "\n";
  return all;
}

bool Says(const JobSpec& job, std::string_view what) {
  return Warnings(job).find(what) != std::string::npos;
}

TEST(RunAs, AnImageKnowsItsCommand) {
  const std::string command = "            command: [torchrun, train.py]\n";
  for (const std::string& instead :
       {std::string(), std::string("            command: []\n"),
        std::string("            args: [--lr, \"1\"]\n"), std::string("            args: [\"a b\"]\n")}) {
    const std::string text = Edit(PyTorch(), command, instead);
    EXPECT_NE(Refused(text).find("containers[0].command: missing"), std::string::npos);
    const JobSpec job = AsContainers(text);
    EXPECT_TRUE(job.worker.command.empty());
    EXPECT_EQ(job.limits.max, 4) << "the rest is read as ever";
  }
  EXPECT_EQ(
      AsContainers(Edit(MpiV1(), "command: [\"/bin/bash\", \"-c\"]", "command: ~")).launcher->args.size(),
      1u);
  EXPECT_TRUE(AsContainers(Edit(WithMaster(), "            command: [python, train.py, --master]\n", ""))
                  .master->command.empty());
}

TEST(RunAs, ACommandWithoutAProgramIsRefusedEverywhere) {
  const auto jobs =
      ParseJobs(Edit(PyTorch(), "command: [torchrun, train.py]", "command: [\"\"]"), {}, RunAs::kContainers);
  ASSERT_FALSE(jobs.has_value());
  EXPECT_NE(jobs.error().message.find("the program's name is empty"), std::string::npos);
}

TEST(RunAs, ContainersHaveWhatProcessesIgnore) {
  for (const std::string& text : {MpiV1(), MpiV2(), PyTorch(), WithMaster()}) {
    EXPECT_TRUE(Says(Parsed(text), "these are ignored: "));
    EXPECT_EQ(Warnings(AsContainers(text)), "");
  }
  const std::string one = "          - name: launcher\n";
  const std::string two = Edit(MpiV2(), one, "          - {name: first, command: [sleep]}\n" + one);
  EXPECT_TRUE(Says(Parsed(two), "its sidecars \"launcher\" are ignored"));
  EXPECT_EQ(Warnings(AsContainers(two)), "");
}

TEST(RunAs, WhatOnlyAnOperatorDoesIsIgnoredAndSaid) {
  const std::string policy =
      "  runPolicy: {ttlSecondsAfterFinished: 5, activeDeadlineSeconds: 60, managedBy: "
      "kueue.x-k8s.io/multikueue, "
      "cleanPodPolicy: All, suspend: true, schedulingPolicy: {minAvailable: 2}}\n";
  const std::string pytorch =
      Edit(WithMaster(), "  pytorchReplicaSpecs:\n", policy + "  pytorchReplicaSpecs:\n");
  EXPECT_TRUE(
      Says(Parsed(pytorch),
           "ignored: activeDeadlineSeconds, image, managedBy, schedulingPolicy, ttlSecondsAfterFinished."))
      << Warnings(Parsed(pytorch));
  EXPECT_EQ(Warnings(AsContainers(pytorch)), "");
  const std::string outer =
      Edit(WithMaster(), "  pytorchReplicaSpecs:\n",
           "  ttlSecondsAfterFinished: 5\n  schedulingPolicy: {}\n  pytorchReplicaSpecs:\n");
  EXPECT_TRUE(Says(Parsed(outer), "schedulingPolicy, ttlSecondsAfterFinished")) << Warnings(Parsed(outer));
}

TEST(RunAs, NothingElseDiffers) {
  for (const std::string& text : {MpiV1(), MpiV2(), PyTorch(), WithMaster()}) {
    JobSpec process = Parsed(text);
    const JobSpec container = AsContainers(text);
    process.warnings = container.warnings;
    EXPECT_EQ(process, container);
    EXPECT_EQ(AsContainers(container.document), container);
  }
}

TEST(RunAs, OfVariablesFromElsewhereOnlyVodasOwnAreMissed) {
  const std::string from = Edit(PyTorch(), "            - name: EPOCHS\n              value: \"10\"\n",
                                "            - {name: SECRET, valueFrom: {secretKeyRef: {}}}\n"
                                "            - {name: EPOCHS, valueFrom: {fieldRef: {}}}\n");
  EXPECT_TRUE(Says(Parsed(from), "SECRET, EPOCHS come from elsewhere"));
  EXPECT_TRUE(Says(AsContainers(from), "env: EPOCHS come from elsewhere"));
  EXPECT_EQ(AsContainers(from).epochs, 0);
  EXPECT_EQ(Warnings(AsContainers(Edit(from, "EPOCHS", "OTHER"))), "");
}

TEST(RunAs, WarningsThatHoldForBothSayWhatHappensThere) {
  const std::string metrics = Edit(PyTorch(), "rdzvBackend: c10d", "metrics: []");
  EXPECT_TRUE(Says(Parsed(metrics), "it is ignored, remove it"));
  EXPECT_TRUE(Says(AsContainers(metrics), "the two would contend for the job's size, remove it"));
  const std::string uneven = Edit(WithMaster(), "nvidia.com/gpu: 2", "nvidia.com/gpu: 1");
  EXPECT_TRUE(Says(Parsed(uneven), "each gets 2"));
  EXPECT_TRUE(Says(AsContainers(uneven), "each is counted as 2"));
  EXPECT_TRUE(Says(AsContainers(Edit(PyTorch(), "maxRestarts: 1000", "maxRestarts: 3")), "torchrun spends"));
}

TEST(RunAs, HoldsForEveryJobOfAList) {
  const std::string bare =
      AsContainers(Edit(WithMaster(), "            command: [python, train.py]\n", "")).document;
  const std::string list = R"({"apiVersion":"v1","kind":"List","items":[)" + bare + "," + bare + "]}";
  EXPECT_FALSE(ParseJobs(list).has_value());
  const auto jobs = ParseJobs(list, {}, RunAs::kContainers);
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message;
  EXPECT_EQ(jobs->size(), 2u);
}

}  // namespace
}  // namespace voda::spec
