"""A `voda up` that is attacked: it carries a steady stream of small jobs whose outcomes are known, and after each attack
an oracle compares what Voda tells with what really ran. Every start of a worker writes a line to a file outside Voda's
folder and holds a lock while it lives, so that what ran twice, or beside itself, is seen without asking Voda."""
import fcntl
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import live

PATIENCE = 120  # seconds; only a defect takes so long
EARLY = 20  # seconds after which is said what is waited for
SLOTS = 10
KEPT = 30  # ended jobs; older ones are erased
DISK = "32m"
OUTCOMES = {"good": ("Completed", 0), "three": ("Failed", 3), "retried": ("Completed", 0), "elastic": ("Completed", 0)}
FAILURES = {"good": 0, "three": 1, "retried": 2, "elastic": 0}


def patiently(condition, seconds, what):
    """As live.wait_for, and says early what it waits for: a time limit around the program may come first."""
    try:
        return live.wait_for(condition, min(seconds, EARLY), what)
    except AssertionError as late:
        if seconds <= EARLY:
            raise
        print(f"LATE: {late}", flush=True)
    return live.wait_for(condition, seconds - EARLY, what)


def stacks(pid):
    """Where every thread of a process is."""
    try:
        done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "set pagination off", "-ex", "thread apply all bt"],
                              capture_output=True, text=True, errors="replace", timeout=60, stdin=subprocess.DEVNULL)
        if "Thread" in done.stdout:
            return done.stdout
    except (OSError, subprocess.TimeoutExpired):
        pass  # no debugger, or it is stuck as well
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        for file in ("comm", "wchan", "syscall", "stack"):
            try:
                with open(f"/proc/{pid}/task/{thread}/{file}") as text:
                    found.append(f"{thread} {file}: {text.read().strip()}")
            except OSError as error:
                found.append(f"{thread} {file}: {error.strerror}")
    return "\n".join(found)


class Impossible(Exception):
    """An attack that this machine does not allow."""


class Job:
    """What is known of a job that Voda has acknowledged."""

    def __init__(self, number, kind, runs):
        self.number, self.kind, self.key = number, kind, f"{kind}-{number}"
        self.runs = os.path.join(runs, self.key)
        self.least, self.most = (1, 3) if kind == "elastic" else (1, 1)
        self.submitted_most = self.most
        self.name = self.id = None
        self.released = self.held = self.deleted = False
        self.failures = FAILURES[kind]
        self.counted = True  # the store still has its totals and its exit code
        self.streamed = False  # users may do with it what they like
        self.lawless = False  # it spoils its own records, so that only its deletion is sure

    def release(self):
        """Lets its workers end."""
        self.released = True
        open(self.runs + ".go", "w").close()

    def starts(self):
        """The folders of the starts whose worker ran, in order."""
        try:
            with open(self.runs) as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def expected(self):
        if self.deleted:
            return "Canceled"
        if self.released and not self.held:
            return OUTCOMES[self.kind][0]
        return "Waiting" if self.held else "Running"

    @property
    def over(self):
        return self.deleted or self.released and not self.held

    def command(self, spoil=""):
        runs = shlex.quote(self.runs)
        code = {"three": "exit 3"}.get(self.kind, "exit 0")
        first = f"[ $(wc -l < {runs}) -gt 2 ] || exit 5; " if self.kind == "retried" else ""
        return ["sh", "-c", f"exec 9>>{runs}.lock.$VODA_WORKER; start=$(tr '\\0' '\\n' < /proc/$PPID/cmdline | tail -n 1); "
                f"echo ${{start##*/}} >> {runs}; flock -n 9 || echo beside-itself >> {runs}; {first}{spoil} "
                f"until [ -e {runs}.go ]; do sleep 0.1 9>&-; done; {code}"]

    def manifest(self, spoil=""):
        elastic = self.most if self.kind == "elastic" else None
        return live.job(self.key, self.command(spoil), self.least, elastic, backoff=0 if self.kind == "three" else None,
                        grace=5)


class Attacked(live.Voda):
    @property
    def url(self):  # also where the file with the address cannot be written
        return "http://" + self.listen


class Arena:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.base = tempfile.mkdtemp(prefix="voda-attack-")
        os.chmod(self.base, 0o711)  # other users get as far as Voda's own folder
        self.data, self.runs = os.path.join(self.base, "data"), os.path.join(self.base, "runs")
        os.mkdir(self.data, 0o700)
        os.mkdir(self.runs)
        self.small = self.root = os.geteuid() == 0
        if self.small:
            self.small = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "tmpfs", self.data],
                                        capture_output=True).returncode == 0
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.jobs, self.count, self.stolen = {}, 0, []
        self.clock = live.ShiftedClock(self.base) if shutil.which("cc") else None
        self.off_by = self.began_off_by = 0  # of the clock, now and when Voda was started
        self.turned_back = 0  # jobs up to this number saw a restart under an earlier clock, which may cost them a start
        self.port = live.free_ports(3)
        reader, writer = os.pipe()
        self.stderr = open(writer, "wb")
        self.heard = threading.Event()  # somebody reads what Voda logs
        self.heard.set()
        self.up = Attacked("--slots", str(SLOTS), "--rate-limit", "0s", "--algorithm", "ElasticFIFO", "--log-level", "debug",
                            folder=self.data, listen=f"127.0.0.1:{self.port}", stderr=self.stderr, limits=(1024, 2048),
                            environment=self.clock and self.clock.environment)
        self.up.log = os.path.join(self.base, "up.log")
        threading.Thread(target=self._listen, args=(reader,), daemon=True).start()
        self.start()
        self.idle_fds, self.idle_memory = self.descriptors(), self.memory()

    def _listen(self, reader):
        with open(self.up.log, "ab", buffering=0) as log:
            while True:
                self.heard.wait()
                text = os.read(reader, 65536)
                if not text:
                    return
                log.write(text)

    # ---- Voda itself

    def set_clock(self, seconds):
        """Off by so much from now on."""
        self.clock.set(seconds)
        self.off_by = seconds

    def start(self):
        if self.off_by < self.began_off_by:
            self.turned_back = self.count
        self.began_off_by = self.off_by
        self.up.start(wait=False, fresh=False)
        patiently(lambda: self.up.process.poll() is not None or self.lives(), PATIENCE, "voda up to answer")
        if self.up.process.poll() is not None:
            raise AssertionError(f"voda up ended with {self.up.process.returncode}")

    def restart(self, kill=True):
        self.end(kill)
        self.start()

    def end(self, kill):
        if kill:
            self.up.kill()
            return
        self.up.process.terminate()
        try:
            code = self.up.process.wait(timeout=EARLY)
        except subprocess.TimeoutExpired:
            print(f"LATE: SIGTERM has not ended voda up after {EARLY} s\n{stacks(self.up.process.pid)}", flush=True)
            code = self.up.process.wait(timeout=PATIENCE - EARLY)
        assert code == 0, f"voda up ended with {code} after SIGTERM"

    def lives(self):
        try:
            return self.up.ask("GET", "/livez", raw=True) == "ok\n"
        except (OSError, live.HttpError):
            return False

    def ready(self):
        try:
            return self.up.ask("GET", "/readyz", raw=True) == "ok\n"
        except (OSError, live.HttpError):
            return False

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.up.process.pid}/fd"))

    def memory(self):
        with open(f"/proc/{self.up.process.pid}/status") as status:
            return int(re.search(r"^VmRSS:\s+(\d+) kB$", status.read(), re.M).group(1)) // 1024

    def path(self, *parts):
        return os.path.join(self.data, *parts)

    def folder(self, job):
        return self.path("jobs", str(job.id))

    # ---- jobs

    def make(self, kind="good", released=False):
        """A job that Voda does not know yet."""
        self.count += 1
        job = Job(self.count, kind, self.runs)
        if released:
            job.release()
        return job

    def submit(self, kind="good", released=False, spoil="", runs=True):
        """An acknowledged job; its worker runs if it is not to end at once."""
        job = self.make(kind, released)
        [told] = self.up.ask("POST", "/api/v1/jobs", job.manifest(spoil))["jobs"]
        self.acknowledged(job, told)
        if runs and not released:
            self.running(job)
        return job

    def acknowledged(self, job, told):
        job.name, job.id = told["name"], told["id"]
        assert job.name not in self.jobs, f"{job.name} was given twice"
        self.jobs[job.name] = job

    def running(self, job):
        """Waits until the worker of its latest start has said so."""
        def reached():
            told = self.up.job(job.name)
            if told["status"] != "Running":
                return False
            return len(job.starts()) >= (told["starts"] if job.counted else 1)
        patiently(reached, PATIENCE, lambda: f"{job.name} to run: {self.up.job(job.name)}, ran {job.starts()}")

    def completes(self, job):
        self.wait(job, OUTCOMES[job.kind][0])

    def wait(self, job, status):
        patiently(lambda: self.up.job(job.name)["status"] == status, PATIENCE,
                  lambda: f"{job.name} to be {status}: {self.up.job(job.name)}")

    def hold(self, job):
        assert self.up.ask("POST", f"/api/v1/jobs/{job.name}/hold")["held"]
        job.held = True

    def resume(self, job):
        self.up.ask("POST", f"/api/v1/jobs/{job.name}/resume")
        job.held = False

    def delete(self, job):
        self.up.ask("DELETE", f"/api/v1/jobs/{job.name}")
        job.deleted = True

    def active(self):
        """Jobs of the stream that do not end by themselves, in the order of their submission."""
        return [job for job in self.jobs.values() if job.streamed and not job.over]

    def stream(self):
        """Something of everything that users do. It leaves at most three jobs, so that others find free slots."""
        for kind in self.rng.sample(sorted(OUTCOMES), 2):
            self.submit(kind, released=self.rng.random() < 0.5, runs=False).streamed = True
        for job in self.active():
            if not job.held:
                self.running(job)
        for job in self.rng.sample(self.active(), min(2, len(self.active()))):
            deed = self.rng.choice(["hold", "resize", "delete"]) if not job.held else "resume"
            if deed == "resize" and job.kind != "elastic":
                deed = "release"
            if deed == "resize":
                job.most = self.rng.randint(1, 4)
                self.up.ask("PATCH", f"/api/v1/jobs/{job.name}", {"max": job.most})
            elif deed == "release":
                job.release()
            else:
                getattr(self, deed)(job)
        for job in self.active()[:-3]:
            if job.held:
                self.resume(job)
            job.release()

    def tidy(self):
        """Removes the oldest ended jobs for good, which the oracle has seen. What an attack left joins the stream."""
        for job in self.jobs.values():
            job.streamed = True
        for job in [job for job in self.jobs.values() if job.over][:-KEPT]:
            self.up.ask("DELETE", f"/api/v1/jobs/{job.name}?erase=true")
            del self.jobs[job.name]
            patiently(lambda: not os.path.exists(self.folder(job)), PATIENCE, f"{self.folder(job)} to be gone")

    # ---- the oracle

    def check(self):
        assert self.up.process.poll() is None, f"voda up ended with {self.up.process.returncode}"
        patiently(self.lives, PATIENCE, "/livez")
        patiently(self.ready, PATIENCE, "/readyz")
        told = {}

        def differences():
            told.clear()
            told.update(self.up.jobs())
            return self._differences(told)
        patiently(lambda: not differences(), PATIENCE, lambda: "what was promised:\n  " + "\n  ".join(differences()))
        for job in self.jobs.values():
            self._ran_once(job, told[job.name])
        patiently(lambda: not self.leftovers(), PATIENCE, lambda: f"processes of ended jobs to go: {self.leftovers()}")
        assert not self.stolen, f"somebody else was sent a token: {self.stolen[0]!r}"
        most = self.idle_fds + 64
        patiently(lambda: self.descriptors() <= most, PATIENCE, lambda: f"{self.descriptors()} descriptors to be {most}")
        most_memory = self.idle_memory + 60
        patiently(lambda: self.memory() <= most_memory, PATIENCE, lambda: f"{self.memory()} MB to be {most_memory}")

    def _differences(self, told):
        found = [f"{name} is not listed" for name in self.jobs if name not in told]
        found += [f"{name} is listed, and was never acknowledged" for name in told if name not in self.jobs]
        for name, job in self.jobs.items():
            if name not in told:
                continue
            now = told[name]
            if now["status"] != job.expected() and not (job.lawless and now["ended"]):
                found.append(f"{name} is {now['status']} and should be {job.expected()}: {now['message'][-200:]}")
            if job.over:
                continue
            if now["held"] != job.held or job.held and now["workers"]:
                found.append(f"{name}: held {now['held']}, workers {now['workers']}; it should be {job.held}")
            if not job.held and not job.least <= now["workers"] <= job.most:
                found.append(f"{name} has {now['workers']} workers, not {job.least} to {job.most}")
            if not job.held and not self._as_told(job, now):
                found.append(f"{name} tells of {now['starts']} starts, and ran {job.starts()}")
        return found

    def _as_told(self, job, told):
        """Whether it ran as often as is recorded."""
        unsure = job.kind == "elastic" or not job.counted or job.number <= self.turned_back
        return unsure or told["starts"] == len(job.starts())

    def _ran_once(self, job, told):
        starts = job.starts()
        assert "beside-itself" not in starts, f"{job.name}: a worker ran beside itself, {starts}"
        assert len(set(starts)) == len(starts), f"{job.name}: a start ran twice, {starts}"
        assert -1e-3 <= told["running_seconds"] <= told["total_seconds"] + 1e-3, f"{job.name}: {told}"
        if job.lawless or not job.counted:
            return
        assert self._as_told(job, told), f"{job.name} tells of {told['starts']} starts, and ran {starts}"
        if job.over and not job.deleted:
            assert told["exit_code"] == OUTCOMES[job.kind][1], f"{job.name}: exit code {told['exit_code']}"
            assert told["failures"] == job.failures, f"{job.name}: {told['failures']} failures, ran {starts}"

    def leftovers(self):
        """(job, process) of what runs and should not; the process is a lock's name where only that is held."""
        over = {str(job.id): job for job in self.jobs.values() if job.over}
        found = []
        for pid in live.processes_of(self.path("jobs")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as command:
                    text = command.read() + b"\0" + environ.read()
            except OSError:
                continue
            number = re.search(re.escape(self.path("jobs").encode()) + rb"/(\d+)/", text)
            if number and (owner := over.get(number[1].decode())):
                found.append((owner.name, pid))
        for owner in over.values():
            for worker in range(4):
                lock = f"{owner.runs}.lock.{worker}"
                if not os.path.exists(lock):
                    continue
                with open(lock) as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        found.append((owner.name, lock))
        return found

    def tail(self):
        return "\n".join("  " + line.rstrip()[:240] for line in self.up.tail(40).splitlines() if " debug " not in line)

    def close(self):
        """Ends Voda and what it started, and nothing else."""
        self.heard.set()
        if self.up.process and self.up.process.poll() is None:
            self.up.process.send_signal(signal.SIGCONT)
            self.up.kill()
        deadline = time.monotonic() + PATIENCE
        while (left := live.processes_of(self.data)) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.1)
        self.stderr.close()
        if self.small:
            subprocess.run(["umount", "-l", self.data], check=True)
        shutil.rmtree(self.base, ignore_errors=True)
