"""Voda and Kueue side by side on a real control plane: suspended one-worker MPIJobs submitted at once, admissions per
second, API writes for each admitted job, memory, CPU time; the API server's own write rate beside them; and with the
mpi-operator on, the time from submission to worker pods.

    /usr/bin/python3 bench/kubernetes/kueue_bench.py [--jobs 1000,5000] [--operator-jobs 200]
"""
import argparse
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import stage as stages  # noqa: E402
import load  # noqa: E402
from processes import ClusterError  # noqa: E402

NAME = re.compile(rb'"name":"(job-[0-9]+)"')
CONNECTIONS = (8, 32, 64)  # what the API server's own rate is tried with; the best counts
MOST_PATCHES = 2000        # with each
SUBMITTERS = 16
MERGE = "application/merge-patch+json"


def admitted(line):
    """The name of a job that may run."""
    if b'"suspend":false' not in line:
        return None
    return NAME.search(line).group(1).decode()


def worker_pod(line):
    """(job, phase) of a worker pod."""
    if b'"training.kubeflow.org/job-role":"worker"' not in line:
        return None
    pod = json.loads(line)["object"]
    return pod["metadata"]["labels"]["training.kubeflow.org/job-name"], pod["status"].get("phase")


def creations(cluster, side, count):
    path = cluster.api.path("mpijobs")
    return [load.request(cluster, "POST", path, stages.one_worker(f"job-{number:05}", side.label, side.queue))
            for number in range(count)]


def own_rate(cluster, count):
    """Plain merge patches of the same objects, nobody else writing, by the number of connections: rate, p99 and CPU
    seconds for each write."""
    rates = {}
    number_of = min(count, MOST_PATCHES)
    for connections in CONNECTIONS:
        meter = stages.Meter(cluster)
        requests = [load.request(cluster, "PATCH", cluster.api.path("mpijobs", f"job-{number:05}"),
                                 {"metadata": {"annotations": {"bench/round": str(connections)}}}, MERGE)
                    for number in range(number_of)]
        answers = load.burst(cluster, requests, connections).check("patching jobs")
        split = {name: load.cpu(cluster.parts[name].process.pid) - meter.cpu[name] for name in stages.SERVERS}
        spent = {"client": answers.cpu, **split}
        rates[connections] = {"rate": answers.rate, "p99_ms": answers.p99_ms,
                              "cpu": {name: seconds / number_of for name, seconds in spent.items()}}
    return rates


def first_times(records):
    times = {}
    for at, name in records:
        times.setdefault(name, at)
    return times


def admission(make_side, count, arriving):
    """One measurement on a cluster of its own. `arriving`: the scheduler runs, then the jobs are created; else they
    are there before it starts."""
    result = {"jobs": count, "arriving": arriving, "load": os.getloadavg()[0]}
    cluster = stages.stage(nodes=count // 8 + 2, operators=False)
    try:
        side = make_side(cluster)
        try:
            if arriving:
                side.start()
            requests = creations(cluster, side, count)
            with load.Watch(cluster, cluster.api.path("mpijobs"), admitted) as watch:
                if arriving:
                    load.settled_writes(cluster)
                    meter = stages.Meter(cluster, side.pid)
                    created = load.burst(cluster, requests, SUBMITTERS).check("creating jobs")
                    begun = created.first
                else:
                    created = load.burst(cluster, requests, SUBMITTERS).check("creating jobs")
                    result["own"] = own_rate(cluster, count)
                    load.settled_writes(cluster)
                    meter = stages.Meter(cluster)
                    begun = time.monotonic()
                    side.start()
                result["creates"] = created.rate

                def missing():
                    return f"{count} admissions: {len(first_times(watch.records))} are there"
                watch.wait(lambda records: len(records) >= count and len(first_times(records)) >= count, 1200, missing)
                times = sorted(first_times(watch.records).values())
            result["cpu"] = meter.cpu_split(side.pid)
            result["writes_then"] = shares(meter.written(), count, arriving)
            result["begin_to_first"] = times[0] - begun
            result["begin_to_last"] = times[-1] - begun
            result["first_to_last"] = times[-1] - times[0]
            result["writes"] = shares(meter.written(load.settled_writes(cluster)), count, arriving)
            result["memory"] = load.memory_mb(side.pid)
            result["server_memory"] = load.memory_mb(cluster.parts["kube-apiserver"].process.pid)
        finally:
            side.close()
    finally:
        cluster.close()
    return result


def shares(written, count, created):
    """Writes for each job by what was written, without those that created the jobs."""
    found = {}
    for (verb, what, code), number in written.items():
        if created and (verb, what) == ("POST", "mpijobs"):
            number -= count
        name = f"{verb} {what}" + ("" if code[0] == "2" else f" ({code})")
        if number:
            found[name] = found.get(name, 0) + number / count
    return found


def to_pods(make_side, count):
    """With the operators on: seconds from each job's submission to its worker's pod, and until that runs."""
    result = {"jobs": count, "load": os.getloadavg()[0]}
    cluster = stages.stage(nodes=count // 8 + 2, operators=True)
    try:
        side = make_side(cluster).start()
        try:
            requests = creations(cluster, side, count)
            with load.Watch(cluster, cluster.api.path("pods"), worker_pod) as watch:
                meter = stages.Meter(cluster, side.pid)
                created = load.burst(cluster, requests, SUBMITTERS).check("creating jobs")
                sent = {f"job-{number:05}": row[0] for number, row in enumerate(created.rows)}

                def running(records):
                    return len({name for _, (name, phase) in records if phase == "Running"})
                watch.wait(lambda records: len(records) >= count and running(records) >= count, 600,
                           lambda: f"{count} workers to run: {running(watch.records)} do")
                there = first_times([(at, name) for at, (name, _) in watch.records])
                run = first_times([(at, name) for at, (name, phase) in watch.records if phase == "Running"])
            result["cpu"] = meter.cpu_split(side.pid)
            for key, times in (("pod", there), ("running", run)):
                waits = sorted(times[name] - sent[name] for name in sent)
                result[key] = {"median": load.median(waits), "last": waits[-1],
                               "all": max(times.values()) - created.first}
            result["memory"] = load.memory_mb(side.pid)
        finally:
            side.close()
    finally:
        cluster.close()
    return result


def report(results, pods, own):
    rows = []
    for name, one in results:
        total = sum(one["writes"].values())
        rows.append([name, one["jobs"], "arriving" if one["arriving"] else "waiting",
                     f"{one['jobs'] / one['begin_to_last']:.0f}",
                     f"{one['jobs'] / max(one['first_to_last'], 1e-9):.0f}",
                     f"{one['begin_to_first']:.1f}", f"{one['begin_to_last']:.1f}", f"{total:.2f}",
                     f"{one['memory']:.0f}", f"{one['server_memory']:.0f}",
                     *[f"{1000 * one['cpu'][key] / one['jobs']:.1f}" for key in ("scheduler", *stages.SERVERS)],
                     f"{one['load']:.1f}"])
    print("\nAdmissions. waiting: all jobs are there before the scheduler starts, times are from the start of its\n"
          "process; arriving: it runs and the jobs are created over "
          f"{SUBMITTERS} connections, times are from the first creation.\n")
    print(load.table(["scheduler", "jobs", "submitted", "admissions/s", "/s from first to last", "first s", "last s",
                      "writes/job", "peak MB", "API server MB", "CPU ms/job: scheduler", "API server", "etcd",
                      "controllers", "load"], rows))
    print("\nWrites for each admitted job, by the API server's count until nothing was written any more\n")
    for name, one in results:
        kind = "arriving" if one["arriving"] else "waiting"
        parts = ", ".join(f"{what} {number:.2f}" for what, number in sorted(one["writes"].items()) if number >= 0.005)
        print(f"- {name}, {one['jobs']} {kind}: {parts}")
    if own:
        print("\nThe API server's own rate: merge patches of an annotation of the same MPIJobs, nobody else writing\n")
        rows = [[count, connections, f"{one['rate']:.0f}", f"{one['p99_ms']:.0f}",
                 *[f"{1000 * one['cpu'][key]:.2f}" for key in (*stages.SERVERS, "client")]]
                for count, found in own for connections, one in found.items()]
        print(load.table(["jobs", "connections", "writes/s", "p99 ms", "CPU ms a write: API server", "etcd",
                          "controllers", "client"], rows))
    if pods:
        print("\nWith the mpi-operator on: seconds from submission\n")
        rows = [[name, one["jobs"], *[f"{one[key][which]:.2f}" for key in ("pod", "running")
                                      for which in ("median", "last", "all")],
                 f"{one['memory']:.0f}", f"{one['cpu']['scheduler']:.1f}", f"{one['load']:.1f}"]
                for name, one in pods]
        print(load.table(["scheduler", "jobs", "pod: median", "slowest", "all, from the first submission",
                          "running: median", "slowest", "all", "peak MB", "CPU s", "load"], rows))


def main():
    parser = argparse.ArgumentParser(description="Voda and Kueue side by side.")
    parser.add_argument("--jobs", default="1000,5000", help="sizes")
    parser.add_argument("--operator-jobs", default=200, type=int, help="jobs with the operator on; 0: not measured")
    parser.add_argument("--submitted", default="waiting,arriving")
    parser.add_argument("--schedulers", default="voda,voda-unlimited,kueue")
    parser.add_argument("--kueue-qps", default=500, type=int, help="Kueue's own limit; -1: none")
    parser.add_argument("--kueue-concurrency", default=5, type=int, help="reconcilers of MPIJobs and of Workloads")
    parser.add_argument("--json", help="file for all that was measured")
    options = parser.parse_args()
    sizes = [int(size) for size in options.jobs.split(",") if size]
    gpus = 2 * max([*sizes, options.operator_jobs, 8])
    sides = {
        "voda": lambda cluster: stages.VodaSide(cluster),
        "voda-unlimited": lambda cluster: stages.VodaSide(cluster, ["--writes-per-second", "0"]),
        "kueue": lambda cluster: stages.KueueSide(cluster, gpus, options.kueue_qps, options.kueue_concurrency),
    }
    chosen = [name for name in options.schedulers.split(",") if name]
    results, own, pods = [], [], []

    def keep():
        """After each measurement, so that a run that is broken off is not lost."""
        if options.json:
            with open(options.json, "w") as file:
                json.dump({"admission": results, "own": own, "pods": pods}, file, indent=1)
    for count in sizes:
        for submitted in options.submitted.split(","):
            for name in chosen:
                one = admission(sides[name], count, submitted == "arriving")
                results.append((name, one))
                if "own" in one:
                    own.append((count, one["own"]))
                keep()
                print(f"{name}, {count} {submitted}: {count / one['begin_to_last']:.0f} admissions/s, "
                      f"{sum(one['writes'].values()):.2f} writes a job, {one['memory']:.0f} MB, CPU ms a job: "
                      f"{1000 * one['cpu']['scheduler'] / count:.1f}, in the API server "
                      f"{1000 * one['cpu']['kube-apiserver'] / count:.1f}", flush=True)
    for name in chosen if options.operator_jobs else []:
        pods.append((name, to_pods(sides[name], options.operator_jobs)))
        keep()
        print(f"{name}, {options.operator_jobs} with the operator: {pods[-1][1]['running']['all']:.1f} s", flush=True)
    report(results, pods, own)


if __name__ == "__main__":
    try:
        main()
    except ClusterError as error:
        print(f"kueue_bench: {error}", file=sys.stderr)
        sys.exit(1)
