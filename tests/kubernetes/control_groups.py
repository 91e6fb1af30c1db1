"""Control groups below every hierarchy of this machine, version 1 or 2: made, emptied by force, removed."""
import os
import signal
import time


def hierarchies():
    found = []
    with open("/proc/self/mountinfo") as file:
        for line in file:
            fields = line.split()
            if fields[fields.index("-") + 1] in ("cgroup", "cgroup2"):
                found.append(fields[4])
    return found


def make(name):
    for top in hierarchies():
        folder = os.path.join(top, name)
        os.makedirs(folder, exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):  # version 1: empty ones take no process
            _copy(os.path.join(top, setting), os.path.join(folder, setting))
        if os.path.exists(os.path.join(top, "cgroup.controllers")):
            _enable_controllers(top)


def _copy(source, target):
    if not os.path.exists(source) or not os.path.exists(target):
        return
    with open(source) as file:
        value = file.read().strip()
    with open(target, "r+") as file:
        if not file.read().strip():
            file.write(value)


def _enable_controllers(top):
    with open(os.path.join(top, "cgroup.controllers")) as file:
        for controller in file.read().split():
            try:
                with open(os.path.join(top, "cgroup.subtree_control"), "w") as control:
                    control.write("+" + controller)
            except OSError:
                pass  # the kubelet says which of them it misses


def remove(name, seconds=10):
    """Kills what runs in it and removes it. Returns what could not be removed."""
    deadline = time.monotonic() + seconds
    while True:
        left = [folder for top in hierarchies() for folder in _remove_tree(os.path.join(top, name))]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def _remove_tree(top):
    left = []
    for folder, _, _ in os.walk(top, topdown=False):
        for pid in _processes(folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.rmdir(folder)
        except OSError:
            left.append(folder)
    return left


def _processes(folder):
    try:
        with open(os.path.join(folder, "cgroup.procs")) as file:
            return [int(line) for line in file if int(line) > 0]
    except OSError:
        return []
