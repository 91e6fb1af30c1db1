"""`voda up --cluster kubernetes` for tests: a process under Voda's own account on a cluster of cluster.py, asked with the
administrator's token."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "live"))

import live  # noqa: E402
from processes import wait_for  # noqa: E402

JOB_NAME = "training.kubeflow.org/job-name"
FAST = ("--rate-limit", "0s", "--not-ready-grace", "3s", "--log-level", "info")


class Voda(live.Voda):
    """One replica. `kubeconfig` may lead it through a proxy; `leads` waits until it is the one that schedules."""

    def __init__(self, cluster, *flags, algorithm="ElasticFIFO", kubeconfig=None, folder=None):
        super().__init__("--cluster", "kubernetes", "--kubeconfig", kubeconfig or cluster.voda_kubeconfig,
                         "--lease", "voda-system/voda", "--algorithm", algorithm, *FAST, *flags, folder=folder)
        self.cluster = cluster

    @property
    def token(self):
        return self.cluster.api.token

    def start(self, wait=True, leads=True):
        super().start(wait)
        if wait and leads:
            wait_for(self.leading, 120, lambda: f"voda to lead\n{self.tail()}")
        return self

    def leading(self):
        if self.process.poll() is not None:
            raise AssertionError(f"voda up ended with {self.process.returncode}:\n{self.tail()}")
        return self.ask("GET", "/readyz", raw=True) == "ok\n"

    def cli(self, *arguments, check=True, token=None):
        os.environ["VODA_TOKEN"] = token or self.token
        return super().cli(*arguments, check=check)


def workers(cluster, job, namespace="default"):
    """Index -> pod of the workers of a job that are there, launchers left out."""
    pods = cluster.api.list("pods", namespace=namespace, selector=f"{JOB_NAME}={job}")
    return {int(pod["metadata"]["labels"]["training.kubeflow.org/replica-index"]): pod for pod in pods
            if pod["metadata"]["labels"].get("training.kubeflow.org/job-role") != "launcher"
            and "training.kubeflow.org/replica-index" in pod["metadata"]["labels"]}


def job(kind, name, low, high, workers=None, annotations=None, namespace="default", suspend=True, gpus=1):
    """An elastic job for simulated nodes, opted in. Annotations are for its worker pods (see README.md)."""
    metadata = {"name": name, "namespace": namespace, "labels": {"vodascheduler/queue": "default"}}
    pod = {"metadata": {"annotations": annotations or {}}, "spec": {
        "nodeSelector": {"vodascheduler/accelerator": "a100"}, "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "pytorch", "image": "none", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}
    worker = {"replicas": workers or low, "restartPolicy": "OnFailure", "template": pod}
    if kind == "PyTorchJob":
        return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": metadata, "spec": {
            "runPolicy": {"suspend": suspend}, "nprocPerNode": "1",
            "elasticPolicy": {"rdzvBackend": "c10d", "minReplicas": low, "maxReplicas": high},
            "pytorchReplicaSpecs": {"Worker": worker}}}
    worker = {"replicas": workers or low, "template": pod}
    launcher = {"replicas": 1, "template": {"metadata": {"annotations": annotations or {}}, "spec": {
        "nodeSelector": {"voda.test/node": "kwok"},
        "containers": [{"name": "launcher", "image": "none",
                        "env": [{"name": "MIN_NP", "value": str(low)}, {"name": "NP", "value": str(workers or low)},
                                {"name": "MAX_NP", "value": str(high)}]}]}}}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": kind, "metadata": metadata, "spec": {
        "runPolicy": {"suspend": suspend}, "slotsPerWorker": 1,
        "mpiReplicaSpecs": {"Launcher": launcher, "Worker": worker}}}
