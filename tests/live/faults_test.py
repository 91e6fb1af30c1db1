"""What goes wrong around `voda up` has a clear outcome: disks, folders, databases, ports, clients, workers."""
import os
import signal
import socket
import stat
import subprocess
import time
import unittest

import live


def up_fails(folder, *flags):
    done = subprocess.run([live.VODA, "up", "--data", folder, "--listen", "127.0.0.1:0", *flags], cwd=live.ROOT,
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


class StartTest(live.LiveTest):
    def test_a_folder_that_cannot_be_written(self):
        voda = self.voda()
        mount = os.path.join(voda.folder, "ro")
        os.mkdir(mount)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", mount], check=True)
        self.addCleanup(subprocess.run, ["umount", mount], check=True)
        code, text = up_fails(os.path.join(mount, "data"))
        self.assertEqual(code, 1, text)
        self.assertIn("Read-only file system", text)
        code, text = up_fails(mount)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, "Read-only|cannot be written")

    def test_a_damaged_database(self):
        voda = self.voda().start()
        voda.submit(live.job("x", ["sleep", "300"]))
        voda.stop()
        path = os.path.join(voda.folder, "voda.db")
        with open(path, "r+b") as file:
            file.seek(0)
            file.write(b"this is not a database, is it? " * 40)
        before = open(path, "rb").read()
        code, text = up_fails(voda.folder)
        self.assertEqual(code, 1, text)
        self.assertIn("voda.db", text)
        self.assertEqual(open(path, "rb").read(), before, "nothing is changed")

    def test_a_folder_in_use(self):
        voda = self.voda().start()
        code, text = up_fails(voda.folder)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, "in use|locked|another")

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            folder = self.voda().folder
            done = subprocess.run([live.VODA, "up", "--data", folder, "--listen", f"127.0.0.1:{port}"], cwd=live.ROOT,
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"127.0.0.1:{port}", done.stderr)
        self.assertIn("--listen", done.stderr)

    def test_a_token_that_others_can_read(self):
        voda = self.voda().start()
        voda.stop()
        os.chmod(os.path.join(voda.folder, "token"), 0o644)
        code, text = up_fails(voda.folder)
        self.assertEqual(code, 1, text)
        self.assertIn("chmod", text)

    def test_a_folder_that_others_write_to_is_left_alone(self):
        folder = os.path.join(self.voda().folder, "everybodys")
        os.mkdir(folder)
        for mode, fix in ((0o1777, folder + "/voda"), (0o770, "chmod go-w " + folder)):
            os.chmod(folder, mode)
            code, text = up_fails(folder)
            self.assertEqual(code, 1, text)
            self.assertIn("other users may write to it", text)
            self.assertIn(fix, text)
            self.assertEqual((stat.S_IMODE(os.stat(folder).st_mode), os.listdir(folder)), (mode, []))
        os.chmod(folder, 0o755)
        voda = self.voda("--rate-limit", "0s", folder=folder).start()
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o755)
        [name] = voda.submit(live.job("x", ["true"]))
        voda.wait(name, "Completed")
        for entry in os.scandir(folder):
            if entry.name != "up.log":  # the test's
                self.assertEqual(stat.S_IMODE(entry.stat().st_mode) & 0o077, 0, entry.name)

    def test_flags_that_cannot_be(self):
        folder = self.voda().folder
        for flags, expected in ((["--nodes", "a"], "NAME:SLOTS"), (["--nodes", "a:2,a:2"], "twice"),
                                (["--algorithm", "Best"], "ElasticFIFO"), (["--rate-limit", "soon"], "30s"),
                                (["--log-level", "loud"], "debug"), (["--workdir", "/nowhere"], "no such folder")):
            code, text = up_fails(folder, *flags)
            self.assertEqual(code, 2, text)
            self.assertIn(expected, text)


class DiskTest(live.LiveTest):
    def test_a_full_disk_refuses_and_recovers(self):
        voda = self.voda("--slots", "2", "--rate-limit", "0s")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", voda.folder], check=True)
        try:
            voda.start()
            [before] = voda.submit(live.job("before", ["sleep", "300"]))
            voda.wait(before, "Running")
            filler = os.path.join(voda.folder, "filler")
            file = os.open(filler, os.O_WRONLY | os.O_CREAT)
            try:
                while True:
                    os.write(file, b"x" * 4096)
            except OSError:
                os.close(file)
            with self.assertRaises(live.HttpError) as refused:
                for i in range(300):
                    voda.submit(live.job(f"full-{i}", ["sleep", "300"], env={"FILL": "y" * 20000}))
            self.assertEqual(refused.exception.status, 503, refused.exception.body)
            self.assertIn("nothing was accepted", refused.exception.message)
            accepted = set(voda.jobs())
            with self.assertRaises(live.HttpError) as unready:
                voda.ask("GET", "/readyz", raw=True)
            self.assertEqual(unready.exception.status, 503)
            self.assertEqual(voda.job(before)["status"], "Running")
            os.remove(filler)
            live.wait_for(lambda: self.ready(voda), 60, lambda: f"the store to recover\n{voda.tail()}")
            [after] = voda.submit(live.job("after", ["sleep", "300"]))
            voda.kill()
            voda.start()
            self.assertEqual(set(voda.jobs()), accepted | {after})
        finally:
            voda.stop()
            for pid in live.processes_of(voda.folder):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            live.wait_for(lambda: not live.processes_of(voda.folder), 30, "processes to end")
            subprocess.run(["umount", voda.folder], check=True)

    @staticmethod
    def ready(voda):
        try:
            return voda.ask("GET", "/readyz", raw=True) == "ok\n"
        except live.HttpError:
            return False


class ClientTest(live.LiveTest):
    def test_half_sent_requests_and_rubbish_cost_nobody_else_anything(self):
        voda = self.voda("--slots", "2", "--rate-limit", "0s").start()
        port = int(voda.url.rpartition(":")[2])
        open_ones = []
        for text in (b"", b"GET", b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nhalf",
                     b"\x16\x03\x01\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100_000,
                     b"GET /%ff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            for _ in range(20):
                connection = socket.create_connection(("127.0.0.1", port))
                connection.sendall(text)
                open_ones.append(connection)
        began = time.monotonic()
        self.assertEqual(voda.ask("GET", "/livez", raw=True), "ok\n")
        [name] = voda.submit(live.job("through", ["true"]))
        voda.wait(name, "Completed")
        self.assertLess(time.monotonic() - began, 25, "others did not wait for the time limits")
        for connection in open_ones:
            connection.close()


class WorkerTest(live.LiveTest):
    def setUp(self):
        self.up = self.voda("--slots", "2", "--rate-limit", "0s").start()

    def gone(self, name):
        job = self.up.job(name)
        folder = os.path.join(self.up.folder, "jobs", str(job["id"]))
        live.wait_for(lambda: not live.processes_of(folder), 60, "its processes to be gone")

    def test_a_worker_that_ignores_sigterm_is_killed_after_its_grace(self):
        script = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(300)"
        [name] = self.up.submit(live.job("stubborn", [live.PYTHON, "-c", script], grace=2))
        live.wait_for(lambda: "up" in self.up.ask("GET", f"/api/v1/jobs/{name}/logs", raw=True), 60, "the worker")
        self.up.ask("DELETE", f"/api/v1/jobs/{name}")
        live.wait_for(lambda: self.up.job(name)["status"] == "Canceled", 60, "the end")
        self.gone(name)

    def test_a_worker_that_forks_leaves_nothing_behind(self):
        script = "(setsid sleep 300 &) ; sleep 300 & sleep 300 & wait"
        [name] = self.up.submit(live.job("forker", ["sh", "-c", script], grace=2))
        folder = os.path.join(self.up.folder, "jobs", str(self.up.job(name)["id"]))
        live.wait_for(lambda: len(live.processes_of(folder)) >= 5, 60, "its processes")
        self.up.ask("DELETE", f"/api/v1/jobs/{name}")
        live.wait_for(lambda: self.up.job(name)["status"] == "Canceled", 60, "the end")
        self.gone(name)
        [short] = self.up.submit(live.job("short", ["sh", "-c", "(setsid sleep 300 &) ; sleep 2"]))
        self.up.wait(short, "Completed")
        self.gone(short)

    def test_a_job_that_exits_at_once_for_ever_fails_with_its_last_lines(self):
        [name] = self.up.submit(live.job("crash", ["sh", "-c", "echo the reason is here >&2; exit 3"], backoff=2))
        live.wait_for(lambda: self.up.job(name)["status"] == "Failed", 120, lambda: self.up.job(name))
        job = self.up.job(name)
        self.assertIn("code 3", job["message"])
        self.assertIn("the reason is here", job["message"])
        self.assertEqual(job["failures"], 3)
        [other] = self.up.submit(live.job("other", ["true"]))
        self.up.wait(other, "Completed")

    def test_a_script_that_fails_inside_torchrun_fails_the_job(self):
        script = os.path.join(self.up.folder, "broken.py")
        with open(script, "w") as file:
            file.write("import no_such_module_of_mine\n")
        torchrun = ["torchrun", "--redirects", "1", "--tee", "1", "--monitor_interval", "1"]
        [name] = self.up.submit(live.job("broken", [*torchrun, script], 1, 2, backoff=2,
                                         env={"PET_RDZV_CONF": "last_call_timeout=1,is_host=1"}))
        live.wait_for(lambda: self.up.job(name)["status"] == "Failed", 120, lambda: self.up.job(name))
        self.assertIn("no_such_module_of_mine", self.up.job(name)["message"])
        self.assertEqual(self.up.job(name)["failures"], 3)

    def test_restart_policy_never(self):
        [name] = self.up.submit(live.job("never", ["sh", "-c", "sleep 1; exit 1"], restart="Never"))
        live.wait_for(lambda: self.up.job(name)["status"] == "Failed", 60, lambda: self.up.job(name))
        self.assertEqual(self.up.job(name)["starts"], 1)

    def test_a_program_that_is_not_there(self):
        [name] = self.up.submit(live.job("absent", ["/no/such/program"], backoff=0))
        live.wait_for(lambda: self.up.job(name)["status"] == "Failed", 60, lambda: self.up.job(name))
        self.assertIn("/no/such/program", self.up.job(name)["message"])

    def test_a_worker_killed_by_hand_is_started_again(self):
        [name] = self.up.submit(live.job("victim", ["sh", "-c", "exec sleep 300"]))
        self.up.wait(name, "Running")
        victims = live.wait_for(lambda: [pid for pid, env in live.environments() if env.get("JOB_NAME") == name], 60,
                                "the worker")
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        live.wait_for(lambda: self.up.job(name)["starts"] == 2 and self.up.job(name)["status"] == "Running", 60,
                      lambda: self.up.job(name))

    def test_jobs_start_from_a_clean_environment(self):
        self.up.stop()
        dirty = {**os.environ, "SECRET_OF_THE_OPERATOR": "x"}
        voda = self.voda("--slots", "1", environment=dirty).start()
        [name] = voda.submit(live.job("clean", ["env"], env={"GREETING": "hello $(JOB_NAME) $$(X) $(UNKNOWN)"}))
        voda.wait(name, "Completed")
        log = voda.ask("GET", f"/api/v1/jobs/{name}/logs", raw=True)
        self.assertNotIn("SECRET_OF_THE_OPERATOR", log)
        self.assertIn(f"GREETING=hello {name} $(X) $(UNKNOWN)", log)
        self.assertIn("CUDA_VISIBLE_DEVICES=", log)
        self.assertNotIn(voda.token, log)


if __name__ == "__main__":
    live.main()
