"""Whether a slow decision holds up anybody: `voda up` with its own policy, and then with an external one that takes
five seconds for each decision. Prints side by side how long requests take, and how long it takes until the end of a
worker is the end of its job. Nothing here is a test of time: it fails only when a request fails or a job does not end.

    VODA_BINARY=build/release/voda /usr/bin/python3 bench/external_policy_bench.py
"""
import http.client
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "live"))

import live  # noqa: E402

WORKERS = 20     # each is a job that ends when it is told to
GETS = 1000      # before each end
POSTS = 20       # the same; of jobs that no node has room for, so that both sides start the same processes
SECONDS = 5      # for each decision of the external policy

# Everybody gets the minimum. It writes down when it decided; the clock is the same for all processes.
PROGRAM = '''#!/usr/bin/python3
import json, sys, time
snapshot = json.load(sys.stdin)
began = time.monotonic()
open(sys.argv[1], "a").write(f"{began} ")
time.sleep(float(sys.argv[2]))
free = sum(node["gpus"] for node in snapshot["nodes"])
allocation = {}
for job in snapshot["jobs"]:
    gpus = job["min"] * job["gpus_per_worker"]
    if gpus <= free:
        allocation[job["name"]] = job["min"]
        free -= gpus
print(json.dumps({"allocation": allocation}))
open(sys.argv[1], "a").write(f"{time.monotonic()}\\n")
'''


class Client:
    """One connection that stays open."""

    def __init__(self, up):
        self.connection = http.client.HTTPConnection(up.url.removeprefix("http://"), timeout=60)
        self.headers = {"Authorization": "Bearer " + up.token}

    def ask(self, method, path, body=None):
        """(when it was asked, when it was answered, the answer)"""
        began = time.monotonic()
        self.connection.request(method, path, body, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        ended = time.monotonic()
        if answer.status >= 300:
            raise AssertionError(f"{method} {path} was answered {answer.status}: {text.decode()}")
        return began, ended, text


class Decisions:
    """When the external policy was deciding, as it wrote it down."""

    def __init__(self, path):
        self.path = path

    def spans(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path) as file:
            lines = [line.split() for line in file]
        return [(float(line[0]), float(line[1]) if len(line) > 1 else float("inf")) for line in lines]

    def under_way(self):
        return any(end == float("inf") for _, end in self.spans())

    def share(self, requests):
        spans = self.spans()
        inside = sum(any(begin <= began and ended <= end for begin, end in spans) for began, ended in requests)
        return inside / len(requests)


def measure(folder, algorithm, decisions):
    """Seconds of each GET, of each POST and from the end of each worker to that of its job; when all of them were."""
    up = live.Voda("--nodes", f"a:{WORKERS}", "--rate-limit", "0s", "--log-level", "warn",
                   *(["--algorithm", algorithm] if algorithm else []))
    try:
        up.start()
        client = Client(up)
        jobs = {}
        for number in range(WORKERS):
            pipe = os.path.join(folder, f"{'external' if algorithm else 'own'}-{number}")
            os.mkfifo(pipe)
            [name] = up.submit(live.job(f"worker-{number}", ["sh", "-c", f"read line < {pipe}"]))
            jobs[name] = pipe
        for name in jobs:
            up.wait(name, "Running")
        waiting = live.job("waiting", ["true"], gpus=2 * WORKERS)
        up.submit(waiting)  # there is something to decide
        gets, posts, ends = [], [], []
        for name, pipe in jobs.items():
            if algorithm:
                live.wait_for(decisions.under_way, 30, "the external policy to be asked", every=0.01)
            paths = ("/api/v1/jobs", f"/api/v1/jobs/{name}", "/api/v1/nodes", "/api/v1/info")
            gets += [client.ask("GET", paths[number % len(paths)])[:2] for number in range(GETS)]
            posts += [client.ask("POST", "/api/v1/jobs", waiting)[:2] for _ in range(POSTS)]
            began = time.monotonic()
            with open(pipe, "w") as file:
                file.write("end\n")
            live.wait_for(lambda: b'"status":"Completed"' in client.ask("GET", f"/api/v1/jobs/{name}")[2], 60,
                          f"{name} to be Completed", every=0.002)
            ends.append((began, time.monotonic()))
        return gets, posts, ends
    finally:
        up.close()


def milliseconds(spans, share):
    values = sorted(end - begin for begin, end in spans)
    return 1e3 * values[int(share * (len(values) - 1))]


def main():
    folder = tempfile.mkdtemp(prefix="voda-policy-")
    try:
        program = os.path.join(folder, "program.py")
        with open(program, "w") as file:
            file.write(PROGRAM)
        os.chmod(program, 0o755)
        decisions = Decisions(os.path.join(folder, "decisions"))
        own = measure(folder, None, decisions)
        external = measure(folder, f"exec:{program} {decisions.path} {SECONDS}", decisions)
        share = decisions.share([span for spans in external for span in spans])
        count = len(decisions.spans())
    finally:
        shutil.rmtree(folder)
    rows = []
    for what, index in ((f"GET, {WORKERS * GETS} of them", 0), (f"POST of a job, {WORKERS * POSTS} of them", 1),
                        (f"end of a worker to Completed, {WORKERS} of them", 2)):
        for label, of in (("p50", 0.5), ("p99", 0.99)) if index < 2 else (("median", 0.5), ("longest", 1)):
            rows.append((f"{what}: {label}", milliseconds(own[index], of), milliseconds(external[index], of)))
    print(f"{'':52} {'own policy':>12} {f'{SECONDS} s a decision':>16} {'ratio':>6}")
    for what, without, slow in rows:
        print(f"{what:52} {without:>9.2f} ms {slow:>13.2f} ms {slow / without:>6.2f}")
    print(f"On the right there were {count} decisions; {100 * share:.1f} % of the times lie within one of them.")


if __name__ == "__main__":
    main()
