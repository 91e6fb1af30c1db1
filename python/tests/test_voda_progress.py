"""Tests of voda_progress with real servers, files and processes.

Run: /usr/bin/python3 -m unittest discover -s python/tests"""

import contextlib
import csv
import http.server
import json
import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import unittest
from unittest import mock

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, FOLDER)

import voda_progress  # noqa: E402
from voda_progress import Progress  # noqa: E402

VARIABLES = ("VODA_PROGRESS_URL", "VODA_PROGRESS_TOKEN", "VODA_PROGRESS_SOCKET", "METRICS_DIR", "JOB_NAME", "EPOCHS", "RANK", "WORLD_SIZE",
             "HOROVOD_RANK", "HOROVOD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
             "VODA_WORKER", "GROUP_WORLD_SIZE")
GENEROUS = 60  # seconds that something may take on a loaded machine
QUICK = 30  # seconds for calls that must not wait; each waiting one would take longer than that


class Server:
    """A Voda that remembers what it was told. `answer` says what it does with a request."""

    def __init__(self, answer=lambda server, body: 204):
        self.bodies = []
        self.headers = []
        self.requests = 0
        self.released = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.requests += 1
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = answer(outer, body)
                if status is None:  # hangs up
                    self.close_connection = True
                    return
                if 200 <= status < 300:
                    outer.bodies.append(body)
                    outer.headers.append(dict(self.headers))
                self.send_response(status)
                self.end_headers()
                if status >= 400:
                    self.wfile.write(b'{"error": {"code": "x", "message": "because"}}')

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = "http://127.0.0.1:%d/api/v1/jobs/mnist-1/progress" % self.port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self):
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def phases(self):
        return [(body["phase"], body["epoch"]) for body in list(self.bodies)]


class Case(unittest.TestCase):
    def setUp(self):
        clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        patch = mock.patch.dict(os.environ, clean, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        patch = mock.patch("voda_progress.atexit")  # what a test leaves unsent is not waited for at the end of all
        patch.start()
        self.addCleanup(patch.stop)
        # A request that is given up is sent again, and what arrives is counted here.
        patch = mock.patch("voda_progress._REQUEST_SECONDS", GENEROUS)
        patch.start()
        self.addCleanup(patch.stop)
        self.folder = tempfile.mkdtemp(prefix="voda_progress_test")
        self.addCleanup(shutil.rmtree, self.folder)
        logging.getLogger("voda_progress").setLevel(logging.CRITICAL)
        self.addCleanup(logging.getLogger("voda_progress").setLevel, logging.NOTSET)

    def serve(self, *args):
        server = Server(*args)
        self.addCleanup(server.close)
        os.environ["VODA_PROGRESS_URL"] = server.url
        os.environ["VODA_PROGRESS_TOKEN"] = "secret"
        return server

    def use_csv(self, name="job-1"):
        os.environ["METRICS_DIR"] = self.folder
        os.environ["JOB_NAME"] = name
        return os.path.join(self.folder, name + ".csv")

    def eventually(self, condition, what):
        deadline = time.monotonic() + GENEROUS
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)

    @contextlib.contextmanager
    def quickly(self):
        began = time.monotonic()
        yield
        self.assertLess(time.monotonic() - began, QUICK, "training was held up")


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Http(Case):
    def test_begin_and_epochs_arrive_in_order_with_all_fields(self):
        server = self.serve()
        os.environ["WORLD_SIZE"] = "3"
        progress = Progress(total_epochs=4)
        progress.begin(epoch=2)
        time.sleep(0.05)
        progress.epoch(2, loss=0.5)
        progress.epoch(3, loss=0.25, epoch_seconds=7.5)
        self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("begin", 2), ("epoch", 2), ("epoch", 3)])
        self.assertEqual(server.bodies[0], {"epoch": 2, "total_epochs": 4, "workers": 3, "phase": "begin"})
        self.assertGreaterEqual(server.bodies[1].pop("epoch_seconds"), 0.05)
        self.assertEqual(server.bodies[1],
                         {"epoch": 2, "total_epochs": 4, "workers": 3, "loss": 0.5, "phase": "epoch"})
        self.assertEqual(server.bodies[2]["epoch_seconds"], 7.5)
        self.assertEqual(server.headers[0]["Authorization"], "Bearer secret")
        self.assertEqual(server.headers[0]["Content-Type"], "application/json")

    def test_epochs_are_counted_where_no_number_is_given(self):
        server = self.serve()
        with Progress() as progress:
            progress.begin(5)
            progress.epoch()
            progress.epoch()
            progress.flush(GENEROUS)
        self.assertEqual(server.phases(), [("begin", 5), ("epoch", 5), ("epoch", 6)])

    def test_total_epochs_come_from_the_environment(self):
        server = self.serve()
        os.environ["EPOCHS"] = "12"
        with Progress() as progress:
            progress.begin(0)
            progress.flush(GENEROUS)
        self.assertEqual(server.bodies[0]["total_epochs"], 12)

    def test_an_epoch_that_began_in_the_middle_has_no_time(self):
        server = self.serve()
        with Progress() as progress:
            progress.begin(2.5)
            progress.epoch(loss=1)
            progress.begin(2.9999999)
            progress.epoch(loss=1)
            progress.flush(GENEROUS)
        self.assertEqual(server.phases(), [("begin", 2), ("epoch", 2), ("begin", 3), ("epoch", 3)])
        self.assertNotIn("epoch_seconds", server.bodies[1])
        self.assertIn("epoch_seconds", server.bodies[3])

    def test_an_epoch_on_two_sizes_has_no_time(self):
        server = self.serve()
        with Progress(workers=2) as progress:
            progress.begin(0)
            progress.workers = 3
            progress.epoch(0)
            progress.epoch(1)
            progress.flush(GENEROUS)
        self.assertNotIn("epoch_seconds", server.bodies[1])
        self.assertEqual(server.bodies[1]["workers"], 3)
        self.assertIn("epoch_seconds", server.bodies[2])

    def test_what_is_no_number_is_left_out(self):
        server = self.serve()
        with Progress(total_epochs="many") as progress:
            progress.begin(0)
            for loss in (float("nan"), float("inf"), "abc", object(), [1, 2]):
                progress.epoch(loss=loss, epoch_seconds=1)
            progress.epoch(loss="0.5", epoch_seconds=float("nan"))
            progress.flush(GENEROUS)
        self.assertEqual(len(server.bodies), 7)
        for body in server.bodies[1:6]:
            self.assertNotIn("loss", body)
            self.assertNotIn("total_epochs", body)
        self.assertEqual(server.bodies[6]["loss"], 0.5)

    def test_steps_are_rate_limited_and_the_newest_wins(self):
        server = self.serve()
        progress = Progress(step_seconds=0.2)
        progress.begin(1)
        began = time.monotonic()
        step = 0
        while time.monotonic() < began + 1.0 or step <= 1000:
            step += 1
            progress.step(step, 10 ** 9, loss=0.5)
        elapsed = time.monotonic() - began
        self.assertTrue(progress.flush(GENEROUS))
        steps = [body for body in server.bodies if body["phase"] == "step"]
        self.assertGreaterEqual(len(steps), 1)
        self.assertLessEqual(len(steps), 1 + elapsed / 0.2)
        self.assertEqual((steps[0]["epoch"], steps[0]["steps"], steps[0]["loss"]), (1, 10 ** 9, 0.5))

    def test_a_server_that_takes_no_steps_is_not_asked_again(self):
        server = self.serve(lambda _, body: 400 if body["phase"] == "step" else 204)
        progress = Progress(step_seconds=0)
        with self.assertLogs("voda_progress", logging.DEBUG) as logs:
            for step in range(5):
                progress.step(step + 1, 5)
                progress.flush(GENEROUS)
            progress.epoch(0)
            progress.flush(GENEROUS)
        self.assertEqual(server.requests, 2)
        self.assertEqual(server.phases(), [("epoch", 0)])
        self.assertEqual([record.levelno for record in logs.records], [logging.DEBUG])

    def test_https_and_nonsense_urls_do_no_harm(self):
        for url in ("https://127.0.0.1:1/x", "ftp://a/b", "http://", "http://a:b:c/", "\0", "http://[", "nonsense"):
            os.environ["VODA_PROGRESS_URL"] = url if "\0" not in url else "x"
            with self.quickly():
                progress = Progress(total_epochs=2)
                progress.begin(0)
                progress.epoch(0, loss=1)
                progress.flush(0.1)

    def test_trouble_is_logged_once(self):
        server = self.serve(lambda *_: 400)
        progress = Progress()
        with self.assertLogs("voda_progress", logging.WARNING) as logs:
            for _ in range(5):
                progress.epoch()
            progress.flush(GENEROUS)
        self.assertEqual(server.requests, 5)
        self.assertEqual(len(logs.records), 1)
        self.assertIn("because", logs.output[0])

    def test_proxies_are_not_used(self):
        server = self.serve()
        os.environ["http_proxy"] = os.environ["HTTP_PROXY"] = "http://127.0.0.1:1"
        with Progress() as progress:
            progress.epoch(0)
            self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("epoch", 0)])


class Trouble(Case):
    """Training goes on at full speed, and what counts arrives later."""

    def test_a_server_that_hangs(self):
        def hang(server, _):
            server.released.wait(GENEROUS)
            return 204

        server = self.serve(hang)
        progress = Progress(total_epochs=100, step_seconds=0)
        with self.quickly():
            progress.begin(0)
            for epoch in range(100):
                for step in range(100):
                    progress.step(step + 1, 100)
                progress.epoch(epoch, loss=1.0)
        began = time.monotonic()
        self.assertFalse(progress.flush(0.3))
        self.assertLess(time.monotonic() - began, QUICK)
        server.released.set()
        self.assertTrue(progress.flush(GENEROUS))

    def test_a_server_that_refuses_connections_until_it_is_back(self):
        bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.addCleanup(server.server_close)
        server.server_bind()  # the port is its own, and refuses until it listens
        os.environ["VODA_PROGRESS_URL"] = "http://127.0.0.1:%d/p" % server.server_address[1]
        progress = Progress(total_epochs=3)
        with self.quickly():
            progress.begin(0)
            progress.step(1, 2)
            progress.epoch(0)
            progress.epoch(1)
        self.eventually(lambda: progress._complained, "a connection to be refused")
        server.server_activate()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            self.assertTrue(progress.flush(GENEROUS))
        finally:
            server.shutdown()
        self.assertEqual([(b["phase"], b["epoch"]) for b in bodies], [("begin", 0), ("epoch", 0), ("epoch", 1)])

    def test_a_server_that_answers_500_then_recovers(self):
        server = self.serve(lambda server, _: 500 if server.requests <= 2 else 204)
        progress = Progress()
        with self.quickly():
            progress.begin(0)
            progress.epoch(0)
        self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("begin", 0), ("epoch", 0)])

    def test_a_server_that_hangs_up(self):
        server = self.serve(lambda server, _: None if server.requests == 1 else 204)
        progress = Progress()
        progress.epoch(0)
        self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("epoch", 0)])

    def test_a_refusal_after_a_lost_answer_is_not_logged(self):
        self.serve(lambda server, _: None if server.requests == 1 else 400)
        progress = Progress()
        with self.assertLogs("voda_progress", logging.WARNING) as logs:
            progress.epoch(0)
            self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(len(logs.records), 1)
        self.assertIn("try again", logs.output[0])

    def test_a_refused_epoch_does_not_stop_the_next(self):
        server = self.serve(lambda _, body: 400 if body["epoch"] == 0 else 204)
        progress = Progress()
        progress.epoch(0)
        progress.epoch(1)
        self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("epoch", 1)])

    def test_what_waits_is_bounded_and_the_newest_stay(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)  # accepts nothing: requests hang
        os.environ["VODA_PROGRESS_URL"] = "http://127.0.0.1:%d/" % listener.getsockname()[1]
        progress = Progress()
        count = voda_progress._KEPT_MESSAGES + 500
        for epoch in range(count):
            progress.epoch(epoch)
        kept = progress._http._kept
        self.assertLessEqual(len(kept), voda_progress._KEPT_MESSAGES)
        self.assertEqual(kept[-1]["epoch"], count - 1)

    def test_exit_waits_no_longer_than_two_seconds(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        os.environ["VODA_PROGRESS_URL"] = "http://127.0.0.1:%d/" % listener.getsockname()[1]
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", "from voda_progress import Progress; Progress().epoch(0)"],
                              env=dict(os.environ, PYTHONPATH=FOLDER), timeout=60)
        self.assertEqual(done.returncode, 0)
        self.assertLess(time.monotonic() - began, 20)

    def test_exit_sends_the_rest(self):
        server = self.serve()
        script = textwrap.dedent("""
            import functools, voda_progress
            from voda_progress import Progress
            voda_progress._REQUEST_SECONDS = 60
            Progress.flush = functools.partialmethod(Progress.flush, 60)  # two seconds have a test of their own
            progress = Progress()
            for i in range(50):
                progress.epoch(i)
            """)
        subprocess.run([sys.executable, "-c", script], env=dict(os.environ, PYTHONPATH=FOLDER), check=True,
                       timeout=2 * GENEROUS)
        self.assertEqual(server.phases(), [("epoch", i) for i in range(50)])

    def test_an_exception_in_training_is_its_own(self):
        self.serve()
        with self.assertRaises(KeyError):
            with Progress():
                raise KeyError("mine")

    def test_nothing_raises_whatever_it_is_given(self):
        self.serve()
        self.use_csv()
        strange = (None, -1, 10 ** 400, "x", float("nan"), object(), [], b"\xff", 1 + 2j)
        for csv_too in (None, True):
            progress = Progress(total_epochs=strange[5], csv=csv_too, step_seconds=0)
            for value in strange:
                progress.begin(value)
                progress.step(value, value, value)
                progress.epoch(value, loss=value, epoch_seconds=value, metric=value)
                progress.workers = value
                progress.total_epochs = value
            progress.flush(1)

    def test_a_signal_handler_may_flush(self):
        self.serve()
        script = textwrap.dedent("""
            import os, signal, sys, threading, time
            from voda_progress import Progress
            progress = Progress(step_seconds=0)
            def handler(*_):
                progress.flush()
                os._exit(7)
            signal.signal(signal.SIGTERM, handler)
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
            while True:
                progress.step(1, 2)
            """)
        done = subprocess.run([sys.executable, "-c", script], env=dict(os.environ, PYTHONPATH=FOLDER), timeout=60)
        self.assertEqual(done.returncode, 7)


class Ranks(Case):
    def test_other_ranks_are_silent_and_start_no_thread(self):
        server = self.serve()
        self.use_csv()
        for name in ("RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "VODA_WORKER"):
            with mock.patch.dict(os.environ, {name: "1"}):
                threads = threading.active_count()
                progress = Progress(csv=True, step_seconds=0)
                progress.begin(0)
                progress.step(1, 1)
                progress.epoch(0, loss=1)
                self.assertEqual(threading.active_count(), threads, name)
                self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(server.requests, 0)
        self.assertEqual(os.listdir(self.folder), [])

    def test_rank_of_torchrun_wins_over_the_number_of_the_worker(self):
        server = self.serve()
        os.environ.update(RANK="0", WORLD_SIZE="8", GROUP_WORLD_SIZE="2", VODA_WORKER="1")
        with Progress() as progress:
            progress.epoch(0)
            progress.flush(GENEROUS)
        self.assertEqual(server.bodies[0]["workers"], 2)  # agents of four processes each

    def test_sizes_from_horovod_and_mpi(self):
        for name in ("WORLD_SIZE", "HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE"):
            with mock.patch.dict(os.environ, {name: "4"}):
                self.assertEqual(voda_progress._workers(), 4)
        with mock.patch.dict(os.environ, {"WORLD_SIZE": "many", "HOROVOD_SIZE": "-3"}):
            self.assertIsNone(voda_progress._workers())

    def test_elastic_horovod_changes_rank_in_the_process(self):
        server = self.serve()
        os.environ.update(HOROVOD_RANK="1", HOROVOD_SIZE="2")
        horovod = types.ModuleType("horovod.torch")
        horovod.is_initialized = lambda: True
        horovod.rank, horovod.size = (lambda: 1), (lambda: 2)
        with mock.patch.dict(sys.modules, {"horovod.torch": horovod}):
            progress = Progress()
            progress.begin(0)
            progress.epoch(0)
            horovod.rank, horovod.size = (lambda: 0), (lambda: 1)
            progress.begin(1)
            progress.epoch(1)
            self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("begin", 1), ("epoch", 1)])
        self.assertEqual(server.bodies[1]["workers"], 1)

    def test_torch_distributed_is_asked_when_it_is_there(self):
        try:
            import torch.distributed as dist
        except ImportError:
            self.skipTest("LEFT OUT: the rank that torch.distributed tells; torch is not installed")
        server = self.serve()
        os.environ.update(RANK="1", WORLD_SIZE="9")
        store = dist.FileStore(os.path.join(self.folder, "store"), 1)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        try:
            with Progress() as progress:
                progress.epoch(0)
                self.assertTrue(progress.flush(GENEROUS))
        finally:
            dist.destroy_process_group()
        self.assertEqual(server.bodies[0]["workers"], 1)

    def test_without_variables_nothing_happens(self):
        threads = threading.active_count()
        progress = Progress(total_epochs=3, step_seconds=0)
        progress.begin()
        progress.step(1, 2)
        progress.epoch(loss=1)
        self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(threading.active_count(), threads)

    def test_importing_it_imports_no_framework(self):
        script = "import sys, voda_progress; sys.exit(any(m in sys.modules for m in ('torch', 'keras', 'transformers')))"
        subprocess.run([sys.executable, "-c", script], env=dict(os.environ, PYTHONPATH=FOLDER), check=True, timeout=60)


def _child_reports(progress):
    progress.epoch(7)
    sys.exit(0 if progress.flush(GENEROUS) else 1)


@unittest.skipUnless(hasattr(os, "fork"), "LEFT OUT: reporting after a fork; this system has none")
class Fork(Case):
    def test_a_child_sends_its_own_reports_only(self):
        held = threading.Event()

        def answer(_, body):
            if body["epoch"] < 5:
                held.wait(GENEROUS)
            return 204

        server = self.serve(answer)
        progress = Progress()
        for epoch in range(5):
            progress.epoch(epoch)
        self.eventually(lambda: server.requests == 1, "the parent's first report")
        child = multiprocessing.get_context("fork").Process(target=_child_reports, args=(progress,))
        child.start()
        child.join(GENEROUS)
        self.assertEqual(child.exitcode, 0)
        self.assertEqual(server.phases(), [("epoch", 7)])
        held.set()
        self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(sorted(server.phases()), [("epoch", i) for i in (0, 1, 2, 3, 4, 7)])

    def test_a_fork_while_the_lock_is_held_does_not_hang_the_child(self):
        server = self.serve()
        progress = Progress()
        progress.epoch(0)
        self.assertTrue(progress.flush(GENEROUS))
        with progress._http._changed:  # as if the sender's thread were in the middle of something
            child = os.fork()
            if child == 0:
                progress.epoch(1)
                os._exit(0 if progress.flush(GENEROUS) else 1)
        _, status = os.waitpid(child, 0)
        self.assertEqual(status, 0)
        self.assertEqual(server.phases(), [("epoch", 0), ("epoch", 1)])

    def test_a_copy_in_another_process_starts_anew(self):
        server = self.serve()
        copy = pickle.loads(pickle.dumps(Progress(total_epochs=9, workers=2)))
        copy.epoch(0)
        self.assertTrue(copy.flush(GENEROUS))
        self.assertEqual((server.bodies[0]["total_epochs"], server.bodies[0]["workers"]), (9, 2))


class CsvFile(Case):
    def test_header_and_rows(self):
        path = self.use_csv()
        with Progress(total_epochs=2, local_batch_size=32, global_batch_size=64, workers=2) as progress:
            progress.begin(0)
            for step in range(4):
                progress.step(step + 1, 4)
            progress.epoch(0, loss=0.5, accuracy=0.25)
            progress.epoch(1, loss=0.25, accuracy=0.5)
            self.assertTrue(progress.flush(GENEROUS))
        with open(path) as file:
            header = file.readline().rstrip("\n").split(",")
        self.assertEqual(header[0], "epoch")
        self.assertEqual(header[1:], sorted(header[1:]))
        self.assertEqual(header, ["epoch", "accuracy", "epoch_time_sec", "global_batch_size", "local_batch_size", "loss",
                                  "start_time", "step_time_sec", "steps", "total_epochs", "workers"])
        first, second = rows_of(path)
        self.assertEqual([first[name] for name in ("epoch", "steps", "total_epochs", "workers", "local_batch_size",
                                                   "global_batch_size", "loss", "accuracy")],
                         ["0", "4", "2", "2", "32", "64", "0.5", "0.25"])
        self.assertRegex(first["start_time"], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}$")
        self.assertAlmostEqual(float(first["epoch_time_sec"]), 4 * float(first["step_time_sec"]))
        self.assertEqual(second["epoch"], "1")

    def test_goes_on_after_a_restart(self):
        path = self.use_csv()
        for start in (0, 2, 3):
            with Progress() as progress:
                progress.begin(start)
                for epoch in range(start, start + 2):
                    progress.epoch(epoch, loss=epoch)
                self.assertTrue(progress.flush(GENEROUS))
        rows = rows_of(path)
        self.assertEqual([row["epoch"] for row in rows], ["0", "1", "2", "3", "4"])  # 3 was done twice

    def test_without_a_number_it_goes_on_after_the_last_row(self):
        path = self.use_csv()
        for _ in range(2):
            with Progress() as progress:
                progress.begin()
                progress.epoch(loss=1)
                progress.epoch(loss=1)
                self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual([row["epoch"] for row in rows_of(path)], ["0", "1", "2", "3"])

    def test_a_torn_line_is_dropped_by_a_new_file(self):
        path = self.use_csv()
        whole = "epoch,loss,workers\n0,0.5,2\n1,0.25,2\n"
        for torn in ("2,0.1", "2,0.125,1", "2", ",", "\x00\xff"):
            with open(path, "w") as file:
                file.write(whole + torn)
            before = os.stat(path).st_ino
            with Progress(workers=12) as progress:
                progress.begin(2)
                progress.epoch(2, loss=0.125)
                self.assertTrue(progress.flush(GENEROUS))
            with open(path) as file:
                self.assertEqual(file.read(), whole + "2,0.125,12\n")
            self.assertNotEqual(os.stat(path).st_ino, before)
        self.assertEqual(os.listdir(self.folder), ["job-1.csv"])

    def test_a_torn_header_is_written_anew(self):
        path = self.use_csv()
        with open(path, "w") as file:
            file.write("epoch,lo")
        with Progress() as progress:
            progress.epoch(0, loss=0.5)
            self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual([row["loss"] for row in rows_of(path)], ["0.5"])

    def test_columns_stay_as_they_were(self):
        path = self.use_csv()
        with open(path, "w") as file:
            file.write("epoch,loss,other\n")
        with Progress() as progress:
            progress.epoch(0, loss=0.5, accuracy=1)
            self.assertTrue(progress.flush(GENEROUS))
        with open(path) as file:
            self.assertEqual(file.read(), "epoch,loss,other\n0,0.5,\n")

    def test_a_file_that_is_no_progress_file_is_left_alone(self):
        path = self.use_csv()
        with open(path, "w") as file:
            file.write("something,else\n1,2\n")
        with Progress() as progress:
            progress.epoch(0, loss=0.5)
            self.assertTrue(progress.flush(GENEROUS))
        with open(path) as file:
            self.assertEqual(file.read(), "something,else\n1,2\n")

    def test_a_loss_that_is_no_number_is_an_empty_cell(self):
        path = self.use_csv()
        with Progress() as progress:
            progress.epoch(0, loss=float("nan"))
            progress.epoch(1, loss=0.5)
            self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual([row["loss"] for row in rows_of(path)], ["", "0.5"])

    def test_cells_cannot_break_the_line(self):
        path = self.use_csv()
        with Progress() as progress:
            progress.epoch(0, note='a,b\n"c"\r\nd', **{"odd,name\n": 1})
            progress.epoch(1)
            self.assertTrue(progress.flush(GENEROUS))
        with open(path) as file:
            lines = file.read().split("\n")
        self.assertEqual(len(lines), 4)
        self.assertEqual({line.count(",") for line in lines[:3]}, {lines[0].count(",")})
        self.assertIn("a b c d", lines[1])

    def test_a_name_cannot_leave_the_folder(self):
        self.use_csv()
        os.environ["JOB_NAME"] = "../../escape"
        with Progress() as progress:
            progress.epoch(0)
            self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(os.listdir(self.folder), ["escape.csv"])

    def test_no_file_beside_the_url_unless_asked_for(self):
        server = self.serve()
        path = self.use_csv()
        with Progress() as progress:
            progress.epoch(0)
            self.assertTrue(progress.flush(GENEROUS))
        self.assertFalse(os.path.exists(path))
        with Progress(csv=True) as progress:
            progress.epoch(1)
            self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(len(rows_of(path)), 1)
        self.assertEqual(len(server.bodies), 2)
        with Progress(url=False) as progress:
            progress.epoch(2)
            self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(len(rows_of(path)), 2)
        self.assertEqual(len(server.bodies), 2)

    def test_a_folder_that_appears_later(self):
        os.environ["METRICS_DIR"] = os.path.join(self.folder, "later")
        os.environ["JOB_NAME"] = "j"
        with self.quickly():
            progress = Progress()
            progress.begin(0)
            progress.epoch(0)
        self.assertFalse(progress.flush(0.2))
        os.mkdir(os.path.join(self.folder, "later"))
        self.assertTrue(progress.flush(GENEROUS))
        self.assertEqual(len(rows_of(os.path.join(self.folder, "later", "j.csv"))), 1)

    def test_a_killed_process_leaves_whole_lines(self):
        path = self.use_csv()
        script = textwrap.dedent("""
            import itertools
            from voda_progress import Progress
            progress = Progress()
            progress.begin()
            for _ in itertools.count():
                progress.epoch(loss=0.5)
                progress.flush()
            """)
        for _ in range(3):
            size = os.path.getsize(path) if os.path.exists(path) else 0
            child = subprocess.Popen([sys.executable, "-c", script], env=dict(os.environ, PYTHONPATH=FOLDER))
            self.eventually(lambda: os.path.exists(path) and os.path.getsize(path) > size + 500, "rows")
            child.send_signal(signal.SIGKILL)
            child.wait()
        with Progress() as progress:
            progress.begin()
            progress.epoch()
            self.assertTrue(progress.flush(GENEROUS))
        rows = rows_of(path)
        self.assertEqual([int(row["epoch"]) for row in rows], list(range(len(rows))))


if __name__ == "__main__":
    unittest.main()
