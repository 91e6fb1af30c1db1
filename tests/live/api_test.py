"""The API of a running `voda up`: every route, who may, and what is refused."""
import json
import os
import socket
import stat
import subprocess
import threading
import unittest

import live

SLEEP = ["sleep", "300"]


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

    def test_no_auth_is_for_loopback_only(self):
        for flags, text in ((["--listen", "0.0.0.0:0", "--no-auth"], "loopback"),
                            (["--listen", "0.0.0.0:0"], "--tls-cert")):
            done = subprocess.run([live.VODA, "up", "--data", self.up.folder + "-x", *flags], capture_output=True,
                                  text=True, timeout=30, cwd=live.ROOT)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)

    # ---- jobs

    def test_a_job_from_submission_to_deletion(self):
        [name] = self.up.submit(live.job("life", SLEEP, 1, 3, env={"EPOCHS": 10}))
        self.up.wait(name, "Running")
        live.wait_for(lambda: self.up.job(name)["workers"] == 3, 30, "growth")
        job = self.up.job(name)
        self.assertEqual((job["min"], job["num"], job["max"], job["kind"]), (1, 1, 3, "PyTorchJob"))
        self.assertEqual(job["document"]["metadata"]["name"], "life")
        self.assertEqual(job["speedup"], {"1": 1, "2": 2, "3": 3})
        self.assertIn("grew", job["sizes"][-1]["reason"])
        self.assertEqual(self.up.ask("PATCH", f"/api/v1/jobs/{name}", {"max": 2})["max"], 2)
        live.wait_for(lambda: self.up.job(name)["workers"] == 2, 60, "a shrink")
        self.assertTrue(self.up.ask("POST", f"/api/v1/jobs/{name}/hold")["held"])
        live.wait_for(lambda: self.up.job(name)["workers"] == 0, 60, "the hold")
        self.up.ask("POST", f"/api/v1/jobs/{name}/resume")
        live.wait_for(lambda: self.up.job(name)["workers"] == 2, 60, "the start")
        self.up.ask("DELETE", f"/api/v1/jobs/{name}")
        live.wait_for(lambda: self.up.job(name)["status"] == "Canceled", 60, "the end")
        self.assertIn("has ended", self.refused(409, "DELETE", f"/api/v1/jobs/{name}"))
        self.assertIn("has ended", self.refused(409, "PATCH", f"/api/v1/jobs/{name}", {"priority": 1}))

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

    def test_events_of_one_job_come_in_order(self):
        [name] = self.up.submit(live.job("stream", ["sh", "-c", "sleep 1"]))
        self.up.wait(name, "Completed")
        info = self.up.ask("GET", "/api/v1/info")
        self.assertEqual(info["cluster"], "local")
        with socket.create_connection(("127.0.0.1", int(self.up.url.rpartition(":")[2]))) as connection:
            [later] = self.up.submit(live.job("stream", ["sh", "-c", "sleep 2"]))
            connection.sendall(f"GET /api/v1/events?job={later} HTTP/1.1\r\nHost: localhost\r\n"
                               f"Authorization: Bearer {self.up.token}\r\n\r\n".encode())
            connection.settimeout(60)
            text = b""
            while b"job.completed" not in text:
                piece = connection.recv(65536)
                self.assertTrue(piece, text)
                text += piece
        self.assertIn(b"text/event-stream", text)
        data = [json.loads(line[6:]) for line in text.split(b"\n") if line.startswith(b"data: ")]
        self.assertEqual({event["job"] for event in data}, {later})
        sequence = [event["seq"] for event in data]
        self.assertEqual(sequence, sorted(sequence))

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


if __name__ == "__main__":
    live.main()
