"""The API of a running `voda up`: every route, who may, and what is refused."""
import json
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import tempfile
import threading
import time
import unittest

import live

SLEEP = ["sleep", "300"]
NVML = r'''
#include <stdint.h>
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { *device = (void*)(uintptr_t)(index + 1); return 0; }
int nvmlDeviceGetName(void* device, char* name, unsigned size) { strncpy(name, "Fake", size); return 0; }
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long memory[3]) {
  memory[0] = 1000;
  memory[2] = 399 + (uintptr_t)device;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned rates[2]) { rates[0] = 25; return 0; }
const char* nvmlErrorString(int code) { return "fine"; }
'''


class ApiTest(live.LiveTest):
    @classmethod
    def setUpClass(cls):
        cls.up = live.Voda("--nodes", "a:2,b:2", "--rate-limit", "0s", "--algorithm", "ElasticFIFO").start()

    @classmethod
    def tearDownClass(cls):
        cls.up.close()

    def setUp(self):
        for name, job in self.up.jobs().items():
            if job["ended"]:
                continue
            try:
                self.up.ask("DELETE", f"/api/v1/jobs/{name}")
            except live.HttpError as error:
                if error.status != 409:  # it ended meanwhile
                    raise
        live.wait_for(lambda: all(job["ended"] for job in self.up.jobs().values()), 60, "jobs to end")

    def refused(self, status, method, path, body=None, **keywords):
        with self.assertRaises(live.HttpError) as caught:
            self.up.ask(method, path, body, **keywords)
        self.assertEqual(caught.exception.status, status, caught.exception.body)
        return caught.exception.message

    # ---- who may

    def test_a_token_is_needed(self):
        self.refused(401, "GET", "/api/v1/jobs", token=False)
        self.refused(401, "GET", "/api/v1/jobs", token="wrong")
        self.refused(401, "GET", "/metrics", token=False)
        self.refused(401, "POST", "/training", live.job("x", SLEEP), token=False)
        self.assertEqual(self.up.ask("GET", "/livez", token=False, raw=True), "ok\n")
        self.assertEqual(self.up.ask("GET", "/readyz", token=False, raw=True), "ok\n")
        mode = stat.S_IMODE(os.stat(os.path.join(self.up.folder, "token")).st_mode)
        self.assertEqual(mode, 0o600)

    def test_pages_from_elsewhere_are_refused(self):
        self.refused(403, "GET", "/api/v1/jobs", headers={"Host": "evil.example"})
        self.refused(403, "POST", "/api/v1/jobs", live.job("x", SLEEP), headers={"Origin": "https://evil.example"})
        self.refused(403, "POST", "/api/v1/jobs", live.job("x", SLEEP), headers={"Origin": "null"})
        self.assertFalse([job for job in self.up.jobs().values() if not job["ended"]])

    def test_refusals_are_counted_and_told_but_fill_no_disk(self):
        def refused():
            text = self.up.ask("GET", "/metrics", raw=True)
            found = re.search(r'^voda_http_requests_total\{route="refused",method="PATCH",code="401"\} (\d+)$', text, re.M)
            return int(found[1]) if found else 0
        before = refused()
        with open(self.up.log) as log:
            lines = len(log.readlines())
        for _ in range(50):
            self.refused(401, "PATCH", "/api/v1/jobs/x", {}, token="wrong")
        self.assertEqual(refused(), before + 50)
        with open(self.up.log) as log:
            told = [line for line in log.readlines()[lines:] if "request refused" in line]
        self.assertLessEqual(1, len(told))
        self.assertLessEqual(len(told), 20)
        self.assertIn("method=PATCH path=/api/v1/jobs/x", told[0])

    def test_no_auth_is_for_loopback_only(self):
        for flags, text in ((["--listen", "0.0.0.0:0", "--no-auth"], "loopback"),
                            (["--listen", "0.0.0.0:0"], "--tls-cert")):
            done = subprocess.run([live.VODA, "up", "--data", self.up.folder + "-x", *flags], capture_output=True,
                                  text=True, timeout=30, cwd=live.ROOT)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)

    def test_no_auth_is_warned_of(self):
        up = self.voda("--no-auth", "--behind-proxy", "--host", "voda.example.com").start()
        self.assertRegex(up.tail(), "warn +no token is asked for .*proxy")

    def test_unknown_parameters_are_refused_everywhere(self):
        document = self.up.ask("GET", "/api/v1/openapi.json")
        for path, methods in document["paths"].items():
            for method in methods:
                message = self.refused(400, method.upper(), path.replace("{name}", "x") + "?dryrun=true")
                self.assertIn("dryrun", message)
        jobs = len(self.up.jobs())
        self.refused(400, "POST", "/api/v1/jobs?dryrun=true", live.job("dry", SLEEP))
        self.assertIn("namespace", self.refused(400, "GET", "/api/v1/jobs?namespace=a"))
        self.assertEqual(len(self.up.jobs()), jobs)

    # ---- jobs

    def test_a_job_from_submission_to_deletion(self):
        [name] = self.up.submit(live.job("life", SLEEP, 1, 3, env={"EPOCHS": 10}))
        self.up.wait(name, "Running")
        live.wait_for(lambda: self.up.job(name)["workers"] == 3, 30, "growth")
        job = self.up.job(name)
        self.assertEqual((job["min"], job["num"], job["max"], job["kind"]), (1, 1, 3, "PyTorchJob"))
        self.assertEqual(job["document"]["metadata"]["name"], "life")
        # It has reported nothing, so its speed-up is a guess.
        self.assertEqual({size: round(value, 3) for size, value in job["speedup"].items()},
                         {"1": 1, "2": 1.741, "3": 2.408})
        self.assertIn("grew", job["sizes"][-1]["reason"])
        self.assertEqual(self.up.ask("PATCH", f"/api/v1/jobs/{name}", {"max": 2})["max"], 2)
        live.wait_for(lambda: self.up.job(name)["workers"] == 2, 60, "a shrink")
        self.assertTrue(self.up.ask("POST", f"/api/v1/jobs/{name}/hold")["held"])
        live.wait_for(lambda: self.up.job(name)["workers"] == 0, 60, "the hold")
        self.up.ask("POST", f"/api/v1/jobs/{name}/resume")
        live.wait_for(lambda: self.up.job(name)["workers"] == 2, 60, "the start")
        self.up.ask("DELETE", f"/api/v1/jobs/{name}")
        live.wait_for(lambda: self.up.job(name)["status"] == "Canceled", 60, "the end")
        self.assertIn("has ended", self.refused(409, "PATCH", f"/api/v1/jobs/{name}", {"priority": 1}))
        folder = os.path.join(self.up.folder, "jobs", str(job["id"]))
        self.assertTrue(os.path.isdir(folder))
        self.assertIn("--erase", self.refused(409, "DELETE", f"/api/v1/jobs/{name}"))
        self.assertEqual(self.up.ask("DELETE", f"/api/v1/jobs/{name}?erase=true")["status"], "Canceled")
        self.refused(404, "GET", f"/api/v1/jobs/{name}")
        live.wait_for(lambda: not os.path.exists(folder), 30, "its files to be gone")
        self.refused(404, "DELETE", f"/api/v1/jobs/{name}?erase=true")

    def test_refusals_name_field_value_and_fix(self):
        bad = live.job("bad", SLEEP).replace("replicas: 1", "replicas: none")
        self.assertIn("replicas", self.refused(400, "POST", "/api/v1/jobs", bad))
        self.assertIn("v9000", self.refused(400, "POST", "/api/v1/jobs", live.job("bad", SLEEP, type="v9000")))
        self.refused(400, "POST", "/api/v1/jobs", "")
        self.refused(400, "POST", "/api/v1/jobs", "[" * 100_000)
        self.refused(413, "POST", "/api/v1/jobs", "#" * (1 << 21))
        self.refused(404, "GET", "/api/v1/jobs/nobody")
        self.refused(404, "GET", "/api/v1/nothing")
        self.refused(405, "PUT", "/api/v1/jobs")
        self.assertIn("status", self.refused(400, "GET", "/api/v1/jobs?status=Sleeping"))
        self.assertIn("limit", self.refused(400, "GET", "/api/v1/jobs?limit=0"))

    def test_a_dry_run_keeps_nothing(self):
        before = len(self.up.jobs())
        answer = self.up.ask("POST", "/api/v1/jobs?dry_run=true", live.job("dry", SLEEP, 1, 4))
        self.assertEqual(answer["jobs"][0]["would_get"], 4)
        # A flag that is not understood must not create the job for real.
        for flag in ("dry_run", "dry_run=", "dry_run=yes", "dry_run=1"):
            self.assertIn("dry_run", self.refused(400, "POST", "/api/v1/jobs?" + flag, live.job("dry", SLEEP)))
        self.assertEqual(len(self.up.jobs()), before)

    def test_an_idempotency_key_gives_one_job(self):
        yaml = live.job("once", SLEEP)
        names = set()

        def submit():
            names.add(self.up.ask("POST", "/api/v1/jobs", yaml, headers={"Idempotency-Key": "k1"})["jobs"][0]["name"])
        threads = [threading.Thread(target=submit) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(names), 1)
        self.assertIn("another body", self.refused(409, "POST", "/api/v1/jobs", live.job("other", SLEEP),
                                                   headers={"Idempotency-Key": "k1"}))
        for key in ("", " ", "a b", "x" * 256):
            self.assertIn("Idempotency-Key", self.refused(400, "POST", "/api/v1/jobs", yaml,
                                                          headers={"Idempotency-Key": key}))

    def test_lists_are_filtered_and_paged(self):
        names = self.up.submit("---\n".join(live.job(f"page-{i}", SLEEP) for i in range(5)))
        listed = self.up.ask("GET", "/api/v1/jobs?name=page-&limit=2")
        self.assertEqual([job["name"] for job in listed["jobs"]], names[:2])
        rest = self.up.ask("GET", f"/api/v1/jobs?name=page-&after={listed['next']}")
        self.assertEqual([job["name"] for job in rest["jobs"]], names[2:])
        self.assertIsNone(rest["next"])
        live.wait_for(lambda: len(self.up.ask("GET", "/api/v1/jobs?name=page-&status=Running")["jobs"]) == 4, 60, "4")
        waiting = self.up.ask("GET", "/api/v1/jobs?name=page-&status=Waiting,Submitted")["jobs"]
        self.assertEqual([job["name"] for job in waiting], names[4:])

    def test_explain_says_why_who_and_when(self):
        [first] = self.up.submit(live.job("first", SLEEP, 4, env={"EPOCHS": 5}))
        [second] = self.up.submit(live.job("second", SLEEP, 2))
        self.up.wait(first, "Running")
        why = self.up.ask("GET", f"/api/v1/jobs/{second}/explain")
        self.assertEqual((why["status"], why["workers"], why["needs_gpus"], why["free_gpus"]), ("Waiting", 0, 2, 0))
        self.assertEqual([ahead["name"] for ahead in why["ahead"]], [first])
        self.assertGreater(why["expected_start"], self.up.ask("GET", "/api/v1/info")["now"])
        self.assertIn("wait", why["text"])
        self.assertIn(first, self.up.cli("explain", second).stdout)

    def test_logs_are_whole(self):
        lines = 1_500_000
        [name] = self.up.submit(live.job("talker", ["seq", str(lines)], 1, 2))
        self.up.wait(name, "Completed")
        path = f"/api/v1/jobs/{name}/logs"
        whole = "".join(f"{i}\n" for i in range(1, lines + 1))
        self.assertGreater(len(whole), 9 << 20)
        self.assertTrue(self.up.ask("GET", path, raw=True) == whole)
        self.assertTrue(self.up.cli("logs", name).stdout == whole)
        self.assertTrue(self.up.cli("logs", "-f", name).stdout == whole)
        tail = self.up.ask("GET", path + "?tail=1400000", raw=True)
        self.assertTrue(tail == whole[whole.index("\n100001\n") + 1:])
        self.assertEqual(self.up.ask("GET", path + "?tail=2", raw=True), f"{lines - 1}\n{lines}\n")

    def test_logs_of_workers_that_never_were(self):
        [name] = self.up.submit(live.job("one", ["echo", "hello"]))
        self.up.wait(name, "Completed")
        self.assertIn("worker 0 only", self.refused(404, "GET", f"/api/v1/jobs/{name}/logs?worker=9"))
        self.refused(404, "GET", f"/api/v1/jobs/{name}/logs?worker=1&follow=true")
        done = self.up.cli("logs", "--worker", "9", name, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no worker 9", done.stderr)
        [busy] = self.up.submit(live.job("busy", SLEEP, 4))
        [elastic] = self.up.submit(live.job("elastic", SLEEP, 1, 3))
        self.assertEqual(self.up.ask("GET", f"/api/v1/jobs/{elastic}/logs?worker=2", raw=True), "")
        self.assertIn("from 0 to 2", self.refused(404, "GET", f"/api/v1/jobs/{elastic}/logs?worker=3"))
        self.up.ask("DELETE", f"/api/v1/jobs/{elastic}")
        live.wait_for(lambda: self.up.job(elastic)["ended"], 60, "the end")
        self.assertIn("never started", self.refused(404, "GET", f"/api/v1/jobs/{elastic}/logs?worker=2"))
        self.assertEqual(self.up.job(busy)["failures"], 0)

    # ---- the reference's routes

    def test_the_references_routes(self):
        text = self.up.ask("POST", "/training", live.job("ref", ["sh", "-c", "echo hello; sleep 300"]), raw=True)
        lines = text.splitlines()
        name = lines[0].removeprefix("Training job created: ")
        self.assertRegex(name, r"^ref-\d{8}-\d{6}")
        self.assertEqual(lines[1:], ["View your logs by:", f"    voda logs {name}"])
        self.up.wait(name, "Running")
        live.wait_for(lambda: "hello" in self.up.cli(*lines[2].split()[1:]).stdout, 30, "the printed command to work")
        table = self.up.ask("GET", "/training", raw=True).splitlines()
        self.assertEqual(table[0].split(), ["NAME", "STATUS", "WORKERS", "SCHEDULER", "WAITING", "RUNNING", "TOTAL"])
        row = next(line.split() for line in table if line.startswith(name))
        self.assertEqual(row[1:4], ["Running", "1", "cpu"])
        self.assertRegex(row[6], r"^(\d+m)?\d+s$")
        self.assertEqual(self.up.ask("DELETE", "/training", json.dumps(name), raw=True),
                         f"Training job deleted: {name}\n")
        self.refused(404, "DELETE", "/training", '"nobody"')
        self.refused(400, "DELETE", "/training", "nobody")

    def test_algorithm_and_rate_limit(self):
        self.up.ask("PUT", "/algorithm", '"Tiresias"', raw=True)
        self.assertEqual(self.up.ask("GET", "/api/v1/settings")["algorithm"], "Tiresias")
        message = self.refused(400, "PUT", "/algorithm", '"Best"')
        self.assertIn("ElasticTiresias", message)
        self.assertEqual(self.up.ask("GET", "/api/v1/settings")["algorithm"], "Tiresias")
        self.refused(400, "PUT", "/algorithm", '"exec:/bin/sh"')
        self.up.ask("PUT", "/ratelimit", "2.5", raw=True)
        self.assertEqual(self.up.ask("GET", "/api/v1/settings")["rate_limit_seconds"], 2.5)
        self.refused(400, "PUT", "/ratelimit", "-1")
        self.refused(400, "PUT", "/ratelimit", '"fast"')
        self.up.ask("PUT", "/api/v1/settings", {"algorithm": "ElasticFIFO", "rate_limit_seconds": 0})

    def test_allocation_of_the_reference(self):
        body = {"SchedulerID": "s", "NumGpu": 4, "AlgorithmName": "ElasticFIFO", "ReadyJobs": [
            {"job_name": "a", "config": {"num_proc": 1, "min_num_proc": 1, "max_num_proc": 4}}]}
        self.assertEqual(self.up.ask("POST", "/allocation", body), {"a": 4})
        self.refused(400, "POST", "/allocation", {"NumGpu": 4})

    # ---- nodes, decisions, events, metrics

    def test_nodes(self):
        self.assertEqual([node["name"] for node in self.up.ask("GET", "/api/v1/nodes")["nodes"]], ["a", "b"])
        self.up.ask("POST", "/api/v1/nodes", {"name": "c", "gpus": 2})
        self.refused(409, "POST", "/api/v1/nodes", {"name": "c", "gpus": 2})
        self.refused(400, "POST", "/api/v1/nodes", {"name": "../x", "gpus": 2})
        self.refused(400, "POST", "/api/v1/nodes", {"name": "d", "gpus": 0})
        self.assertEqual(self.up.ask("POST", "/api/v1/nodes/c/cordon")["state"], "cordoned")
        self.assertEqual(self.up.ask("POST", "/api/v1/nodes/c/drain")["state"], "draining")
        self.assertEqual(self.up.ask("POST", "/api/v1/nodes/c/uncordon")["state"], "ready")
        self.up.ask("DELETE", "/api/v1/nodes/c")
        self.refused(404, "POST", "/api/v1/nodes/c/drain")

    def test_plan_and_rounds(self):
        [name] = self.up.submit(live.job("plan", SLEEP, 2))
        self.up.wait(name, "Running")
        [planned] = self.up.ask("GET", "/api/v1/plan")["jobs"]
        self.assertEqual((planned["name"], planned["workers"], len(planned["nodes"])), (name, 2, 2))
        rounds = self.up.ask("GET", "/api/v1/rounds?limit=5")["rounds"]
        self.assertTrue(any(change["job"] == name for one in rounds for change in one["changes"]))
        self.assertEqual([one["round"] for one in rounds], sorted((one["round"] for one in rounds), reverse=True))
        answer = self.up.ask("POST", "/api/v1/plan?algorithm=FIFO",
                             {"nodes": [{"name": "n", "gpus": 2}], "jobs": [{"name": "j", "min": 1, "max": 2}]})
        self.assertEqual(answer["allocation"], {"j": 1})
        self.refused(400, "POST", "/api/v1/plan", {"nodes": 3})

    def test_a_large_request_is_held_once(self):
        def most():  # KiB that were resident at one time
            with open(f"/proc/{self.up.process.pid}/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        jobs = (", " + " " * (1 << 20)).join(f'{{"name": "j{i}", "min": 1, "max": 2}}' for i in range(96))
        snapshot = f'{{"nodes": [{{"name": "n", "gpus": 2}}], "jobs": [{jobs}]}}'
        before = most()
        answer = self.up.ask("POST", "/api/v1/plan?algorithm=FIFO", snapshot)
        self.assertEqual(sum(answer["allocation"].values()), 2)
        self.assertLess(most() - before, 1.5 * len(snapshot) / 1024)

    def test_events_of_one_job_come_in_order(self):
        [name] = self.up.submit(live.job("stream", ["sh", "-c", "sleep 1"]))
        self.up.wait(name, "Completed")
        info = self.up.ask("GET", "/api/v1/info")
        self.assertEqual(info["cluster"], "local")
        go = os.path.join(self.up.folder, "go")
        with socket.create_connection(("127.0.0.1", int(self.up.url.rpartition(":")[2]))) as connection:
            [later] = self.up.submit(live.job("stream", ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.1; done"]))
            connection.sendall(f"GET /api/v1/events?job={later} HTTP/1.1\r\nHost: localhost\r\n"
                               f"Authorization: Bearer {self.up.token}\r\n\r\n".encode())
            connection.settimeout(60)
            text = b""
            while b"\r\n\r\n" not in text:
                text += self.piece(connection, text)
            open(go, "w").close()  # it follows, and the job may end
            while b"\n\n" not in text.partition(b"job.completed")[2]:
                text += self.piece(connection, text)
        self.assertIn(b"text/event-stream", text)
        data = [json.loads(line[6:]) for line in text.split(b"\n") if line.startswith(b"data: ")]
        self.assertEqual({event["job"] for event in data}, {later})
        sequence = [event["seq"] for event in data]
        self.assertEqual(sequence, sorted(sequence))

    def piece(self, connection, before):
        piece = connection.recv(65536)
        self.assertTrue(piece, before)
        return piece

    def test_metrics_please_promtool(self):
        text = self.up.ask("GET", "/metrics", raw=True)
        self.promtool(text)
        for series in ("voda_jobs_created_total", "voda_rounds_total", "voda_gpus", "voda_round_duration_seconds_bucket"):
            self.assertIn(series, text)

    def test_the_roles_ports_have_their_routes_and_metrics(self):
        base = live.free_ports(3)
        up = self.voda("--slots", "2", "--rate-limit", "0s", listen=f"127.0.0.1:{base}").start()
        [name] = up.submit(live.job("ports", SLEEP))
        up.wait(name, "Running")
        allocation = {"NumGpu": 2, "AlgorithmName": "FIFO", "ReadyJobs": [{"job_name": "a"}]}
        self.assertEqual(up.ask("POST", "/allocation", allocation, port=base + 2), {"a": 1})
        self.assertIn(name, up.ask("GET", "/training", raw=True, port=base + 1))
        for port, there, not_there in ((base, "voda_jobs_created_total", "voda_none"),
                                       (base + 1, "voda_rounds_total", "voda_job_create_duration_seconds"),
                                       (base + 2, "voda_allocation_jobs", "voda_rounds_total")):
            text = up.ask("GET", "/metrics", raw=True, port=port)
            self.promtool(text)
            self.assertEqual((there in text, not_there in text), (True, False), (port, there, not_there))
        for port, path in ((base + 1, "/allocation"), (base + 2, "/training")):
            with self.assertRaises(live.HttpError) as caught:
                up.ask("POST", path, {}, port=port)
            self.assertIn(caught.exception.status, (404, 405))

    def test_metrics_of_gpus(self):
        # A machine with two GPUs, for all that Voda can see.
        folder = tempfile.mkdtemp(prefix="voda-nvml-")
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "nvml.c"), "w") as file:
            file.write(NVML)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", os.path.join(folder, "libnvidia-ml.so.1"), file.name],
                       check=True)
        up = self.voda(environment={**os.environ, "LD_LIBRARY_PATH": folder}).start()
        [node] = up.ask("GET", "/api/v1/nodes")["nodes"]
        self.assertEqual((node["gpu_type"], node["gpus"]), ("fake", 2))
        text = up.ask("GET", "/metrics", raw=True)
        self.promtool(text)
        for device in (0, 1):
            labels = f'{{node="{node["name"]}",device="{device}"}}'
            self.assertIn(f"voda_gpu_memory_bytes{labels} 1000\n", text)
            self.assertIn(f"voda_gpu_memory_used_bytes{labels} {400 + device}\n", text)
            self.assertIn(f"voda_gpu_utilization_ratio{labels} 0.25\n", text)

    def promtool(self, text):
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stderr, checked.stdout), (0, "", ""))

    # ---- progress

    def test_progress_needs_the_jobs_own_token(self):
        script = ("import os, urllib.request as u, time\n"
                  "def tell(body):\n"
                  "  r = u.Request(os.environ['VODA_PROGRESS_URL'], data=body.encode(), method='POST')\n"
                  "  r.add_header('Authorization', 'Bearer ' + os.environ['VODA_PROGRESS_TOKEN'])\n"
                  "  try: print(u.urlopen(r).status, flush=True)\n"
                  "  except u.HTTPError as e: print(e.code, flush=True)\n"
                  "for b in ('{\"epoch\": 0, \"phase\": \"begin\", \"total_epochs\": 4}', '{\"epoch\": 0, \"loss\": 0.5}',\n"
                  "          '{\"epoch\": 0}', '{\"epoch\": -1}', '{\"epoch\": NaN}', 'x' * 100000, '{\"epoch\": 1}'): tell(b)\n"
                  "time.sleep(300)\n")
        [name] = self.up.submit(live.job("report", [live.PYTHON, "-c", script]))
        self.up.wait(name, "Running")
        live.wait_for(lambda: (self.up.job(name)["progress"] or {"epoch": 0})["epoch"] == 2, 60,
                      lambda: self.up.ask("GET", f"/api/v1/jobs/{name}/logs", raw=True))
        live.wait_for(lambda: len(self.up.ask("GET", f"/api/v1/jobs/{name}/logs", raw=True).split()) == 7, 30, "answers")
        codes = self.up.ask("GET", f"/api/v1/jobs/{name}/logs", raw=True).split()
        self.assertEqual(codes, ["204", "204", "400", "400", "400", "400", "204"])
        job = self.up.job(name)
        self.assertEqual((job["progress"]["total_epochs"], job["progress"]["loss"]), (4, 0.5))
        self.refused(403, "POST", f"/api/v1/jobs/{name}/progress", {"epoch": 3}, token="a" * 64)
        self.refused(401, "POST", f"/api/v1/jobs/{name}/progress", {"epoch": 3}, token=False)
        self.assertEqual(self.up.job(name)["progress"]["epoch"], 2)

    def test_progress_as_the_references_csv(self):
        script = ('f="$METRICS_DIR/$JOB_NAME.csv"; echo epoch,epoch_time_sec,loss,total_epochs,workers > $f; '
                  'echo 0,1.5,0.9,8,1 >> $f; echo rubbish >> $f; echo 1,1.5,0.8,8,1 >> $f; sleep 300')
        [name] = self.up.submit(live.job("csv", ["sh", "-c", script]))
        live.wait_for(lambda: (self.up.job(name)["progress"] or {"epoch": 0})["epoch"] == 2, 60, "rows to be read")
        self.assertEqual(self.up.job(name)["progress"]["loss"], 0.8)


REPORTS = ("import os, time, urllib.request as u\n"
           "for epoch in range(10000):\n"
           "  r = u.Request(os.environ['VODA_PROGRESS_URL'], data=b'{\"epoch\": %d}' % epoch, method='POST')\n"
           "  r.add_header('Authorization', 'Bearer ' + os.environ['VODA_PROGRESS_TOKEN'])\n"
           "  while True:\n"
           "    try: print(epoch, u.urlopen(r, timeout=10).status, flush=True); break\n"
           "    except Exception as e: print(epoch, e, flush=True); time.sleep(0.1)\n"
           "  time.sleep(0.1)\n")


class AddressTest(live.LiveTest):
    """Where Voda listens, and who reaches it there: the command line, and jobs that report."""

    def certificate(self, folder, name="127.0.0.1"):
        pair = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-keyout", pair[1], "-out", pair[0], "-days", "2", "-subj", "/CN=voda",
                        "-addext", f"subjectAltName=IP:{name}"], check=True, capture_output=True)
        return pair

    def tls(self):
        up = self.voda("--slots", "1", "--rate-limit", "0s")
        certificate, key = self.certificate(up.folder)
        up.flags += ["--tls-cert", certificate, "--tls-key", key]
        # Python and the command line read the one and the other.
        for variable in ("SSL_CERT_FILE", "VODA_CA_FILE"):
            os.environ[variable] = certificate
            self.addCleanup(os.environ.pop, variable)
        return up.start()

    def epoch(self, up, name):
        return (up.job(name)["progress"] or {"epoch": 0})["epoch"]

    def reports(self, up, more_than=0):
        [name] = [job for job in up.jobs()] or up.submit(live.job("report", [live.PYTHON, "-c", REPORTS]))
        live.wait_for(lambda: self.epoch(up, name) > more_than, 60,
                      lambda: up.ask("GET", f"/api/v1/jobs/{name}/logs?tail=3", raw=True) + up.tail())
        return self.epoch(up, name)

    def test_jobs_report_to_the_next_run_behind_tls(self):
        up = self.tls()
        self.assertTrue(up.url.startswith("https://"), up.url)
        before = self.reports(up)
        up.kill()
        up.start()
        self.reports(up, before + 1)
        self.assertIn("report", up.cli("get", "jobs").stdout)

    def test_jobs_report_over_the_socket_whoever_has_taken_the_port(self):
        up = self.tls()
        script = ("import time, voda_progress\n"
                  "progress = voda_progress.Progress(total_epochs=10000)\n"
                  "for epoch in range(10000): progress.epoch(epoch); time.sleep(0.1)\n")
        [name] = up.submit(live.job("socket", [live.PYTHON, "-c", script],
                                    env={"PYTHONPATH": os.path.join(live.ROOT, "python")}))
        live.wait_for(lambda: self.epoch(up, name) > 0, 60, up.tail)
        [url] = {env["VODA_PROGRESS_URL"] for _, env in live.environments()
                 if env.get("VODA_JOB_DIR", "").startswith(up.folder)}
        up.kill()
        with socket.create_server(("127.0.0.1", int(url.split(":")[2].split("/")[0]))):
            up.start()
            before = self.epoch(up, name)
            live.wait_for(lambda: self.epoch(up, name) > before, 60, up.tail)

    def test_a_renewed_certificate_is_taken_up(self):
        up = self.tls()
        first = open(up.flags[-3]).read()
        port = int(up.url.rpartition(":")[2])
        self.assertEqual(ssl.get_server_certificate(("127.0.0.1", port)), first)
        self.certificate(up.folder)
        second = open(up.flags[-3]).read()
        self.assertNotEqual(first, second)
        live.wait_for(lambda: ssl.get_server_certificate(("127.0.0.1", port)) == second, 30, lambda: up.tail())
        self.assertEqual(up.ask("GET", "/readyz", raw=True), "ok\n")

    def test_a_progress_port_that_is_taken_is_told(self):
        up = self.tls()
        self.reports(up)
        [url] = {env["VODA_PROGRESS_URL"] for _, env in live.environments()
                 if env.get("VODA_JOB_DIR", "").startswith(up.folder)}
        port = int(url.split(":")[2].partition("/")[0])
        up.kill()
        with socket.create_server(("127.0.0.1", port)):
            up.start()
        self.assertRegex(up.tail(), f"another port takes progress reports.*port={port}")
        self.assertEqual(up.ask("GET", "/readyz", raw=True), "ok\n")

    def test_every_loopback_address_is_its_own_name(self):
        for address in ("127.0.0.2", "[::1]"):
            up = self.voda("--slots", "1", "--rate-limit", "0s", listen=f"{address}:0").start()
            self.assertIn(f"http://{address}:", up.url)
            self.assertEqual(up.cli("get", "jobs").returncode, 0)
            self.reports(up)


# Everybody gets the minimum, in the order of the snapshot; five seconds after the program was asked if it is slow.
PROGRAM = '''#!/usr/bin/python3
import json, os, sys, time
snapshot = json.load(sys.stdin)
folder = sys.argv[1]
if os.path.exists(folder + "/slow"):
    open(folder + "/asked", "a").write("x")
    time.sleep(5)
    open(folder + "/answered", "a").write("x")
free = sum(node["gpus"] for node in snapshot["nodes"])
allocation = {}
for job in snapshot["jobs"]:
    if job["min"] <= free:
        allocation[job["name"]] = job["min"]
        free -= job["min"]
print(json.dumps({"allocation": allocation}))
'''


class ExternalPolicyTest(live.LiveTest):
    def test_a_program_that_takes_long_holds_nobody_up(self):
        folder = tempfile.mkdtemp(prefix="voda-policy-")
        self.addCleanup(shutil.rmtree, folder)
        program, slow, end = (os.path.join(folder, name) for name in ("program.py", "slow", "end"))
        with open(program, "w") as file:
            file.write(PROGRAM)
        os.chmod(program, 0o755)
        up = self.voda("--nodes", "a:8", "--rate-limit", "0s", "--algorithm", f"exec:{program} {folder}").start()
        [name] = up.submit(live.job("worker", ["sh", "-c", f"until [ -e {end} ]; do sleep 0.05; done"]))
        up.wait(name, "Running")

        def happened(what):
            return os.path.exists(os.path.join(folder, what))

        open(slow, "w").close()
        [waiting] = up.submit(live.job("next", SLEEP))
        live.wait_for(lambda: happened("asked"), 30, "the program to be asked", every=0.02)
        # A decision is under way. Requests are answered,
        took = []
        until = time.monotonic() + 2.5
        while time.monotonic() < until and len(took) < 200:
            began = time.monotonic()
            up.jobs()
            took.append(time.monotonic() - began)
        # and a worker that ends is seen at once.
        open(end, "w").close()
        began = time.monotonic()
        live.wait_for(lambda: up.job(name)["status"] == "Completed", 30, "the job to end", every=0.02)
        ended = time.monotonic() - began
        self.assertFalse(happened("answered"), "all this took longer than the program")
        self.assertLess(sorted(took)[len(took) * 99 // 100], 0.5, "p99 of GET /api/v1/jobs")
        self.assertLess(ended, 1.5)

        # Whoever asks for a decision waits for the program; nobody waits for them.
        told = []
        asks = threading.Thread(target=lambda: told.append(up.ask("GET", f"/api/v1/jobs/{waiting}/explain")))
        asks.start()
        began = time.monotonic()
        up.jobs()
        self.assertLess(time.monotonic() - began, 0.5)
        self.assertFalse(told)
        os.remove(slow)
        asks.join()
        up.wait(waiting, "Running", 60)
        self.assertIn("decided by the external policy", told[0]["text"])


if __name__ == "__main__":
    live.main()
