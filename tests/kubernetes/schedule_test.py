"""Voda on a Kubernetes cluster with the Kubeflow operators and simulated nodes: every algorithm drives jobs of both kinds to
their ends, nothing is written where nothing changes, and a second replica takes over.

    VODA_BINARY=build/release/voda /usr/bin/python3 -W ignore tests/kubernetes/schedule_test.py

VODA_TIER=ci takes two of the algorithms.
"""
import collections
import concurrent.futures
import datetime
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cluster import Cluster  # noqa: E402
from proxy import Proxy  # noqa: E402
from voda import Voda, job, live, workers  # noqa: E402
from workload import KINDS, Field, Witness, expected_pods, mixed, seatings, starts, v1  # noqa: E402

CI = os.environ.get("VODA_TIER") == "ci"
TAKEOVER = 20  # seconds: a lease of 15, and the tries to get it


def algorithms():
    if CI:
        return ["ElasticFIFO", "ElasticTiresias"]
    said = subprocess.run([live.VODA, "algorithms"], cwd=live.ROOT, text=True, capture_output=True, check=True).stdout
    return [line.split()[0] for line in said.splitlines() if line[:1].strip() and not line.startswith("exec:")]


class OnCluster(unittest.TestCase):
    mpijobs = "v2beta1"
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(kwok_nodes=8, gpus=8, mpijobs=cls.mpijobs)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        self.proxy = self.enterContext(Proxy(self.cluster))
        self.witness = self.enterContext(Witness(self.cluster))
        self.addCleanup(lambda: Field(self.cluster, None).clear())

    def voda(self, *flags, leads=True, **keywords):
        voda = Voda(self.cluster, *self.flags, *flags, kubeconfig=self.proxy.kubeconfig, **keywords)
        self.addCleanup(voda.close)
        self.last = voda
        return voda.start(leads=leads)

    def jobs(self, first, last):
        jobs = mixed(first, last)
        return [v1(one) for one in jobs] if self.mpijobs == "v1" else jobs

    def drive(self, algorithm):
        """Ten jobs in two portions, until all have ended. After each step everything agrees."""
        voda = self.voda(algorithm=algorithm)
        field = Field(self.cluster, voda)
        steps = []
        lasting = collections.defaultdict(set)  # job -> its starts, by number, that were still running at a quiet time

        def settled():
            began = time.monotonic()
            field.settle()
            steps.append(time.monotonic() - began)
            for name, history in seatings(voda).items():
                if history[-1]:
                    lasting[name].add(starts(history))

        field.apply(*self.jobs(1, 6))
        settled()
        self.assertGreater(sum(field.sizes().values()), 0)
        field.apply(*self.jobs(7, 10))
        settled()
        left = {f"job-{number}" for number in range(1, 11)}
        while left:
            running = sorted(name for name, size in field.sizes().items() if size)
            self.assertTrue(running, "nothing runs although jobs are left")
            # One at a time: of two that end together the first frees GPUs that the second may still be given, and pods
            # of a change that its end overtakes are in no history.
            field.finish(running[0])
            field.wait_ended(running[:1])
            left.remove(running[0])
            settled()
        self.check_pods(voda, lasting)
        print(f"{algorithm}: {len(steps)} steps, {sum(steps):.0f} s to settle, {self.proxy.counts['write']} writes, "
              f"{sum(self.witness.counts().values())} pods", flush=True)

    def check_pods(self, voda, lasting):
        """A worker has had one pod for each seat that it was given, and none more: whoever stays where it is keeps its
        pod through every change of the job around it. Each start of an MPIJob has had one launcher; but the launcher
        comes after the workers, and a start that was taken back before everything was quiet may have had none."""
        history = seatings(voda)
        for number in range(1, 11):
            name = f"job-{number}"
            seen = self.witness.counts({name})
            launchers = seen.pop((name, "launcher"), 0)
            self.assertEqual({index: count for (_, index), count in seen.items()}, expected_pods(history[name]),
                             f"{name}: {history[name]}\n{self.witness.story(name)}")
            if number % 2:
                self.assertGreaterEqual(launchers, len(lasting[name]), f"{name}: {history[name]}")
                self.assertLessEqual(launchers, starts(history[name]), f"{name}: {history[name]}")
            else:
                self.assertEqual(launchers, 0, name)


class Algorithms(OnCluster):
    def test_every_algorithm_drives_a_mixed_workload_to_its_end(self):
        for algorithm in algorithms():
            with self.subTest(algorithm), Witness(self.cluster) as self.witness:
                self.proxy.open()
                try:
                    self.drive(algorithm)
                finally:
                    self.last.stop()
                    Field(self.cluster, None).clear()

    def test_an_unchanged_plan_writes_nothing(self):
        voda = self.voda()
        field = Field(self.cluster, voda)
        field.apply(*self.jobs(1, 4))
        before = field.settle()
        self.cluster.wait_for(lambda: self.proxy.quiet(5), 60, "launchers to be told of their hosts, users of their jobs")
        api, proxy = self.cluster.api, self.proxy
        nodes = [one["metadata"]["name"] for one in api.list("nodes")]
        pods = [one["metadata"]["name"] for one in api.list("pods")]
        jobs = [(resource, one["metadata"]["name"]) for resource in KINDS.values() for one in api.list(resource)]
        writes, watched = len(proxy.writes), proxy.watched
        told = proxy.counts["event"], proxy.counts["condition"]
        self.assertGreaterEqual(told[1], 4)

        def touch(number):
            mark = {"metadata": {"annotations": {"voda.test/touched": str(number)}}}
            what, number = number % 10, number // 10
            now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            if what < 2:
                api.patch("nodes", nodes[number % len(nodes)], mark)
            elif what < 4:
                beat = {"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": now}]}}
                name = nodes[number % len(nodes)]
                api.patch("nodes", name, {**mark, **beat}, "strategic", subresource="status")
            elif what < 6:
                api.patch("pods", pods[number % len(pods)], mark)
            elif what < 8:
                resource, name = jobs[number % len(jobs)]
                api.patch(resource, name, mark)
            elif what == 8:  # comes and goes: its deletion is an event of its own
                name = f"foreign-{number}"
                api.create("pods", {"metadata": {"name": name}, "spec": {
                    "nodeName": nodes[number % len(nodes)], "containers": [{"name": "c", "image": "none"}]}})
                api.delete("pods", name)
            else:
                resource, name = jobs[number % len(jobs)]
                api.create("events", {
                    "metadata": {"name": f"said-{number}"}, "reason": "Test", "message": "of no matter",
                    "type": "Normal", "involvedObject": {"kind": "Pod", "name": name, "namespace": "default"}})

        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(touch, range(2000)))
        took = time.monotonic() - began
        self.cluster.wait_for(lambda: proxy.quiet(2), 120, "the last of the events to arrive")
        self.assertGreaterEqual(proxy.watched - watched, 1800, "Voda was told of them")
        self.assertEqual(proxy.writes[writes:], [])
        self.assertEqual((proxy.counts["event"], proxy.counts["condition"]), told)
        self.assertEqual(field.settle(), before)
        print(f"2000 events in {took:.1f} s, {proxy.watched - watched} reached Voda, no write", flush=True)

    def test_a_standby_takes_over(self):
        first = self.voda()
        second = self.voda(leads=False)
        self.assertEqual(second.ask("GET", "/readyz", raw=True), "standby\n")
        field = Field(self.cluster, first)
        field.apply(*self.jobs(1, 4))
        before = field.settle()
        self.assertEqual(second.ask("GET", "/readyz", raw=True), "standby\n")
        counts = self.witness.counts()

        first.kill()
        died = time.monotonic()
        field = Field(self.cluster, second)
        field.apply(job("PyTorchJob", "after", 1, 1))
        self.cluster.wait_for(second.leading, 120, lambda: f"the standby to lead\n{second.tail()}", every=0.05)
        led = time.monotonic() - died
        self.cluster.wait_for(lambda: any(pod["spec"].get("nodeName") for pod in workers(self.cluster, "after").values()),
                              60, lambda: f"the new job to be placed\n{second.tail()}", every=0.05)
        placed = time.monotonic() - died
        print(f"the standby led {led:.1f} s after the leader's death and had placed a job after {placed:.1f} s", flush=True)
        self.assertLess(placed, TAKEOVER)
        after = field.settle()
        self.assertEqual({name: after[name] for name in before}, before, "nothing is restarted")
        counts[("after", 0)] = 1
        self.assertEqual(self.witness.counts(), counts)


class MpiJobsOfTheTrainingOperator(OnCluster):
    mpijobs = "v1"
    flags = ("--mpi-version", "v1")

    def test_a_mixed_workload(self):
        self.drive("ElasticFIFO")


if __name__ == "__main__":
    unittest.main(verbosity=2)
