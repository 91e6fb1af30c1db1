#!/usr/bin/env python3
"""The demo: `voda up` on a temporary folder with two declared nodes, a handful of real elastic PyTorch jobs, a live table,
and what became of each job. VODA_DEMO_SPEED=4 makes the jobs four times shorter."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
LIVE = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
COLOR = LIVE and "NO_COLOR" not in os.environ
SPEED = float(os.environ.get("VODA_DEMO_SPEED", "1"))
# name, when it is submitted, epochs, most workers
JOBS = (("resnet", 0, 30, 4), ("bert", 8, 20, 2), ("gpt", 20, 25, 4), ("vit", 32, 10, 2))
LIMIT_SECONDS = 900


class Demo:
    def __init__(self, voda):
        self.voda = voda
        self.folder = tempfile.mkdtemp(prefix="voda-demo-")
        self.log = open(os.path.join(self.folder, "up.log"), "wb")
        self.up = None
        self.drawn = 0

    def start(self):
        self.up = subprocess.Popen(
            [self.voda, "up", "--data", self.folder, "--listen", "127.0.0.1:0", "--nodes", "a:2,b:2", "--gpu-type", "cpu",
             "--algorithm", "ElasticFIFO", "--rate-limit", "3s", "--log-format", "json"], cwd=ROOT, stderr=self.log)
        server = os.path.join(self.folder, "server")
        deadline = time.monotonic() + 30
        while not os.path.exists(server):
            if self.up.poll() is not None or time.monotonic() > deadline:
                sys.exit("demo: voda up did not start:\n" + open(self.log.name, errors="replace").read())
            time.sleep(0.05)
        self.url = open(server).read().strip()
        self.token = open(os.path.join(self.folder, "token")).read().strip()

    def ask(self, path, body=None, raw=False):
        request = urllib.request.Request(self.url + path, data=body.encode() if body else None)
        request.add_header("Authorization", "Bearer " + self.token)
        text = urllib.request.urlopen(request, timeout=30).read().decode()
        return text if raw else json.loads(text)

    def submit(self, name, epochs, most):
        with open(os.path.join(ROOT, "examples", "jobs", "pytorch-elastic.yaml")) as file:
            yaml = file.read()
        yaml = yaml.replace("name: pytorch-elastic", f"name: {name}").replace("maxReplicas: 4", f"maxReplicas: {most}")
        yaml = re.sub(r'(- name: EPOCHS\n\s*value: )"\d+"', rf'\1"{max(3, round(epochs / SPEED))}"', yaml)
        return self.ask("/api/v1/jobs", yaml)["jobs"][0]["name"]

    def table(self, began):
        jobs = self.ask("/api/v1/jobs")["jobs"]
        nodes = self.ask("/api/v1/nodes")["nodes"]
        letters = {job["name"]: chr(ord("A") + i) for i, job in enumerate(jobs)}
        lines = [f"{int(time.monotonic() - began):4d} s   " + "   ".join(
            node["name"] + " [" + slots(node, letters) + "]" for node in nodes)]
        for job in jobs:
            progress = job["progress"] or {"fraction": 0, "epoch": 0, "total_epochs": 0, "loss": None}
            fraction = 1 if job["status"] == "Completed" else progress["fraction"]
            loss = "" if progress["loss"] is None else f"loss {progress['loss']:.4f}"
            lines.append(f"  {letters[job['name']]} {job['category']:<8} {job['status']:<10} "
                         f"{'#' * job['workers']:<4} {job['workers']}/{job['max']}  "
                         f"{bar(fraction, 24)} {fraction * 100:3.0f}%  {loss}")
        return jobs, lines

    def draw(self, lines):
        if LIVE:
            if self.drawn:
                sys.stdout.write(f"\x1b[{self.drawn}F\x1b[J")
            self.drawn = len(lines)
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    def run(self):
        self.start()
        print("Two nodes of 2 slots each, algorithm ElasticFIFO; jobs are real PyTorch training on this machine's CPU.\n")
        began = time.monotonic()
        waiting = list(JOBS)
        last = None
        while True:
            now = time.monotonic() - began
            while waiting and now * SPEED >= waiting[0][1]:
                name, _, epochs, most = waiting.pop(0)
                self.submit(name, epochs, most)
            jobs, lines = self.table(began)
            # In a pipe only what changed: who runs on how many.
            shape = [(job["name"], job["status"], job["workers"]) for job in jobs]
            if LIVE or shape != last:
                self.draw(lines)
                last = shape
            if not waiting and all(job["ended"] for job in jobs):
                break
            if now > LIMIT_SECONDS or self.up.poll() is not None:
                print(f"demo: not done after {int(now)} s; the log is {self.log.name}", file=sys.stderr)
                return 1
            time.sleep(0.5 if LIVE else 1)
        return self.report(jobs)

    def log_of(self, job, worker):
        try:
            return self.ask(f"/api/v1/jobs/{job}/logs?worker={worker}", raw=True)
        except urllib.error.HTTPError as error:
            if error.code != 404:  # a worker that never started
                raise
            return ""

    def report(self, jobs):
        print("\nWhat became of them:")
        good = True
        for job in jobs:
            full = self.ask(f"/api/v1/jobs/{job['name']}")
            # Rank 0 prints, and any worker may have been rank 0 for a while.
            log = "".join(self.log_of(job["name"], worker) for worker in range(job["max"]))
            printed = re.findall(r"epoch (\d+)/\d+ .*?loss ([0-9.e+-]+)", log)
            losses = [loss for _, loss in sorted(printed, key=lambda found: int(found[0]))]
            sizes = [str(size["to"]) for size in full["sizes"]]
            good = good and job["status"] == "Completed" and losses and float(losses[-1]) < float(losses[0])
            fell = f"loss {losses[0]} -> {losses[-1]}" if losses else "no loss was printed"
            print(f"  {job['category']:<8} {job['status']:<10} sizes 0 -> {' -> '.join(sizes)}; {fell}; "
                  f"completion {job['total_seconds']:.0f} s, of it {job['waiting_seconds']:.0f} s waiting")
        mean = sum(job["total_seconds"] for job in jobs) / len(jobs)
        print(f"  mean completion time {mean:.0f} s\n")
        print("Why sizes changed:")
        for job in jobs[:2]:
            for size in self.ask(f"/api/v1/jobs/{job['name']}")["sizes"][:3]:
                print(f"  {job['category']}: {size['from']} -> {size['to']}, {size['reason']}")
        print("\nWhere to look next:\n  build/release/voda up                            the same on your own machine or GPUs"
              "\n  build/release/voda create -f examples/jobs/pytorch-elastic.yaml"
              "\n  build/release/voda top, get jobs -w, explain JOB  what it does and why"
              "\n  build/release/voda simulate --help                the same scheduler on your traces")
        return 0 if good else 1

    def close(self):
        if self.up and self.up.poll() is None:
            try:
                for job in self.ask("/api/v1/jobs?status=Running,Waiting")["jobs"]:
                    request = urllib.request.Request(f"{self.url}/api/v1/jobs/{job['name']}", method="DELETE")
                    request.add_header("Authorization", "Bearer " + self.token)
                    urllib.request.urlopen(request, timeout=10)
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline and self.ask("/api/v1/jobs?status=Running")["jobs"]:
                    time.sleep(0.2)
            except OSError:
                pass
            self.up.send_signal(signal.SIGTERM)
            self.up.wait(timeout=30)
        self.log.close()


def slots(node, letters):
    taken = "".join(letters[job["name"]] * job["workers"] for job in node["jobs"])
    text = taken.ljust(node["gpus"], ".")
    if not COLOR:
        return text
    return "".join(c if c == "." else f"\x1b[3{1 + (ord(c) - ord('A')) % 6}m{c}\x1b[0m" for c in text)


def bar(fraction, width):
    done = int(fraction * width)
    return "[" + "=" * done + " " * (width - done) + "]"


def main():
    demo = Demo(os.path.abspath(sys.argv[1]))
    code = 1
    try:
        code = demo.run()
    except KeyboardInterrupt:
        print("\nstopped")
        code = 130
    finally:
        demo.close()
    if code == 0:
        shutil.rmtree(demo.folder, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
