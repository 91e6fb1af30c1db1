"""A real `voda up` for tests: starts it on a folder and free ports, asks it, kills it, looks at its processes."""
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

VODA = os.environ.get("VODA_BINARY", "build/release/voda")
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PYTHON = "/usr/bin/python3"  # Debian's: it sees Debian's torch


class HttpError(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body

    @property
    def message(self):
        return json.loads(self.body)["error"]["message"]


class Voda:
    """One data folder; the process may come and go."""

    def __init__(self, *flags, folder=None, environment=None, listen="127.0.0.1:0", under=(), stderr=None, limits=None):
        self.folder = folder or tempfile.mkdtemp(prefix="voda-live-")
        self.flags = list(flags)
        self.environment = environment
        self.listen = listen
        self.under = list(under)  # the command that runs it
        self.stderr = stderr
        self.limits = limits  # of open files, soft and hard
        self.process = None
        self.log = os.path.join(self.folder, "up.log")

    def start(self, wait=True, fresh=True):
        """Waits for the file with its address, or, where that file stays as it is (not fresh), for an answer."""
        server = os.path.join(self.folder, "server")
        if fresh and os.path.exists(server):
            os.remove(server)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.under, VODA, "up", "--data", self.folder, "--listen", self.listen, *self.flags],
                cwd=ROOT, stdout=log, stderr=self.stderr or log, env=self.environment,
                preexec_fn=self.limits and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, self.limits)))
        if wait:
            wait_for(lambda: (os.path.exists(server) if fresh else self.answers()) or self.process.poll() is not None,
                     60, "voda up")
            if self.process.poll() is not None:
                raise AssertionError(f"voda up ended with {self.process.returncode}:\n{self.tail()}")
        return self

    def answers(self):
        try:
            return self.ask("GET", "/livez", raw=True) == "ok\n"
        except OSError:
            return False

    def tail(self, lines=40):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-lines:])

    @property
    def url(self):
        with open(os.path.join(self.folder, "server")) as file:
            return file.read().strip()

    @property
    def token(self):
        with open(os.path.join(self.folder, "token")) as file:
            return file.read().strip()

    def ask(self, method, path, body=None, headers=None, token=None, timeout=60, raw=False, port=None):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        url = self.url if port is None else f"http://127.0.0.1:{port}"
        request = urllib.request.Request(url + path, method=method,
                                         data=body.encode() if isinstance(body, str) else body)
        if token is not False:
            request.add_header("Authorization", "Bearer " + (token or self.token))
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise HttpError(error.code, error.read().decode()) from None
        if raw or not text:
            return text
        return json.loads(text)

    def cli(self, *arguments, check=True):
        done = subprocess.run([VODA, *arguments], cwd=ROOT, text=True, capture_output=True, timeout=120,
                              env={**os.environ, "VODA_HOME": self.folder})
        if check and done.returncode != 0:
            raise AssertionError(f"voda {' '.join(arguments)} exited with {done.returncode}: {done.stderr}")
        return done

    def submit(self, yaml):
        return [job["name"] for job in self.ask("POST", "/api/v1/jobs", yaml)["jobs"]]

    def job(self, name):
        return self.ask("GET", f"/api/v1/jobs/{name}")

    def jobs(self):
        return {job["name"]: job for job in self.ask("GET", "/api/v1/jobs")["jobs"]}

    def wait(self, name, status, seconds=120):
        def reached():
            job = self.job(name)
            if job["status"] in ("Failed", "Canceled") and job["status"] != status:
                raise AssertionError(f"{name} is {job['status']}: {job['message']}")
            return job["status"] == status
        wait_for(reached, seconds, lambda: f"{name} to be {status}: {self.job(name)}\n{self.tail()}")
        return self.job(name)

    def kill(self):
        """As a crash: nothing is told."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)

    def close(self):
        """Stops Voda and everything it started. VODA_KEEP=DIR keeps a copy of its folder there."""
        if os.environ.get("VODA_KEEP"):
            shutil.copytree(self.folder, os.path.join(os.environ["VODA_KEEP"], os.path.basename(self.folder)))
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
        for pid in processes_of(self.folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_for(lambda: not processes_of(self.folder), 30, "processes to end")
        shutil.rmtree(self.folder, ignore_errors=True)


def free_ports(count):
    """The first of so many free ports in a row."""
    for first in range(20_000 + os.getpid() % 10_000, 60_000, count):
        held = []
        try:
            for port in range(first, first + count):
                held.append(socket.create_server(("127.0.0.1", port)))
            return first
        except OSError:
            continue
        finally:
            for one in held:
                one.close()
    raise AssertionError("no free ports in a row")


def wait_for(condition, seconds, what, every=0.1):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(every)
    raise AssertionError(f"waited {seconds} s for {what() if callable(what) else what}")


def environments():
    """(pid, environment) of every process that can be looked at."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                pairs = [pair.partition(b"=") for pair in file.read().split(b"\0") if pair]
        except OSError:
            continue
        yield int(entry), {key.decode(errors="replace"): value.decode(errors="replace") for key, _, value in pairs}


def processes_of(folder):
    """Workers (by their job folder) and shims (by their command) below a data folder."""
    found = [pid for pid, env in environments() if env.get("VODA_JOB_DIR", "").startswith(folder)]
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "__shim" in command and any(part.startswith(folder) for part in command):
            found.append(int(entry))
    return sorted(set(found))


def ranks(folder):
    """Training processes with a rank, by job: what really computes, seen from outside."""
    counts = {}
    for pid, env in environments():
        if not env.get("VODA_JOB_DIR", "").startswith(folder):
            continue
        rank = env.get("HOROVOD_RANK") if "HOROVOD_RANK" in env else env.get("RANK")
        if rank is None:
            continue
        try:
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state == "Z":
            continue
        counts.setdefault(env["JOB_NAME"], set()).add(rank)
    return {name: len(found) for name, found in counts.items()}


def job(name, command, workers=1, max_workers=None, env=None, extra="", gpus=1, restart="OnFailure", backoff=None,
        grace=None, type=None):
    """A PyTorchJob whose workers run `command`, a list."""
    policy = f"  elasticPolicy: {{minReplicas: {workers}, maxReplicas: {max_workers}}}\n" if max_workers else ""
    run = f"  runPolicy: {{backoffLimit: {backoff}}}\n" if backoff is not None else ""
    grace_line = f"          terminationGracePeriodSeconds: {grace}\n" if grace is not None else ""
    selector = f"          nodeSelector: {{vodascheduler/accelerator: {type}}}\n" if type else ""
    variables = [{"name": key, "value": str(value)} for key, value in (env or {}).items()]
    return (f"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{name: {name}}}\nspec:\n{policy}{run}"
            f"  pytorchReplicaSpecs:\n    Worker:\n      replicas: {workers}\n      restartPolicy: {restart}\n"
            f"      template:\n        spec:\n{grace_line}{selector}{extra}"
            f"          containers:\n          - name: pytorch\n            image: none\n"
            f"            command: {json.dumps(command)}\n            env: {json.dumps(variables)}\n"
            f"            resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}\n")


# Stands before the C library: the wall clock is off by as many seconds as the file says.
SHIFTED_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  const int code = real(clock, now);
  const char* path = getenv("CLOCK_OFF_BY");
  if (code != 0 || clock != CLOCK_REALTIME || !path) return code;
  char text[32] = "";
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0 && read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
  if (file >= 0) close(file);
  return code;
}
"""


class ShiftedClock:
    """A wall clock that can be set, for the processes that get its environment."""

    def __init__(self, folder):
        self.off_by = os.path.join(folder, "off_by")
        library = os.path.join(folder, "clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-", "-ldl"], input=SHIFTED_CLOCK, text=True,
                       check=True)
        self.environment = {**os.environ, "LD_PRELOAD": library, "CLOCK_OFF_BY": self.off_by}
        self.set(0)

    def set(self, seconds):
        with open(self.off_by + ".new", "w") as file:
            file.write(str(seconds))
        os.rename(self.off_by + ".new", self.off_by)


class LiveTest(unittest.TestCase):
    def voda(self, *flags, **keywords):
        voda = Voda(*flags, **keywords)
        self.addCleanup(voda.close)
        return voda


def main():
    """Ends with the closing line that test runners know."""
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    result = program.result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad or result.skipped else 0)
