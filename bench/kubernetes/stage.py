"""The cluster that the benchmarks run on, and who schedules there."""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "kubernetes"))

import kueue  # noqa: E402
import kwok  # noqa: E402
import load  # noqa: E402
from cluster import Cluster  # noqa: E402
from processes import wait_for  # noqa: E402
from voda import Voda, job  # noqa: E402

OPERATORS = ("mpi-operator", "training-operator")
SERVERS = ("kube-apiserver", "etcd", "kube-controller-manager")


def stage(nodes, operators, gpus=8, connections=16):
    """A started cluster with so many simulated nodes. Their heartbeats are rare: hundreds a second would be measured."""
    cluster = Cluster(gpus=gpus, grace_seconds=1200).start()
    try:
        if not operators:
            for name in OPERATORS:
                cluster.parts[name].kill()
        path = cluster.api.path("nodes")
        bodies = [kwok.node(f"node-{number:04}", gpus, cluster.accelerator) for number in range(nodes)]
        load.burst(cluster, [load.request(cluster, "POST", path, body) for body in bodies],
                   connections).check("creating nodes")
        wait_for(lambda: all(usable(node) for node in cluster.api.list("nodes")), 300, "all nodes to be ready", every=1)
        load.settled_writes(cluster, most=60)
    except BaseException:
        cluster.close()
        raise
    return cluster


def usable(node):
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    return kwok.is_ready(node) and "node.kubernetes.io/not-ready" not in taints


def one_worker(name, queue_label, queue):
    """A suspended MPIJob with a launcher and one worker on one GPU."""
    body = job("MPIJob", name, 1, 1)
    body["metadata"]["labels"] = {queue_label: queue}
    return body


class VodaSide:
    """`voda up` with its own account."""
    label, queue = "vodascheduler/queue", "default"

    def __init__(self, cluster, flags=()):
        self.voda = Voda(cluster, *flags)

    def start(self):
        self.voda.start()
        return self

    @property
    def pid(self):
        return self.voda.process.pid

    def close(self):
        self.voda.close()


class KueueSide:
    """Kueue with an account that may do everything."""
    label, queue = kueue.QUEUE_LABEL, "default"

    def __init__(self, cluster, gpus, qps, concurrency):
        programs = kueue.build()
        kubeconfig = kueue.install(cluster, programs, gpus)
        self.part = kueue.part(cluster, programs, kubeconfig, qps, concurrency)

    def start(self):
        self.part.start()
        return self

    @property
    def pid(self):
        return self.part.process.pid

    def close(self):
        self.part.kill()


class Meter:
    """CPU time of the scheduler and of the servers beside it, and the writes, between two moments."""

    def __init__(self, cluster, pid=None):
        self.cluster = cluster
        self.pid = pid
        self.begun = time.monotonic()
        self.writes = load.writes(cluster)
        self.cpu = {name: load.cpu(cluster.parts[name].process.pid) for name in SERVERS}
        self.own = load.cpu(pid) if pid else 0.0

    def cpu_split(self, pid):
        split = {name: load.cpu(self.cluster.parts[name].process.pid) - before for name, before in self.cpu.items()}
        return {"scheduler": load.cpu(pid) - self.own, **split}

    def written(self, after=None):
        return load.difference(after or load.writes(self.cluster), self.writes)
