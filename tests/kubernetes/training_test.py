"""Real training on real nodes under `voda up --cluster kubernetes`: elastic PyTorchJobs (torchrun) and an Elastic Horovod
MPIJob grow, shrink, are suspended to nothing and resumed, move between nodes and complete, with the loss falling all
the way. Needs root and containers.

    VODA_BINARY=build/release/voda python3 -W ignore tests/kubernetes/training_test.py
"""
import json
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import real_nodes  # noqa: E402
from cluster import ROOT, Cluster  # noqa: E402
from processes import run  # noqa: E402
from voda import Voda, workers  # noqa: E402

GPUS = 2  # of each of two nodes
CI = os.environ.get("VODA_TIER") == "ci"
EPOCHS = 100000  # more than any job trains: each ends when it is told that this is enough
LONG = int(os.environ.get("VODA_WAIT", "600"))


def manifest(name, rename, low, high):
    """A job of jobs/ under another name, suspended and opted in."""
    with open(os.path.join(HERE, "jobs", name + ".yaml")) as file:
        text = file.read().replace(name, rename)
    text = re.sub(r"\{name: EPOCHS, value: \"\d+\"\}", '{name: EPOCHS, value: "%d"}' % EPOCHS, text)
    text = text.replace("metadata:\n  name:", "metadata:\n  labels: {vodascheduler/queue: default}\n  name:", 1)
    text = text.replace("  runPolicy:\n", "  runPolicy:\n    suspend: true\n", 1)
    text = re.sub(r"minReplicas: \d+\n    maxReplicas: \d+", f"minReplicas: {low}\n    maxReplicas: {high}", text)
    for variable, value in (("MIN_NUM_PROC", low), ("MAX_NUM_PROC", high)):
        text = re.sub(r"\{name: %s, value: \"\d+\"\}" % variable, '{name: %s, value: "%d"}' % (variable, value), text)
    return text.replace("nodeSelector: {voda.test/node: real}",
                        "nodeSelector: {voda.test/node: real, vodascheduler/accelerator: a100}")


def urgent(name):
    """All GPUs for a few seconds, in one piece."""
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": {"name": name, "labels": {"vodascheduler/queue": "default"},
                         "annotations": {"vodascheduler/priority": "10"}},
            "spec": {"runPolicy": {"suspend": True, "cleanPodPolicy": "All"}, "pytorchReplicaSpecs": {"Worker": {
                "replicas": 2 * GPUS, "restartPolicy": "OnFailure", "template": {"spec": {
                    "nodeSelector": {"vodascheduler/accelerator": "a100"}, "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "pytorch", "image": real_nodes.IMAGE, "imagePullPolicy": "Never",
                                    "command": ["/bin/sh", "-c", "sleep 5"],
                                    "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}}}}}


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run(os.path.join(ROOT, "tools", "horovod_venv.sh"), seconds=600)
        cls.cluster = Cluster(real=2, gpus=GPUS)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.close)

    def start(self, algorithm, *flags):
        self.voda = Voda(self.cluster, "--allow", "hostPath", "--progress-listen", f"{self.cluster.nodes.gateway}:0",
                         *flags, algorithm=algorithm)
        self.addCleanup(self.voda.close)
        self.voda.start()

    def wait(self, condition, what, seconds=LONG):
        return self.cluster.wait_for(condition, seconds, lambda: f"{what}; {self.state()}\n{self.voda.tail()}", every=0.3)

    def state(self):
        jobs = {name: (job["status"], job["workers"], job["planned"], job["progress"], job["message"])
                for name, job in self.voda.jobs().items()}
        pods = [(pod["metadata"]["name"], pod["status"]["phase"], pod["spec"].get("nodeName"))
                for pod in self.cluster.api.list("pods")]
        return f"jobs {jobs}, pods {pods}"

    def size(self, job):
        return self.voda.job("default/" + job)["workers"]

    def trains(self, job, workers=None, more=2):
        """Waits for so many more epochs, and for one that so many workers did."""
        before = self.epoch(job)
        self.wait(lambda: self.epoch(job) >= before + more, f"{more} more epochs of {job} after {before}")
        if workers:
            self.wait(lambda: any(size == workers for _, size, _ in self.printed(job)), f"{job} on {workers} workers")

    def epoch(self, job):
        return (self.voda.job("default/" + job)["progress"] or {"epoch": 0})["epoch"]

    def printed(self, job):
        """(epoch, workers, loss) as rank 0 printed it, on whichever pod that was."""
        text = self.cluster.nodes.logs("default", job)
        found = re.findall(r"epoch (\d+)/\d+ workers (\d+) loss ([0-9.e+-]+)", text)
        return sorted((int(epoch), int(size), float(loss)) for epoch, size, loss in found)

    def outputs(self, job, name):
        """A file in the folder of a job."""
        return os.path.join(self.cluster.folder, "outputs", job, name)

    def complete(self, job):
        """Ends the training and returns the loss of each epoch, as the checkpoint has them."""
        open(self.outputs(job, "enough"), "w").close()
        self.voda.wait("default/" + job, "Completed", LONG)
        path = self.outputs(job, "checkpoint.pt")
        script = f"import json, torch; print(json.dumps(torch.load({path!r})['losses']))"
        return json.loads(run("/usr/bin/python3", "-W", "ignore", "-c", script, seconds=120).stdout)

    def agrees(self, *jobs):
        """Pods, plan and nodes say the same, and no node has more workers than GPUs."""
        def settled():
            used = {}
            for job in jobs:
                entry = self.voda.job("default/" + job)
                pods = {index: pod["spec"].get("nodeName") for index, pod in workers(self.cluster, job).items()
                        if pod["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]}
                if entry["workers"] != entry["planned"] or [pods.get(i) for i in range(len(pods))] != entry["nodes"]:
                    return False
                for node in entry["nodes"]:
                    used[node] = used.get(node, 0) + 1
            return all(count <= GPUS for count in used.values())
        self.wait(settled, "pods and plan to agree")

    def scenario(self, algorithm, *flags):
        prefix = algorithm.lower().replace("elastic", "")
        torch, horovod, rush = f"{prefix}-torch", f"{prefix}-horovod", f"{prefix}-rush"
        self.start(algorithm, *flags)

        # Alone it grows into everything, over both nodes.
        self.cluster.apply(manifest("real-pytorchjob", torch, 1, 4))
        self.wait(lambda: self.size(torch) == 4, f"{torch} to grow")
        self.trains(torch, workers=4)

        self.assertIn("epoch", "".join(self.voda.cli("logs", "-n", "default", torch, "--worker", str(worker)).stdout
                                       for worker in range(4)))

        # Another comes: it shrinks. The survivors' pods stay.
        before = {index: pod["metadata"]["uid"] for index, pod in workers(self.cluster, torch).items()}
        done = self.voda.cli("create", "-f", self.file(manifest("real-horovod", horovod, 1, 2)))
        made = re.search(r"default/(\S+)", done.stdout).group(1)
        self.wait(lambda: self.size(made) >= 1 and 1 <= self.size(torch) < 4, "both to run")
        self.agrees(torch, made)
        after = {index: pod["metadata"]["uid"] for index, pod in workers(self.cluster, torch).items()}
        self.assertTrue(after.items() <= before.items(), "a shrink replaced a worker")
        self.trains(torch)
        self.trains(made)

        # Both shrink and grow while they train, whatever the algorithm thinks of them.
        for job, most, sizes in ((made, 1, {made: 1, torch: 3}), (torch, 2, {torch: 2}), (made, 2, {made: 2}),
                                 (made, 1, {made: 1}), (torch, 4, {torch: 3})):
            self.voda.cli("set", "size", "default/" + job, "--max", str(most))
            for name, size in sizes.items():
                self.wait(lambda name=name, size=size: self.size(name) == size, f"{name} to have {size} workers")
                self.trains(name, workers=size)
        self.voda.cli("set", "size", "default/" + made, "--max", "2")

        # A rigid job takes everything: both are suspended, and come back from their checkpoints.
        self.cluster.apply(urgent(rush))
        self.wait(lambda: self.size(rush) == 2 * GPUS, "the rigid job to run")
        for job in (torch, made):
            self.assertEqual(self.voda.job("default/" + job)["status"], "Waiting")
        self.assertTrue(self.cluster.api.get("pytorchjobs", torch)["spec"]["runPolicy"]["suspend"])
        stood = self.epoch(torch)
        self.assertGreater(stood, 0)
        self.voda.wait("default/" + rush, "Completed", LONG)
        self.wait(lambda: self.size(torch) >= 1 and self.size(made) >= 1, "both to be resumed")
        self.trains(torch)
        self.trains(made)

        # Their node goes away: workers move to the other, and the others stay.
        self.agrees(torch, made)
        node = self.voda.job("default/" + torch)["nodes"][0]
        other = "real-1" if node == "real-0" else "real-0"
        self.cluster.kubectl("taint", "node", node, "ToBeDeletedByClusterAutoscaler=1:NoSchedule")
        self.wait(lambda: set(self.voda.job("default/" + torch)["nodes"]) == {other}, f"{torch} to move to {other}")
        self.trains(torch)
        self.cluster.kubectl("taint", "node", node, "ToBeDeletedByClusterAutoscaler-")

        for job in (torch, made):
            losses = self.complete(job)
            epochs = len(losses)
            self.assertEqual(epochs, self.printed(job)[-1][0], "an epoch is missing, or was trained twice")
            entry = self.voda.job("default/" + job)
            thirds = [sum(part) / len(part) for part in (losses[:epochs // 3], losses[epochs // 3:2 * epochs // 3],
                                                         losses[2 * epochs // 3:])]
            self.assertEqual(thirds, sorted(thirds, reverse=True), f"{job}: the loss does not fall")
            self.assertLess(thirds[2], 0.8 * thirds[0], f"{job}: the loss does not fall")
            self.assertGreaterEqual(entry["starts"], 2)
            sizes = [(size["from"], size["to"]) for size in entry["sizes"]]
            self.assertTrue(any(0 < before < size for before, size in sizes), f"{job} never grew: {sizes}")
            self.assertTrue(any(0 < size < before for before, size in sizes), f"{job} never shrank: {sizes}")
            print(f"  {algorithm}: {job}: sizes {sizes}, loss {losses[0]:.4f} -> {losses[-1]:.4f}", flush=True)
        events = self.cluster.kubectl("get", "events", "-o", "json").stdout
        reasons = {event["reason"] for event in json.loads(events)["items"]
                   if event["involvedObject"].get("name") == torch}
        self.assertLessEqual({"Queued", "Started", "Resized", "Suspended", "Moved"}, reasons)

    def file(self, text):
        path = os.path.join(self.cluster.folder, "job.yaml")
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_elastic_fifo(self):
        self.scenario("ElasticFIFO")

    @unittest.skipIf(CI, "one algorithm in the short form")
    def test_elastic_tiresias(self):
        # Attained service of 20 GPU-seconds puts a job behind those that have less.
        self.scenario("ElasticTiresias", "--option", "threshold=20")


if __name__ == "__main__":
    reason = real_nodes.why_not()
    if reason:
        sys.exit(f"training_test cannot run here: {reason}")
    unittest.main(verbosity=2)
