"""`voda up --cluster kubernetes` as its users meet it, on nodes that KWOK simulates: which rights it asks for, what is refused, what outlives a
replica, and the three ways to steer workers.

    VODA_BINARY=build/release/voda python3 -W ignore tests/kubernetes/service_test.py
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cluster import Cluster  # noqa: E402
from voda import Voda, job, live, workers  # noqa: E402

TAINT = "vodascheduler/hostname"
SCHEDULED = "vodascheduler/Scheduled"


class ServiceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(kwok_nodes=2, gpus=4)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.close)
        for name in ("team-a", "team-b"):
            cls.cluster.kubectl("create", "namespace", name)

    def voda(self, *flags, **keywords):
        voda = Voda(self.cluster, *flags, **keywords)
        self.addCleanup(voda.close)
        self.addCleanup(self.remove_jobs)
        return voda.start()

    def remove_jobs(self):
        for kind in ("pytorchjobs", "mpijobs"):
            for name_space in ("default", "team-a", "team-b"):
                for found in self.cluster.api.list(kind, namespace=name_space):
                    self.cluster.api.delete(kind, found["metadata"]["name"], name_space)
        self.wait(lambda: not [pod for name_space in ("default", "team-a", "team-b")
                               for pod in self.cluster.api.list("pods", namespace=name_space)], "pods to be gone")

    def wait(self, condition, what, seconds=60):
        return self.cluster.wait_for(condition, seconds, what)

    def size(self, voda, name, size, seconds=60):
        self.wait(lambda: voda.job(name)["workers"] == size,
                  lambda: f"{name} to have {size} workers: {voda.job(name)}\n{voda.tail()}", seconds)

    def refused(self, status, call, *arguments, **keywords):
        with self.assertRaises(live.HttpError) as caught:
            call(*arguments, **keywords)
        self.assertEqual(caught.exception.status, status, caught.exception)
        return caught.exception.message

    def events(self, name, name_space="default"):
        found = json.loads(self.cluster.kubectl("get", "events", "-n", name_space, "-o", "json").stdout)["items"]
        return {event["reason"]: event["message"] for event in found if event["involvedObject"].get("name") == name}

    def conditions(self, kind, name):
        found = json.loads(self.cluster.kubectl("get", kind, name, "-o", "json").stdout)
        return {one["type"]: one for one in found.get("status", {}).get("conditions", [])}

    def condition(self, kind, name, status, reason, words):
        """Waits until Voda's condition says this."""
        def says():
            one = self.conditions(kind, name).get(SCHEDULED, {})
            return (one.get("status"), one.get("reason")) == (status, reason) and words in one["message"]
        self.wait(says, lambda: f"{status} {reason}: {self.conditions(kind, name)}")

    def test_a_condition_says_what_voda_did_and_why(self):
        voda = self.voda()
        for kind in ("MPIJob", "PyTorchJob"):
            name = f"told-{kind.lower()}"
            with self.subTest(kind):
                self.cluster.apply(job(kind, name, 1, 2))
                self.cluster.kubectl("wait", f"--for=condition={SCHEDULED}", f"{kind}/{name}", "--timeout=30s")
                self.condition(kind, name, "True", "Started", "2 workers on")
                self.wait(lambda: self.conditions(kind, name).get("Running", {}).get("status") == "True", "it to run")
                voda.cli("set", "size", f"default/{name}", "--max", "1")
                self.condition(kind, name, "True", "Resized", "1 worker after 2")
                voda.cli("hold", f"default/{name}")
                self.condition(kind, name, "False", "Suspended", "gave back")
                self.wait(lambda: self.conditions(kind, name).get("Suspended", {}).get("status") == "True", "the operator")
                told = self.conditions(kind, name)
                self.assertLessEqual({"Created", "Suspended", "Running"}, set(told), "those of the operator stay")
                self.assertEqual((told[SCHEDULED]["status"], told[SCHEDULED]["reason"]), ("False", "Suspended"))
        self.assertNotIn("conditions are not written", voda.tail(1000))

    def test_progress_by_csv_on_a_shared_volume(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        os.mkdir(os.path.join(folder, "team-a"))
        voda = self.voda("--metrics-dir", folder)
        self.cluster.apply(job("PyTorchJob", "rows", 1, 2, namespace="team-a"))
        self.size(voda, "team-a/rows", 2)

        def done(epochs):
            self.wait(lambda: (voda.job("team-a/rows")["progress"] or {}).get("epoch") == epochs,
                      lambda: f"{epochs} epochs: {voda.job('team-a/rows')}\n{voda.tail()}")
        # As the reference's jobs write it; a row is added, one is rubbish, and one has no end yet.
        with open(os.path.join(folder, "team-a", "rows.csv"), "w") as rows:
            rows.write("epoch,epoch_time_sec,total_epochs,workers\n0,3.5,10,2\n")
            rows.flush()
            done(1)
            rows.write("1,2.5,10,2\nnan,-1,10,2\n2,2.5,10")
            rows.flush()
            done(2)
        self.wait(lambda: "progress ignored" in voda.tail(), "the rubbish to be named")
        self.assertEqual(voda.job("team-a/rows")["progress"]["total_epochs"], 10)

    def test_a_name_belongs_to_one_kind(self):
        voda = self.voda()
        other = job("MPIJob", "twin", 1, 2)
        del other["metadata"]["labels"]  # none of Voda's, and first
        self.cluster.apply(other)
        self.cluster.apply(job("PyTorchJob", "twin", 1, 2))
        self.size(voda, "default/twin", 2)
        self.assertEqual(voda.job("default/twin")["kind"], "PyTorchJob")
        self.assertTrue(self.cluster.api.get("mpijobs", "twin")["spec"]["runPolicy"]["suspend"])
        self.cluster.kubectl("label", "mpijob", "twin", "vodascheduler/queue=default")
        self.wait(lambda: "Refused" in self.events("twin"), lambda: f"{self.events('twin')}\n{voda.tail()}")
        self.assertIn("other kind", self.events("twin")["Refused"])
        self.cluster.kubectl("delete", "mpijob", "twin")
        self.cluster.apply(job("PyTorchJob", "marker", 1, 1))  # what came before it has been seen
        self.size(voda, "default/marker", 1)
        self.size(voda, "default/twin", 2)
        voda.cli("delete", "default/twin")
        self.wait(lambda: self.cluster.api.get("pytorchjobs", "twin") is None, "the right one to be deleted")

    def test_nodes_counted_in_another_resource(self):
        voda = self.voda("--resource", "cpu=cpu")
        self.cluster.add_node("cpus")
        self.addCleanup(self.cluster.remove_node, "cpus")
        self.cluster.kubectl("label", "node", "cpus", "vodascheduler/accelerator=cpu", "--overwrite")
        cpus = int(self.cluster.api.get("nodes", "cpus")["status"]["allocatable"]["cpu"])
        made = job("PyTorchJob", "counted", 1, 4)
        pod = made["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
        pod["nodeSelector"] = {"vodascheduler/accelerator": "cpu"}
        pod["containers"][0]["resources"] = {"limits": {"cpu": str(cpus // 2)}}
        self.cluster.apply(made)
        self.size(voda, "default/counted", 2)
        self.assertEqual(voda.job("default/counted")["gpus_per_worker"], cpus // 2)
        [node] = [one for one in voda.ask("GET", "/api/v1/nodes")["nodes"] if one["name"] == "cpus"]
        self.assertEqual((node["gpus"], node["used"]), (cpus, cpus // 2 * 2))
        pod["containers"][0]["resources"] = {}
        made["metadata"]["name"] = "uncounted"
        self.cluster.apply(made)
        self.wait(lambda: "Refused" in self.events("uncounted"), voda.tail)
        self.assertIn("counted in cpu", self.events("uncounted")["Refused"])
        # What it says is what helps.
        fix = [{"op": "add", "path": "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/resources",
                "value": {"limits": {"cpu": "1"}}}]
        self.cluster.kubectl("patch", "pytorchjob", "uncounted", "--type=json", "-p", json.dumps(fix))
        self.wait(lambda: "default/uncounted" in voda.jobs(), voda.tail)

    def test_callers_may_do_through_voda_what_kubernetes_lets_them(self):
        voda = self.voda()
        self.cluster.apply([
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "jane", "namespace": "team-a"}},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
             "metadata": {"name": "trains", "namespace": "team-a"},
             "rules": [{"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs", "mpijobs"],
                        "verbs": ["get", "list", "create", "delete"]}]},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
             "metadata": {"name": "jane", "namespace": "team-a"},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "trains"},
             "subjects": [{"kind": "ServiceAccount", "name": "jane", "namespace": "team-a"}]}])
        jane = self.cluster.service_account("jane", "team-a")[0].token
        self.wait(lambda: "yes" in self.cluster.kubectl("auth", "can-i", "create", "pytorchjobs.kubeflow.org", "-n", "team-a",
                                                        "--as=system:serviceaccount:team-a:jane", check=False).stdout,
                  "her rights to be known")
        document = json.dumps(job("PyTorchJob", "hers", 1, 2, namespace="team-a"))
        other = json.dumps(job("PyTorchJob", "hers", 1, 2, namespace="team-b"))

        self.assertIn("token", self.refused(401, voda.ask, "GET", "/api/v1/jobs", token=False))
        self.refused(401, voda.ask, "GET", "/api/v1/jobs", token="rubbish")
        message = self.refused(403, voda.ask, "POST", "/api/v1/jobs", other, token=jane)
        self.assertIn("system:serviceaccount:team-a:jane", message)
        self.assertIn("create pytorchjobs.kubeflow.org in namespace team-b", message)
        self.assertEqual(self.cluster.api.list("pytorchjobs", namespace="team-b"), [])

        [made] = [entry["name"] for entry in voda.ask("POST", "/api/v1/jobs", document, token=jane)["jobs"]]
        self.assertTrue(made.startswith("team-a/hers-"), made)
        self.assertEqual(voda.ask("GET", f"/api/v1/jobs/{made}", token=jane)["name"], made)
        self.refused(403, voda.ask, "GET", "/api/v1/jobs", token=jane)  # of all namespaces
        listed = voda.ask("GET", "/api/v1/jobs?namespace=team-a", token=jane)["jobs"]
        self.assertEqual([entry["name"] for entry in listed], [made])
        for path in ("/api/v1/plan", "/api/v1/rounds", "/training", "/api/v1/events"):  # they name jobs of everybody
            self.refused(403, voda.ask, "GET", path, token=jane)
            if path != "/api/v1/events":
                self.refused(403, voda.ask, "GET", f"{path}?namespace=team-a", token=jane)
        self.refused(403, voda.ask, "GET", "/api/v1/events?namespace=team-b", token=jane)
        self.cluster.apply(job("PyTorchJob", "there", 1, 1, namespace="team-b"))
        self.wait(lambda: "team-b/there" in voda.jobs(), voda.tail)
        self.assertEqual(len({self.refused(403, voda.ask, "GET", f"/api/v1/jobs/team-b/{name}", token=jane)
                              for name in ("there", "nowhere")}), 1, "nobody learns whether a job exists")
        self.cluster.kubectl("delete", "pytorchjob", "there", "-n", "team-b")
        self.refused(403, voda.ask, "POST", f"/api/v1/jobs/{made}/hold", token=jane)  # patch is not among her rights
        self.refused(403, voda.ask, "PUT", "/api/v1/settings", {"rate_limit_seconds": 1}, token=jane)
        self.refused(403, voda.ask, "GET", "/metrics", token=jane, raw=True)
        self.refused(403, voda.ask, "GET", f"/api/v1/jobs/{made}/logs", token=jane)
        self.assertIn("voda_kube_requests_total", voda.ask("GET", "/metrics", raw=True))
        self.size(voda, made, 2)
        # What she waits for may be another's; whose is none of her business.
        self.cluster.apply(job("PyTorchJob", "secret", 5, 5, workers=5, namespace="team-b"))
        self.size(voda, "team-b/secret", 5)
        time.sleep(1.1)  # ages are known to the second
        self.cluster.apply(job("PyTorchJob", "second", 4, 4, workers=4, namespace="team-a"))
        self.wait(lambda: "team-a/second" in voda.jobs(), voda.tail)
        explained = json.dumps(voda.ask("GET", "/api/v1/jobs/team-a/second/explain", token=jane))
        self.assertIn("another namespace", explained)
        self.assertNotIn("secret", explained)
        watched = voda.cli("wait", "-n", "team-a", made.split("/")[1], "second", "--for", "running", "--timeout", "1s",
                           token=jane, check=False)
        self.assertNotIn("forbidden", watched.stderr)
        self.assertEqual(watched.returncode, 6, watched)
        done = voda.cli("delete", "-n", "team-a", made.split("/")[1], token=jane)
        self.assertEqual(done.stdout, f"Training job deleted: {made}\n")
        self.wait(lambda: voda.job(made)["status"] == "Canceled", "the job to end")

    def test_what_is_not_for_voda_is_left_alone_and_says_why(self):
        voda = self.voda()
        foreign = job("PyTorchJob", "foreign", 1, 2)
        foreign["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "theirs"
        running = job("PyTorchJob", "running", 1, 1, suspend=False)
        unlabelled = job("PyTorchJob", "unlabelled", 1, 1)
        del unlabelled["metadata"]["labels"]
        dangerous = job("MPIJob", "dangerous", 1, 2)
        pod = dangerous["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        pod["volumes"] = [{"name": "root", "hostPath": {"path": "/"}}]
        self.cluster.apply([foreign, running, unlabelled, dangerous])
        for name, reason, words in (("foreign", "LeftAlone", "kueue.x-k8s.io/queue-name: theirs"),
                                    ("running", "Refused", "spec.runPolicy.suspend: true"),
                                    ("dangerous", "Refused", "--allow hostPath")):
            self.wait(lambda: reason in self.events(name), lambda: f"{reason} of {name}: {self.events(name)}\n{voda.tail()}")
            self.assertIn(words, self.events(name)[reason])
        self.condition("pytorchjob", "running", "False", "Refused", "spec.runPolicy.suspend: true")
        self.condition("mpijob", "dangerous", "False", "Refused", "--allow hostPath")
        self.assertNotIn(SCHEDULED, self.conditions("pytorchjob", "foreign"))
        self.assertEqual(voda.jobs(), {})
        self.assertIn("hostPath", self.refused(400, voda.ask, "POST", "/api/v1/jobs", json.dumps(dangerous)))
        self.assertIn("queue-name: theirs", self.refused(400, voda.ask, "POST", "/api/v1/jobs", json.dumps(foreign)))
        # What speaks against it can be mended in place.
        self.cluster.kubectl("label", "pytorchjob", "foreign", "kueue.x-k8s.io/queue-name-")
        self.size(voda, "default/foreign", 2)

    def test_what_others_write_into_an_object_gives_it_nothing(self):
        voda = self.voda(algorithm="Price")
        self.cluster.apply([job("PyTorchJob", "whole", 4, 4, workers=4, namespace="team-a"),
                            job("PyTorchJob", "most", 3, 3, workers=3, namespace="team-a")])
        self.size(voda, "team-a/whole", 4)
        self.size(voda, "team-a/most", 3)
        self.cluster.apply(job("PyTorchJob", "thief", 1, 4, namespace="team-b"))
        self.size(voda, "team-b/thief", 1)

        def pods():
            return {pod["metadata"]["uid"] for name in ("whole", "most")
                    for pod in workers(self.cluster, name, "team-a").values()}
        before = pods()
        self.cluster.kubectl("scale", "pytorchjob", "thief", "-n", "team-b", "--replicas=4")
        self.wait(lambda: self.cluster.api.get("pytorchjobs", "thief", "team-b")["spec"]["pytorchReplicaSpecs"]["Worker"]
                  ["replicas"] == 1, voda.tail)
        self.wait(lambda: len(workers(self.cluster, "thief", "team-b")) == 1, voda.tail)
        self.size(voda, "team-b/thief", 1)
        self.assertEqual(pods(), before)

        patch = {"spec": {"runPolicy": {"suspend": True}}}
        self.cluster.kubectl("patch", "pytorchjob", "thief", "-n", "team-b", "--type=merge", "-p", json.dumps(patch))
        self.wait(lambda: "SuspendedByOthers" in self.events("thief", "team-b"), voda.tail)
        self.assertIn("voda hold team-b/thief", self.events("thief", "team-b")["SuspendedByOthers"])
        self.size(voda, "team-b/thief", 1)

        # The marks of a job that Voda has accepted.
        forged = job("PyTorchJob", "forged", 1, 1, namespace="team-b")
        forged["metadata"]["annotations"] = {"vodascheduler/state": json.dumps({"job": "team-b/forged"})}
        pod = forged["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
        pod["hostPID"] = True
        pod["containers"][0]["env"] = [{"name": "VODA_PROGRESS_TOKEN", "value": "x"}]
        unknown = job("PyTorchJob", "unknown", 1, 1, namespace="team-b")
        unknown["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = {
            "vodascheduler/accelerator": "a1000"}
        self.cluster.apply([forged, unknown])
        for name, words in (("forged", "hostPID"), ("unknown", "is not a GPU type of this cluster")):
            self.wait(lambda: "Refused" in self.events(name, "team-b"), voda.tail)
            self.assertIn(words, self.events(name, "team-b")["Refused"])
            self.assertTrue(self.cluster.api.get("pytorchjobs", name, "team-b")["spec"]["runPolicy"]["suspend"])
        self.assertNotIn("a1000", json.dumps(voda.ask("GET", "/api/v1/nodes")))

    def test_the_object_is_the_record(self):
        first = self.voda()
        long = "a-name-as-long-as-it-may-be-here"
        self.assertEqual(len(long), 32)

        def submit(voda):
            headers = {"Idempotency-Key": "the-same"}
            document = json.dumps(job("MPIJob", long, 1, 1))
            return voda.ask("POST", "/api/v1/jobs", document, headers=headers)["jobs"][0]["name"]
        made = submit(first)
        self.cluster.apply(job("PyTorchJob", "kept", 1, 3))
        self.size(first, "default/kept", 3)
        first.cli("set", "size", "default/kept", "--max", "2")
        self.size(first, "default/kept", 2)
        first.cli("set", "priority", "-n", "default", "kept", "7")
        first.ask("PUT", "/api/v1/settings", {"algorithm": "ElasticTiresias"})
        self.cluster.apply(job("MPIJob", "held", 1, 2))
        self.size(first, "default/held", 2)
        first.cli("hold", "default/held")
        self.size(first, "default/held", 0)
        before = {index: pod["metadata"]["uid"] for index, pod in workers(self.cluster, "kept").items()}
        self.size(first, made, 1)
        ran, asked = first.job("default/kept")["gpu_seconds"], time.monotonic()
        first.kill()
        second = self.voda(folder=None)  # a new folder: nothing but what is in the cluster
        kept = second.job("default/kept")
        self.assertEqual((kept["status"], kept["workers"], kept["max"], kept["priority"], kept["starts"]),
                         ("Running", 2, 2, 7, 1))
        self.assertGreater(kept["gpu_seconds"], ran - 3)
        self.assertLess(kept["gpu_seconds"], ran + 2 * (time.monotonic() - asked) + 3)
        self.assertEqual(second.job(made)["status"], "Running")
        self.assertEqual(submit(second), made, "sent again, since the answer did not come, it would run twice")
        self.assertTrue(second.job("default/held")["held"])
        self.assertEqual(second.ask("GET", "/api/v1/settings?gpu_type=a100")["algorithm"], "ElasticTiresias")
        after = {index: pod["metadata"]["uid"] for index, pod in workers(self.cluster, "kept").items()}
        self.assertEqual(after, before, "a takeover restarted workers")
        second.cli("resume", "default/held")
        self.wait(lambda: second.job("default/held")["workers"] >= 1, second.tail)

        # The name comes again, for another job; the history has both.
        self.cluster.api.delete("pytorchjobs", "kept")
        self.wait(lambda: second.job("default/kept")["status"] == "Canceled", second.tail)
        self.cluster.apply(job("PyTorchJob", "kept", 1, 1))
        self.size(second, "default/kept", 1)
        names = [name for name in second.jobs() if name.startswith("default/kept")]
        self.assertEqual(len(names), 2, names)
        self.cluster.api.patch("configmaps", "voda-settings", {"data": None}, namespace="voda-system")

    def test_a_pytorchjob_that_never_restarts_is_resized_all_the_same(self):
        """Its operator takes a deleted worker for a failure that ends the job, so it is stopped and started whole."""
        voda = self.voda()
        strict = job("PyTorchJob", "strict", 1, 8)
        strict["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "Never"
        self.cluster.apply(strict)
        self.size(voda, "default/strict", 8)
        self.cluster.apply(job("PyTorchJob", "other", 4, 4, workers=4))
        self.size(voda, "default/strict", 4)
        self.size(voda, "default/other", 4)
        self.wait(lambda: [pod["status"].get("phase") for pod in workers(self.cluster, "strict").values()] == 4 * ["Running"],
                  lambda: f"four workers to run: {voda.tail()}")
        self.assertNotIn("Failed", [name for name, one in self.conditions("pytorchjob", "strict").items()
                                    if one["status"] == "True"])

    def taints(self):
        return {node["metadata"]["name"]: [taint["value"] for taint in node["spec"].get("taints", [])
                                           if taint["key"] == TAINT] for node in self.cluster.api.list("nodes")}

    def release(self, *flags, code=0):
        done = subprocess.run([live.VODA, "release", "--kubeconfig", self.cluster.kubeconfig, *flags], text=True,
                              capture_output=True, timeout=120, cwd=live.ROOT)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_steering_by_taints_and_release(self):
        self.cluster.kubectl("create", "clusterrole", "taints-nodes", "--verb=patch", "--resource=nodes")
        self.cluster.kubectl("create", "clusterrolebinding", "taints-nodes", "--clusterrole=taints-nodes",
                             "--serviceaccount=voda-system:voda")
        voda = self.voda("--steering", "taints")
        self.wait(lambda: self.taints() == {"kwok-0": ["kwok-0"], "kwok-1": ["kwok-1"]}, lambda: f"taints: {self.taints()}")
        self.cluster.apply([job("PyTorchJob", "torch", 2, 4), job("MPIJob", "mpi", 2, 4)])
        for name in ("torch", "mpi"):
            self.size(voda, f"default/{name}", 4)
            pods = workers(self.cluster, name)
            self.assertEqual([pods[index]["spec"]["nodeName"] for index in range(4)], voda.job(f"default/{name}")["nodes"])
            for pod in pods.values():
                self.assertFalse(pod["spec"].get("schedulingGates"))
                [mine] = [toleration for toleration in pod["spec"]["tolerations"] if toleration["key"] == TAINT]
                self.assertEqual(mine["value"], pod["spec"]["nodeName"])
        self.wait(lambda: any("launcher" in pod["metadata"]["name"] and pod["status"].get("phase") == "Running"
                              for pod in self.cluster.api.list("pods")), "the launcher to run")

        # A node that is taken from Voda is free for others.
        self.cluster.add_node("lent")
        self.addCleanup(self.cluster.remove_node, "lent")
        self.wait(lambda: self.taints()["lent"] == ["lent"], lambda: f"its taint: {self.taints()}")
        self.cluster.kubectl("label", "node", "lent", "vodascheduler/accelerator-")
        self.wait(lambda: self.taints()["lent"] == [], lambda: f"no taint: {self.taints()}")
        self.cluster.remove_node("lent")
        uids = {pod["metadata"]["uid"] for pod in self.cluster.api.list("pods")}

        self.assertIn("leads", self.release(code=1))
        voda.stop()
        self.assertIn("would release 0 templates, 0 pods and 2 nodes", self.release("--dry-run"))
        self.assertEqual(self.taints()["kwok-0"], ["kwok-0"])
        self.assertIn("released 0 templates, 0 pods and 2 nodes", self.release())
        self.assertEqual(self.taints(), {"kwok-0": [], "kwok-1": []})
        self.assertEqual({pod["metadata"]["uid"] for pod in self.cluster.api.list("pods")}, uids)

    def test_release_opens_gates(self):
        voda = self.voda()
        self.cluster.apply([job("PyTorchJob", "torch", 2, 2), job("MPIJob", "waits", 8, 8, workers=8)])
        self.size(voda, "default/torch", 2)
        self.wait(lambda: "default/waits" in voda.jobs(), voda.tail)
        uids = {pod["metadata"]["uid"] for pod in workers(self.cluster, "torch").values()}
        voda.stop()
        self.cluster.kubectl("scale", "pytorchjob", "torch", "--replicas=3")
        self.wait(lambda: len(workers(self.cluster, "torch")) == 3, "a third worker, gated")
        text = self.release()
        self.assertIn("still suspended: MPIJob default/waits", text)
        self.assertIn("released 1 templates, 1 pods and 0 nodes", text)
        self.wait(lambda: all(pod["status"]["phase"] == "Running" for pod in workers(self.cluster, "torch").values()),
                  "all workers to run")
        self.assertLessEqual(uids, {pod["metadata"]["uid"] for pod in workers(self.cluster, "torch").values()})
        self.assertIn("released 0 templates, 0 pods", self.release())

    def test_steering_off_decides_sizes_alone(self):
        voda = self.voda("--steering", "off")
        self.cluster.apply([job("PyTorchJob", "torch", 1, 4), job("MPIJob", "mpi", 1, 4)])
        for name in ("torch", "mpi"):
            self.size(voda, f"default/{name}", 4)
            self.wait(lambda: all(pod["status"]["phase"] == "Running" and not pod["spec"].get("schedulingGates")
                                  for pod in workers(self.cluster, name).values()), f"workers of {name}")
        rounds = voda.ask("GET", "/api/v1/rounds?gpu_type=a100&limit=1")["rounds"][0]["round"]
        self.cluster.api.delete("mpijobs", "mpi")
        self.wait(lambda: voda.job("default/mpi")["status"] == "Canceled", voda.tail)
        later = voda.ask("GET", "/api/v1/rounds?gpu_type=a100&limit=1")["rounds"][0]["round"]
        self.assertLess(later - rounds, 30, "it goes round in circles")

    def test_bad_flags_name_the_fix(self):
        for flags, words in ((("--steering", "maybe"), "gates, taints, off"), (("--allow", "hostpath"), "hostPath"),
                             (("--resource", "a100"), "TYPE=NAME"), (("--no-auth",), "kubectl create token"),
                             (("--mpi-version", "v2"), "v2beta1"), (("--kubeconfig", "/nowhere"), "/nowhere")):
            done = subprocess.run([live.VODA, "up", "--cluster", "kubernetes", "--listen", "127.0.0.1:0", "--data",
                                   os.path.join(self.cluster.folder, "bad"), *flags], text=True,
                                  capture_output=True, timeout=60, cwd=live.ROOT,
                                  env={**os.environ, "KUBECONFIG": self.cluster.kubeconfig})
            self.assertNotEqual(done.returncode, 0, flags)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
