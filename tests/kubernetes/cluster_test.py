"""Proves the test cluster itself, without Voda: that what Voda relies on happens here as in any Kubernetes.

    /usr/bin/python3 tests/kubernetes/cluster_test.py              everything; real nodes take root and containers
    /usr/bin/python3 tests/kubernetes/cluster_test.py -k Simulated    only what KWOK simulates, as any user
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import control_groups  # noqa: E402
import real_nodes  # noqa: E402
from api import ApiError  # noqa: E402
from cluster import HERE, ROOT, Cluster  # noqa: E402
from processes import ClusterError, read_json, run, start_time, wait_for  # noqa: E402

JOB_NAME = "training.kubeflow.org/job-name"


def manifest(name, rename=None, **values):
    """A file of jobs/ with another job name; further arguments replace `key: value` pairs of one line."""
    with open(os.path.join(HERE, "jobs", name + ".yaml")) as file:
        text = file.read()
    for key, value in values.items():
        text = re.sub(rf"(\b{key}: ).*", lambda match: match.group(1) + str(value), text)
    return text.replace(name, rename) if rename else text


def short(text):
    """A training job with fewer epochs than people need who look at it."""
    return re.sub(r"\{name: EPOCHS, value: \"\d+\"\}", '{name: EPOCHS, value: "30"}', text)


def condition(job, kind):
    """The status of a condition of a job: "True", "False" or None."""
    for one in (job or {}).get("status", {}).get("conditions") or []:
        if one["type"] == kind:
            return one["status"]
    return None


class ClusterTest(unittest.TestCase):
    """Tests that share one cluster."""
    cluster = None
    arguments = {}

    @classmethod
    def setUpClass(cls):
        began = time.monotonic()
        cls.cluster = Cluster(**cls.arguments)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.api = cls.cluster.api
        print(f"{cls.__name__}: the cluster was up after {time.monotonic() - began:.1f} s", flush=True)

    def wait(self, check, what, seconds=60):
        return wait_for(check, seconds, what)

    def pods(self, job, role=None):
        """Pods of a job that are not on their way out, by name."""
        found = self.api.list("pods", selector=f"{JOB_NAME}={job}" + (f",{role}" if role else ""))
        return {pod["metadata"]["name"]: pod for pod in found if "deletionTimestamp" not in pod["metadata"]}

    def workers(self, job):
        return {name: pod for name, pod in self.pods(job).items() if f"{job}-worker-" in name}

    def running(self, job, count):
        def reached():
            workers = self.workers(job)
            return workers if len(workers) == count and all(
                pod["status"]["phase"] == "Running" for pod in workers.values()) else None
        return self.wait(reached, lambda: f"{count} running workers of {job}: "
                                          f"{ {name: pod['status'] for name, pod in self.workers(job).items()} }")

    def reaches(self, resource, job, kind, status="True", seconds=60):
        self.wait(lambda: condition(self.api.get(resource, job), kind) == status,
                  lambda: f"{job} to be {kind}={status}: {(self.api.get(resource, job) or {}).get('status')}", seconds)

    def scale_mpijob(self, job, count, **policy):
        patch = {"mpiReplicaSpecs": {"Worker": {"replicas": count}}}
        if policy:
            patch["runPolicy"] = policy
        self.api.patch("mpijobs", job, {"spec": patch})

    def annotate(self, pod, key, value):
        self.api.patch("pods", pod, {"metadata": {"annotations": {key: value}}})

    def forbidden(self, method, path, body=None, content="application/json"):
        with self.assertRaises(ApiError, msg=f"{method} {path} is allowed") as caught:
            self.cluster.voda.ask(method, path, body, content)
        self.assertEqual(caught.exception.status, 403, str(caught.exception))


class Simulated(ClusterTest):
    arguments = {"kwok_nodes": 4, "grace_seconds": 8}

    def test_it_is_the_kubernetes_that_was_asked_for(self):
        self.assertEqual(self.api.ask("GET", "/version")["gitVersion"], "v1.36.3")

    def test_nodes_are_ready_and_have_gpus(self):
        nodes = {node["metadata"]["name"]: node for node in self.api.list("nodes")}
        self.assertLessEqual({"kwok-0", "kwok-1", "kwok-2", "kwok-3"}, set(nodes))
        for name in ("kwok-0", "kwok-1", "kwok-2", "kwok-3"):
            self.cluster.wait_node(name)
            self.assertEqual(nodes[name]["status"]["allocatable"]["nvidia.com/gpu"], "8")
            self.assertEqual(nodes[name]["metadata"]["labels"]["vodascheduler/accelerator"], "a100")

    def test_mpijob_is_scaled_suspended_resumed_and_completed(self):
        job = "mpi"
        self.cluster.apply(manifest("kwok-mpijob", job))
        two = self.running(job, 2)
        self.reaches("mpijobs", job, "Running")
        self.scale_mpijob(job, 4)
        four = self.running(job, 4)
        for name, pod in two.items():
            self.assertEqual(pod["metadata"]["uid"], four[name]["metadata"]["uid"], f"{name} was replaced")

        def hosts():
            data = self.api.get("configmaps", f"{job}-config")["data"]["discover_hosts.sh"]
            return len(re.findall(rf"{job}-worker-\d+\.", data))
        self.wait(lambda: hosts() == 4, lambda: f"four hosts in the list, there are {hosts()}")
        self.scale_mpijob(job, 1)
        self.assertEqual(set(self.running(job, 1)), {f"{job}-worker-0"})
        self.assertEqual(condition(self.api.get("mpijobs", job), "Running"), "True")
        self.api.patch("mpijobs", job, {"spec": {"runPolicy": {"suspend": True}}})
        self.reaches("mpijobs", job, "Suspended")
        self.wait(lambda: not self.pods(job), "no pods")
        self.scale_mpijob(job, 3, suspend=False)
        self.running(job, 3)
        self.reaches("mpijobs", job, "Running")
        launcher = next(name for name in self.pods(job) if "launcher" in name)
        self.assertIsNone(self.api.get("mpijobs", job)["status"].get("completionTime"))
        self.annotate(launcher, "sim/complete-after", "1s")
        self.reaches("mpijobs", job, "Succeeded")
        self.assertTrue(self.api.get("mpijobs", job)["status"]["completionTime"])

    def test_pytorchjob_is_scaled_suspended_resumed_and_completed(self):
        job = "torch"
        self.cluster.apply(manifest("kwok-pytorchjob", job))
        two = self.running(job, 2)
        self.reaches("pytorchjobs", job, "Running")
        self.cluster.kubectl("scale", "pytorchjob", job, "--replicas=4")
        four = self.running(job, 4)
        for name, pod in two.items():
            self.assertEqual(pod["metadata"]["uid"], four[name]["metadata"]["uid"], f"{name} was replaced")
        self.api.patch("pytorchjobs", job, {"spec": {"replicas": 1}}, subresource="scale")
        self.assertEqual(set(self.running(job, 1)), {f"{job}-worker-0"})
        self.api.patch("pytorchjobs", job, {"spec": {"runPolicy": {"suspend": True}}})
        self.reaches("pytorchjobs", job, "Suspended")
        self.wait(lambda: not self.pods(job), "no pods")
        self.api.patch("pytorchjobs", job, {"spec": {"runPolicy": {"suspend": False}}})
        self.running(job, 1)
        self.annotate(f"{job}-worker-0", "sim/complete-after", "1s")
        self.reaches("pytorchjobs", job, "Succeeded")

    def test_failed_worker_has_its_exit_code(self):
        job = "failing"
        self.cluster.apply(manifest("kwok-mpijob", job))
        self.running(job, 2)
        self.api.patch("pods", f"{job}-worker-1",
                       {"metadata": {"annotations": {"sim/fail-after": "100ms", "sim/exit-code": "137"}}})
        self.wait(lambda: self.api.get("pods", f"{job}-worker-1")["status"]["phase"] == "Failed", "a failed worker")
        status = self.api.get("pods", f"{job}-worker-1")["status"]["containerStatuses"][0]
        self.assertEqual(status["state"]["terminated"]["exitCode"], 137)
        self.api.delete("mpijobs", job)

    def test_gated_pod_waits_until_it_is_placed(self):
        job = "gated"
        text = manifest("kwok-mpijob", job).replace(
            "          containers:\n            - name: worker",
            "          schedulingGates: [{name: voda.test/placement}]\n"
            "          containers:\n            - name: worker")
        self.cluster.apply(text)
        self.wait(lambda: len(self.workers(job)) == 2, "two pods")
        time.sleep(2)
        for pod in self.workers(job).values():
            self.assertNotIn("nodeName", pod["spec"])
            self.assertEqual(pod["status"]["conditions"][0]["reason"], "SchedulingGated")
        for number, (name, pod) in enumerate(sorted(self.workers(job).items())):
            self.api.patch("pods", name, [
                {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
                {"op": "add", "path": "/spec/nodeSelector/kubernetes.io~1hostname", "value": f"kwok-{3 - number}"},
                {"op": "remove", "path": "/spec/schedulingGates"},
            ], kind="json")
        placed = {name: pod["spec"]["nodeName"] for name, pod in self.running(job, 2).items()}
        self.assertEqual(placed, {f"{job}-worker-0": "kwok-3", f"{job}-worker-1": "kwok-2"})
        self.api.delete("mpijobs", job)

    def test_terminating_pod_holds_on_as_long_as_it_says(self):
        self.api.create("pods", {
            "metadata": {"name": "lingering", "annotations": {"sim/terminate-after": "2s"}},
            "spec": {"containers": [{"name": "one", "image": "none"}], "nodeSelector": {"voda.test/node": "kwok"}}})
        self.wait(lambda: self.api.get("pods", "lingering")["status"]["phase"] == "Running", "a running pod")
        began = time.monotonic()
        self.api.delete("pods", "lingering")
        self.wait(lambda: self.api.get("pods", "lingering") is None, "the pod to go")
        self.assertGreater(time.monotonic() - began, 1.5)

    def test_kwok_ends_only_what_is_being_ended(self):
        self.api.create("pods", {
            "metadata": {"name": "successor"},
            "spec": {"containers": [{"name": "one", "image": "none"}], "nodeSelector": {"voda.test/node": "kwok"}}})
        self.wait(lambda: self.api.get("pods", "successor")["status"]["phase"] == "Running", "a running pod")
        late = self.cluster.kubectl("delete", "pod", "successor", "--force", "--grace-period=0", user="kwok", check=False)
        self.assertIn("KWOK means a pod that had this name before", late.stderr)
        self.assertNotIn("deletionTimestamp", self.api.get("pods", "successor")["metadata"])
        self.api.delete("pods", "successor")
        self.wait(lambda: self.api.get("pods", "successor") is None, "the pod to go")

    def test_nodes_come_fail_return_and_go(self):
        name = self.cluster.add_node("visitor", gpus=2, accelerator="v100")
        self.cluster.set_ready(name, False)
        self.cluster.set_ready(name, True)
        self.cluster.cordon(name)
        self.assertTrue(self.api.get("nodes", name)["spec"]["unschedulable"])
        self.cluster.remove_node(name)
        self.assertIsNone(self.api.get("nodes", name))

    def test_silence_of_kwok_makes_nodes_unknown(self):
        part = self.cluster.parts["kwok"]
        part.signal(signal.SIGSTOP)
        try:
            self.cluster.wait_node("kwok-0", ready=False)
            conditions = self.api.get("nodes", "kwok-0")["status"]["conditions"]
            self.assertEqual([one["status"] for one in conditions if one["type"] == "Ready"], ["Unknown"])
        finally:
            part.signal(signal.SIGCONT)
        for number in range(4):
            self.cluster.wait_node(f"kwok-{number}")

    def test_api_server_and_operators_come_back(self):
        job = "survivor"
        self.cluster.apply(manifest("kwok-mpijob", job))
        before = self.running(job, 2)
        self.cluster.parts["kube-apiserver"].kill()
        self.cluster.parts["kube-apiserver"].start()
        self.cluster.parts["mpi-operator"].kill()
        try:
            self.scale_mpijob(job, 3)
            time.sleep(1)
            self.assertEqual(len(self.workers(job)), 2)
        finally:
            self.cluster.parts["mpi-operator"].start()
        after = self.running(job, 3)
        for name, pod in before.items():
            self.assertEqual(pod["metadata"]["uid"], after[name]["metadata"]["uid"])
        self.cluster.parts["training-operator"].restart()
        self.api.delete("mpijobs", job)

    def test_voda_may_do_what_its_role_says_and_nothing_else(self):
        voda, job = self.cluster.voda, "allowed"
        self.cluster.apply(manifest("kwok-mpijob", job), user="voda")
        self.running(job, 2)
        voda.patch("mpijobs", job, {"spec": {"runPolicy": {"suspend": False}}})
        voda.get("configmaps", f"{job}-config")
        for resource in ("pods", "nodes", "mpijobs", "pytorchjobs"):
            voda.list(resource)
        voda.patch("pods", f"{job}-worker-0", {"metadata": {"annotations": {"voda.test/touched": "1"}}})
        voda.delete("pods", f"{job}-worker-1")
        voda.create("leases", {"metadata": {"name": "voda"}, "spec": {"holderIdentity": "test"}}, "voda-system")
        voda.ask("POST", "/apis/events.k8s.io/v1/namespaces/default/events", {
            "metadata": {"name": "voda-test"}, "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Test",
            "reason": "Test", "type": "Normal", "reportingController": "voda.test/cluster",
            "reportingInstance": "test", "regarding": {"kind": "MPIJob", "name": job, "namespace": "default"}})
        self.forbidden("GET", "/api/v1/namespaces/default/secrets")
        self.forbidden("GET", "/api/v1/namespaces/default/configmaps")
        self.forbidden("GET", f"/api/v1/namespaces/default/pods/{job}-worker-0")
        self.forbidden("GET", "/api/v1/nodes/kwok-0")
        self.forbidden("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "own"}})
        self.forbidden("POST", f"/api/v1/namespaces/default/pods/{job}-worker-0/binding", {})
        self.forbidden("POST", f"/api/v1/namespaces/default/pods/{job}-worker-0/exec?command=ls", None)
        self.forbidden("PATCH", "/api/v1/nodes/kwok-0", {}, "application/merge-patch+json")
        self.forbidden("DELETE", "/api/v1/nodes/kwok-0")
        voda.patch("mpijobs", job, {"metadata": {"annotations": {}}}, subresource="status")  # a condition among others
        self.forbidden("PUT", f"/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/{job}", {})
        self.forbidden("PUT", f"/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/{job}/status", {})
        scale = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/any/scale"
        self.forbidden("GET", scale)
        self.forbidden("PATCH", scale, {}, "application/merge-patch+json")
        self.forbidden("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "own"}})
        self.forbidden("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")
        self.assertTrue(voda.delete("mpijobs", job))


class SimulatedMpiJobV1(ClusterTest):
    arguments = {"kwok_nodes": 2, "mpijobs": "v1"}

    def test_mpijob_v1_is_scaled_and_completed(self):
        job = "first"
        text = manifest("kwok-mpijob", job).replace("kubeflow.org/v2beta1", "kubeflow.org/v1")
        self.cluster.apply(text.replace("containers:\n            - {name: launcher",
                                        "containers:\n            - {name: mpi-launcher"))
        self.running(job, 2)
        self.scale_mpijob(job, 3)
        self.running(job, 3)
        self.scale_mpijob(job, 1)
        self.running(job, 1)
        self.wait(lambda: self.api.get("pods", f"{job}-launcher")["status"]["phase"] == "Running", "the launcher")
        self.annotate(f"{job}-launcher", "sim/complete-after", "1s")
        self.reaches("mpijobs", job, "Succeeded")


def left_behind(folder, state):
    """What a cluster with real nodes has not taken with it."""
    found = [folder] if os.path.exists(folder) else []
    found += [path for path in [f"/sys/class/net/{state['bridge']}"] if os.path.exists(path)]
    found += [path for top in control_groups.hierarchies() for group in state["control_groups"]
              for path in [os.path.join(top, group)] if os.path.exists(path)]
    return found + real_nodes.mounts(folder) + real_nodes.shims(state["sockets"])


class CommandTest(unittest.TestCase):
    """The playground, and that nothing outlives it."""

    def setUp(self):
        self.folder = os.path.join(tempfile.gettempdir(), f"voda-up-{os.getpid()}")
        self.addCleanup(self.ask, "down")

    def ask(self, command, *flags):
        program = [sys.executable, os.path.join(HERE, "cluster.py"), command, "--folder", self.folder, *flags]
        return subprocess.run(program, capture_output=True, text=True, timeout=600)

    def crash(self, *flags):
        """A playground that was killed: what its state was."""
        done = self.ask("up", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"export KUBECONFIG={self.folder}/admin.kubeconfig", done.stdout)
        state = read_json(os.path.join(self.folder, "state.json"))
        self.assertGreaterEqual(len(state["parts"]), 7)
        os.kill(state["owner"][0], signal.SIGKILL)
        wait_for(lambda: all(start_time(pid) != started for pid, started in state["parts"].values()), 10,
                 "all parts to end with their parent")
        return state


class SimulatedCommand(CommandTest):
    def test_crash_leaves_no_process_and_down_removes_the_folder(self):
        self.crash("--real", "0", "--kwok", "1")
        self.assertEqual(self.ask("down").returncode, 0)
        self.assertFalse(os.path.exists(self.folder))

    def test_folder_of_somebody_else_is_not_touched(self):
        os.makedirs(self.folder)
        self.addCleanup(shutil.rmtree, self.folder)
        with open(os.path.join(self.folder, "precious"), "w"):
            pass
        done = self.ask("up", "--real", "0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not empty", done.stderr)
        self.ask("down")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "precious")))


class RealCommand(CommandTest):
    def test_down_after_a_crash_leaves_nothing_of_real_nodes(self):
        state = self.crash("--real", "1", "--kwok", "0")
        self.assertIn(f"/sys/class/net/{state['real']['bridge']}", left_behind(self.folder, state["real"]))
        self.assertEqual(self.ask("down").returncode, 0)
        self.assertEqual(left_behind(self.folder, state["real"]), [])


class Real(ClusterTest):
    arguments = {"real": 2, "kwok_nodes": 1, "gpus": 2}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        run(os.path.join(ROOT, "tools", "horovod_venv.sh"), seconds=600)

    def epochs(self, pod):
        """(epoch, workers) as rank 0 has printed them, on whichever pod it was."""
        text = self.cluster.nodes.logs("default", pod)
        return [(int(epoch), int(workers)) for epoch, workers in re.findall(r"epoch (\d+)/\d+ workers (\d+)", text)]

    def trains_on(self, pod, workers, more=2, seconds=120):
        """Waits until so many more epochs were done by so many workers. Returns the last of them."""
        seen = len(self.epochs(pod))

        def reached():
            fresh = [epoch for epoch, size in self.epochs(pod)[seen:] if size == workers]
            return fresh[-1] if len(fresh) >= more else None
        began = time.monotonic()
        last = self.wait(reached, lambda: f"{more} epochs of {workers} workers; the log of {pod}:\n"
                                          f"{self.cluster.nodes.logs('default', pod)[-3000:]}", seconds)
        print(f"  {pod}: {workers} workers, epoch {last} after {time.monotonic() - began:.1f} s", flush=True)
        return last

    def no_epoch_is_lost(self, pod, total):
        done = [epoch for epoch, _ in self.epochs(pod)]
        self.assertEqual(sorted(set(done)), list(range(1, total + 1)), "an epoch is missing")
        self.assertEqual(done, sorted(done), "training went back")
        self.assertLessEqual(len(done) - total, 2, "it started anew instead of from its checkpoint")

    def test_1_nodes_are_ready_and_logs_and_exec_work(self):
        for name in ("real-0", "real-1"):
            node = self.api.get("nodes", name)
            self.assertEqual(node["status"]["allocatable"]["nvidia.com/gpu"], "2")
            self.assertEqual(node["status"]["nodeInfo"]["kubeletVersion"], "v1.36.3")
            self.api.create("pods", {
                "metadata": {"name": f"probe-{name}"},
                "spec": {"nodeSelector": {"kubernetes.io/hostname": name}, "containers": [
                    {"name": "one", "image": real_nodes.IMAGE, "imagePullPolicy": "Never",
                     "command": ["/bin/sh", "-c", "echo hello from $HOSTNAME; exec sleep 600"]}]}})
        for name in ("real-0", "real-1"):
            pod = f"probe-{name}"
            self.wait(lambda: self.api.get("pods", pod)["status"]["phase"] == "Running",
                      lambda: f"{pod} to run: {self.api.get('pods', pod)['status']}")
            self.assertIn(f"hello from {pod}", self.cluster.kubectl("logs", pod).stdout)
            self.assertIn(pod, self.cluster.kubectl("exec", pod, "--", "hostname").stdout)
            self.api.delete("pods", pod, options={"gracePeriodSeconds": 0})

    def test_2_elastic_pytorchjob_grows_and_shrinks(self):
        job, pod = "real-pytorchjob", "real-pytorchjob-worker"
        self.cluster.apply(short(manifest(job)))
        self.running(job, 1)
        self.trains_on(pod, 1)
        self.cluster.kubectl("scale", "pytorchjob", job, "--replicas=2")
        self.running(job, 2)
        self.trains_on(pod, 2)
        self.cluster.kubectl("scale", "pytorchjob", job, "--replicas=1")
        self.trains_on(pod, 1)
        self.assertEqual(condition(self.api.get("pytorchjobs", job), "Running"), "True")
        self.reaches("pytorchjobs", job, "Succeeded", seconds=180)
        self.no_epoch_is_lost(pod, 30)

    def test_3_elastic_horovod_grows_and_shrinks(self):
        job = "real-horovod"
        self.cluster.apply(short(manifest(job)))
        self.running(job, 1)
        launcher = self.wait(lambda: next((name for name in self.pods(job) if "launcher" in name), None), "a launcher")
        self.trains_on(launcher, 1)

        def resize(count):
            self.scale_mpijob(job, count)

            def listed():
                return self.api.get("configmaps", f"{job}-config")["data"]["discover_hosts.sh"].count(f"{job}-worker-")
            self.wait(lambda: listed() == count, lambda: f"{count} hosts in the list, there are {listed()}")
            self.annotate(launcher, "voda.test/touched", str(count))
        resize(2)
        self.trains_on(launcher, 2)
        resize(1)
        self.trains_on(launcher, 1)
        self.assertEqual(condition(self.api.get("mpijobs", job), "Running"), "True")
        self.reaches("mpijobs", job, "Succeeded", seconds=180)
        self.no_epoch_is_lost(launcher, 30)

    def test_4_nothing_stays_behind(self):
        state = self.cluster.nodes.state()
        self.cluster.close()
        self.assertEqual(left_behind(self.cluster.folder, state), [])


if __name__ == "__main__":
    try:
        program = unittest.main(exit=False, verbosity=2)
    except ClusterError as error:
        sys.exit(f"cluster_test: {error}")
    result = program.result
    bad = len(result.failures) + len(result.errors)
    for test, text in result.failures + result.errors:
        reason = [line for line in text.splitlines() if line and not line.startswith(" ")][1:]
        print(f"FAILED {test}: {reason[0] if reason else text}")
    ran_bad = sum(isinstance(test, unittest.TestCase) for test, _ in result.failures + result.errors)
    print(f"{result.testsRun - ran_bad} passed, {bad} failed")
    sys.exit(1 if bad or result.skipped or not result.testsRun else 0)
