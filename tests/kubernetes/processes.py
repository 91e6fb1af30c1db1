"""The processes of a cluster: each with a log of its own, started, signalled and ended one by one, none of which
survives the process that started it (PR_SET_PDEATHSIG). Their ids are kept in a file, so that what is left after a
crash can be told from strangers and ended."""
import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class ClusterError(Exception):
    """What went wrong and what to do about it, in words for people."""


def wait_for(condition, seconds, what, every=0.1):
    """The first true value of condition(). `what` is the end of the message "waited N s for ..." or makes it."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise ClusterError(f"waited {seconds} s for {what() if callable(what) else what}")
        time.sleep(every)


def free_ports(count):
    """Ports of 127.0.0.1 in a row that nobody listens on. Below those that the kernel gives to whoever connects, so that
    none of them is taken by the time it is used."""
    for _ in range(1000):
        first = random.randrange(12_000, 32_000 - count)
        held = []
        try:
            for port in range(first, first + count):
                held.append(socket.create_server(("127.0.0.1", port)))
            return list(range(first, first + count))
        except OSError:
            continue
        finally:
            for one in held:
                one.close()
    raise ClusterError(f"no {count} free ports in a row")


def start_time(pid):
    """When a process started, in ticks since boot; with its id it names a process for good. None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def end_group(pid, started, seconds=5):
    """Ends the process and its group, gently for `seconds`, if it is still the one that started then."""
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGCONT, 0), (signal.SIGKILL, 10)):
        if start_time(pid) != started:
            return
        try:
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):
            return
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and start_time(pid) == started:
            time.sleep(0.02)


class Part:
    """One program of the cluster."""

    def __init__(self, name, command, log, environment=None, ready=None, ready_seconds=60, changed=None):
        self.name = name
        self.command = command
        self.log = log
        self.environment = environment
        self.process = None
        self._log_start = 0
        self._ready = ready
        self._ready_seconds = ready_seconds
        self._changed = changed or (lambda: None)

    def start(self, wait=True):
        parent = os.getpid()

        def die_with_parent():
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        with open(self.log, "ab") as log:
            self._log_start = log.tell()
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, **(self.environment or {})}, start_new_session=True,
                                            preexec_fn=die_with_parent)
        self._changed()
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self):
        def ready():
            if not self.running():
                raise ClusterError(f"{self.name} ended with {self.process.returncode}; the end of {self.log}:\n"
                                   f"{self.tail()}")
            return self._ready is None or self._ready(self)
        wait_for(ready, self._ready_seconds, lambda: f"{self.name} to be ready; the end of {self.log}:\n{self.tail()}")

    def running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        """As signal.SIGSTOP and signal.SIGCONT."""
        self.process.send_signal(number)

    def kill(self):
        """As a crash: nothing is told."""
        if self.running():
            self.process.kill()
            self.process.wait()
        self._changed()

    def stop(self, seconds=10):
        if self.running():
            end_group(self.process.pid, start_time(self.process.pid), seconds)
            self.process.wait(timeout=30)
        self._changed()

    def restart(self):
        self.stop()
        return self.start()

    def logged(self, text):
        """Whether it has printed this since it was started last."""
        with open(self.log, "rb") as log:
            log.seek(self._log_start)
            return text.encode() in log.read()

    def tail(self, lines=20):
        try:
            with open(self.log, errors="replace") as log:
                return "".join(log.readlines()[-lines:])
        except OSError:
            return ""


def write_json(path, value):
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w") as file:
        json.dump(value, file, indent=1)
    os.replace(temporary, path)


def read_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def run(*command, input=None, check=True, seconds=60, environment=None):
    """A short command; its failure is a ClusterError with what it printed."""
    try:
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=seconds,
                              env={**os.environ, **environment} if environment else None)
    except FileNotFoundError:
        raise ClusterError(f"{command[0]} is missing; run tools/bootstrap.sh kubernetes") from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{' '.join(command)} did not end within {seconds} s") from None
    if check and done.returncode != 0:
        raise ClusterError(f"{' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done
