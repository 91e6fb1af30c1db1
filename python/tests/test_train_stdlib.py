"""Tests of examples/jobs/train_stdlib.py: the result is the same whatever happens to its workers."""

import json
import os
import random
import re
import runpy
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "jobs", "train_stdlib.py")
GENEROUS = 60


class Job:
    def __init__(self, case, **settings):
        self.folder = tempfile.mkdtemp(prefix="train_stdlib_test")
        case.addCleanup(shutil.rmtree, self.folder)
        case.addCleanup(self.stop_all)
        self.environment = dict({"PATH": os.environ["PATH"], "VODA_JOB_DIR": self.folder, "EPOCHS": "12",
                                 "STEPS_PER_EPOCH": "5", "WAIT_MS": "0"}, **settings)
        self.workers = {}
        self.log = open(os.path.join(self.folder, "log"), "ab")
        case.addCleanup(self.log.close)

    def start(self, worker):
        self.workers[worker] = subprocess.Popen([sys.executable, SCRIPT], stdout=self.log, stderr=self.log,
                                                env=dict(self.environment, VODA_WORKER=str(worker)))
        return self.workers[worker]

    def stop(self, worker, how=signal.SIGTERM):
        process = self.workers.pop(worker)
        process.send_signal(how)
        process.wait(GENEROUS)

    def stop_all(self):
        for worker in list(self.workers):
            self.stop(worker, signal.SIGKILL)

    def text(self):
        with open(os.path.join(self.folder, "log")) as file:
            return file.read()

    def starts(self):
        with open(os.path.join(self.folder, "starts.log")) as file:
            return file.read().splitlines()

    def result(self):
        return re.findall(r"^done steps=\d+ loss=[\d.]+ checksum=\w{16}$", self.text(), re.MULTILINE)


class TrainStdlib(unittest.TestCase):
    def eventually(self, condition, text):
        deadline = time.monotonic() + GENEROUS
        while not condition():
            self.assertLess(time.monotonic(), deadline, text())
            time.sleep(0.01)

    def run_alone(self, **settings):
        job = Job(self, **settings)
        self.assertEqual(job.start(0).wait(GENEROUS), 0, job.text())
        self.assertEqual(len(job.result()), 1, job.text())
        return job

    def test_alone(self):
        job = self.run_alone()
        self.assertEqual(job.starts(), ["start worker=0 epoch=0"])
        losses = [float(loss) for loss in re.findall(r"epoch \d+/12 workers 1 loss ([\d.]+) \([\d.]+ s\)", job.text())]
        self.assertEqual(len(losses), 12)
        self.assertLess(losses[-1], losses[0] / 1.5)
        self.assertEqual(self.run_alone().result(), job.result())
        self.assertNotEqual(self.run_alone(SEED="2").result(), job.result())

    def test_started_again_after_its_end(self):
        job = self.run_alone()
        self.assertEqual(job.start(0).wait(GENEROUS), 0)
        self.assertEqual(job.start(1).wait(GENEROUS), 0)  # a helper that comes too late
        self.assertEqual(job.result(), job.result()[:1] * 2)
        self.assertEqual(job.starts(), ["start worker=0 epoch=0", "start worker=0 epoch=12", "start worker=1 epoch=12"])

    def test_goes_on_from_its_checkpoint(self):
        whole = self.run_alone(EPOCHS="8").result()
        job = Job(self, EPOCHS="3")
        self.assertEqual(job.start(0).wait(GENEROUS), 0)
        job.environment["EPOCHS"] = "8"
        self.assertEqual(job.start(0).wait(GENEROUS), 0)
        self.assertEqual(job.result()[1:], whole)
        self.assertEqual(job.starts()[1], "start worker=0 epoch=3")

    def test_more_workers_give_the_same_result(self):
        alone = self.run_alone().result()
        job = Job(self, WAIT_MS="200")
        for worker in (2, 0, 1):  # helpers may come first
            job.start(worker)
        self.eventually(lambda: os.path.exists(os.path.join(job.folder, "worker0.json")), job.text)
        job.workers[0].send_signal(signal.SIGSTOP)  # it trains on when both have come
        self.eventually(lambda: all("worker %d helps\n" % worker in job.text() for worker in (1, 2)), job.text)
        job.workers[0].send_signal(signal.SIGCONT)
        for worker in (0, 1, 2):
            self.assertEqual(job.workers[worker].wait(GENEROUS), 0, job.text())
        self.assertEqual(job.result(), alone)
        self.assertIn(" workers 3 ", job.text())

    def test_a_helper_that_goes_between_two_steps_is_forgotten(self):
        folder = tempfile.mkdtemp(prefix="train_stdlib_test")
        self.addCleanup(shutil.rmtree, folder)
        with unittest.mock.patch.dict(os.environ, VODA_JOB_DIR=folder):
            train = runpy.run_path(SCRIPT)
        helpers = train["Helpers"]()
        self.addCleanup(helpers.close)
        address = train["read_json"](train["ADDRESS"])
        for abruptly in (False, True):
            with self.subTest(abruptly=abruptly):
                helper = train["Peer"](socket.create_connection(("127.0.0.1", address["port"])))
                helper.send({"worker": 1, "secret": address["secret"]})
                self.eventually(lambda: helpers.admit() or len(helpers) == 1, lambda: "the helper is not taken in")
                if abruptly:  # answers with a reset, as the system does for a process that had unread data
                    helper.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                helper.connection.close()
                self.eventually(lambda: helpers.admit() or len(helpers) == 0, lambda: "the helper is not forgotten")

    def test_a_helper_leaves_a_stranger_and_looks_for_worker_0_again(self):
        job = Job(self)
        for words in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"{}\n", b"[]\n", b"7\n", b"\xff\n",
                      b'{"weights": 1, "epoch": 0, "step": 0, "shards": [0]}\n'):
            with self.subTest(words=words), socket.create_server(("127.0.0.1", 0)) as stranger:
                stranger.settimeout(GENEROUS)
                with open(os.path.join(job.folder, "new.json"), "w") as file:
                    json.dump({"port": stranger.getsockname()[1], "secret": "x"}, file)
                os.replace(file.name, os.path.join(job.folder, "worker0.json"))
                helper = job.workers.get(1) or job.start(1)
                for _ in range(2):  # it comes back
                    connection, _ = stranger.accept()
                    with connection:
                        connection.settimeout(GENEROUS)
                        self.assertTrue(connection.recv(1000))
                        connection.sendall(words)
                self.assertIsNone(helper.poll(), job.text())
        self.assertEqual(job.start(0).wait(GENEROUS), 0, job.text())
        self.assertEqual(helper.wait(GENEROUS), 0, job.text())

    def test_kills_and_resizes_give_the_same_result(self):
        settings = {"EPOCHS": "20", "STEPS_PER_EPOCH": "10"}
        alone = self.run_alone(**settings).result()
        for seed in (1, 2):
            chance = random.Random(seed)
            job = Job(self, WAIT_MS="30", **settings)
            deadline = time.monotonic() + 4 * GENEROUS  # how much is lost depends on how slowly workers start
            while True:
                self.assertLess(time.monotonic(), deadline, job.text())
                if 0 not in job.workers:
                    job.start(0)
                try:
                    job.workers[0].wait(chance.uniform(0.05, 0.6))
                    break
                except subprocess.TimeoutExpired:
                    pass
                worker = chance.randrange(4)
                if worker in job.workers:
                    job.stop(worker, chance.choice((signal.SIGTERM, signal.SIGKILL)))
                else:
                    job.start(worker)
            self.assertEqual(job.workers[0].returncode, 0, job.text())
            # Worker 0 may be killed between its last word and its end, and then says the same again.
            at_the_end = job.starts().count("start worker=0 epoch=20")
            self.assertEqual(set(job.result()), set(alone))
            self.assertLessEqual(len(job.result()), 1 + at_the_end, job.text())
            self.assertNotIn("Traceback", job.text())
            for worker, process in job.workers.items():
                self.assertEqual(process.wait(GENEROUS), 0, "helper %d does not end" % worker)


if __name__ == "__main__":
    unittest.main()
