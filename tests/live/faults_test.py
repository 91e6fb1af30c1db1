"""What goes wrong around `voda up` has a clear outcome: disks, folders, databases, ports, clients, workers."""
import contextlib
import concurrent.futures
import glob
import os
import pathlib
import re
import resource
import shutil
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
    @contextlib.contextmanager
    def small_disk(self, voda):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", voda.folder], check=True)
        try:
            yield
        finally:
            voda.stop()
            for pid in live.processes_of(voda.folder):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            live.wait_for(lambda: not live.processes_of(voda.folder), 30, "processes to end")
            subprocess.run(["umount", voda.folder], check=True)

    def test_the_job_that_fills_the_disk_can_be_stopped(self):
        port = live.free_ports(3)
        voda = self.voda("--slots", "2", "--rate-limit", "0s", listen=f"127.0.0.1:{port}")
        with self.small_disk(voda):
            voda.start()
            [held] = voda.submit(live.job("held", ["sleep", "300"]))
            voda.wait(held, "Running")
            [filler] = voda.submit(live.job("filler", ["sh", "-c", 'cat /dev/zero > "$VODA_JOB_DIR/zeros"; sleep 300']))
            live.wait_for(lambda: os.statvfs(voda.folder).f_bfree == 0, 60, "the disk to be full")
            voda.ask("POST", f"/api/v1/jobs/{held}/hold")
            live.wait_for(lambda: voda.job(held)["status"] == "Waiting", 60, lambda: f"the hold\n{voda.tail()}")
            # A restart finds its address in the file that it cannot replace.
            voda.kill()
            voda.start(fresh=False)
            self.assertTrue(voda.job(held)["held"], "although the store could not take it")
            voda.ask("DELETE", f"/api/v1/jobs/{filler}")
            live.wait_for(lambda: voda.job(filler)["status"] == "Canceled", 60, lambda: f"the end\n{voda.tail()}")
            voda.kill()
            voda.start(fresh=False)
            live.wait_for(lambda: voda.job(filler)["status"] == "Canceled", 60, lambda: f"the end\n{voda.tail()}")
            # Erasing it frees the disk, although its record can go only then.
            live.wait_for(lambda: self.erased(voda, filler), 60, lambda: f"the job to be erased\n{voda.tail()}")
            live.wait_for(lambda: self.ready(voda), 60, lambda: f"the store to recover\n{voda.tail()}")
            voda.ask("POST", f"/api/v1/jobs/{held}/resume")
            voda.wait(held, "Running")
            voda.kill()
            voda.start()
            self.assertFalse(voda.job(held)["held"])
            self.assertEqual(set(voda.jobs()), {held})

    def test_a_full_disk_refuses_and_recovers(self):
        voda = self.voda("--slots", "2", "--rate-limit", "0s")
        with self.small_disk(voda):
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

    @staticmethod
    def erased(voda, name):
        try:
            voda.ask("DELETE", f"/api/v1/jobs/{name}?erase=true")
        except live.HttpError as error:
            if error.status != 503:
                raise
            return False
        return True

    @staticmethod
    def ready(voda):
        try:
            return voda.ask("GET", "/readyz", raw=True) == "ok\n"
        except live.HttpError:
            return False


class PermissionTest(live.LiveTest):
    def test_a_folder_that_cannot_be_written_any_more(self):
        # Root, but bound by permissions.
        bound = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps",
                 "-dac_override,-dac_read_search"]
        voda = self.voda("--slots", "2", "--rate-limit", "0s", under=bound).start()
        [before] = voda.submit(live.job("before", ["sleep", "300"]))
        voda.wait(before, "Running")
        jobs = os.path.join(voda.folder, "jobs")
        os.chmod(jobs, 0o500)
        with self.assertRaises(live.HttpError) as refused:
            voda.submit(live.job("after", ["true"]))
        self.assertEqual(refused.exception.status, 503)
        self.assertIn("Permission denied", refused.exception.message)
        with self.assertRaises(live.HttpError) as unready:
            voda.ask("GET", "/readyz", raw=True)
        self.assertIn("Permission denied", unready.exception.message)
        self.assertEqual(voda.job(before)["status"], "Running")
        os.chmod(jobs, 0o700)
        [after] = voda.submit(live.job("after", ["true"]))
        voda.wait(after, "Completed")
        # Of one job alone, only its explanation can tell.
        with open(os.path.join(jobs, str(voda.job(after)["id"] + 1)), "w"):
            pass
        [stuck] = voda.submit(live.job("stuck", ["true"]))
        live.wait_for(lambda: "what was tried last failed" in voda.ask("GET", f"/api/v1/jobs/{stuck}/explain")["text"],
                      60, lambda: voda.ask("GET", f"/api/v1/jobs/{stuck}/explain"))


class FolderTest(live.LiveTest):
    """What jobs, users and full tables do to the folders of jobs."""
    def setUp(self):
        self.up = self.voda("--slots", "2", "--rate-limit", "0s").start()

    def path(self, *parts):
        return os.path.join(self.up.folder, *parts)

    def until_told(self, name, code, backoff=None):
        """A job that counts its runs and ends with the code when it is told to."""
        script = f"echo run >> {self.path('runs')}; while ! [ -e {self.path('go')} ]; do sleep 0.05; done; exit {code}"
        [name] = self.up.submit(live.job(name, ["sh", "-c", script], backoff=backoff))
        self.up.wait(name, "Running")
        return name

    def tell(self):
        open(self.path("go"), "w").close()

    def ran_once(self):
        with open(self.path("runs")) as file:
            self.assertEqual(file.read(), "run\n")

    def test_a_log_that_became_a_pipe_holds_nobody_up(self):
        pipes = "cd $VODA_JOB_DIR/../w0-*; rm -f log.0; mkfifo log.0 log.1; "
        for code, status in ((0, "Completed"), (3, "Failed")):
            [name] = self.up.submit(live.job(f"pipe-{code}", ["sh", "-c", f"{pipes} sleep 1; exit {code}"], backoff=0))
            live.wait_for(lambda: self.up.job(name)["status"] == status, 60, lambda: self.up.job(name))
            self.assertEqual(self.up.ask("GET", f"/api/v1/jobs/{name}/logs", raw=True, timeout=10), "")
        self.up.kill()
        self.up.start()
        [other] = self.up.submit(live.job("other", ["true"]))
        self.up.wait(other, "Completed")

    def test_without_descriptors_no_job_is_judged(self):
        name = self.until_told("good", 0)
        limits = resource.prlimit(self.up.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.up.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        self.tell()
        live.wait_for(lambda: "cannot be read yet" in self.up.tail(), 60, self.up.tail)
        resource.prlimit(self.up.process.pid, resource.RLIMIT_NOFILE, limits)
        self.up.wait(name, "Completed")
        self.assertEqual(self.up.job(name)["failures"], 0)
        self.ran_once()

    def test_a_job_whose_folder_is_removed_runs_once(self):
        for restart in (False, True):
            for leftover in ("go", "runs"):
                if os.path.exists(self.path(leftover)):
                    os.remove(self.path(leftover))
            name = self.until_told(f"removed-{restart}".lower(), 0)
            folder = self.path("jobs", str(self.up.job(name)["id"]))
            shutil.rmtree(folder)
            if restart:
                self.up.kill()
                live.wait_for(lambda: os.path.exists(os.path.join(folder, "w0-0", "lock")), 60, "the shim to notice")
                self.up.start()
            self.tell()
            self.up.wait(name, "Completed")
            self.ran_once()

    def test_a_lost_store_gives_no_job_the_folder_of_another(self):
        old = self.until_told("old", 0)
        [ended] = self.up.submit(live.job("ended", ["sh", "-c", "echo of ended; echo x > $VODA_JOB_DIR/checkpoint"]))
        self.up.wait(ended, "Completed")
        ids = [self.up.job(name)["id"] for name in (old, ended)]
        for how in ("moved", "empty"):
            self.up.stop()
            for file in ("voda.db", "voda.db-wal", "voda.db-shm"):
                if os.path.exists(self.path(file)):
                    os.remove(self.path(file))
            if how == "empty":
                open(self.path("voda.db"), "w").close()
                os.chmod(self.path("voda.db"), 0o600)
            if how == "moved":
                # Rebuilt at once, the job that runs goes on as if nothing had happened.
                text = self.up.cli("store", "rebuild").stdout
                self.assertIn(f"{old}: not ended", text)
                self.assertIn(f"{ended}: ended", text)
                self.up.start()
                self.assertEqual(self.up.job(old)["status"], "Running")
                self.assertEqual(self.up.job(ended)["status"], "Completed")
                self.assertIn("of ended", self.up.ask("GET", f"/api/v1/jobs/{ended}/logs", raw=True))
                self.ran_once()
                continue
            self.up.start()
            self.assertIn("the store was lost", self.up.tail())
            [new] = self.up.submit(live.job("new", ["sh", "-c", "ls $VODA_JOB_DIR; sleep 300"]))
            self.up.wait(new, "Running")
            self.assertGreater(self.up.job(new)["id"], max(ids))
            self.up.kill()
            self.up.start()
            self.assertEqual(self.up.job(new)["status"], "Running")
            self.assertEqual(self.up.ask("GET", f"/api/v1/jobs/{new}/logs", raw=True), "")
            # What was stopped, and what is known by now, comes together.
            self.up.stop()
            self.assertIn("2 jobs are in the store again", self.up.cli("store", "rebuild").stdout)
            self.up.start()
            self.assertEqual(set(self.up.jobs()), {old, ended, new})
        self.tell()
        self.up.wait(old, "Completed")

    def test_no_rebuild_while_voda_runs(self):
        done = self.up.cli("store", "rebuild", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("another Voda uses", done.stderr)


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


class TokenTest(live.LiveTest):
    def test_whoever_takes_the_port_of_a_server_that_is_gone_gets_no_token(self):
        voda = self.voda("--slots", "1").start()
        port = int(voda.url.rpartition(":")[2])
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(voda.folder, "socket")).st_mode), 0o600)
        voda.cli("get", "jobs")
        voda.kill()
        with socket.create_server(("127.0.0.1", port)) as thief:
            thief.settimeout(0.1)
            self.assertIn("voda up", voda.cli("get", "jobs", check=False).stderr)
            with self.assertRaises(TimeoutError):
                thief.accept()
        voda.start()
        voda.cli("get", "jobs")
        voda.stop()
        self.assertEqual({"server", "socket", "progress"} & set(os.listdir(voda.folder)), set())

    def test_nor_does_whoever_waits_for_reports_of_a_job_that_runs_on(self):
        for longer in ("", "x" * 100):  # a path that is too long for a socket is reached in another way
            voda = self.voda("--slots", "1", "--rate-limit", "0s")
            if longer:
                voda = self.voda("--slots", "1", "--rate-limit", "0s", folder=os.path.join(voda.folder, longer))
                os.mkdir(voda.folder, 0o700)
            voda.start()
            port = int(voda.url.rpartition(":")[2])
            script = ("import time, voda_progress\n"
                      "progress = voda_progress.Progress(total_epochs=10000)\n"
                      "for epoch in range(10000):\n"
                      "    progress.epoch(epoch); time.sleep(0.1)\n")
            [name] = voda.submit(live.job("reporting", [live.PYTHON, "-c", script],
                                          env={"PYTHONPATH": os.path.join(live.ROOT, "python")}))

            def epoch():
                return (voda.job(name)["progress"] or {"epoch": 0})["epoch"]
            live.wait_for(lambda: epoch() > 0, 60, lambda: voda.tail())
            voda.cli("get", "jobs")
            voda.kill()
            with socket.create_server(("127.0.0.1", port)) as thief:
                thief.settimeout(0.1)
                [log] = glob.glob(os.path.join(voda.folder, "jobs", "*", "w0-*", "log.0"))
                live.wait_for(lambda: "cannot reach Voda" in pathlib.Path(log).read_text(), 60, "the job to try to report")
                with self.assertRaises(TimeoutError):
                    thief.accept()
            voda.start()
            reached = epoch()
            live.wait_for(lambda: epoch() > reached, 60, lambda: voda.tail())
            voda.stop()


class MemoryTest(live.LiveTest):
    def test_hostile_manifests_take_little_memory_and_give_it_back(self):
        voda = self.voda("--slots", "1").start()

        def memory(field):
            with open(f"/proc/{voda.process.pid}/status") as status:
                return int(re.search(rf"^{field}:\s+(\d+) kB$", status.read(), re.M).group(1)) // 1024
        before = memory("VmRSS")

        def submit(piece):
            with self.assertRaises(live.HttpError) as caught:
                voda.ask("POST", "/api/v1/jobs", piece * ((1 << 20) // len(piece)))
            self.assertEqual(caught.exception.status, 400)
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            list(clients.map(submit, ["[", "{", "[1,", '[""'] * 8))
        self.assertLess(memory("VmHWM"), before + 130)
        live.wait_for(lambda: memory("VmRSS") < before + 15, 30, lambda: f"{memory('VmRSS')} MB, {before} before")


class DescriptorTest(live.LiveTest):
    JOB = ["sh", "-c", "ulimit -Sn; until [ -e go ]; do sleep 0.1; done"]

    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.opened = []
        self.addCleanup(lambda: [connection.close() for connection in self.opened])

    def connect(self, voda, text=b""):
        connection = socket.create_connection(("127.0.0.1", int(voda.url.rpartition(":")[2])))
        self.opened.append(connection)
        connection.sendall(text)
        return connection

    def ends_well(self, voda, name):
        """A job that ends while all these connections are there."""
        open(os.path.join(voda.folder, "go"), "w").close()
        voda.wait(name, "Completed")
        self.assertEqual(voda.job(name)["starts"], 1)
        return voda.ask("GET", f"/api/v1/jobs/{name}/logs", raw=True).strip()

    def test_clients_cannot_take_the_schedulers_descriptors(self):
        voda = self.voda("--slots", "1", "--rate-limit", "0s", limits=(1024, 1024))
        voda.flags += ["--workdir", voda.folder]
        voda.start()
        [name] = voda.submit(live.job("ends", self.JOB))
        voda.wait(name, "Running")
        for _ in range(1200):
            self.connect(voda)
        self.assertLess(len(os.listdir(f"/proc/{voda.process.pid}/fd")), 800)
        self.ends_well(voda, name)

    def test_a_thousand_streams_beside_idle_connections(self):
        voda = self.voda("--slots", "1", "--rate-limit", "0s", limits=(1024, 8192))
        voda.flags += ["--workdir", voda.folder]
        voda.start()
        [name] = voda.submit(live.job("streams", self.JOB))
        voda.wait(name, "Running")
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {voda.token}\r\n\r\n"
        streams = [self.connect(voda, head.encode()) for _ in range(1000)]
        for stream in streams:
            stream.settimeout(60)
            self.assertIn(b" 200 ", stream.recv(4096))
        for _ in range(1200):
            self.connect(voda)
        self.assertEqual(self.ends_well(voda, name), "1024", "the limit that voda was started with")
        for stream in streams:
            text = b""
            while b"job.completed" not in text:
                more = stream.recv(65536)
                self.assertTrue(more, "the stream was closed")
                text += more


class LogTest(live.LiveTest):
    def test_a_reader_of_stderr_that_stops_holds_up_nothing(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        with open(writer, "wb") as stderr:
            voda = self.voda("--slots", "1", "--rate-limit", "0s", "--log-level", "debug", stderr=stderr).start()
        self.flood(voda)
        self.assertEqual(voda.ask("GET", "/livez", raw=True), "ok\n")
        self.assertEqual(voda.ask("GET", "/readyz", raw=True), "ok\n")
        [name] = voda.submit(live.job("unheard", ["true"]))
        voda.wait(name, "Completed")
        metrics = voda.ask("GET", "/metrics", raw=True)
        self.assertGreater(float(re.search(r"^voda_log_lines_lost_total (\S+)$", metrics, re.M).group(1)), 50)
        text = b""
        while b"nobody read them" not in text:
            text += os.read(reader, 65536)
        self.flood(voda)
        voda.process.terminate()
        self.assertEqual(voda.process.wait(timeout=30), 0, "SIGTERM is heard")

    def flood(self, voda):
        for _ in range(200):  # each makes a line of 10 kB; that is more than may wait
            with self.assertRaises(live.HttpError):
                voda.ask("GET", "/" + "x" * 10_000, timeout=20)


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
        self.assertEqual(job["exit_code"], 3)
        self.assertIn("the reason is here", job["message"])
        self.assertEqual(job["failures"], 3)
        self.assertEqual(job["starts"], 3)
        self.assertGreater(job["first_started"], job["submitted"])
        self.assertGreater(job["running_seconds"], 0)
        [other] = self.up.submit(live.job("other", ["true"]))
        job = self.up.wait(other, "Completed")
        self.assertEqual(job["starts"], 1)
        self.assertEqual(job["exit_code"], 0)
        self.assertIsNotNone(job["first_started"])
        self.assertGreater(job["running_seconds"], 0)

    def test_a_script_that_fails_inside_torchrun_fails_the_job(self):
        script = os.path.join(self.up.folder, "broken.py")
        with open(script, "w") as file:
            file.write("import no_such_module_of_mine\n")
        torchrun = ["torchrun", "--redirects", "1", "--tee", "1", "--monitor_interval", "1"]
        [name] = self.up.submit(live.job("broken", [*torchrun, script], 1, 2, backoff=2,
                                         env={"PET_RDZV_CONF": "last_call_timeout=1"}))
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
        live.wait_for(lambda: "workers started again" in self.up.tail(), 60, self.up.tail)
        self.assertEqual(self.up.tail().count("worker failed"), 1, "a restart is no failure")

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
