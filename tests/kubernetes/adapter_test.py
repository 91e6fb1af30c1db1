"""Orders of the scheduler through the real Kubeflow operators on nodes that KWOK simulates, by the program adapter_probe:
what is asked for is what the cluster then shows, nothing that may stay is touched, and nothing is written twice.

    VODA_ADAPTER_PROBE=build/release/tests/adapter_probe python3 tests/kubernetes/adapter_test.py
"""
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import client_test  # noqa: E402
from cluster import HERE, ROOT, Cluster  # noqa: E402

client_test.PROBE = os.environ.get("VODA_ADAPTER_PROBE") or os.path.join(ROOT, "build", "release", "tests", "adapter_probe")


class Probe(client_test.Probe):
    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ask(self, command, begin, seconds=60):
        self.say(command)
        return self.until(begin, seconds)[-1]

    def order(self, number, kind, job, seats, seconds=60):
        self.say(f"order {number} {kind} default/{job} {seats}")
        try:
            self.until(f"done {number}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.ask(f'waits default/{job}', 'waits')}") from None

    def writes(self):
        return int(self.ask("writes", "writes").split()[1])


LEDGER = os.environ.get("VODA_LEDGER_PROBE") or os.path.join(ROOT, "build", "release", "tests", "ledger_probe")


class AdapterTest(unittest.TestCase):
    mpijobs = "v2beta1"

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(kwok_nodes=3, gpus=4, mpijobs=cls.mpijobs)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.close)

    def probe(self):
        probe = Probe(self.cluster.voda_kubeconfig, self.mpijobs)
        self.addCleanup(probe.__exit__)
        probe.until("synced")
        return probe

    def job(self, probe, kind, name, whole=0):
        """A job of Voda's, suspended, under its management."""
        path = os.path.join(self.folder(), name + ".yaml")
        with open(os.path.join(HERE, "jobs", f"kwok-{kind}.yaml")) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text)
        probe.say(f"create {path} {name} a100")
        lines = probe.until(("created", "refused"))
        self.assertEqual(lines[-1], f"created {name}")
        seen = f"seen default/{name} suspended"
        if not any(line.startswith(seen) for line in lines):  # the watch may be faster than the answer
            probe.until(seen)
        probe.say(f"manage default/{name} a100 {whole}")
        self.addCleanup(self.remove, kind + "s", name)

    def remove(self, resource, name):
        self.cluster.api.delete(resource, name)
        self.cluster.wait_for(lambda: not self.workers(name), 60, f"pods of {name} to be gone")

    def folder(self):
        return self.cluster.folder

    def workers(self, name):
        """Index -> (node, uid) of the worker pods that are there."""
        pods = self.cluster.api.list("pods", selector=f"training.kubeflow.org/job-name={name}")
        found = {}
        for pod in pods:
            labels = pod["metadata"]["labels"]
            if labels.get("training.kubeflow.org/job-role") == "launcher":
                continue
            found[int(labels["training.kubeflow.org/replica-index"])] = (pod["spec"].get("nodeName"), pod["metadata"]["uid"])
        return found

    def placed(self, name):
        workers = self.workers(name)
        return [workers[index][0] for index in sorted(workers)]

    def test_objects_are_a_ledger(self):
        """The contract of ledgers, kept by objects: also for a leader that dies after any of its writes."""
        run = subprocess.run([LEDGER, self.cluster.voda_kubeconfig, "--gtest_brief=1"], timeout=300,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)

    def life(self, kind):
        probe = self.probe()
        name = f"life-{kind}"
        self.job(probe, kind, name)
        self.assertEqual(self.placed(name), [])
        probe.order(1, "start", name, "kwok-0,kwok-1")
        self.assertEqual(self.placed(name), ["kwok-0", "kwok-1"])
        touches = self.told(kind, name, 2)
        # Create, resume, two pins. A write counts once it was answered, which is after others can see it.
        self.cluster.wait_for(lambda: probe.writes() >= 4 + touches, 30, "the last write to be answered")
        self.assertEqual(probe.writes(), 4 + touches)
        started = self.workers(name)

        probe.order(2, "grow", name, "kwok-0,kwok-1,kwok-2,kwok-2")
        grown = self.workers(name)
        self.assertEqual(self.placed(name), ["kwok-0", "kwok-1", "kwok-2", "kwok-2"])
        self.assertEqual([grown[i] for i in (0, 1)], [started[i] for i in (0, 1)], "survivors keep their pods")

        probe.order(3, "move", name, "kwok-0,kwok-2,kwok-2,kwok-2")
        moved = self.workers(name)
        self.assertEqual(self.placed(name), ["kwok-0", "kwok-2", "kwok-2", "kwok-2"])
        self.assertEqual([moved[i] for i in (0, 2, 3)], [grown[i] for i in (0, 2, 3)])
        self.assertNotEqual(moved[1][1], grown[1][1])

        probe.order(4, "shrink", name, "kwok-0")
        self.assertEqual(self.workers(name), {0: moved[0]})

        probe.order(5, "vacate", name, "-")
        self.cluster.wait_for(lambda: self.placed(name) == [None], 30, "a pod without a node in the place of the lost one")
        probe.order(6, "move", name, "kwok-1")
        self.assertEqual(self.placed(name), ["kwok-1"])

        probe.order(7, "halt", name, ".")
        self.assertEqual(self.workers(name), {})
        probe.order(8, "start", name, "kwok-2,kwok-2,kwok-2")
        self.assertEqual(self.placed(name), ["kwok-2"] * 3)

        # The same order again: nothing is left to write.
        self.told(kind, name, 3)
        before = self.answered(probe)
        probe.order(9, "grow", name, "kwok-2,kwok-2,kwok-2")
        self.assertEqual(probe.writes(), before)

    def answered(self, probe):
        """How many writes were answered, once no more answers come."""
        counts = [None]

        def is_quiet():
            counts.append(probe.writes())
            return counts[-1] == counts[-2]
        self.cluster.wait_for(is_quiet, 30, "the last write to be answered", every=0.5)
        return counts[-1]

    def told(self, kind, name, hosts):
        """Waits until the launcher of an MPIJob was told of so many hosts. How many writes that takes."""
        if kind != "mpijob":
            return 0

        def is_told():
            pods = self.cluster.api.list("pods", selector=f"training.kubeflow.org/job-name={name},"
                                                          "training.kubeflow.org/job-role=launcher")
            return any(pod["metadata"].get("annotations", {}).get("vodascheduler/hosts") == str(hosts) for pod in pods)
        self.cluster.wait_for(is_told, 60, f"the launcher to be told of {hosts} hosts")
        return 1

    def test_life_of_an_mpijob(self):
        self.life("mpijob")

    def test_life_of_a_pytorchjob(self):
        self.life("pytorchjob")

    def test_a_job_that_cannot_change_is_stopped_and_started_as_a_whole(self):
        probe = self.probe()
        self.job(probe, "pytorchjob", "rigid", whole=1)
        probe.order(1, "start", "rigid", "kwok-0,kwok-0")
        before = self.workers("rigid")
        probe.order(2, "move", "rigid", "kwok-0,kwok-1")
        after = self.workers("rigid")
        self.assertEqual(self.placed("rigid"), ["kwok-0", "kwok-1"])
        self.assertFalse({uid for _, uid in before.values()} & {uid for _, uid in after.values()})

    def test_what_others_do_to_pods_is_told_and_repaired(self):
        probe = self.probe()
        self.job(probe, "mpijob", "victim")
        probe.order(1, "start", "victim", "kwok-0,kwok-1")
        self.cluster.api.delete("pods", "victim-worker-1")
        self.assertEqual(probe.until("workers default/victim")[-1], "workers default/victim kwok-0,")
        probe.order(2, "move", "victim", "kwok-0,kwok-2")
        self.assertEqual(self.placed("victim"), ["kwok-0", "kwok-2"])
        # One that failed is not made anew by the operator until somebody deletes it.
        self.cluster.api.patch("pods", "victim-worker-1", {"metadata": {"annotations": {"sim/fail-after": "0s"}}})
        probe.until("workers default/victim kwok-0,")
        probe.order(3, "move", "victim", "kwok-0,kwok-1")
        self.assertEqual(self.placed("victim"), ["kwok-0", "kwok-1"])

    def test_a_new_probe_knows_what_runs_and_writes_nothing(self):
        first = self.probe()
        self.job(first, "mpijob", "kept")
        first.order(1, "start", "kept", "kwok-0,kwok-0")
        first.process.kill()
        second = self.probe()
        second.say("manage default/kept a100 0")
        self.assertEqual(second.ask("held default/kept", "held"), "held default/kept kwok-0,kwok-0")
        second.order(7, "start", "kept", "kwok-0,kwok-0")
        self.assertEqual(second.writes(), 0)

    def test_nodes_with_what_others_hold_and_how_they_are(self):
        cluster = self.cluster
        cluster.add_node("extra", gpus=4)
        self.addCleanup(cluster.remove_node, "extra")
        probe = self.probe()
        cluster.api.create("pods", {"metadata": {"name": "foreign"}, "spec": {"nodeName": "extra", "containers": [
            {"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "3"}}}]}})
        probe.until("node-changed extra 1 =")
        cluster.api.delete("pods", "foreign")
        probe.until("node-changed extra 4 =")
        cluster.cordon("extra", True)
        probe.until("node-changed extra = cordoned")
        cluster.cordon("extra", False)
        probe.until("node-changed extra = ready")
        cluster.set_ready("extra", False)
        probe.until("node-changed extra = cordoned")
        probe.until("node-changed extra = lost", 30)  # beyond the probe's grace of three seconds
        cluster.set_ready("extra", True)
        probe.until("node-changed extra = ready")

    def test_orders_survive_operators_and_an_api_server_that_come_and_go(self):
        probe = self.probe()
        self.job(probe, "mpijob", "storm")
        probe.order(1, "start", "storm", "kwok-0,kwok-0")
        kept = self.workers("storm")
        operator = self.cluster.parts["mpi-operator"]
        operator.kill()
        probe.say("order 2 grow default/storm kwok-0,kwok-0,kwok-1,kwok-1")
        time.sleep(1)
        self.cluster.parts["kube-apiserver"].restart()
        operator.start()
        probe.until("done 2", 120)
        now = self.workers("storm")
        self.assertEqual(self.placed("storm"), ["kwok-0", "kwok-0", "kwok-1", "kwok-1"])
        self.assertEqual([now[i] for i in (0, 1)], [kept[i] for i in (0, 1)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
