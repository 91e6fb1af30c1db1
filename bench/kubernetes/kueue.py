"""Kueue on a test cluster: built from source by tests/kubernetes/build.sh, without webhooks, so jobs must be created
suspended. That spares it work that it has elsewhere."""
import json
import os
import subprocess

from cluster import HERE as TESTS
from control_plane import answers
from processes import ClusterError, Part, free_ports, wait_for

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def build():
    """The folder of the program; takes minutes the first time."""
    done = subprocess.run([os.path.join(TESTS, "build.sh"), "kueue"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise ClusterError("Kueue could not be built; the lines above say why")
    return done.stdout.strip().splitlines()[-1]


def install(cluster, programs, gpus):
    """Its kinds of objects, its account, and one queue with so many GPUs."""
    crds = os.path.join(programs, "crds")
    for name in sorted(os.listdir(crds)):
        with open(os.path.join(crds, name), "rb") as file:
            cluster.api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", file.read(),
                            "application/yaml")
    cluster.apply([
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kueue", "namespace": "kueue-system"}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "kueue"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
         "subjects": [{"kind": "ServiceAccount", "name": "kueue", "namespace": "kueue-system"}]},
    ])
    queues = [
        {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": "gpus"}},
        {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {
            "namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [
                {"name": "gpus", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]}]}]}},
        {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue",
         "metadata": {"name": "default", "namespace": "default"}, "spec": {"clusterQueue": "all"}},
    ]

    def applied():
        try:
            return cluster.apply(queues)
        except ClusterError:
            return None
    wait_for(applied, 60, "the kinds of Kueue to be served", every=0.5)
    return cluster.service_account("kueue", "kueue-system")[1]


def part(cluster, programs, kubeconfig, qps, concurrency):
    """Kueue as a process. Below /etc it looks for certificates in a fixed folder: it gets an /etc of its own."""
    folder = os.path.join(cluster.folder, "kueue")
    certificates = os.path.join(folder, "etc", "kueue", "metrics", "certs")
    os.makedirs(certificates, exist_ok=True)
    certificate, key = cluster.certificates.issue("kueue", "/CN=kueue", "serverAuth", ["IP:127.0.0.1"])
    for source, name in ((certificate, "tls.crt"), (key, "tls.key")):
        with open(source, "rb") as original, open(os.path.join(certificates, name), "wb") as copy:
            copy.write(original.read())
    webhook, health = free_ports(2)
    kinds = ("MPIJob.kubeflow.org", "Workload.kueue.x-k8s.io")
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"}, "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": "/etc/kueue/metrics/certs"},
        "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": qps, "burst": max(2 * qps, 1)},
        "controller": {"groupKindConcurrency": {kind: concurrency for kind in kinds}},
        "integrations": {"frameworks": ["kubeflow.org/mpijob"]},
    }
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        json.dump(config, file, indent=1)
    command = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount", "--propagation",
               "private", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', os.path.join(folder, "etc"),
               os.path.join(programs, "kueue"), "--config=" + path, "--feature-gates=VisibilityOnDemand=false",
               "--zap-log-level=error"]
    return Part("kueue", command, os.path.join(cluster.folder, "logs", "kueue.log"),
                environment={"KUBECONFIG": kubeconfig}, ready=answers(health, "/readyz", tls=False))
