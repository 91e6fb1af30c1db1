#!/usr/bin/env python3
"""A policy of one's own for `--algorithm exec:`: the job with the largest request first.

Reads a snapshot on stdin and prints {"allocation": {job: workers}} (docs/SNAPSHOT.md). The rule: by priority, then by
the GPUs that num asks for (largest first), each job gets num if that fits, else min if that fits. Then, in the same
order, each job takes the largest allowed size that fits and makes it faster. Large jobs start early here and small
ones fill in.

A policy counts GPUs; it does not seat workers. Voda does that, and where workers of several GPUs do not fit on the
nodes, jobs give way from the end of (priority, submit time, name) order.
"""
import json
import sys


def allowed_sizes(job):
    """The sizes in workers. The field is left out when every integer from min to max is allowed."""
    return job.get("sizes") or list(range(job["min"], job["max"] + 1))


def speedup(job, size):
    """The field is left out when the estimate is linear."""
    return job["speedup"][str(size)] if "speedup" in job else float(size)


def width(job):
    return job.get("gpus_per_worker", 1)


def capacity(snapshot):
    """GPUs that a plan may use: all of the ready nodes, and on cordoned ones only what is held there now."""
    held = {}
    for job in snapshot["jobs"]:
        for node in job.get("workers", []):
            held[node] = held.get(node, 0) + width(job)
    total = 0
    for node in snapshot["nodes"]:
        state = node.get("state", "ready")
        if state == "ready":
            total += node["gpus"]
        elif state == "cordoned":
            total += min(node["gpus"], held.get(node["name"], 0))
    return total


def can_be_seated(job, snapshot):
    """Whether the minimum fits when no other job is there. A job that cannot be seated must get 0."""
    seats = 0
    for node in snapshot["nodes"]:
        room = node["gpus"] // width(job)
        state = node.get("state", "ready")
        if state == "ready":
            seats += room
        elif state == "cordoned":  # only the workers that sit there already may stay
            seats += min(room, job.get("workers", []).count(node["name"]))
    return seats >= job["min"]


def allocate(snapshot):
    jobs = [job for job in snapshot["jobs"] if can_be_seated(job, snapshot)]
    for job in jobs:
        job.setdefault("num", job["min"])
    jobs.sort(key=lambda j: (-j.get("priority", 0), -j["num"] * width(j), j.get("submit_time", 0), j["name"]))
    free = capacity(snapshot)
    given = {}
    for job in jobs:
        for size in (job["num"], job["min"]):
            if size * width(job) <= free:
                given[job["name"]] = size
                free -= size * width(job)
                break
    for job in jobs:
        now = given.get(job["name"])
        if now is None:
            continue
        for size in reversed(allowed_sizes(job)):
            extra = (size - now) * width(job)
            if 0 < extra <= free and speedup(job, size) > speedup(job, now):
                given[job["name"]] = size
                free -= extra
                break
    return given


if __name__ == "__main__":
    json.dump({"allocation": allocate(json.load(sys.stdin))}, sys.stdout)
