"""Voda on a Kubernetes cluster where things go wrong: nodes, workers, jobs, operators, the API server, and Voda itself,
killed at every single write. Everything ends where it ends undisturbed, and nothing was created or deleted that need not
have been.

What was created is counted by UID: a witness in the test watches all pods and jobs, so a worker that was restarted has
had two pods, whatever their names. What was deleted is what is not there any more.

    VODA_BINARY=build/release/voda /usr/bin/python3 -W ignore tests/kubernetes/faults_test.py

VODA_TIER=ci kills Voda at a sample of the writes.
"""
import glob
import itertools
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cluster import Cluster  # noqa: E402
from proxy import DROP, LOSE, Proxy, Refusal  # noqa: E402
from voda import Voda, job, workers  # noqa: E402
from workload import KINDS, Field, Witness, cleaned, identity  # noqa: E402

CI = os.environ.get("VODA_TIER") == "ci"
SAMPLE = 6


class OnCluster(unittest.TestCase):
    nodes, gpus = 4, 4

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(kwok_nodes=cls.nodes, gpus=cls.gpus)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.close)
        cls.api = cls.cluster.api

    def setUp(self):
        self.proxy = self.enterContext(Proxy(self.cluster))
        self.witness = self.enterContext(Witness(self.cluster))
        self.addCleanup(lambda: Field(self.cluster, None).clear())
        self.voda = None
        self.restarts = 0

    def start(self):
        self.voda = Voda(self.cluster, kubeconfig=self.proxy.kubeconfig)
        self.addCleanup(self.voda.close)
        self.voda.start()
        return Field(self.cluster, self.voda, self.mend)

    def mend(self, forgets=False, arm=lambda: None):
        """Starts Voda again where it has ended, as its Deployment would: at once, the old lease being over, and without
        its store where it `forgets`. `arm` is called when nothing has been written yet."""
        if self.voda.process.poll() is None:
            return
        self.restarts += 1
        self.api.delete("leases", "voda", namespace="voda-system")
        if forgets:
            for path in glob.glob(os.path.join(self.voda.folder, "voda.db*")):
                os.remove(path)
        self.proxy.open()
        arm()
        self.voda.start(wait=False)  # it may be killed again before it leads


class Faults(OnCluster):
    """Four jobs at their largest, with as many GPUs to spare as a node has. Where something happens to their workers,
    those alone are made anew, once each."""

    def setUp(self):
        super().setUp()
        self.field = self.start()
        self.names = ["a", "b", "c", "d"]
        for name, kind in zip(self.names, ("MPIJob", "PyTorchJob") * 2):
            self.field.apply(cleaned(job(kind, name, 1, 3)))
        self.before = self.field.settle()
        self.assertEqual(self.field.sizes(), dict.fromkeys(self.names, 3))
        self.counts = self.witness.counts()
        self.places = {identity(pod): pod["spec"]["nodeName"] for pod in self.api.list("pods")}

    def check(self, lost=(), gone=(), deletes=1):
        """All are as large as they were; (job, worker) in `lost` have had one more pod, all others have theirs still;
        jobs in `gone` are no more. A lost one takes so many `deletes`."""
        after = self.field.settle()
        names = [name for name in self.names if name not in gone]
        self.assertEqual({name: len(seats) for name, seats in after.items()}, dict.fromkeys(names, 3))
        for name in names:
            for index, (node, uid) in self.before[name].items():
                if (name, index) in lost:
                    self.assertNotEqual(after[name][index][1], uid, f"{name} {index}")
                else:
                    self.assertEqual(after[name][index], (node, uid), f"{name} {index}")
        expected = dict(self.counts)
        for worker in lost:
            expected[worker] += 1
        self.assertEqual(self.witness.counts(), expected, self.voda.tail())
        # Of pods that others deleted too early (workload.py) none was deleted by Voda: it deletes each lost one at most.
        deleted = [write.path for write in self.proxy.writes
                   if write.method == "DELETE" and "/pods/" in write.path and write.status < 400]
        self.assertLessEqual(len(deleted), deletes * len([worker for worker in lost if worker[1] != "launcher"]), deleted)
        self.finish(names)

    def finish(self, names):
        for name in names:
            self.field.finish(name)
        self.field.wait_ended(names)

    def on(self, node):
        """(job, worker) of the workers and launchers there, when all was well."""
        return {worker for worker, where in self.places.items() if where == node}

    def crowded(self):
        return max((f"kwok-{number}" for number in range(self.nodes)), key=lambda node: len(self.on(node)))

    def test_node_added(self):
        self.cluster.add_node("extra")
        self.addCleanup(self.cluster.remove_node, "extra")
        self.cluster.wait_for(lambda: len(self.voda.ask("GET", "/api/v1/nodes")["nodes"]) == 5, 30, "five nodes")
        self.check()

    def test_node_removed(self):
        node = self.crowded()
        self.cluster.remove_node(node)
        self.addCleanup(self.cluster.add_node, node)
        self.check(lost=self.on(node))

    def test_node_cordoned(self):
        node = self.crowded()
        self.cluster.cordon(node)
        self.addCleanup(self.cluster.cordon, node, False)
        self.cluster.wait_for(lambda: any(one["name"] == node and one["state"] == "cordoned" for one in
                                          self.voda.ask("GET", "/api/v1/nodes")["nodes"]), 30, "it to be cordoned")
        self.check()

    def test_node_not_ready(self):
        node = self.crowded()
        self.cluster.set_ready(node, False)
        self.addCleanup(self.cluster.set_ready, node, True)
        self.cluster.wait_for(lambda: not any(seats[index][0] == node for seats in self.field.seats().values()
                                              for index in seats), 60, "workers to leave the node")
        # Launchers hold no GPUs and are none of Voda's business.
        self.check(lost={worker for worker in self.on(node) if worker[1] != "launcher"})

    def test_node_dead(self):
        """Nobody there says that a pod has ended, so none is gone by itself, and no other can have its name."""
        node = self.crowded()
        lost = {worker for worker in self.on(node) if worker[1] != "launcher"}
        for name, index in lost:
            self.api.patch("pods", workers(self.cluster, name)[index]["metadata"]["name"],
                           {"metadata": {"annotations": {"sim/terminate-after": "1h"}}})
        self.cluster.set_ready(node, False)
        self.addCleanup(self.cluster.set_ready, node, True)
        self.wait_replaced(lost)
        self.check(lost=lost, deletes=2)

    def test_worker_failed(self):
        for name in ("a", "b"):
            with self.subTest(name):
                pod = workers(self.cluster, name)[1]["metadata"]["name"]
                self.api.patch("pods", pod, {"metadata": {"annotations": {"sim/fail-after": "0s"}}})
        self.wait_replaced({("a", 1), ("b", 1)})
        self.check(lost={("a", 1), ("b", 1)})

    def test_worker_evicted(self):
        # As a kubelet does it that runs out of memory, and as kubectl drain does it.
        pod = workers(self.cluster, "a")[2]["metadata"]["name"]
        self.api.patch("pods", pod, {"status": {"phase": "Failed", "reason": "Evicted"}}, subresource="status")
        pod = workers(self.cluster, "b")[2]["metadata"]["name"]
        self.api.create("pods", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}, name=pod,
                        subresource="eviction")
        self.wait_replaced({("a", 2), ("b", 2)})
        self.check(lost={("a", 2), ("b", 2)})

    def test_worker_deleted_by_hand(self):
        lost = {("a", 0), ("b", 1), ("d", 2)}
        for name, index in lost:
            self.api.delete("pods", workers(self.cluster, name)[index]["metadata"]["name"])
        self.wait_replaced(lost)
        self.check(lost=lost)

    def wait_replaced(self, lost):
        def replaced():
            counts = self.witness.counts()
            return all(counts[worker] > self.counts[worker] for worker in lost)
        self.cluster.wait_for(replaced, 60, lambda: f"{lost} to be replaced\n{self.voda.tail()}")

    def test_job_deleted_by_hand(self):
        self.api.delete("mpijobs", "a")
        self.api.delete("pytorchjobs", "d")
        for name in ("a", "d"):
            self.voda.wait(f"default/{name}", "Canceled", 60)
        self.check(gone=("a", "d"))

    def test_job_that_is_long_in_going(self):
        """Something holds its object. Its operator does nothing for it any more, and Voda orders nothing."""
        self.api.patch("mpijobs", "a", {"metadata": {"finalizers": ["voda.test/hold"]}})
        self.api.delete("mpijobs", "a")
        self.voda.wait("default/a", "Canceled", 60)
        self.api.delete("pods", workers(self.cluster, "a")[0]["metadata"]["name"])

        def counted():
            held = sum(1 for pod in workers(self.cluster, "a").values() if pod["status"].get("phase") == "Running")
            offered = sum(node["gpus"] for node in self.voda.ask("GET", "/api/v1/nodes")["nodes"])
            return offered == self.nodes * self.gpus - held
        self.cluster.wait_for(counted, 30, lambda: f"its GPUs to be another's: {self.voda.ask('GET', '/api/v1/nodes')}")
        self.api.patch("mpijobs", "a", {"metadata": {"finalizers": None}})
        self.check(gone=("a",))

    def test_job_taken_back_from_voda(self):
        """Its user takes the label off: its workers run on, and their GPUs are not Voda's."""
        for name, kind, change in (("a", "mpijobs", {"vodascheduler/queue": None}),
                                   ("b", "pytorchjobs", {"kueue.x-k8s.io/queue-name": "theirs"})):
            self.api.patch(kind, name, {"metadata": {"labels": change}})
            self.voda.wait(f"default/{name}", "Canceled", 60)
            self.assertEqual({index: (pod["spec"]["nodeName"], pod["metadata"]["uid"])
                              for index, pod in workers(self.cluster, name).items()}, self.before[name])
        offered = {node["name"]: node["gpus"] for node in self.voda.ask("GET", "/api/v1/nodes")["nodes"]}
        self.assertEqual(sum(offered.values()), self.nodes * self.gpus - 6, offered)
        # And back again: it is the job that it was.
        self.api.patch("mpijobs", "a", {"metadata": {"labels": {"vodascheduler/queue": "default"}}})
        self.api.patch("pytorchjobs", "b", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}})
        for name in ("a", "b"):
            self.cluster.wait_for(lambda: self.voda.job(f"default/{name}")["status"] == "Running", 60,
                                  lambda: f"{name} to be Voda's again\n{self.voda.tail()}")
        self.check()


class Life(OnCluster):
    """A workload of four jobs that starts, shrinks, grows and ends them, step by step, so that it ends alike however
    long each step takes. Run undisturbed, it says what every other run has to come to."""
    nodes, gpus = 2, 3
    undisturbed = None

    def live(self, disturb=lambda step: None):
        """What it comes to: the sizes after each step, the pods that each worker has had, the jobs that were made."""
        field = self.field
        sizes = []
        steps = [lambda name=name, kind=kind: field.apply(cleaned(job(kind, name, 1, 3)))
                 for name, kind in zip("abcd", ("MPIJob", "PyTorchJob") * 2)]
        steps += [lambda: field.finish("a"), lambda: field.finish("b")]
        for number, step in enumerate(steps):
            step()
            disturb(number)
            if number >= 4:
                field.wait_ended(["ab"[number - 4]])
            field.settle()
            sizes.append(field.sizes())
        field.finish("c")
        field.finish("d")
        field.wait_ended(["a", "b", "c", "d"])
        return {"sizes": sizes, "pods": self.witness.counts(), "jobs": self.witness.created_jobs()}

    def setUp(self):
        super().setUp()
        if Life.undisturbed is None:
            self.field = self.start()
            Life.undisturbed = self.live()
            Life.writes = list(self.proxy.writes)
            self.voda.stop()
            self.field.clear()
            print(f"undisturbed: {len(self.writes)} writes, {sum(self.undisturbed['pods'].values())} pods, "
                  f"sizes {[list(size.values()) for size in self.undisturbed['sizes']]}", flush=True)
            self.witness.__exit__()
            self.witness = self.enterContext(Witness(self.cluster))
            self.proxy.open()

    def check(self, disturb=lambda step: None):
        result = self.live(disturb)
        for what, expected in self.undisturbed.items():
            self.assertEqual(result[what], expected, f"{what}\n{self.voda.tail(60)}")


class ServerFaults(Life):
    def test_operators_restarted(self):
        self.field = self.start()

        def disturb(step):
            for name in ("mpi-operator", "training-operator"):
                self.cluster.parts[name].kill()
            time.sleep(0.5)
            for name in ("mpi-operator", "training-operator"):
                self.cluster.parts[name].start()
        self.check(disturb)

    def test_api_server_restarted(self):
        """It forgets the past, so every watch has to be begun anew (410)."""
        self.field = self.start()

        def disturb(step):
            if step % 2 == 0:
                self.cluster.parts["kube-apiserver"].kill()
                self.cluster.parts["kube-apiserver"].start()
        self.check(disturb)

    def test_api_server_slow(self):
        self.field = self.start()
        self.proxy.delay = 0.4
        self.check()

    def refused(self, *answers, every=2, kinds=("write",)):
        """Every second write gets one of these answers in turn."""
        self.field = self.start()
        numbers = itertools.count(1)
        answers = itertools.cycle(answers)
        given = []

        def fault(request):
            if request.kind not in kinds or next(numbers) % every:
                return None
            given.append(next(answers))
            return given[-1]
        self.proxy.fault = fault
        self.check()
        self.assertGreater(len(given), 5)

    def test_api_server_answers_all_kinds_of_errors(self):
        self.refused(Refusal(429, retry_after=1), Refusal(500), Refusal(409), LOSE, DROP, Refusal(503, retry_after=1))

    @unittest.skipIf(CI, "one run with all of them")
    def test_api_server_answers_429(self):
        self.refused(Refusal(429, retry_after=1))

    @unittest.skipIf(CI, "one run with all of them")
    def test_api_server_answers_500(self):
        self.refused(Refusal(500))

    @unittest.skipIf(CI, "one run with all of them")
    def test_api_server_answers_409(self):
        self.refused(Refusal(409))

    @unittest.skipIf(CI, "one run with all of them")
    def test_answers_are_lost(self):
        self.refused(LOSE, every=3)

    def test_watches_cut_and_expired(self):
        self.field = self.start()
        numbers = itertools.count()
        self.proxy.fault = lambda request: (Refusal(410) if request.kind == "watch" and next(numbers) % 3 == 0 else None)

        def disturb(step):
            for _ in range(4):
                self.proxy.cut_watches()
                time.sleep(0.2)
        self.check(disturb)


class Killed(Life):
    def killed(self, number, before):
        """Voda is killed at this write, and starts again: every second time with nothing but what the cluster has."""
        forgets = number % 2 == 0
        with Witness(self.cluster) as self.witness:
            self.restarts = 0
            self.voda = Voda(self.cluster, kubeconfig=self.proxy.kubeconfig)
            try:
                self.proxy.open()
                self.voda.start()
                self.field = Field(self.cluster, self.voda, lambda: self.mend(forgets))
                cut = self.proxy.cut_at(number, self.voda.process.kill, before)
                self.check()
                return cut.done.is_set()
            finally:
                self.proxy.open()
                self.voda.close()
                self.api.delete("leases", "voda", namespace="voda-system")
                self.field.clear()

    def test_at_every_write(self):
        numbers = range(1, len(self.writes) + 1)
        cases = [(number, before) for number in numbers for before in (True, False)]
        if CI:
            cases = [cases[len(cases) * part // SAMPLE + part % 2] for part in range(SAMPLE)]
        began, fired = time.monotonic(), 0
        for number, before in cases:
            with self.subTest(write=number, before=before):
                fired += self.killed(number, before)
        print(f"killed {fired} times at {len(cases)} places in {time.monotonic() - began:.0f} s", flush=True)
        self.assertGreaterEqual(fired, len(cases) * 3 // 4, "runs have fewer writes than the undisturbed one")

    def test_after_each_write_in_one_run(self):
        """Every process of Voda gets one write through and never hears of it."""
        self.field = self.start()

        def cut():
            self.proxy.cut_at(1, lambda: self.voda.process.kill(), before=False)
        self.field.mend = lambda: self.mend(forgets=self.restarts % 2 == 0, arm=cut)
        cut()
        self.check()
        print(f"one run with {self.restarts} kills", flush=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
