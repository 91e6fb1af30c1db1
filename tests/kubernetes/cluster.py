"""A real Kubernetes cluster for tests and as a playground: the control plane, the Kubeflow operators, nodes that KWOK
simulates and, on a machine that can run containers, real ones. Everything listens on loopback or on a bridge of
its own, lives in one folder and ends with the process that started it.

    with Cluster(kwok_nodes=4) as cluster:
        cluster.apply(open("job.yaml").read())
        cluster.wait_for(lambda: len(cluster.api.list("pods")) == 2, 30, "two pods")

As a command, for a playground that stays until it is taken down:

    cluster.py up [--folder DIR] [--real auto|N] [--kwok N] [--gpus N]
    cluster.py down [--folder DIR]     also after a crash: ends and removes whatever is left
"""
import argparse
import atexit
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kwok  # noqa: E402
import real_nodes  # noqa: E402
from api import Api, ApiError  # noqa: E402
from certificates import Certificates  # noqa: E402
from control_plane import ControlPlane  # noqa: E402
from processes import (ClusterError, end_group, free_ports, read_json, run, start_time, wait_for,  # noqa: E402
                       write_json)

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.environ.get("VODA_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "voda")
PLAYGROUND = os.path.join(CACHE, "cluster")  # not in build/: who removes that by hand would remove through its mounts
PREFIX = "voda-cluster-"  # of folders of tests, below the folder for temporary files

USERS = {  # by the name of their kubeconfig
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager",),
    "kube-scheduler": ("system:kube-scheduler",),
    "kwok": ("kwok", "system:masters"),
    "mpi-operator": ("mpi-operator", "system:masters"),
    "training-operator": ("training-operator", "system:masters"),
    "coredns": ("coredns", "system:masters"),
}


def programs():
    """The folder of the built programs; builds what is missing, which takes minutes the first time."""
    done = subprocess.run([os.path.join(HERE, "build.sh")], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise ClusterError("the parts of the cluster could not be built; the lines above say why")
    return done.stdout.strip().splitlines()[-1]


class Cluster:
    """`real` containerd nodes and `kwok_nodes` simulated ones with `gpus` GPUs each. `mpijobs` says who owns MPIJobs:
    "v2beta1" is the mpi-operator, "v1" the training operator; one cluster cannot have both. A node counts as lost
    `grace_seconds` after its last heartbeat. With `keep` the folder with the logs stays. Parts die with the thread that
    starts them: start them in the main one."""

    def __init__(self, folder=None, kwok_nodes=0, real=0, gpus=8, accelerator="a100", mpijobs="v2beta1",
                 grace_seconds=20, keep=False):
        if mpijobs not in ("v2beta1", "v1"):
            raise ClusterError(f"mpijobs is v2beta1 or v1, not {mpijobs}")
        self.folder = os.path.abspath(folder or os.path.join(tempfile.gettempdir(), PREFIX + secrets.token_hex(4)))
        self.gpus = gpus
        self.accelerator = accelerator
        self.mpijobs = mpijobs
        self.keep = keep
        self.parts = {}  # by name, in the order of their start
        self.nodes = real_nodes.RealNodes(self, real) if real else None
        self.programs = None
        self.certificates = None
        self.address = None
        self.api = None   # as administrator
        self.voda = None  # as the service account voda-system/voda
        self.kubeconfigs = {}
        self._kwok_nodes = kwok_nodes
        self._grace_seconds = grace_seconds
        self._owner = None

    # Life

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Everything up and ready, or nothing."""
        if self.nodes:
            reason = real_nodes.why_not()
            if reason:
                raise ClusterError(f"no real nodes on this machine: {reason}")
        sweep()
        self.programs = programs()
        claim(self.folder)
        self._owner = [os.getpid(), start_time(os.getpid())]
        os.makedirs(os.path.join(self.folder, "logs"), exist_ok=True)
        atexit.register(self.close)
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            self._start()
        except BaseException:
            self.keep = True  # the logs say why
            self.close()
            raise
        return self

    def _start(self):
        names = ("etcd", "etcd-peer", "apiserver", "controller-manager", "scheduler", "kwok")
        ports = dict(zip(names, free_ports(len(names))))
        self.address = ("127.0.0.1", ports["apiserver"])
        self.certificates = Certificates(os.path.join(self.folder, "certificates"), ["127.0.0.1"])
        self.certificates.issue("kubelet-client", "/O=system:masters/CN=kube-apiserver", "clientAuth")
        users = {**USERS, **(self.nodes.users() if self.nodes else {})}
        tokens = {name: self.certificates.token(*user) for name, user in users.items()}
        for name, token in tokens.items():
            self._write_kubeconfig(name, token)
        self.api = self._client(tokens["admin"])
        plane = ControlPlane(self.programs, self.folder, self.certificates, ports, self.kubeconfigs,
                             self._grace_seconds, self._save)
        self._add(plane.etcd()).start()
        self._add(plane.apiserver()).start()
        self._install_crds()
        self.apply(os.path.join(HERE, "manifests", "kwok-rules.yaml"))
        stages = os.path.join(HERE, "manifests", "kwok-stages.yaml")
        later = [plane.controller_manager(), plane.scheduler(), plane.kwok(stages)]
        kinds = ["pytorchjob"]
        if self.mpijobs == "v2beta1":
            later.append(plane.mpi_operator())
        else:
            kinds.append("mpijob")
        later.append(plane.training_operator(kinds, real_nodes.IMAGE))
        for part in later:
            self._add(part).start(wait=False)
        if self.nodes:
            self.nodes.start(plane)
        self._install_voda()
        for part in later:
            part.wait_ready()
        wait_for(lambda: self.api.get("serviceaccounts", "default"), 60, "the default service account")
        self.add_nodes(self._kwok_nodes)
        if self.nodes:
            self.nodes.wait_ready()

    def close(self):
        """Ends everything that was started and removes the folder, unless it is to be kept."""
        if self._owner is None or self._owner[0] != os.getpid():
            return
        self._owner = None
        atexit.unregister(self.close)
        for part in reversed(self.parts.values()):
            part.kill()
        clean_up(self.folder, keep=self.keep)

    def _add(self, part):
        self.parts[part.name] = part
        return part

    def _save(self):
        write_json(os.path.join(self.folder, "state.json"), {
            "owner": self._owner,
            "parts": {name: [part.process.pid, start_time(part.process.pid)]
                      for name, part in self.parts.items() if part.running()},
            "real": self.nodes.state() if self.nodes else None,
        })

    # Access

    @property
    def url(self):
        return f"https://{self.address[0]}:{self.address[1]}"

    @property
    def kubeconfig(self):
        return self.kubeconfigs["admin"]

    @property
    def voda_kubeconfig(self):
        return self.kubeconfigs["voda"]

    def _client(self, token):
        return Api(self.address, self.certificates.authority, token, self.mpijobs)

    def _write_kubeconfig(self, name, token):
        path = os.path.join(self.folder, name + ".kubeconfig")
        self.kubeconfigs[name] = self.certificates.kubeconfig(path, self.url, token)

    def service_account(self, name, namespace):
        """A client with a token of that service account, and the path of its kubeconfig."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 86400}}
        answer = self.api.create("serviceaccounts", request, namespace, "token", name)
        token = answer["status"]["token"]
        self._write_kubeconfig(name, token)
        return self._client(token), self.kubeconfigs[name]

    def _install_crds(self):
        for name in (f"mpijobs-{self.mpijobs}", "pytorchjobs"):
            with open(os.path.join(self.programs, "crds", name + ".yaml"), "rb") as file:
                self.api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", file.read(),
                             "application/yaml")

        def served(resource):
            try:
                return self.api.list(resource) is not None
            except ApiError:
                return False
        for resource in ("mpijobs", "pytorchjobs"):
            wait_for(lambda: served(resource), 30, f"{resource} to be served")

    def _install_voda(self):
        self.apply(os.path.join(HERE, "manifests", "voda-rbac.yaml"))
        self.voda, _ = self.service_account("voda", "voda-system")

    def kubectl(self, *arguments, input=None, check=True, user="admin", seconds=60):
        """Its result: returncode, stdout, stderr."""
        return run(os.path.join(self.programs, "kubectl"), *arguments, input=input, check=check, seconds=seconds,
                   environment={"KUBECONFIG": self.kubeconfigs[user]})

    def apply(self, manifest, user="admin", namespace=None):
        """Server-side apply of a path, of YAML text, or of one object or a list of them."""
        flags = ["apply", "--server-side", "--force-conflicts", *(["-n", namespace] if namespace else []), "-f"]
        if isinstance(manifest, (dict, list)):
            items = manifest if isinstance(manifest, list) else [manifest]
            manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        if "\n" not in manifest and not manifest.startswith("{"):
            return self.kubectl(*flags, manifest, user=user).stdout
        return self.kubectl(*flags, "-", input=manifest, user=user).stdout

    @staticmethod
    def wait_for(condition, seconds, what, every=0.1):
        """The first true value of condition(), or ClusterError "waited N s for WHAT". `what` may be a function."""
        return wait_for(condition, seconds, what, every)

    # Nodes that KWOK simulates

    def add_node(self, name, gpus=None, accelerator=None, ready=True, **keywords):
        body = kwok.node(name, self.gpus if gpus is None else gpus, accelerator or self.accelerator, **keywords)
        self.api.create("nodes", body)
        if ready:
            self.wait_node(name)
        return name

    def add_nodes(self, count, gpus=None, accelerator=None, prefix="kwok", first=0):
        names = [f"{prefix}-{number}" for number in range(first, first + count)]
        for name in names:
            self.add_node(name, gpus, accelerator, ready=False)
        for name in names:
            self.wait_node(name)
        return names

    def remove_node(self, name):
        """As a machine that is taken out for good: the object goes, and its pods with it."""
        self.api.delete("nodes", name)
        for pod in self.api.list("pods", namespace=None, fields=f"spec.nodeName={name}"):
            # The very pod: another may have its name by now, somewhere else.
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
            try:
                self.api.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"], options)
            except ApiError as error:
                if error.status != 409:
                    raise

    def set_ready(self, name, ready):
        """Returns when the node controller has drawn its conclusions: the taints are there, or gone."""
        self.api.patch("nodes", name, {"metadata": {"labels": {kwok.NOT_READY: None if ready else "true"}}})
        self.wait_node(name, ready)

    def cordon(self, name, unschedulable=True):
        self.api.patch("nodes", name, {"spec": {"unschedulable": unschedulable}})

    def wait_node(self, name, ready=True, seconds=60):
        def reached():
            node = self.api.get("nodes", name)
            taints = [one["key"] for one in (node or {}).get("spec", {}).get("taints", [])]
            lost = any(key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable") for key in taints)
            return node and kwok.is_ready(node) == ready and lost != ready
        wait_for(reached, seconds, lambda: f"node {name} to be {'Ready' if ready else 'NotReady'}: "
                                           f"{(self.api.get('nodes', name) or {}).get('status', {}).get('conditions')}")


def claim(folder):
    """Makes the folder of a cluster. It will be removed with all that is in it, so it must not hold anything else."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if set(os.listdir(folder)) - {"cluster.log"}:
        raise ClusterError(f"{folder} is not empty; choose another folder, or take down the cluster in it")


def clean_up(folder, keep=False):
    """Ends what a cluster in this folder has left and removes the folder. Needs nothing but the folder."""
    state = read_json(os.path.join(folder, "state.json")) or {}
    for pid, started in reversed(list(state.get("parts", {}).values())):
        end_group(pid, started, seconds=0)
    if state.get("real"):
        real_nodes.clean_up(folder, state["real"])
    if keep:
        write_json(os.path.join(folder, "state.json"), {"owner": None, "parts": {}, "real": None})
        return
    real_nodes.unmount(folder)  # first of all: to remove through a mount is to remove what is mounted
    shutil.rmtree(folder, ignore_errors=True)


def alive(folder):
    """Whether the process that started the cluster in this folder still runs."""
    owner = (read_json(os.path.join(folder, "state.json")) or {}).get("owner")
    return bool(owner) and start_time(owner[0]) == owner[1]


def sweep():
    """Takes down the clusters of tests that were killed: bridges and control groups would stay for ever."""
    top = tempfile.gettempdir()
    for name in os.listdir(top):
        folder = os.path.join(top, name)
        if not name.startswith(PREFIX) or not os.access(os.path.join(folder, "state.json"), os.W_OK):
            continue
        if read_json(os.path.join(folder, "state.json")).get("owner") and not alive(folder):
            clean_up(folder)


# The command

def serve(options):
    """The process behind `up`: holds the cluster until it gets SIGTERM."""
    with Cluster(options.folder, kwok_nodes=options.kwok, real=int(options.real), gpus=options.gpus) as cluster:
        write_json(os.path.join(options.folder, "ready.json"), {"kubectl": os.path.join(cluster.programs, "kubectl")})
        while True:
            time.sleep(3600)


def up(options):
    folder = options.folder
    ready = os.path.join(folder, "ready.json")
    if alive(folder):
        print(f"the cluster in {folder} is up already")
    else:
        if os.path.exists(os.path.join(folder, "state.json")):
            clean_up(folder)
        programs()
        reason = real_nodes.why_not() if options.real != "0" else None
        if options.real == "auto":
            options.real = "0" if reason else "2"
            if reason:
                print(f"without real nodes: {reason}")
        elif reason:
            raise ClusterError(f"no real nodes on this machine: {reason}")
        claim(folder)
        log = os.path.join(folder, "cluster.log")
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), "serve", "--folder", folder, "--real", options.real,
                 "--kwok", str(options.kwok), "--gpus", str(options.gpus)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)

        def started():
            if process.poll() is not None:
                with open(log) as file:
                    raise ClusterError(file.read().strip().removeprefix("cluster: "))
            return os.path.exists(ready)
        try:
            wait_for(started, 300, f"the cluster; see {folder}/logs")
        except BaseException:
            if process.poll() is None:
                process.terminate()
            raise
    kubectl = read_json(ready)["kubectl"]
    print(f"""export KUBECONFIG={folder}/admin.kubeconfig
export PATH={os.path.dirname(kubectl)}:$PATH
Then try:
  kubectl get nodes -L voda.test/node,vodascheduler/accelerator
  kubectl apply -f tests/kubernetes/jobs/kwok-mpijob.yaml && kubectl get mpijobs,pods -o wide
  kubectl scale pytorchjob kwok-pytorchjob --replicas=3     after applying kwok-pytorchjob.yaml
  {folder}/voda.kubeconfig is what Voda itself may do; logs are in {folder}/logs
make cluster-down takes it down.""")


def down(options):
    state = read_json(os.path.join(options.folder, "state.json"))
    if state is None:
        print(f"there is no cluster in {options.folder}")
        return
    if alive(options.folder):
        pid, started = state["owner"]
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and start_time(pid) == started:
            time.sleep(0.1)
        end_group(pid, started, seconds=0)
    clean_up(options.folder)
    print(f"the cluster in {options.folder} is gone")


def main():
    parser = argparse.ArgumentParser(description="A Kubernetes cluster to play with.")
    parser.add_argument("command", choices=["up", "down", "serve"])
    parser.add_argument("--folder", default=PLAYGROUND, type=os.path.abspath)
    parser.add_argument("--real", default="auto", help="real nodes: auto (two if this machine can), or a number")
    parser.add_argument("--kwok", default=4, type=int, help="nodes that KWOK simulates")
    parser.add_argument("--gpus", default=8, type=int, help="GPUs of each node")
    options = parser.parse_args()
    try:
        {"up": up, "down": down, "serve": serve}[options.command](options)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
