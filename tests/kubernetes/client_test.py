"""The Kubernetes client of Voda (src/kube) against a real API server, by the program kube_probe: copies that stay true
through a restart, leader election, writes that conflict, Events.

    VODA_KUBE_PROBE=build/release/tests/kube_probe /usr/bin/python3 tests/kubernetes/client_test.py
"""
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cluster import HERE, ROOT, Cluster  # noqa: E402
from processes import wait_for  # noqa: E402

PROBE = os.environ.get("VODA_KUBE_PROBE") or os.path.join(ROOT, "build", "release", "tests", "kube_probe")
SYSTEM = "voda-system"


class Probe:
    """A running kube_probe. Its lines are taken in order."""

    def __init__(self, kubeconfig, *arguments):
        self.process = subprocess.Popen([PROBE, kubeconfig, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()

    def until(self, begin, seconds=60):
        """All lines up to one that begins so."""
        lines = []
        end = time.monotonic() + seconds
        while not lines or not lines[-1].startswith(begin):
            try:
                lines.append(self.lines.get(timeout=max(0.01, end - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"no line \"{begin}\" within {seconds} s after {lines}") from None
        return lines

    def end(self, seconds=30):
        """Its last lines, after an orderly end."""
        self.process.stdin.close()
        if self.process.wait(seconds) != 0:
            raise AssertionError(f"kube_probe ended with {self.process.returncode}")
        self.reader.join()
        return list(self.lines.queue)


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.api = cls.cluster.api

    def probe(self, *arguments):
        return Probe(self.cluster.kubeconfig, *arguments)

    def restart_api_server(self):
        self.cluster.parts["kube-apiserver"].kill()
        self.cluster.parts["kube-apiserver"].start()

    def test_copy_stays_true_through_a_restart(self):
        for number in range(3):
            self.api.create("configmaps", config_map(f"copy-{number}", a="1"))
        with self.probe("watch", "-", "v1", "configmaps", "default") as probe:
            lines = probe.until("synced")
            self.assertLessEqual({"copy-0", "copy-1", "copy-2"}, {line.split()[1] for line in lines[:-1]})
            self.api.patch("configmaps", "copy-0", {"data": {"a": "2"}})
            probe.until("update copy-0")
            self.api.delete("configmaps", "copy-1")
            probe.until("delete copy-1")
            self.assertTrue(probe.lines.empty())

            # What happens while nobody listens is told afterwards: gone, another of the same name, new. The server
            # remembers nothing from before its second start, so the version of the copy has expired (410).
            old = self.api.get("configmaps", "copy-2")["metadata"]["uid"]
            probe.process.send_signal(signal.SIGSTOP)
            self.restart_api_server()
            self.api.delete("configmaps", "copy-0")
            self.api.delete("configmaps", "copy-2")
            new = self.api.create("configmaps", config_map("copy-2", a="1"))["metadata"]["uid"]
            self.api.create("configmaps", config_map("copy-3", a="1"))
            self.restart_api_server()
            probe.process.send_signal(signal.SIGCONT)
            lines = probe.until("vanish copy-0")
            self.assertLess(lines.index(f"vanish copy-2 {old}"), lines.index(f"add copy-2 {new}"))
            self.assertIn("add copy-3", [line.rsplit(" ", 1)[0] for line in lines])
            self.api.delete("configmaps", "copy-3")
            probe.until("delete copy-3")
            self.assertEqual(probe.end()[-1].split()[:2], ["relists", "1"])

    def test_one_leads_and_another_takes_over(self):
        with self.probe("lease", SYSTEM, "probe", "one") as one, self.probe("lease", SYSTEM, "probe", "two") as two:
            wait_for(lambda: not (one.lines.empty() and two.lines.empty()), 30, "a leader")
            leader, other = (two, one) if one.lines.empty() else (one, two)
            leader.until("leading")
            time.sleep(6)  # longer than the lease: it was renewed
            self.assertTrue(other.lines.empty())
            began = time.monotonic()
            self.assertEqual(leader.end()[-1], "stopped")
            other.until("leading", 5)
            print(f"given back and taken: {time.monotonic() - began:.1f} s", flush=True)
            with self.probe("lease", SYSTEM, "probe", "three") as third:
                time.sleep(1)
                other.process.kill()
                third.until("leading", 15)

    def test_leader_stops_when_the_server_is_gone(self):
        with self.probe("lease", SYSTEM, "outage", "one") as probe:
            probe.until("leading")
            part = self.cluster.parts["kube-apiserver"]
            part.kill()
            try:
                began = time.monotonic()
                probe.until("lost", 10)
                self.assertLess(time.monotonic() - began, 4.5)
            finally:
                part.start()
            probe.until("leading", 60)

    def test_service_account_may_lead(self):
        with Probe(self.cluster.voda_kubeconfig, "lease", SYSTEM, "voda", "me") as probe:
            probe.until("leading")
            self.assertEqual(probe.end()[-1], "stopped")
        lease = self.api.ask("GET", f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/voda")
        self.assertFalse(lease["spec"].get("holderIdentity"))

    def test_writes_that_conflict_say_so(self):
        with self.probe("writes", "default") as probe:
            lines = probe.until("forbidden")
        self.assertEqual(lines, ["create ok", "again AlreadyExists", "merge ok", "merge-stale Conflict", "patch ok",
                                 "patch-other Invalid", "delete-other Conflict", "delete ok", "get NotFound",
                                 "forbidden NotFound"])

    def test_scale_of_a_pytorchjob(self):
        with open(os.path.join(HERE, "jobs", "kwok-pytorchjob.yaml")) as file:
            self.cluster.apply(file.read())
        with self.probe("scale", "kubeflow.org", "v1", "pytorchjobs", "default", "kwok-pytorchjob", "3") as probe:
            self.assertEqual(probe.until("scale"), ["scale ok"])
        job = self.api.get("pytorchjobs", "kwok-pytorchjob")
        self.assertEqual(job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"], 3)
        self.api.delete("pytorchjobs", "kwok-pytorchjob")

    def test_events_become_a_series(self):
        made = self.api.create("configmaps", config_map("spoken-of"))
        with self.probe("event", "ConfigMap", "v1", "default", "spoken-of", made["metadata"]["uid"], "5") as probe:
            def series():
                answer = self.api.ask("GET", "/apis/events.k8s.io/v1/namespaces/default/events")
                return [one for one in answer["items"] if one["reason"] == "Probed" and one.get("series")]
            (event,) = wait_for(series, 30, "a series")
            self.assertEqual(event["series"]["count"], 5)
            self.assertEqual(event["regarding"]["name"], "spoken-of")
            self.assertEqual(event["note"], "said by the probe")
            self.assertEqual(probe.end()[-1], "sent 2 lost 0")


if __name__ == "__main__":
    unittest.main()
