"""What the suites of Voda on Kubernetes share: jobs that are told to end, a witness of every pod and job there ever was,
and whether pods, plan and nodes agree."""
import collections
import http.client
import json
import re
import ssl
import threading
import time

from api import ApiError
from processes import ClusterError
from voda import JOB_NAME, job, live, workers

KINDS = {"MPIJob": "mpijobs", "PyTorchJob": "pytorchjobs"}
NAMESPACE = "default"
SETTLED = 1.0  # seconds without any change


def identity(pod):
    """(job, "launcher" or the index of the worker) of a pod of a job."""
    labels = pod["metadata"].get("labels", {})
    is_launcher = "launcher" in (labels.get("training.kubeflow.org/job-role"),
                                 labels.get("training.kubeflow.org/replica-type"))
    index = labels.get("training.kubeflow.org/replica-index")
    return labels.get(JOB_NAME), "launcher" if is_launcher or index is None else int(index)


def launchers(cluster, name):
    """Those that run."""
    return [pod for pod in cluster.api.list("pods", namespace=NAMESPACE, selector=f"{JOB_NAME}={name}")
            if identity(pod)[1] == "launcher" and pod["status"].get("phase") == "Running"
            and not pod["metadata"].get("deletionTimestamp")]


class Witness:
    """Every pod and every job of a namespace since it began, by UID: a name may come again, a UID never. It watches
    without a gap: only after the API server has forgotten the past (410) it lists anew, and something could be missed
    that came and went in between. A pod counts once it has a node: in tests a pod at times went before it had one, not
    deleted by Voda, and another came in its place; neither could have run anywhere."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.pods = {}  # uid -> (job, worker); all there ever were
        self.jobs = {}  # uid -> name
        self.gone = set()  # uids
        self._lines = collections.defaultdict(list)  # job -> what became of its pods, to be read
        self._lock = threading.Lock()
        self._ended = False
        self._connections = {}
        self._threads = [threading.Thread(target=self._watch, args=(resource,), daemon=True)
                         for resource in ("pods", *KINDS.values())]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended = True
        for connection in list(self._connections.values()):
            try:
                connection.sock.shutdown(2)
            except (OSError, AttributeError):
                pass

    def counts(self, jobs=None):
        """(job, worker) -> how many pods there were. A worker that was never restarted has had one."""
        with self._lock:
            return dict(collections.Counter(pod for pod in self.pods.values() if jobs is None or pod[0] in jobs))

    def story(self, job):
        """What became of the pods of a job, for the message of a test that fails."""
        with self._lock:
            return "\n".join(self._lines[job])

    def created_jobs(self):
        with self._lock:
            return dict(collections.Counter(self.jobs.values()))

    def _note(self, resource, kind, thing):
        uid = thing["metadata"]["uid"]
        with self._lock:
            if resource != "pods":
                self.jobs[uid] = thing["metadata"]["name"]
            elif identity(thing)[0] and thing["spec"].get("nodeName"):
                self.pods[uid] = identity(thing)
            if resource == "pods" and identity(thing)[0]:
                self._lines[identity(thing)[0]].append(self._line(kind, thing))
            if kind == "DELETED":
                self.gone.add(uid)

    @staticmethod
    def _line(kind, pod):
        head, phase = pod["metadata"], pod["status"].get("phase")
        ending = ", ending" if head.get("deletionTimestamp") else ""
        return (f"{time.monotonic():.2f} {kind:8} {head['name']} {head['uid'][:8]} on {pod['spec'].get('nodeName')}: "
                f"{phase}{ending}")

    def _watch(self, resource):
        path = self.cluster.api.path(resource, namespace=NAMESPACE)
        version = None
        while not self._ended:
            try:
                if version is None:
                    listed = self.cluster.api.ask("GET", path)
                    for thing in listed["items"]:
                        self._note(resource, "ADDED", thing)
                    version = listed["metadata"]["resourceVersion"]
                version = self._follow(resource, f"{path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}",
                                       version)
            except (OSError, http.client.HTTPException, ApiError, ValueError):
                time.sleep(0.05)

    def _follow(self, resource, path, version):
        """The version to go on from; None when it is too old."""
        host, port = self.cluster.address
        tls = ssl.create_default_context(cafile=self.cluster.certificates.authority)
        connection = http.client.HTTPSConnection(host, port, context=tls)
        self._connections[resource] = connection
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.cluster.api.token}"})
            answer = connection.getresponse()
            if answer.status != 200:
                return None if answer.status == 410 else version
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return None
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._note(resource, event["type"], event["object"])
            return version
        except (OSError, http.client.HTTPException, ValueError):
            return version
        finally:
            connection.close()


class Field:
    """A cluster, a Voda on it, and what they say of each other."""

    def __init__(self, cluster, voda, mend=None):
        self.cluster = cluster
        self.voda = voda
        self.mend = mend or (lambda: None)  # called while it waits

    @property
    def api(self):
        return self.cluster.api

    def apply(self, *jobs):
        for one in jobs:
            self.api.create(KINDS[one["kind"]], one)

    def objects(self):
        """Name -> the jobs that have not ended."""
        found = {}
        for resource in KINDS.values():
            for one in self.api.list(resource):
                if not one.get("status", {}).get("completionTime") and not one["metadata"].get("deletionTimestamp"):
                    found[one["metadata"]["name"]] = one
        return found

    def finish(self, name, fails=False):
        """Its program ends: the launcher of an MPIJob, all workers of a PyTorchJob."""
        what = {"metadata": {"annotations": {"sim/fail-after" if fails else "sim/complete-after": "0s"}}}
        mpi = self.api.get("mpijobs", name) is not None
        for pod in self.api.list("pods", selector=f"{JOB_NAME}={name}"):
            if (identity(pod)[1] == "launcher") == mpi:
                try:
                    self.api.patch("pods", pod["metadata"]["name"], what)
                except ApiError as error:
                    if error.status != 404:  # the first of them may have ended the job
                        raise

    def disagreements(self):
        """What pods, objects, Voda's plan and the nodes say differently; empty where they agree and nothing is due."""
        jobs = {name.split("/")[1]: one for name, one in self.voda.jobs().items() if one["ended"] is None}
        plan = {one["name"].split("/")[1]: one["nodes"] for one in self.voda.ask("GET", "/api/v1/plan")["jobs"]} \
            if jobs else {}
        objects = self.objects()
        wrong = [f"{name} is not known to Voda" for name in objects if name not in jobs]
        wrong += [f"{name} has no object" for name in jobs if name not in objects]
        for name in sorted(set(jobs) & set(objects)):
            wrong += [f"{name}: {text}" for text in self._of_job(jobs[name], plan.get(name), objects[name])]
        return wrong + list(self._of_nodes(jobs))

    def _of_job(self, shown, planned, made):
        name = made["metadata"]["name"]
        spec = made["spec"].get("mpiReplicaSpecs") or made["spec"]["pytorchReplicaSpecs"]
        pods = workers(self.cluster, name)
        seats = shown["nodes"]
        if planned != seats:
            yield f"planned on {planned}, held on {seats}"
        if seats and not shown["min"] <= len(seats) <= shown["max"]:
            yield f"{len(seats)} workers of {shown['min']} to {shown['max']}"
        if bool(made["spec"]["runPolicy"].get("suspend")) != (not seats):
            yield f"suspended is {made['spec']['runPolicy'].get('suspend')} with seats {seats}"
        if seats and spec["Worker"]["replicas"] != len(seats):
            yield f"{spec['Worker']['replicas']} replicas for {len(seats)} seats"
        placed = [pods[index]["spec"].get("nodeName") for index in sorted(pods)]
        if sorted(pods) != list(range(len(seats))) or placed != seats:
            yield f"pods {sorted(pods)} on {placed}, seats {seats}"
        for index, pod in pods.items():
            if pod["metadata"].get("deletionTimestamp") or pod["status"].get("phase") != "Running":
                yield f"worker {index} is {pod['status'].get('phase')}"
        if seats and made["kind"] == "MPIJob" and len(launchers(self.cluster, name)) != 1:
            yield "its launcher does not run"
        explained = self.voda.ask("GET", f"/api/v1/jobs/{NAMESPACE}/{name}/explain")
        if explained["planned"] != len(seats) or explained["next_round"] is not None:
            yield f"a round is due that gives it {explained['planned']} workers instead of {len(seats)}"

    def _of_nodes(self, jobs):
        used = collections.Counter()   # by anybody
        ours = collections.Counter()   # by jobs that have not ended
        for pod in self.api.list("pods", namespace=None):
            if pod["status"].get("phase") in ("Succeeded", "Failed") or not pod["spec"].get("nodeName"):
                continue
            gpus = sum(int(container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0))
                       for container in pod["spec"]["containers"])
            used[pod["spec"]["nodeName"]] += gpus
            job_name = identity(pod)[0]
            if job_name in jobs:
                ours[pod["spec"]["nodeName"]] += gpus
            elif job_name and gpus:  # its operator removes it, once it has heard of the end
                yield f"{pod['metadata']['name']} still runs, although its job has ended"
        nodes = {one["metadata"]["name"]: int(one["status"]["allocatable"]["nvidia.com/gpu"])
                 for one in self.api.list("nodes")}
        for name, count in used.items():
            if count > nodes.get(name, 0):
                yield f"node {name} has {nodes.get(name, 0)} GPUs and pods with {count}"
        for node in self.voda.ask("GET", "/api/v1/nodes")["nodes"]:
            name = node["name"]
            if node["used"] != ours[name]:
                yield f"node {name}: Voda counts {node['used']} GPUs in use, the pods have {ours[name]}"
            if name in nodes and node["gpus"] != nodes[name] - (used[name] - ours[name]):
                yield f"node {name}: Voda offers {node['gpus']} GPUs, others' pods leave {nodes[name] - used[name] + ours[name]}"

    def seats(self):
        """Job -> index -> (node, uid), of all workers that are there."""
        return {name: {index: (pod["spec"].get("nodeName"), pod["metadata"]["uid"])
                       for index, pod in workers(self.cluster, name).items()} for name in self.objects()}

    def sizes(self):
        return {name: len(seats) for name, seats in self.seats().items()}

    def settle(self, seconds=120):
        """Waits until all agree and nothing moves. Returns the seats."""
        last, since, wrong = None, time.monotonic(), ["nothing was looked at"]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                self.mend()
                wrong = self.disagreements()
                now = self.seats()
            except (OSError, ApiError, live.HttpError, http.client.HTTPException) as error:
                wrong, now = [str(error)], None
            if wrong or now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since >= SETTLED:
                return now
            time.sleep(0.1)
        raise ClusterError(f"waited {seconds} s for agreement: {wrong}\n{self.voda.tail()}")

    def wait_ended(self, names, seconds=120):
        """Until these jobs have completed, and Voda knows."""
        def ended():
            try:
                self.mend()
                known = {name: one["status"] for name, one in self.voda.jobs().items()}
                return not set(names) & set(self.objects()) and all(known[f"{NAMESPACE}/{name}"] == "Completed"
                                                                    for name in names)
            except (OSError, ApiError, KeyError, live.HttpError, http.client.HTTPException):
                return False
        self.cluster.wait_for(ended, seconds, lambda: f"{names} to end: {self.voda.jobs()}\n{self.voda.tail()}")

    def clear(self):
        """No job and no pod is left."""
        for resource in KINDS.values():
            for one in self.api.list(resource):
                self.api.delete(resource, one["metadata"]["name"])
        self.cluster.wait_for(lambda: not self.api.list("pods"), 120, "pods to be gone")


def seatings(voda):
    """Job -> the nodes of its workers, after each change that Voda says it made."""
    changes = collections.defaultdict(list)
    line = re.compile(r"job\.(?:started|resized|moved|halted|adopted)\b.*?\bjob=\S*?/(\S+).*?\bnodes=(\"[^\"]*\"|\S*)")
    with open(voda.log) as log:
        for text in log:
            if found := line.search(text):
                nodes = found.group(2).strip('"')
                changes[found.group(1)].append(nodes.split(",") if nodes else [])
    return changes


def expected_pods(history):
    """Index -> how many pods a worker needs for these seatings: one for each seat that it did not have before."""
    pods = collections.Counter()
    before = []
    for nodes in history:
        for index, node in enumerate(nodes):
            if node and (index >= len(before) or before[index] != node):
                pods[index] += 1
        before = nodes
    return dict(pods)


def starts(history):
    """How often a job with these seatings went from no worker to some."""
    return sum(1 for before, nodes in zip([[], *history], history) if nodes and not before)


def v1(made):
    """The same MPIJob for the training operator."""
    if made["kind"] == "MPIJob":
        made["apiVersion"] = "kubeflow.org/v1"
    return made


def cleaned(made):
    """The same job, whose operator removes what still runs when it ends. Of an MPIJob Voda asks for that itself."""
    if made["kind"] == "PyTorchJob":
        made["spec"]["runPolicy"]["cleanPodPolicy"] = "Running"
    return made


def mixed(first, last, low=1, high=6):
    """Jobs of both kinds in turn, named job-FIRST to job-LAST, some with two GPUs for each worker."""
    return [cleaned(job("MPIJob" if number % 2 else "PyTorchJob", f"job-{number}", low + number % 2,
                        high + 2 * (number % 3), workers=low + 1 + number % 2, gpus=2 if number % 5 == 0 else 1))
            for number in range(first, last + 1)]
