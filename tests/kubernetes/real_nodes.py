"""Real nodes on this machine: for each a containerd and a kubelet with folders, sockets and control groups of their
own. They share a bridge, on whose address CoreDNS answers for headless services. Pods reach each other and nothing
else. Everything that outlives a process (bridge, control groups, mounts, network namespaces, shims) is named in the
cluster's state, so that `clean_up` removes it after any end."""
import ctypes
import glob
import json
import os
import shutil
import signal
import time

import control_groups
import images
from processes import ClusterError, run, wait_for

CNI = "/usr/lib/cni"
IMAGE = images.WORKER
_libc = ctypes.CDLL(None, use_errno=True)
MNT_DETACH = 2

CONTAINERD = """version = 2
root = "{folder}/containerd"
state = "{folder}/run"
oom_score = 0
[grpc]
  address = "{folder}/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{cni}"
  conf_dir = "{folder}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
"""

COREFILE = """.:53 {{
  bind {address}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig}
  }}
}}
"""


def why_not():
    """Why this machine cannot run containers, in one line, or None when it can."""
    if os.geteuid() != 0:
        return "it takes root"
    missing = [name for name in ("containerd", "containerd-shim-runc-v2", "ctr", "runc", "ip", "gcc", "ssh-keygen")
               if not shutil.which(name)]
    missing += [path for path in (f"{CNI}/bridge", f"{CNI}/host-local", f"{CNI}/loopback", "/bin/busybox",
                                  "/usr/sbin/sshd") if not os.path.exists(path)]
    if missing:
        return f"{', '.join(missing)} missing; run tools/bootstrap.sh kubernetes"
    if not os.path.islink("/bin"):
        return "/bin is not a link to /usr/bin, as pods that mount /usr need it"
    if not control_groups.hierarchies():
        return "no control groups are mounted"
    name = f"voda-probe-{os.getpid()}"
    try:
        control_groups.make(name)
    except OSError as error:
        return f"control groups cannot be made: {error}"
    finally:
        control_groups.remove(name, seconds=1)
    if run("unshare", "--mount", "--net", "--pid", "--fork", "true", check=False).returncode != 0:
        return "namespaces cannot be made (CAP_SYS_ADMIN)"
    bridge = f"vodap{os.getpid() % 10_000_000}"
    probe = run("ip", "link", "add", bridge, "type", "bridge", check=False)
    if probe.returncode != 0:
        return f"a bridge cannot be made: {probe.stderr.strip()}"
    run("ip", "link", "del", bridge)
    return None


class RealNodes:
    def __init__(self, cluster, count):
        if not 1 <= count <= 9:
            raise ClusterError(f"real nodes: 1 to 9, not {count}")
        self.cluster = cluster
        self.names = [f"real-{number}" for number in range(count)]
        self.bridge = None
        self._network = None  # the first two numbers of its addresses
        self._id = os.path.basename(cluster.folder)

    def state(self):
        return {"bridge": self.bridge, "control_groups": [self._control_group(name) for name in self.names],
                "sockets": [os.path.join(self._folder(name), "c.sock") for name in self.names]}

    def users(self):
        return {name: (f"system:node:{name}", "system:nodes") for name in self.names}

    def start(self, plane):
        folder = os.path.join(self.cluster.folder, "nodes")
        if len(os.path.join(folder, self.names[-1], "c.sock.ttrpc")) > 100:
            raise ClusterError(f"{folder} is too long for the path of a socket; choose a shorter --folder")
        os.makedirs(folder, exist_ok=True)
        self._make_bridge()
        archives = [images.pause(folder), images.worker(folder)]
        for number, name in enumerate(self.names):
            self._start_containerd(plane, name, number).start(wait=False)
        for number, name in enumerate(self.names):
            part = self.cluster.parts[f"containerd-{name}"]
            part.wait_ready()
            for archive in archives:
                self._ctr(name, "images", "import", archive)
            self._start_kubelet(plane, name, number).start(wait=False)
        corefile = os.path.join(folder, "Corefile")
        with open(corefile, "w") as file:
            file.write(COREFILE.format(address=self.gateway, kubeconfig=self.cluster.kubeconfigs["coredns"]))
        self.cluster._add(plane.part("coredns", "coredns", "-conf", corefile)).start(wait=False)
        self._make_volumes()

    def wait_ready(self):
        for name in self.names:
            wait_for(lambda: self.cluster.api.get("nodes", name), 60, lambda: (
                f"node {name} to register; the end of its log:\n{self.cluster.parts['kubelet-' + name].tail()}"))
            resources = {"nvidia.com/gpu": str(self.cluster.gpus)}
            self.cluster.api.patch("nodes", name, {"status": {"capacity": resources, "allocatable": resources}},
                                   subresource="status")
        for name in self.names:
            self.cluster.wait_node(name)

    @property
    def gateway(self):
        return f"{self._network}.0.1"

    def logs(self, namespace, prefix):
        """What the pods whose names begin so have printed, in the order of time. Pods that are gone count until their
        kubelet has cleaned up; containers that were restarted count."""
        lines = []
        for name in self.names:
            for path in glob.glob(os.path.join(self._folder(name), f"pod-logs/{namespace}_{prefix}*/*/*.log")):
                try:
                    with open(path, errors="replace") as log:
                        lines += [line.split(" ", 3) for line in log]
                except FileNotFoundError:
                    pass
        return "".join(line[3] for line in sorted(lines, key=lambda line: line[0]) if len(line) == 4)

    def _folder(self, name):
        return os.path.join(self.cluster.folder, "nodes", name)

    def _control_group(self, name):
        return f"{self._id}-{name}"

    def _address(self, number):
        return f"{self._network}.0.{11 + number}"

    def _make_bridge(self):
        taken = run("ip", "-o", "addr").stdout + run("ip", "-o", "link").stdout + run("ip", "route").stdout
        for number in range(220, 250):
            if f"10.{number}." not in taken and f"voda-br{number}" not in taken:
                break
        else:
            raise ClusterError("no free network among 10.220.0.0/16 to 10.249.0.0/16")
        self.bridge, self._network = f"voda-br{number}", f"10.{number}"
        self.cluster._save()
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "addr", "add", f"{self.gateway}/16", "dev", self.bridge)
        for number in range(len(self.names)):
            run("ip", "addr", "add", f"{self._address(number)}/16", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")

    def _start_containerd(self, plane, name, number):
        folder = self._folder(name)
        os.makedirs(os.path.join(folder, "cni"), exist_ok=True)
        network = {
            "cniVersion": "0.4.0", "name": self._control_group(name),
            "plugins": [{
                "type": "bridge", "bridge": self.bridge, "isGateway": False, "ipMasq": False,
                "ipam": {"type": "host-local", "dataDir": os.path.join(folder, "addresses"),
                         "ranges": [[{"subnet": f"{self._network}.0.0/16", "gateway": self.gateway,
                                      "rangeStart": f"{self._network}.{number + 1}.1",
                                      "rangeEnd": f"{self._network}.{number + 1}.254"}]]},
            }],
        }
        with open(os.path.join(folder, "cni", "voda.conflist"), "w") as file:
            json.dump(network, file, indent=1)
        config = os.path.join(folder, "containerd.toml")
        with open(config, "w") as file:
            file.write(CONTAINERD.format(folder=folder, pause=images.PAUSE, cni=CNI))
        control_groups.make(self._control_group(name))
        part = plane.part(f"containerd-{name}", shutil.which("containerd"), "--config", config,
                          ready=lambda _: self._ctr(name, "version", check=False).returncode == 0)
        return self.cluster._add(part)

    def _start_kubelet(self, plane, name, number):
        folder = self._folder(name)
        resolver = os.path.join(folder, "resolv.conf")
        with open(resolver, "w") as file:
            file.write(f"nameserver {self.gateway}\n")
        config = os.path.join(folder, "kubelet.json")
        with open(config, "w") as file:
            json.dump({
                "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
                "address": self._address(number), "port": 10250, "readOnlyPort": 0, "healthzPort": 0,
                "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                                   "x509": {"clientCAFile": self.cluster.certificates.authority}},
                "authorization": {"mode": "Webhook"},
                "containerRuntimeEndpoint": f"unix://{folder}/c.sock",
                "cgroupDriver": "cgroupfs", "cgroupRoot": "/" + self._control_group(name), "failCgroupV1": False,
                "enforceNodeAllocatable": [], "localStorageCapacityIsolation": False, "failSwapOn": False,
                "makeIPTablesUtilChains": False, "clusterDNS": [self.gateway], "clusterDomain": "cluster.local",
                "resolvConf": resolver, "podLogsDir": os.path.join(folder, "pod-logs"),
                "volumePluginDir": os.path.join(folder, "plugins"), "maxPods": 50,
                "nodeLeaseDurationSeconds": max(4, self.cluster._grace_seconds // 2),
                "imageGCHighThresholdPercent": 100,  # what is collected cannot be pulled again
                "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            }, file, indent=1)
        accelerator = self.cluster.accelerator
        part = plane.part(
            f"kubelet-{name}", "kubelet", f"--config={config}", f"--kubeconfig={self.cluster.kubeconfigs[name]}",
            f"--root-dir={folder}/kubelet", f"--cert-dir={folder}/pki", f"--hostname-override={name}",
            f"--node-ip={self._address(number)}",
            f"--node-labels=voda.test/node=real,vodascheduler/accelerator={accelerator}")
        return self.cluster._add(part)

    def _make_volumes(self):
        """Claims of jobs: the checkout, read-only, and a folder that all nodes share for what they write."""
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        outputs = os.path.join(self.cluster.folder, "outputs")
        os.makedirs(outputs, exist_ok=True)
        for name, path, mode in (("voda-checkout", root, "ReadOnlyMany"), ("voda-outputs", outputs, "ReadWriteMany")):
            common = {"storageClassName": "", "accessModes": [mode]}
            self.cluster.apply([
                {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                 "spec": {**common, "capacity": {"storage": "1Gi"}, "hostPath": {"path": path},
                          "claimRef": {"namespace": "default", "name": name}}},
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
                 "spec": {**common, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}},
            ])

    def _ctr(self, name, *arguments, check=True):
        return run("ctr", "--address", os.path.join(self._folder(name), "c.sock"), "--namespace", "k8s.io", *arguments,
                   check=check, seconds=60)


def clean_up(folder, state):
    """Removes all that real nodes have left, whether or not their processes still run."""
    for group in state["control_groups"]:
        control_groups.remove(group, seconds=5)
    for pid in shims(state["sockets"]):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    _remove_shim_sockets(folder)
    left = [group for group in state["control_groups"] if control_groups.remove(group)]
    unmount(folder)
    if state["bridge"]:
        run("ip", "link", "del", state["bridge"], check=False)
    if left:
        raise ClusterError(f"control groups could not be removed: {', '.join(left)}; the folder {folder} stays")


def unmount(folder):
    """Everything that is mounted below the folder."""
    deadline = time.monotonic() + 10
    while mounts(folder):
        for path in reversed(mounts(folder)):
            _libc.umount2(path.encode(), MNT_DETACH)
        if time.monotonic() > deadline:
            raise ClusterError(f"could not be unmounted: {', '.join(mounts(folder))}; the folder {folder} stays")


def shims(sockets):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "containerd-shim" in command[0] and any(socket in command for socket in sockets):
            found.append(int(entry))
    return found


def _remove_shim_sockets(folder):
    """containerd puts them into a folder of its own choice, and their paths beside the containers."""
    for path in glob.glob(os.path.join(folder, "nodes/*/run/io.containerd.runtime.v2.task/k8s.io/*/address")):
        try:
            with open(path) as file:
                os.remove(file.read().strip().removeprefix("unix://"))
        except OSError:
            pass


def mounts(folder):
    with open("/proc/self/mountinfo") as file:
        paths = [line.split()[4].encode().decode("unicode_escape") for line in file]
    return [path for path in paths if path.startswith(folder + "/")]
