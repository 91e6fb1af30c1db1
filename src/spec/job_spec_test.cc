#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/job_files.h"

namespace voda::spec {
namespace {

struct Edited {
  const std::string& text;
  std::string from;
  std::string to;
  std::string wanted;  // in the message
};

void ExpectRefused(const std::vector<Edited>& cases) {
  for (const Edited& edited : cases) {
    const std::string message = Refused(Edit(edited.text, edited.from, edited.to));
    EXPECT_NE(message.find(edited.wanted), std::string::npos)
        << edited.from << " -> " << edited.to << "\nsays   " << message << "\nwanted " << edited.wanted;
  }
}

std::string Joined(const std::vector<std::string>& warnings) {
  std::string all;
  for (const std::string& warning : warnings) all += warning + "\n";
  return all;
}

void ExpectWarned(const JobSpec& job, const std::string& wanted) {
  EXPECT_NE(Joined(job.warnings).find(wanted), std::string::npos)
      << "says   " << Joined(job.warnings) << "wanted " << wanted;
}

void ExpectNotWarned(const JobSpec& job, const std::string& unwanted) {
  EXPECT_EQ(Joined(job.warnings).find(unwanted), std::string::npos) << Joined(job.warnings);
}

TEST(JobSpec, ReadsTheJobOfTheSeeds) {
  const JobSpec job = Parsed(MpiV1());
  EXPECT_EQ(job.kind, JobKind::kMpiJob);
  EXPECT_EQ(Name(job.kind), "MPIJob");
  EXPECT_EQ(job.api_version, "kubeflow.org/v1");
  EXPECT_EQ(job.name, "tensorflow2-keras-mnist-elastic");
  EXPECT_EQ(job.category, "tensorflow2-keras-mnist-elastic");
  EXPECT_EQ(job.name_space, "default");
  EXPECT_EQ(job.gpu_type, "nvidia-gtx-1080ti");
  EXPECT_EQ(job.limits.min, 1);
  EXPECT_EQ(job.limits.num, 1);
  EXPECT_EQ(job.limits.max, 8);
  EXPECT_EQ(job.gpus_per_worker, 1);
  EXPECT_EQ(job.epochs, 150);
  EXPECT_EQ(job.priority, 0);
  EXPECT_TRUE(job.preemptible);
  EXPECT_TRUE(job.elastic);
  EXPECT_EQ(job.restart_policy, RestartPolicy::kOnFailure);
  ASSERT_TRUE(job.launcher.has_value());
  EXPECT_EQ(job.launcher->command, (std::vector<std::string>{"/bin/bash", "-c"}));
  ASSERT_EQ(job.launcher->args.size(), 1u);
  const std::string line = ExpandVariables(job.launcher->args[0], job.launcher->env);
  EXPECT_NE(line.find("--max-num-proc 8 --host-discovery-script"), std::string::npos) << line;
  ASSERT_EQ(job.warnings.size(), 1u) << Joined(job.warnings);
  ExpectWarned(job, "ignored: image, volumeMounts, volumes.");
}

TEST(JobSpec, ReadsAnMpiJobOfV2beta1) {
  const JobSpec job = Parsed(MpiV2());
  EXPECT_EQ(job.api_version, "kubeflow.org/v2beta1");
  EXPECT_EQ(job.name_space, "research");
  EXPECT_EQ(job.category, "vision");
  EXPECT_EQ(job.priority, 7) << "the annotation wins over JOB_PRIORITY";
  EXPECT_FALSE(job.preemptible);
  EXPECT_EQ(job.slots_per_worker, 2);
  EXPECT_EQ(job.limits.min, 1);
  EXPECT_EQ(job.limits.num, 2);
  EXPECT_EQ(job.limits.max, 4);
  EXPECT_EQ(job.gpus_per_worker, 2);
  EXPECT_EQ(job.gpu_type, "v100");
  EXPECT_EQ(job.backoff_limit, 3);
  EXPECT_EQ(job.grace_seconds, 5);
  EXPECT_EQ(job.restart_policy, RestartPolicy::kOnFailure) << "the MPI operator's default for launchers";
  EXPECT_EQ(job.worker.memory_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(job.launcher->working_dir, "/work");
  EXPECT_EQ(job.launcher->env.back(), (EnvVar{"EMPTY", ""}));
  ASSERT_EQ(job.warnings.size(), 1u) << Joined(job.warnings);
  ExpectWarned(job,
               "ignored: activeDeadlineSeconds, image, launcherCreationPolicy, managedBy, mpiImplementation, "
               "resources.cpu, schedulingPolicy, sshAuthMountPath, ttlSecondsAfterFinished.");
}

TEST(JobSpec, ReadsAnElasticPyTorchJob) {
  const JobSpec job = Parsed(PyTorch());
  EXPECT_EQ(job.kind, JobKind::kPyTorchJob);
  EXPECT_EQ(Name(job.kind), "PyTorchJob");
  EXPECT_EQ(job.name, "resnet") << "of a generateName";
  EXPECT_EQ(job.category, "resnet");
  EXPECT_EQ(job.limits.min, 1);
  EXPECT_EQ(job.limits.num, 2);
  EXPECT_EQ(job.limits.max, 4);
  EXPECT_TRUE(job.elastic);
  EXPECT_EQ(job.max_restarts, 1000);
  EXPECT_EQ(job.rdzv_backend, "c10d");
  EXPECT_EQ(job.rdzv_conf, "last_call_timeout=1,join_timeout=60");
  EXPECT_EQ(job.nproc_per_node, "1");
  EXPECT_EQ(job.backoff_limit, 2);
  EXPECT_EQ(job.grace_seconds, 10);
  EXPECT_EQ(job.epochs, 10);
  EXPECT_EQ(job.restart_policy, RestartPolicy::kExitCode);
  EXPECT_EQ(job.worker.memory_bytes, 512 << 20);
  EXPECT_EQ(job.gpus_per_worker, 1) << "no limit is one slot";
  EXPECT_EQ(job.gpu_type, "");
  EXPECT_FALSE(job.launcher.has_value());
  EXPECT_FALSE(job.master.has_value());
}

TEST(JobSpec, AMasterIsOneWorkerOfARigidJob) {
  const JobSpec job = Parsed(WithMaster());
  EXPECT_EQ(job.limits.min, 4);
  EXPECT_EQ(job.limits.num, 4);
  EXPECT_EQ(job.limits.max, 4);
  EXPECT_FALSE(job.elastic);
  EXPECT_EQ(job.gpus_per_worker, 2);
  EXPECT_EQ(job.restart_policy, RestartPolicy::kNo);
  ASSERT_TRUE(job.master.has_value());
  EXPECT_EQ(job.master->command.back(), "--master");
  EXPECT_EQ(job.worker.command.back(), "train.py");

  const JobSpec policy =
      Parsed(Edit(WithMaster(), "spec:\n", "spec:\n  elasticPolicy: {minReplicas: 1, maxReplicas: 4}\n"));
  EXPECT_EQ(policy.limits.min, 4);
  EXPECT_EQ(policy.limits.max, 4);
  ExpectWarned(policy,
               "spec.elasticPolicy.minReplicas 1 is ignored: a job with a Master has one size, here 4");
  ExpectNotWarned(policy, "maxReplicas 4 is ignored");

  const std::string alone = WithMaster().substr(0, WithMaster().find("    Worker:"));
  const JobSpec single = Parsed(alone);
  EXPECT_EQ(single.limits.num, 1);
  EXPECT_EQ(single.limits.max, 1);
  EXPECT_EQ(single.worker, *single.master);
  EXPECT_EQ(single.gpus_per_worker, 2);
}

TEST(JobSpec, SizesDefaultAsDocumented) {
  const std::string np = "            - {name: NUM_PROC, value: \"4\"}\n";
  const std::string min = "            - {name: MIN_NUM_PROC, value: \"2\"}\n";
  const std::string max = "            - {name: MAX_NUM_PROC, value: \"8\"}\n";
  struct Case {
    std::string text;
    int min, num, max;
    bool warned = false;
  };
  const std::string none = Edit(Edit(Edit(MpiV2(), np, ""), min, ""), max, "");
  const std::string no_num = Edit(MpiV2(), np, "");
  const std::vector<Case> cases = {
      {none, 3, 3, 3},                                   // num is Worker.replicas, min and max are num
      {Edit(none, "      replicas: 3\n", ""), 1, 1, 1},  // and 1 without
      {no_num, 1, 3, 4},                                 // replicas within
      {Edit(no_num, "replicas: 3", "replicas: 9"), 1, 4, 4, true},  // clamped
      {Edit(Edit(no_num, "value: \"2\"", "value: \"8\""), "replicas: 3", "replicas: 1"), 4, 4, 4, true},
      {Edit(no_num, "      replicas: 3\n", ""), 1, 1, 4},  // num is min where nothing else is said
      {Edit(Edit(MpiV2(), min, ""), max, ""), 2, 2, 2},
      {Edit(MpiV2(), max, ""), 1, 2, 2},
      {Edit(MpiV2(), min, ""), 2, 2, 4},
      {Edit(Edit(no_num, min, ""), "replicas: 3", "replicas: 9"), 4, 4, 4, true},
      {Edit(MpiV2(), "name: NUM_PROC", "name: NP"), 1, 2, 4},  // the old names
      {Edit(MpiV2(), np, np + np), 1, 2, 4},
      {Edit(MpiV2(), np, np + "            - {name: NP, value: \"4\"}\n"), 1, 2, 4},  // both, the same
      {Edit(MpiV2(), np, "            - {name: NUM_PROC, value: \"2\"}\n" + np), 1, 2,
       4},  // the last one counts
      {Edit(Edit(MpiV2(), min, ""), np, min + "            - {name: NUM_PROC, value: \"$(MIN_NUM_PROC)\"}\n"),
       1, 1, 4},
  };
  for (const Case& wanted : cases) {
    const JobSpec job = Parsed(wanted.text);
    EXPECT_EQ(job.limits.min, wanted.min) << wanted.text;
    EXPECT_EQ(job.limits.num, wanted.num) << wanted.text;
    EXPECT_EQ(job.limits.max, wanted.max) << wanted.text;
    EXPECT_EQ(Joined(job.warnings).find("lies outside of min and max") != std::string::npos, wanted.warned);
  }
}

TEST(JobSpec, ElasticPolicyWinsOverTheEnvironment) {
  const std::string env =
      "            env:\n            - {name: MIN_NUM_PROC, value: \"2\"}\n"
      "            - {name: MAX_NUM_PROC, value: \"3\"}\n";
  const JobSpec both = Parsed(Edit(PyTorch(), "            env:\n", env));
  EXPECT_EQ(both.limits.min, 1);
  EXPECT_EQ(both.limits.max, 4);
  ExpectWarned(both,
               "spec.elasticPolicy.minReplicas is 1, which wins over 2 in spec.pytorchReplicaSpecs.Worker.");
  const std::string no_policy =
      Edit(PyTorch(),
           PyTorch().substr(PyTorch().find("  elasticPolicy"),
                            PyTorch().find("  runPolicy") - PyTorch().find("  elasticPolicy")),
           "");
  const JobSpec variables = Parsed(Edit(no_policy, "            env:\n", env));
  EXPECT_EQ(variables.limits.min, 2);
  EXPECT_EQ(variables.limits.max, 3);
  EXPECT_TRUE(variables.elastic);
  EXPECT_FALSE(variables.max_restarts.has_value());
  const JobSpec rigid = Parsed(no_policy);
  EXPECT_FALSE(rigid.elastic);
  EXPECT_EQ(rigid.limits.min, 2);
  EXPECT_EQ(rigid.limits.max, 2);
  EXPECT_TRUE(Parsed(Edit(no_policy, "spec:\n", "spec:\n  elasticPolicy: {}\n")).elastic);
}

TEST(JobSpec, RefusesWrongSizes) {
  const std::string launcher = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].env";
  ExpectRefused({
      {MpiV2(), "NUM_PROC, value: \"4\"", "NUM_PROC, value: \"3\"",
       launcher + "[NUM_PROC]: 3 processes do not make whole workers of slotsPerWorker 2; give 2 or 4"},
      {MpiV2(), "MIN_NUM_PROC, value: \"2\"", "MIN_NUM_PROC, value: \"1\"",
       "[MIN_NUM_PROC]: 1 processes do not make whole workers of slotsPerWorker 2; give 2"},
      {MpiV2(), "NUM_PROC, value: \"4\"", "NUM_PROC, value: \"10\"",
       "[NUM_PROC]: 5 workers are more than the maximum 4 (" + launcher + "[MAX_NUM_PROC])"},
      {MpiV2(), "MIN_NUM_PROC, value: \"2\"", "MIN_NUM_PROC, value: \"6\"",
       "[NUM_PROC]: 2 workers are fewer than the minimum 3"},
      {MpiV2(), "MIN_NUM_PROC, value: \"2\"", "MIN_NUM_PROC, value: \"10\"",
       "[MIN_NUM_PROC]: a minimum of 5 workers is more than the maximum 4"},
      {MpiV2(), "NUM_PROC, value: \"4\"", "NUM_PROC, value: \"0\"",
       "[NUM_PROC]: \"0\" is out of range; give 1 to 131072"},
      {MpiV2(), "NUM_PROC, value: \"4\"", "NUM_PROC, value: \"-1\"", "\"-1\" is out of range"},
      {MpiV2(), "NUM_PROC, value: \"4\"", "NUM_PROC, value: four", "\"four\" is not a whole number"},
      {MpiV2(), "NUM_PROC, value: \"4\"", "NUM_PROC, value: \"4 \"", "\"4 \" is not a whole number"},
      {MpiV2(), "NUM_PROC, value: \"4\"", "NUM_PROC, value: \"\"", "\"\" is not a whole number"},
      {MpiV2(), "NUM_PROC, value: \"4\"", "NUM_PROC, value: \"99999999999999999999\"", "is out of range"},
      {MpiV2(), "NUM_PROC, value: \"4\"", "NUM_PROC, value: 4",
       "env[0].value: 4 is not text; put it in quotes"},
      {MpiV2(), "- {name: EMPTY}", "- {name: NP, value: \"2\"}",
       "[NUM_PROC]: 4 here and 2 as NP, its old name; remove one of them"},
      {MpiV2(), "replicas: 3", "replicas: 0", "Worker.replicas: 0 is out of range; give 1 to 65536"},
      {MpiV2(), "replicas: 3", "replicas: \"3\"",
       "Worker.replicas: \"3\" is not a whole number; give 1 to 65536, without quotes"},
      {MpiV2(), "replicas: 3", "replicas: 2.5", "Worker.replicas: 2.5 is not a whole number"},
      {MpiV2(), "replicas: 3", "replicas: 99999999999999999999999", "is not a whole number"},
      {MpiV2(), "slotsPerWorker: 2", "slotsPerWorker: 0", "spec.slotsPerWorker: 0 is out of range"},
      {PyTorch(), "minReplicas: 1", "minReplicas: 5",
       "spec.elasticPolicy.minReplicas: a minimum of 5 workers is more than the maximum 4"},
      {PyTorch(), "name: EPOCHS", "name: NUM_PROC",
       "[NUM_PROC]: 10 workers are more than the maximum 4 "
       "(spec.elasticPolicy.maxReplicas)"},
      {PyTorch(), "maxReplicas: 4", "maxReplicas: 65537", "maxReplicas: 65537 is out of range"},
  });
}

TEST(JobSpec, RefusesOtherKinds) {
  const std::string known =
      "give MPIJob of kubeflow.org/v1 or kubeflow.org/v2beta1, or PyTorchJob of kubeflow.org/v1";
  ExpectRefused({
      {PyTorch(), "kind: PyTorchJob", "kind: TFJob", "kind: \"TFJob\" is not known; " + known},
      {PyTorch(), "kind: PyTorchJob\n", "", "kind: missing; " + known},
      {PyTorch(), "kubeflow.org/v1", "kubeflow.org/v2beta1",
       "apiVersion: \"kubeflow.org/v2beta1\" is not known; " + known},
      {MpiV1(), "kubeflow.org/v1", "batch/v1", "apiVersion: \"batch/v1\" is not known; " + known},
      {MpiV1(), "apiVersion: kubeflow.org/v1\n", "", "apiVersion: missing; " + known},
      {PyTorch(), "kind: PyTorchJob", "kind: [PyTorchJob]", "kind: a list is not text"},
  });
  EXPECT_EQ(Refused(""), "no job in it; give an MPIJob or a PyTorchJob");
  EXPECT_EQ(Refused("---\n# nothing\n---\n"), "no job in it; give an MPIJob or a PyTorchJob");
  EXPECT_EQ(Refused("- 1\n"), "a list is not a job; give a mapping with apiVersion, kind, metadata and spec");
  EXPECT_EQ(Refused("hello"),
            "\"hello\" is not a job; give a mapping with apiVersion, kind, metadata and spec");
}

TEST(JobSpec, Names) {
  ExpectRefused({
      {WithMaster(), "name: bert", "name: BERT", "metadata.name: \"BERT\" is not a name"},
      {WithMaster(), "name: bert", "name: -bert", "metadata.name: \"-bert\" is not a name"},
      {WithMaster(), "name: bert", "name: ../../etc/passwd", "is not a name"},
      {WithMaster(), "name: bert", "name: \"\"", "metadata.name: \"\" is not a name"},
      {WithMaster(), "name: bert", "name: 7", "metadata.name: 7 is not text; put it in quotes"},
      {WithMaster(), "name: bert", "labels: {}",
       "metadata.name: missing; give the job a name, or a generateName"},
      {WithMaster(), "metadata:\n  name: bert\n", "", "metadata: missing"},
      {WithMaster(), "name: bert", "name: bert\n  namespace: A_B", "metadata.namespace: \"A_B\" is not"},
      {WithMaster(), "name: bert", "name: " + std::string(33, 'x'), "has 33 characters, the limit is 32"},
      {WithMaster(), "name: bert", "generateName: " + std::string(33, 'x') + "-",
       "metadata.generateName: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" has 33 characters, the limit is 32"},
      {PyTorch(), "generateName: resnet-", "generateName: \"-\"",
       "metadata.generateName: \"-\" is not a name"},
  });
  EXPECT_EQ(Parsed(Edit(WithMaster(), "bert", std::string(32, 'x'))).name, std::string(32, 'x'));
  const std::string many = Edit(WithMaster(), "replicas: 3", "replicas: 10000");
  EXPECT_NE(Refused(Edit(many, "bert", std::string(32, 'x'))).find("the limit is 31"), std::string::npos);
  EXPECT_EQ(Parsed(Edit(many, "bert", std::string(31, 'x'))).limits.max, 10'001);
}

TEST(JobSpec, Categories) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"name: mnist-20211015-035048", "mnist"},
      {"name: mnist-20211015-035048-2", "mnist"},
      {"name: mnist-2021", "mnist-2021"},
      {"name: mnist-x20211015-035048", "mnist-x20211015-035048"},
      {"name: mnist-20211015035048", "mnist-20211015035048"},
      {"name: mnist-x7k2p\n  generateName: mnist-", "mnist"},
      {"name: other\n  generateName: mnist-", "other"},
      {"generateName: mnist---", "mnist"},
      {"name: a\n  annotations: {vodascheduler/category: Res.Net_50}", "Res.Net_50"},
  };
  for (const auto& [given, wanted] : cases) {
    EXPECT_EQ(Parsed(Edit(WithMaster(), "name: bert", given)).category, wanted) << given;
  }
}

TEST(JobSpec, Annotations) {
  const auto with = [](const std::string& annotation) {
    return Edit(WithMaster(), "name: bert", "name: bert\n  annotations: {" + annotation + "}");
  };
  EXPECT_EQ(Parsed(with("vodascheduler/priority: \"-3\"")).priority, -3);
  EXPECT_FALSE(Parsed(with("vodascheduler/preemptible: \"false\"")).preemptible);
  EXPECT_TRUE(Parsed(with("vodascheduler/preemptible: \"true\", other/thing: x")).preemptible);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"vodascheduler/priority: 3",
       "metadata.annotations[\"vodascheduler/priority\"]: 3 is not text; put it in "},
      {"vodascheduler/priority: high", "\"high\" is not a whole number"},
      {"vodascheduler/priority: \"2147483648\"", "is out of range; give -2147483648 to 2147483647"},
      {"vodascheduler/preemptible: \"no\"", "\"no\" is neither; give \"true\" or \"false\""},
      {"vodascheduler/catgory: a", "unknown annotation; did you mean vodascheduler/category?"},
      {"vodascheduler/queue: a", "unknown annotation; known are vodascheduler/category, "},
      {"vodascheduler/category: a/b", "\"a/b\" is not a category"},
      {"vodascheduler/category: \"\"", "\"\" is not a category"},
  };
  for (const auto& [given, wanted] : wrong) {
    const std::string message = Refused(with(given));
    EXPECT_NE(message.find(wanted), std::string::npos) << message;
  }
}

TEST(JobSpec, Settings) {
  ExpectRefused({
      {MpiV2(), "EPOCHS, value: \"20\"", "EPOCHS, value: \"-1\"",
       "[EPOCHS]: \"-1\" is out of range; give 0 to"},
      {MpiV2(), "EPOCHS, value: \"20\"", "EPOCHS, value: \"1e3\"", "\"1e3\" is not a whole number"},
      {MpiV2(), "JOB_PRIORITY, value: \"1\"", "JOB_PRIORITY, value: top",
       "[JOB_PRIORITY]: \"top\" is not a whole number"},
      {MpiV1(), "value: tensorflow2-keras-mnist-elastic", "value: other",
       "[JOB_NAME]: \"other\" is not the job's name \"tensorflow2-keras-mnist-elastic\"; give the same, or "
       "leave"},
  });
  EXPECT_EQ(Parsed(Edit(MpiV1(), "JOB_PRIORITY\n              value: \"0\"",
                        "JOB_PRIORITY\n              value: \"-5\""))
                .priority,
            -5);
}

TEST(JobSpec, UnknownFieldsAreTyposAndGetTheNearestName) {
  ExpectRefused({
      {PyTorch(), "pytorchReplicaSpecs:", "pytorchReplicaSpec:",
       "spec.pytorchReplicaSpec: unknown field; did you mean pytorchReplicaSpecs?"},
      {PyTorch(),
       "elasticPolicy:", "elasticpolicies:", "unknown field; known are runPolicy, elasticPolicy, "},
      {PyTorch(), "minReplicas:", "minreplicas:",
       "spec.elasticPolicy.minreplicas: unknown field; did you mean minReplicas?"},
      {PyTorch(),
       "backoffLimit:", "backofLimit:", "spec.runPolicy.backofLimit: unknown field; did you mean back"},
      {PyTorch(),
       "Worker:", "Workers:", "spec.pytorchReplicaSpecs.Workers: unknown field; did you mean Worker?"},
      {PyTorch(),
       "restartPolicy:", "restartPolcy:", "Worker.restartPolcy: unknown field; did you mean restart"},
      {PyTorch(), "{key: last_call_timeout", "{kye: last_call_timeout", "rdzvConf[0].kye: unknown field"},
      {PyTorch(), "              value: \"10\"", "              vaule: \"10\"",
       "env[0].vaule: unknown field; did you mean value?"},
      {PyTorch(), "command:", "comand:", "containers[0].comand: unknown field; did you mean command?"},
      {PyTorch(),
       "resources:", "resource:", "containers[0].resource: unknown field; did you mean resources?"},
      {PyTorch(),
       "containers:", "container:", "template.spec.container: unknown field; did you mean containers?"},
      {MpiV2(), "nodeSelector:", "nodeSelectors:", "unknown field; did you mean nodeSelector?"},
      {MpiV2(), "vodascheduler/accelerator", "vodascheduler/acelerator",
       "nodeSelector[\"vodascheduler/acelerator\"]: unknown label; did you mean vodascheduler/accelerator?"},
      {MpiV2(),
       "slotsPerWorker:", "slotPerWorker:", "spec.slotPerWorker: unknown field; did you mean slotsPerW"},
      {MpiV2(), "nvidia.com/gpu: 2}", "nvidia.com/gpus: 2}",
       "unknown resource; did you mean nvidia.com/gpu?"},
      {MpiV2(), "sshAuthMountPath", "cleanPodPolicy", "spec.cleanPodPolicy: unknown field; known are "},
      {MpiV1(), "cleanPodPolicy", "launcherCreationPolicy",
       "spec.launcherCreationPolicy: unknown field; known"},
      {MpiV1(), "spec:\n", "sepc: {}\nspec:\n", "sepc: unknown field; did you mean spec?"},
  });
}

TEST(JobSpec, Replicas) {
  ExpectRefused({
      {MpiV1(), "replicas: 1\n      restart", "replicas: 2\n      restart",
       "spec.mpiReplicaSpecs.Launcher.replicas: 2 launchers; give 1"},
      {WithMaster(), "replicas: 1", "replicas: 2",
       "spec.pytorchReplicaSpecs.Master.replicas: 2 masters; give 1"},
      {MpiV2(), "runLauncherAsWorker: false", "runLauncherAsWorker: true",
       "spec.runLauncherAsWorker: true is not supported"},
      {PyTorch(), "ExitCode", "Sometimes",
       "Worker.restartPolicy: \"Sometimes\" is not a restart policy here; give Never, OnFailure, Always or "
       "ExitCode"},
      {MpiV2(), "    Launcher:\n", "    Launcher:\n      restartPolicy: Always\n",
       "Launcher.restartPolicy: \"Always\" is not a restart policy here; give Never or OnFailure"},
      {PyTorch(), "terminationGracePeriodSeconds: 10", "terminationGracePeriodSeconds: 86401",
       "terminationGracePeriodSeconds: 86401 is out of range; give 0 to 86400"},
      {PyTorch(), "backoffLimit: 2", "backoffLimit: -1", "spec.runPolicy.backoffLimit: -1 is out of range"},
      {PyTorch(), "backoffLimit: 2", "backoffLimit: 2147483648", "backoffLimit: 2147483648 is out of range"},
  });
  const std::string launcher = MpiV2().substr(MpiV2().find("    Launcher:"),
                                              MpiV2().find("    Worker:") - MpiV2().find("    Launcher:"));
  EXPECT_NE(
      Refused(Edit(MpiV2(), launcher, "")).find("spec.mpiReplicaSpecs.Launcher: missing; an MPIJob has"),
      std::string::npos);
  const std::string worker = MpiV2().substr(MpiV2().find("    Worker:"));
  EXPECT_NE(Refused(Edit(MpiV2(), worker, "")).find("spec.mpiReplicaSpecs.Worker: missing"),
            std::string::npos);
  const std::string head = PyTorch().substr(0, PyTorch().find("    Worker:"));
  EXPECT_NE(Refused(head).find("spec.pytorchReplicaSpecs: missing; give Worker"), std::string::npos);
  EXPECT_NE(Refused(head + "    {}\n").find("neither Worker nor Master"), std::string::npos);
  EXPECT_NE(Refused(head + "    Worker: {}\n").find("Worker.template.spec: missing"), std::string::npos);
}

TEST(JobSpec, RestartPolicies) {
  EXPECT_EQ(Parsed(Edit(PyTorch(), "      restartPolicy: ExitCode\n", "")).restart_policy,
            RestartPolicy::kOnFailure);
  EXPECT_EQ(Parsed(Edit(MpiV1(), "      restartPolicy: OnFailure\n", "")).restart_policy, RestartPolicy::kNo)
      << "the training operator's default for kubeflow.org/v1";
  EXPECT_EQ(Parsed(Edit(MpiV2(), "terminationGrace", "restartPolicy: Never\n          terminationGrace"))
                .restart_policy,
            RestartPolicy::kNo)
      << "of the pod's spec";
  EXPECT_EQ(Parsed(Edit(PyTorch(), "terminationGrace", "restartPolicy: Never\n          terminationGrace"))
                .restart_policy,
            RestartPolicy::kExitCode)
      << "the replica's wins over its pod's";
  EXPECT_EQ(Parsed(Edit(MpiV1(), "  cleanPodPolicy: Running\n", "  backoffLimit: 9\n")).backoff_limit, 9);
  EXPECT_EQ(Parsed(MpiV1()).backoff_limit, 6);
  EXPECT_EQ(Parsed(MpiV1()).grace_seconds, 30);
}

TEST(JobSpec, GpuTypes) {
  const std::string in_launcher = "spec:\n          nodeSelector: {vodascheduler/accelerator: ";
  const auto launcher = [&](const std::string& type) {
    return Edit(MpiV2(), "spec:\n          terminationGrace",
                in_launcher + type + "}\n          terminationGrace");
  };
  EXPECT_EQ(Parsed(launcher("v100")).gpu_type, "v100");
  EXPECT_NE(Refused(launcher("a100"))
                .find("\"a100\" here and \"v100\" in spec.mpiReplicaSpecs.Worker; a job runs "
                      "on one GPU type"),
            std::string::npos);
  const std::string selector = "          nodeSelector:\n            vodascheduler/accelerator: v100\n";
  EXPECT_EQ(Parsed(Edit(MpiV2(), selector, "")).gpu_type, "");
  EXPECT_NE(Refused(Edit(launcher("v100"), selector, ""))
                .find("the GPU type is that of the workers, give it there"),
            std::string::npos);
  ExpectRefused({{MpiV2(), "accelerator: v100", "accelerator: \"v 100\"", "\"v 100\" is not a label value"},
                 {MpiV2(), "accelerator: v100", "accelerator:", "null is no GPU type"}});
  ExpectWarned(Parsed(Edit(MpiV2(), "            vodascheduler/accelerator: v100\n",
                           "            vodascheduler/accelerator: v100\n            zone: a\n")),
               "nodeSelector \"zone\"");
}

TEST(JobSpec, Resources) {
  const auto limits = [](const std::string& list) {
    return Edit(PyTorch(), "              limits:\n                memory: 512Mi\n", list);
  };
  EXPECT_EQ(Parsed(limits("              limits: {nvidia.com/gpu: \"4\"}\n")).gpus_per_worker, 4);
  EXPECT_EQ(Parsed(limits("              limits: {amd.com/gpu: 2}\n")).gpus_per_worker, 2);
  EXPECT_EQ(Parsed(limits("              limits: {memory: 1e9}\n")).worker.memory_bytes, 1'000'000'000);
  EXPECT_EQ(Parsed(limits("              limits: {memory: 1000000}\n")).worker.memory_bytes, 1'000'000);
  EXPECT_EQ(Parsed(limits("              requests: {memory: 1Gi}\n")).worker.memory_bytes, 0);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"limits: {nvidia.com/gpu: 0}", "limits[\"nvidia.com/gpu\"]: 0 GPUs; leave the limit out"},
      {"limits: {nvidia.com/gpu: 1025}", "1025 is out of range; give 1 to 1024"},
      {"limits: {nvidia.com/gpu: -1}", "\"-1\" is negative"},
      {"limits: {nvidia.com/gpu: many}", "\"many\" is not a quantity"},
      {"limits: {nvidia.com/gpu: 1, amd.com/gpu: 1}", "GPUs of two makes"},
      {"requests: {nvidia.com/gpu: 1}", "requested without a limit; give limits nvidia.com/gpu too"},
      {"{limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 1}}",
       "1 is not the limit 2; GPUs cannot be"},
      {"limits: {memory: 1Zi}", "limits.memory: \"1Zi\" is not a quantity; give a number with a suffix"},
      {"limits: {memory: 9Ei}", "limits.memory: \"9Ei\" is too large"},
      {"limits: {memory: true}", "limits.memory: true is not text; put it in quotes"},
      {"limits: [a]", "resources.limits: a list is not a mapping"},
  };
  for (const auto& [given, wanted] : wrong) {
    const std::string message = Refused(limits("              " + given + "\n"));
    EXPECT_NE(message.find(wanted), std::string::npos) << given << "\nsays " << message;
  }
  ExpectWarned(Parsed(Edit(Edit(MpiV2(), ", nvidia.com/gpu: 2}", "}"), ", nvidia.com/gpu: 2}", "}")),
               "spec.slotsPerWorker is 2 and the workers name no GPUs");
}

TEST(JobSpec, Containers) {
  const std::string sidecar = "          - name: pytorch\n";
  const JobSpec two =
      Parsed(Edit(PyTorch(), sidecar, "          - {name: logs, command: [tail]}\n" + sidecar));
  EXPECT_EQ(two.worker.command, (std::vector<std::string>{"torchrun", "train.py"}));
  ExpectWarned(two, "only the container \"pytorch\" is run; its sidecars \"logs\" are ignored.");
  EXPECT_EQ(Parsed(Edit(PyTorch(), sidecar, "          - name: whatever\n")).worker.command[0], "torchrun");
  ExpectRefused({
      {PyTorch(), sidecar, "          - {name: a, command: [x]}\n          - name: b\n",
       "template.spec.containers: 2 containers and none of them is named pytorch; name the one that trains "
       "so"},
      {PyTorch(), "command: [torchrun, train.py]", "command: []",
       "containers[0].command: missing; give the command line: what the image would run by itself is not "
       "known"},
      {PyTorch(), "command: [torchrun, train.py]", "args: [--lr, \"1\"]",
       "containers[0].command: missing, and args begin with \"--lr\": give the program that the image would "
       "run"},
      {PyTorch(), "command: [torchrun, train.py]", "command: [\"\"]", "the program's name is empty"},
      {PyTorch(), "command: [torchrun, train.py]", "command: torchrun",
       "command: \"torchrun\" is not a list"},
      {PyTorch(), "command: [torchrun, train.py]", "command: [torchrun, 7]",
       "containers[0].command[1]: 7 is not text; put it in quotes"},
      {PyTorch(), "command: [torchrun, train.py]", "command: [torchrun, yes]",
       "command[1]: true is not text; put"},
      {PyTorch(), "command: [torchrun, train.py]", "command: [torchrun, ]\n            args: [~]",
       "args[0]: null is not text"},
      {PyTorch(), "- name: EPOCHS", "- name: \"A=B\"", "env[0].name: \"A=B\" is not the name of a variable"},
      {PyTorch(), "- name: EPOCHS\n", "- ~\n            - name: EPOCHS\n", "env[0]: null is no variable"},
      {PyTorch(), "              value: \"10\"",
       "              value: \"10\"\n              valueFrom: {fieldRef: {}}",
       "env[0].value: given beside valueFrom"},
      {MpiV1(), "command: [\"/bin/bash\", \"-c\"]", "command: ~",
       "Launcher.template.spec.containers[0].command: missing, and args begin with"},
  });
  EXPECT_EQ(
      Parsed(Edit(PyTorch(), "command: [torchrun, train.py]", "args: [torchrun, x.py]")).worker.args.size(),
      2u)
      << "an image without an entrypoint runs args";
  const JobSpec from =
      Parsed(Edit(PyTorch(), "              value: \"10\"", "              valueFrom: {fieldRef: {}}"));
  EXPECT_EQ(from.epochs, 0);
  EXPECT_TRUE(from.worker.env.empty());
  ExpectWarned(from, "EPOCHS come from elsewhere in the cluster (valueFrom) and count as not set");
  ExpectWarned(Parsed(Edit(PyTorch(), "env:", "envFrom: []\n            env:")), "envFrom");

  const std::string one = "          - name: launcher\n";
  const std::string mpi = Edit(MpiV2(), one, "          - {name: first, command: [sleep]}\n" + one);
  EXPECT_EQ(Parsed(Edit(mpi, "spec:\n  slots", "spec:\n  slots")).launcher->command[0], "sleep")
      << "the first one";
  const std::string v1 =
      Edit(Edit(MpiV1(), "          - name: mpi-launcher\n",
                "          - {name: first, command: [sleep]}\n          - name: mpi-launcher\n"),
           "  slotsPerWorker: 1\n", "  slotsPerWorker: 1\n  mainContainer: mpi-launcher\n");
  EXPECT_EQ(Parsed(v1).launcher->command[0], "/bin/bash");
  EXPECT_NE(Refused(Edit(v1, "mainContainer: mpi-launcher", "mainContainer: nobody")).find("is named nobody"),
            std::string::npos);
}

TEST(JobSpec, ElasticPolicy) {
  ExpectRefused({
      {PyTorch(), "rdzvBackend: c10d", "rdzvBackend: zookeeper",
       "spec.elasticPolicy.rdzvBackend: \"zookeeper\" is not a rendezvous backend; give c10d, etcd or "
       "etcd-v2"},
      {PyTorch(), "maxRestarts: 1000", "maxRestarts: -1", "maxRestarts: -1 is out of range"},
      {PyTorch(), "value: \"60\"", "value: \"6,0\"",
       "rdzvConf[1].value: \"6,0\" cannot be part of a setting"},
      {PyTorch(), "value: \"60\"", "value: 60", "rdzvConf[1].value: 60 is not text; put it in quotes"},
      {PyTorch(), "nprocPerNode: \"1\"", "nprocPerNode: 1",
       "spec.nprocPerNode: 1 is not text; put it in quotes"},
      {PyTorch(), "nprocPerNode: \"1\"", "nprocPerNode: \"0\"",
       "\"0\" is not known; give \"1\" to \"1024\", auto"},
      {PyTorch(), "nprocPerNode: \"1\"", "nprocPerNode: \"99999999\"", "is not known"},
      {PyTorch(), "    maxRestarts: 1000\n", "    nProcPerNode: 2\n",
       "elasticPolicy.nProcPerNode: given beside spec.nprocPerNode"},
  });
  EXPECT_EQ(Parsed(Edit(PyTorch(), "nprocPerNode: \"1\"", "nprocPerNode: gpu")).nproc_per_node, "gpu");
  EXPECT_EQ(
      Parsed(Edit(Edit(PyTorch(), "  nprocPerNode: \"1\"\n", ""), "maxRestarts: 1000", "nProcPerNode: 2"))
          .nproc_per_node,
      "2");
  EXPECT_FALSE(Parsed(Edit(PyTorch(), "  nprocPerNode: \"1\"\n", "")).nproc_per_node.has_value());
  ExpectWarned(Parsed(Edit(PyTorch(), "maxRestarts: 1000", "maxRestarts: 3")),
               "maxRestarts is 3: torchrun spends");
  ExpectNotWarned(Parsed(PyTorch()), "maxRestarts");
  ExpectWarned(Parsed(Edit(PyTorch(), "rdzvBackend: c10d", "rdzvBackend: etcd")), "needs an etcd server");
  ExpectWarned(Parsed(Edit(PyTorch(), "rdzvBackend: c10d", "metrics: []")),
               "asks for an autoscaler beside Voda");
  ExpectWarned(Parsed(Edit(PyTorch(), "rdzvBackend: c10d", "rdzvHost: a\n    rdzvPort: 1")),
               "elasticPolicy.rdzvHost, elasticPolicy.rdzvPort");
}

TEST(JobSpec, WarnsOfWhatWillHurt) {
  const std::string no_cooldown = Edit(MpiV1(), "              --blacklist-cooldown-range 30 100\n", "");
  ExpectWarned(Parsed(no_cooldown), "without --blacklist-cooldown-range");
  ExpectNotWarned(Parsed(Edit(no_cooldown, "value: \"8\"", "value: \"1\"")), "--blacklist-cooldown-range");
  ExpectNotWarned(Parsed(Edit(no_cooldown, "horovodrun", "mpirun")), "--blacklist-cooldown-range");
  ExpectWarned(Parsed(Edit(PyTorch(), "generateName: resnet-",
                           "generateName: resnet-\n  labels: {kueue.x-k8s.io/queue-name: q}")),
               "hands the job to Kueue");
}

TEST(JobSpec, EveryExampleIsAccepted) {
  int seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(VODA_SOURCE_DIR) / "examples/jobs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++seen;
    const auto jobs = ParseJobs(ReadJobFile("examples/jobs/" + entry.path().filename().string()));
    EXPECT_TRUE(jobs.has_value()) << entry.path() << ": " << (jobs ? "" : jobs.error().message);
  }
  EXPECT_GE(seen, 1);
}

TEST(JobSpec, SeveralDocumentsAndLists) {
  const auto jobs = ParseJobs(MpiV1() + "---\n" + PyTorch() + "---\n---\n" + WithMaster());
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].name, "tensorflow2-keras-mnist-elastic");
  EXPECT_EQ((*jobs)[2].name, "bert");
  EXPECT_EQ(Refused(MpiV1() + "---\n" + Edit(PyTorch(), "replicas: 2", "replicas: -2")),
            "document 2: spec.pytorchReplicaSpecs.Worker.replicas: -2 is out of range; give 1 to 65536");

  const std::string a = Parsed(PyTorch()).document;
  const std::string b = Parsed(WithMaster()).document;
  const auto list = ParseJobs(R"({"apiVersion":"v1","kind":"List","items":[)" + a + "," + b + "]}");
  ASSERT_TRUE(list.has_value()) << list.error().message;
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0], Parsed(PyTorch()));
  EXPECT_EQ((*list)[1], Parsed(WithMaster()));
  EXPECT_EQ(Refused(R"({"kind":"List","items":[)" + a + R"(,{"kind":"Pod"}]})").substr(0, 31),
            "items[1].kind: \"Pod\" is not kno");
  EXPECT_EQ(Refused(R"({"kind":"List","items":[]})"), "no job in it; give an MPIJob or a PyTorchJob");
  EXPECT_EQ(Refused(R"({"kind":"List","items":{}})"), "items: a mapping is not a list");
  EXPECT_EQ(Refused(R"({"kind":"List","items":[null]})").substr(0, 23), "items[0]: null is not a");

  std::string many = R"({"kind":"List","items":[)";
  for (int i = 0; i < 101; ++i) many += (i > 0 ? "," : "") + b;
  EXPECT_EQ(Refused(many + "]}"), "items: more than 100 jobs; submit them in parts");
}

TEST(JobSpec, ReadsJsonAndWhatKubectlShows) {
  for (const std::string& text : {MpiV1(), MpiV2(), PyTorch(), WithMaster()}) {
    const JobSpec job = Parsed(text);
    EXPECT_EQ(job.document[0], '{');
    EXPECT_EQ(Parsed(job.document), job);
  }
  const std::string document = Parsed(WithMaster()).document;
  EXPECT_EQ(document.substr(0, 76),
            R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"bert)");
  EXPECT_EQ(Parsed(Edit(document, "{\"name\":\"bert\"",
                        "{\"name\":\"bert\",\"creationTimestamp\":null,\"uid\":\"1\""))
                .name,
            "bert");
  EXPECT_EQ(Parsed(Edit(WithMaster(), "spec:\n", "status: {conditions: []}\nspec:\n")).name, "bert");
}

TEST(JobSpec, ParseJobsBoundsTheDocumentItKeeps) {
  // Control characters take one byte here and six in JSON.
  std::string escapes = "\"";
  for (int i = 0; i < 30'000; ++i) escapes += "\\a";
  escapes += '"';
  const std::string list =
      "[" + escapes + "," + escapes + "," + escapes + "," + escapes + "," + escapes + "," + escapes + "]";
  const std::string text = Edit(PyTorch(), "env:", "args: " + list + "\n            env:");
  EXPECT_NE(Refused(text).find("bytes as JSON, the limit is 1048576; keep data in files"), std::string::npos);
  const std::string one = Edit(PyTorch(), "env:", "args: [" + escapes + "]\n            env:");
  EXPECT_EQ(Parsed(Parsed(one).document), Parsed(one)) << "longer than a JSON reader takes, so YAML reads it";
}

}  // namespace
}  // namespace voda::spec
