"""Voda at the size of a large cluster: 1,000 simulated nodes of 8 GPUs and 1,000 elastic jobs of both kinds, through the
operators. How long it takes until all of them have their workers, then for single events (a job comes, a job is
deleted, a node is cordoned, a node is lost) the time from the event's write to the last write of the round that
follows, that round's writes, and Voda's memory and CPU time.

    /usr/bin/python3 bench/kubernetes/scale_bench.py [--nodes 1000] [--jobs 1000] [--times 3] [--operators off]

Without operators nothing makes pods: what is measured then is the first round alone.
"""
import argparse
import json
import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import stage as stages  # noqa: E402
import kwok  # noqa: E402
import load  # noqa: E402
from processes import ClusterError, wait_for  # noqa: E402
from voda import job  # noqa: E402

GENERATION = re.compile(rb'"generation":([0-9]+)')
NAME = re.compile(rb'"name":"(job-[0-9]+[^"]*)"')
PATCHES = {("PATCH", "mpijobs"), ("PATCH", "pytorchjobs"), ("PUT", "pytorchjobs/scale"), ("PATCH", "pytorchjobs/scale"),
           ("PATCH", "pods")}  # Voda alone; deletions of pods are the operators' too


def of_job(line):
    """(name, generation): that counts changes of the spec, which nobody but Voda makes."""
    if line.startswith(b'{"type":"DELETED"'):
        return None
    return NAME.search(line).group(1).decode(), int(GENERATION.search(line).group(1))


def of_pod(line):
    """(name, whether it was placed): a worker without its gate."""
    if line.startswith(b'{"type":"DELETED"'):
        return None
    return NAME.search(line).group(1).decode(), b'"schedulingGates":' not in line.replace(b'"f:schedulingGates":', b"")


class Writes:
    """When Voda wrote last, as three watches show it."""

    def __init__(self, cluster):
        self.watches = [load.Watch(cluster, cluster.api.path(resource), look)
                        for resource, look in (("mpijobs", of_job), ("pytorchjobs", of_job), ("pods", of_pod))]
        self.seen = [0, 0, 0]
        self.known = {}
        self.times = []

    def close(self):
        for watch in self.watches:
            watch.__exit__()

    def look(self):
        """Takes in what came; the time of the last write so far."""
        for index, watch in enumerate(self.watches):
            if watch.end:
                raise ClusterError(watch.end)
            records = watch.records[self.seen[index]:]
            self.seen[index] += len(records)
            for at, (name, value) in records:
                before = self.known.get((index, name))
                self.known[index, name] = value
                placed = index == 2 and before is False and value
                changed = index < 2 and before is not None and value > before
                if placed or changed:
                    self.times.append(at)
        return max(self.times, default=0.0)


class Scale:
    def __init__(self, options):
        self.options = options
        self.chance = random.Random(1)
        self.made = 0
        self.cluster = stages.stage(nodes=options.nodes, operators=options.operators == "on")
        self.side = None
        self.writes = None

    def body(self):
        """The next job: at least 1 to 4 workers, at most 2 to 6 times as many. All together want more than there is."""
        low = self.chance.choice((1, 2, 4))
        kind = "MPIJob" if self.made % 2 else "PyTorchJob"
        body = job(kind, f"job-{self.made:05}", low, low * self.chance.choice((2, 4, 6)))
        self.made += 1
        return ("mpijobs" if kind == "MPIJob" else "pytorchjobs"), body

    def submit(self, count):
        bodies = [self.body() for _ in range(count)]
        return load.burst(self.cluster, [load.request(self.cluster, "POST", self.cluster.api.path(resource), body)
                                         for resource, body in bodies], 16).check("creating jobs")

    def metric(self, name):
        total = 0.0
        for line in self.side.voda.ask("GET", "/metrics", raw=True).splitlines():
            if line.startswith(name + "{") or line.startswith(name + " "):
                total += float(line.rpartition(" ")[2])
        return total

    def counts(self):
        return {"writes": sum(value for key, value in load.writes(self.cluster).items() if key[:2] in PATCHES),
                "rounds": self.metric("voda_rounds_total"), "round s": self.metric("voda_round_duration_seconds_sum"),
                "cpu": load.cpu(self.side.pid)}

    def settle(self, quiet, most):
        """Waits until Voda has not written for so long, and has reached its plan where there are operators."""
        started = time.monotonic()

        def over():
            last = max(self.writes.look(), started)
            if time.monotonic() - last < quiet:
                return False
            return self.options.operators == "off" or self.metric("voda_plan_divergence_workers") == 0
        wait_for(over, most, lambda: f"the plan: {self.metric('voda_plan_divergence_workers'):.0f} workers are missing",
                 every=0.1)

    def measure(self, name, act, quiet, most):
        """act() returns when the event was written."""
        before = self.counts()
        self.writes.look()
        self.writes.times.clear()
        begun = act()
        self.settle(quiet, most)
        times = [at for at in self.writes.times if at >= begun]
        after = self.counts()
        row = {"event": name, "last": max(times, default=begun) - begun, "first": min(times, default=begun) - begun,
               "memory": load.memory_mb(self.side.pid, "VmRSS"),
               **{key: after[key] - before[key] for key in before}}
        print(f"{name}: {row['last']:.2f} s, {row['writes']:.0f} writes", flush=True)
        return row

    def run(self):
        options = self.options
        self.side = stages.VodaSide(self.cluster, ["--writes-per-second", str(options.rate)]).start()
        self.writes = Writes(self.cluster)
        rows = [self.measure(f"{options.jobs} jobs come", lambda: self.submit(options.jobs).first, 8, 3600)]
        if options.operators == "off":
            return rows
        nodes = iter(self.chance.sample(range(options.nodes), 2 * options.times))
        jobs = iter(self.chance.sample(range(options.jobs), options.times))
        api = self.cluster.api
        for _ in range(options.times):
            rows.append(self.measure("a job comes", lambda: self.submit(1).first, 3, 300))
            number = next(jobs)
            resource = "mpijobs" if number % 2 else "pytorchjobs"
            rows.append(self.measure("a job is deleted", lambda: stamped(
                lambda: api.delete(resource, f"job-{number:05}")), 3, 300))
            node = f"node-{next(nodes):04}"
            rows.append(self.measure("a node is cordoned", lambda: stamped(
                lambda: api.patch("nodes", node, {"spec": {"unschedulable": True}})), 3, 300))
            node = f"node-{next(nodes):04}"
            rows.append(self.measure("a node is lost", lambda: stamped(
                lambda: api.patch("nodes", node, {"metadata": {"labels": {kwok.NOT_READY: "true"}}})), 8, 300))
        return rows

    def close(self):
        if self.writes:
            self.writes.close()
        if self.side:
            self.side.close()
        self.cluster.close()


def stamped(act):
    begun = time.monotonic()
    act()
    return begun


def main():
    parser = argparse.ArgumentParser(description="Voda on a large cluster.")
    parser.add_argument("--nodes", default=1000, type=int)
    parser.add_argument("--jobs", default=1000, type=int)
    parser.add_argument("--times", default=3, type=int, help="how often each event is tried")
    parser.add_argument("--operators", default="on", choices=("on", "off"))
    parser.add_argument("--rate", default=0, type=float, help="Voda's limit of writes a second; 0: none")
    parser.add_argument("--json", help="file for all that was measured")
    options = parser.parse_args()
    scale = Scale(options)
    try:
        rows = scale.run()
        peak = load.memory_mb(scale.side.pid)
        workers = scale.metric("voda_gpus_used")
    finally:
        scale.close()
    print(f"\n{options.nodes} nodes of 8 GPUs, {options.jobs} elastic jobs with {workers:.0f} workers in the end, "
          f"operators {options.operators}; Voda took {peak:.0f} MB at most; load average {os.getloadavg()[0]:.1f}\n")
    header = ["event", "first write s", "last write s", "writes", "rounds", "deciding ms", "Voda's CPU s", "MB"]
    print(load.table(header,
                     [[row["event"], f"{row['first']:.2f}", f"{row['last']:.2f}", f"{row['writes']:.0f}",
                       f"{row['rounds']:.0f}", f"{1000 * row['round s']:.1f}", f"{row['cpu']:.2f}",
                       f"{row['memory']:.0f}"] for row in rows]))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    try:
        main()
    except ClusterError as error:
        print(f"scale_bench: {error}", file=sys.stderr)
        sys.exit(1)
