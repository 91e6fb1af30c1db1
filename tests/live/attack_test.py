"""Attacks on a running `voda up`, drawn by seed, for so many seconds: descriptors, memory, disk, clock, signals, sockets,
folders. Users go on with their jobs meanwhile, and after every attack the oracle of arena.py looks for what was lost, was
doubled or still runs. docs/ATTACKS.md says what was tried and what held.

    python3 tests/live/attack_test.py --seed 7 --seconds 600
    python3 tests/live/attack_test.py --seed 7 --only full_disk,kill_voda
"""
import argparse
import concurrent.futures
import http.client
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

import live
from arena import OUTCOMES, PATIENCE, Arena, Impossible, patiently

DAY = 86_400
ATTACKS = {}


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def connect(arena, text=b""):
    connection = socket.create_connection(("127.0.0.1", arena.port), timeout=PATIENCE)
    try:
        connection.sendall(text)
    except OSError:
        pass  # it was closed to make room
    return connection


def status_of(arena, method, path, body=None, **keywords):
    try:
        arena.up.ask(method, path, body, raw=True, **keywords)
        return 200
    except live.HttpError as error:
        return error.status


def progress_token(arena, job):
    """As only the owner of a worker's process can see it."""
    return patiently(lambda: [env["VODA_PROGRESS_TOKEN"] for _, env in live.environments()
                              if env.get("JOB_NAME") == job.name and "VODA_PROGRESS_TOKEN" in env],
                     PATIENCE, f"a worker of {job.name}")[0]


def maybe_restart(arena):
    if arena.rng.random() < 0.4:
        arena.restart(kill=arena.rng.random() < 0.7)


# ---- descriptors

@attack
def idle_connections(arena):
    """1,200 connections that send nothing or half a request, without a token; a job ends meanwhile."""
    job = arena.submit()
    texts = [b"", b"GET", b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nhalf"]
    held = [connect(arena, arena.rng.choice(texts)) for _ in range(1200)]
    try:
        assert arena.descriptors() < 1800, "clients took what the scheduler needs"
        job.release()
        arena.completes(job)
        arena.submit(released=True)
    finally:
        for connection in held:
            connection.close()


@attack
def unread_streams(arena):
    """300 streams of events and logs that are never read; jobs come and end meanwhile."""
    job = arena.submit()
    head = f"HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {arena.up.token}\r\n\r\n"
    held = [connect(arena, f"GET {path} {head}".encode()) for _ in range(150)
            for path in ("/api/v1/events", f"/api/v1/jobs/{job.name}/logs?follow=true")]
    try:
        arena.stream()
        job.release()
        arena.completes(job)
    finally:
        for connection in held:
            connection.close()


@attack
def no_descriptors(arena):
    """The limit of open files set below what Voda has open; jobs end meanwhile."""
    jobs = [arena.submit(), arena.submit("three")]
    pid = arena.up.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (arena.rng.choice([3, 10, arena.descriptors()]), hard))
    try:
        for job in jobs:
            job.release()
        patiently(lambda: not arena.leftovers(), PATIENCE, "the workers to end")
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


# ---- memory

MANIFESTS = [
    "", " ", "\t", "a: [", "---\n---\n", "null", "[]", "{}", "kind: Pod", "\0", "\ufeff", "%YAML 9.9\n---\n", "a: &a [*a]",
    "a: *b",
    "a: !!python/object/apply:os.system [id]", "? [a]\n: b", "- " * 3000, '"' + "\\u0000" * 100 + '"',
    "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n"
                                            for i in range(9)),
]
CHANGES = [
    ("replicas: 1", "replicas: -1"), ("replicas: 1", "replicas: 1e400"), ("replicas: 1", "replicas: 99999999999999999999"),
    ("replicas: 1", "replicas: [1]"), ("replicas: 1", "replicas: ''"), ("replicas: 1", "replicas: 1\n      replicas: 2"),
    ("name: bad", "name: ../../etc"), ("name: bad", "name: ''"), ("name: bad", "name: " + "x" * 300),
    ("name: bad", "name: \"a\\nb\""), ("kind: PyTorchJob", "kind: Job"), ("kubeflow.org/v1", "v0"),
    ("nvidia.com/gpu: 1", "nvidia.com/gpu: -1"),
    ("nvidia.com/gpu: 1", "nvidia.com/gpu: 4000000000"), ("OnFailure", "Sometimes"), ("spec:", "spec: 3\nspecs:"),
    ("containers:", "containers: []\n          other:"), ("[\"true\"]", "true"), ("[\"true\"]", "[[\"true\"]]"),
]


@attack
def bad_manifests(arena):
    """Manifests of 1 MiB of brackets, eight at a time, and some forty others that are no jobs."""
    def refused(body):
        status = status_of(arena, "POST", "/api/v1/jobs", body)
        assert status in (400, 413), f"{status} for the manifest {body[:80]!r}"
    bodies = [piece * ((1 << 20) // len(piece)) for piece in ("[", "{", "[1,", '[""', "- ", "a: {", "'", "&a ")]
    good = live.job("bad", ["true"])
    bodies += MANIFESTS + ["#" * (1 << 21), b"\xff\xfe\x00", b"\xc3\x28: 1", good[:200]]
    for old, new in CHANGES:
        assert old in good, old
        bodies.append(good.replace(old, new, 1))
    arena.rng.shuffle(bodies)
    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        list(clients.map(refused, bodies))


@attack
def raw_requests(arena):
    """Requests that are no HTTP, or almost: none is carried out, and none ends Voda."""
    bearer = f"Host: localhost\r\nAuthorization: Bearer {arena.up.token}\r\n"
    job = arena.make().manifest().encode()
    requests = [
        b"\r\n" * 1000, b"\0" * 1000, b"A" * 100_000, b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 50,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /%ff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"get /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /livez\r\n\r\n", b"GET  /livez  HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /livez HTTP/1.1\nHost: localhost\n\n",
        f"GET /api/v1/jobs HTTP/1.1\r\n{bearer}X: {'x' * 20_000}\r\n\r\n".encode(),
        f"GET /api/v1/jobs HTTP/1.1\r\n{bearer}{'X: x' * 3000}\r\n\r\n".encode(),
        f"GET /{'../' * 200}etc/passwd HTTP/1.1\r\n{bearer}\r\n".encode(),
        f"GET /api/v1/jobs/..%2f..%2ftoken HTTP/1.1\r\n{bearer}\r\n".encode(),
        f"GET /api/v1/jobs/%00/logs HTTP/1.1\r\n{bearer}\r\n".encode(),
        f"BREW /api/v1/jobs HTTP/1.1\r\n{bearer}\r\n".encode(),
    ]
    for head in ("Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: 0x10", "Content-Length: 1, 2",
                 "Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: gzip", "Transfer-Encoding: chunked, gzip",
                 "Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nX: \0"):
        requests.append(f"POST /api/v1/jobs HTTP/1.1\r\n{bearer}{head}\r\n\r\n".encode() + job)
    for chunk in (b"FFFFFFFFFFFFFFFFF\r\n", b"-1\r\n", b"zz\r\n", b"5;" + b"x" * 20_000 + b"\r\n", b"5\r\nabcdefgh"):
        requests.append(f"POST /api/v1/jobs HTTP/1.1\r\n{bearer}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk)
    arena.rng.shuffle(requests)
    for text in requests:
        with connect(arena, text) as connection:
            try:
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(65536)
            except ConnectionError:
                continue
            assert not answer.startswith((b"HTTP/1.1 201", b"HTTP/1.1 202", b"HTTP/1.1 500")), (text[:200], answer[:200])


@attack
def bad_progress(arena):
    """Progress reports with impossible values, of another job, and a job's token elsewhere."""
    job, other = arena.submit(), arena.submit()
    token = progress_token(arena, job)
    path = f"/api/v1/jobs/{job.name}/progress"
    values = ["-1", "1e308", "1e999", "NaN", '"3"', "null", "[]", "{}", "true", "1.5", "-0", "99999999999999999999",
              '"' + "9" * 9999 + '"']
    bodies = ["", "[]", "3", "null", "{", "{}", '{"epoch": 1', '{"epoch": 1} x', '{"epoch": 1, "epoch": 2}', "[" * 100_000,
              '{"epoch": 1, "unknown": 1}', '{"phase": "end", "epoch": 1}', '{"a":' * 5000, b"\xff"]
    for field in ("epoch", "total_epochs", "epoch_seconds", "workers", "loss", "phase"):
        bodies += ['{"epoch": 1, "%s": %s}' % (field, value) if field != "epoch" else '{"epoch": %s}' % value
                   for value in arena.rng.sample(values, 5)]
    for body in bodies:
        status = status_of(arena, "POST", path, body, token=token)
        assert status in (200, 204, 400, 413), f"{status} for the report {body[:80]!r}"
    told = arena.up.job(job.name)
    fraction = (told["progress"] or {}).get("fraction") or 0
    assert 0 <= fraction <= 1, told["progress"]
    assert status_of(arena, "POST", f"/api/v1/jobs/{other.name}/progress", {"epoch": 1}, token=token) == 403
    assert arena.up.job(other.name)["progress"] is None
    for method, route in (("GET", "/api/v1/jobs"), ("DELETE", f"/api/v1/jobs/{job.name}"), ("POST", "/api/v1/jobs")):
        assert status_of(arena, method, route, token=token) == 401, f"{method} {route} with a job's token"
    for one in (job, other):
        one.release()


# ---- disk

@attack
def full_disk(arena):
    """No byte free: jobs are held, deleted and end all the same, and a killed Voda starts."""
    if not arena.small:
        raise Impossible("it needs root and a tmpfs")
    held, deleted, ends = arena.submit(), arena.submit("elastic"), arena.submit("three")
    filler = arena.path("filler")
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    try:
        for _ in range(arena.rng.randint(1, 10)):
            job = arena.make()
            try:
                [told] = arena.up.ask("POST", "/api/v1/jobs", job.manifest())["jobs"]
            except live.HttpError as error:
                assert error.status == 503 and "nothing was accepted" in error.message, error
                continue
            job.release()
            arena.acknowledged(job, told)
        arena.hold(held)
        arena.wait(held, "Waiting")
        arena.delete(deleted)
        arena.wait(deleted, "Canceled")
        ends.release()
        maybe_restart(arena)
        assert arena.up.job(held.name)["held"], "the hold was forgotten"
        patiently(lambda: not arena.leftovers(), PATIENCE, "the workers to end")
    finally:
        os.remove(filler)
    patiently(arena.ready, PATIENCE, "the store to recover")
    maybe_restart(arena)
    arena.resume(held)
    held.release()


# ---- clock

@attack
def set_clock(arena):
    """The clock set back or forward by a day, while a job fails and is tried again; some restarts under it."""
    if not arena.clock:
        raise Impossible("it needs a C compiler")
    before = arena.up.ask("GET", "/api/v1/info")["now"]
    began = time.monotonic()
    job = arena.submit("retried", runs=False)
    arena.set_clock(arena.rng.choice([-DAY, DAY, 0, -3600, 3600]))
    passed = arena.up.ask("GET", "/api/v1/info")["now"] - before
    assert -1 <= passed <= time.monotonic() - began + 1, f"{passed} s passed"
    arena.running(job)
    maybe_restart(arena)
    job.release()
    arena.completes(job)


# ---- signals

@attack
def kill_voda(arena):
    """SIGKILL at random moments while jobs are submitted; what was not answered is sent again with its key."""
    todo = [(arena.make(kind, released=arena.rng.random() < 0.7), f"key-{arena.count}")
            for kind in arena.rng.choices(sorted(OUTCOMES), k=6)]

    def send(one):
        job, key = one
        began = time.monotonic()
        while True:
            try:
                return arena.up.ask("POST", "/api/v1/jobs", job.manifest(), headers={"Idempotency-Key": key})["jobs"][0]
            except (OSError, ValueError, http.client.HTTPException):
                assert time.monotonic() - began < PATIENCE, "nobody answers"
                time.sleep(0.01)
    with concurrent.futures.ThreadPoolExecutor(3) as clients:
        answers = [clients.submit(send, one) for one in todo]
        for _ in range(arena.rng.randint(1, 3)):
            time.sleep(arena.rng.uniform(0, 0.3))
            arena.restart(kill=True)
        for (job, _), answer in zip(todo, answers):
            arena.acknowledged(job, answer.result())
    for job, _ in todo:
        if not job.released:
            job.release()


@attack
def stop_voda(arena):
    """SIGSTOP while workers end, then SIGCONT."""
    jobs = [arena.submit(), arena.submit("three")]
    arena.up.process.send_signal(signal.SIGSTOP)
    try:
        for job in jobs:
            job.release()
        patiently(lambda: not arena.leftovers(), PATIENCE, "the workers to end")
    finally:
        arena.up.process.send_signal(signal.SIGCONT)
    for job in jobs:
        arena.completes(job)


@attack
def end_voda(arena):
    """SIGTERM; the address and the socket go with Voda, and workers end while it is away."""
    job = arena.submit()
    arena.end(kill=False)
    left = {"server", "socket"} & set(os.listdir(arena.data))
    job.release()
    arena.start()
    assert not left, f"{left} was left behind"
    arena.completes(job)


@attack
def kill_workers(arena):
    """SIGKILL of shims or of workers: each is started again once, and nothing stays of what was killed."""
    job = arena.submit()
    folder = arena.folder(job)
    victims = live.processes_of(folder)
    if arena.rng.random() < 0.5:
        victims = [pid for pid in victims if b"__shim" in open(f"/proc/{pid}/cmdline", "rb").read()]
    away = arena.rng.random() < 0.3
    if away:
        arena.end(kill=True)
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it went with its shim
    if away:
        arena.start()
    patiently(lambda: len(job.starts()) == 2, PATIENCE, lambda: f"a second start: {arena.up.job(job.name)}")
    arena.running(job)
    job.failures += 1
    job.release()
    arena.completes(job)


@attack
def deaf_stderr(arena):
    """Nobody reads stderr while more is logged than may wait; some are ended by SIGTERM meanwhile."""
    arena.heard.clear()
    try:
        for _ in range(200):
            assert status_of(arena, "GET", "/" + "x" * 10_000) == 404
        assert arena.lives() and arena.ready(), "it waits for a reader"
        job = arena.submit()
        job.release()
        arena.completes(job)
        if arena.rng.random() < 0.3:
            arena.end(kill=False)
    finally:
        arena.heard.set()
    if arena.up.process.poll() is not None:
        arena.start()


# ---- folders

SPOILS = {
    "a pipe": "rm -rf $f; mkfifo $f", "a folder": "rm -rf $f; mkdir $f; touch $f/x", "a link": "rm -rf $f; ln -s $secret $f",
    "an endless file": "rm -rf $f; ln -s /dev/zero $f", "a huge file": "rm -rf $f; truncate -s 8G $f", "nothing": "rm -rf $f",
    "rubbish": "rm -rf $f; head -c 5000 /dev/urandom | base64 > $f",
}
HARMLESS = ["log.0", "log.1", "cgroup", "../metrics/$JOB_NAME.csv", "../failures"]
HARMFUL = ["exit.tmp", "exit", "verdict", "lock", "spec", "../job", "../ended", "../work"]


@attack
def spoiled_files(arena):
    """A job puts pipes, folders, links and rubbish in the place of its log and its records; nobody waits, and others
    notice nothing."""
    secret = os.path.join(arena.base, "secret")
    with open(secret, "w") as file:
        file.write("this is not of the job\n")
    harmful = arena.rng.random() < 0.5
    files = arena.rng.sample(HARMFUL, 2) if harmful else arena.rng.sample(HARMLESS, 3)
    spoil = f"cd ${{VODA_JOB_DIR%/work}}/${{start##*/}}; secret={secret}; "
    how = [arena.rng.choice(sorted(SPOILS)) for _ in files]
    spoil += "".join(f"f={file}; {SPOILS[one]}; " for file, one in zip(files, how)) + "cd /; echo spoiled; "
    arena.said = f"{', '.join(f'{file} became {one}' for file, one in zip(files, how))}"
    job = arena.submit("good", spoil=spoil)
    maybe_restart(arena)
    if not harmful:
        job.release()
        arena.completes(job)
    else:
        job.lawless = True
        try:
            arena.delete(job)
        except live.HttpError as error:  # whoever writes its own end has ended after a restart
            assert error.status == 409 and arena.up.job(job.name)["ended"], error
            job.deleted = True
        patiently(lambda: arena.up.job(job.name)["ended"], PATIENCE, lambda: f"its end: {arena.up.job(job.name)}")
    for path in (f"/api/v1/jobs/{job.name}/logs", f"/api/v1/jobs/{job.name}"):
        try:
            assert "this is not of the job" not in arena.up.ask("GET", path, raw=True)
        except live.HttpError as error:
            assert error.status < 500, error


@attack
def lost_folder(arena):
    """The folder of a running job is removed or moved away; its end is known, and it runs once."""
    job = arena.submit()
    folder = arena.folder(job)
    start = os.path.join(folder, job.starts()[0])
    if arena.rng.random() < 0.5:
        shutil.rmtree(folder)
    else:
        os.rename(folder, arena.path(f"moved-{job.id}"))
    if arena.rng.random() < 0.5:
        patiently(lambda: os.path.exists(os.path.join(start, "lock")), PATIENCE, "the shim to notice")
        arena.restart(kill=arena.rng.random() < 0.7)
    job.release()
    arena.completes(job)
    shutil.rmtree(arena.path(f"moved-{job.id}"), ignore_errors=True)


@attack
def lost_store(arena):
    """The store is moved away, emptied or put back from an older copy; `voda store rebuild` brings every job back."""
    how = arena.rng.choice(["moved", "emptied", "older"])
    arena.said = f"the store was {how}"
    older = arena.path("older")
    files = ["voda.db", "voda.db-wal", "voda.db-shm", "voda.db-stops"]
    asked = {}  # what the store keeps of the wishes of users
    known = {name for name, job in arena.up.jobs().items() if job["ended"]}
    jobs = [arena.submit(), arena.submit("elastic")]
    if how == "older":
        arena.end(kill=False)
        os.mkdir(older)
        for file in files:
            if os.path.exists(arena.path(file)):
                shutil.copy2(arena.path(file), older)
        asked = {name: (job.held, job.most) for name, job in arena.jobs.items() if not job.over}
        arena.start()
    jobs.append(arena.submit())
    arena.submit(released=True)
    arena.delete(arena.submit())
    arena.stream()

    # Where the store is lost, only the folder tells of an end, and that is written right after the end is told.
    def over():
        ended = [name for name, job in arena.up.jobs().items() if job["ended"]]
        marks = [os.path.join(arena.folder(arena.jobs[name]), "ended") for name in ended if name not in known]
        return (all(name in ended for name, job in arena.jobs.items() if job.over)
                and all(os.path.exists(mark) for mark in marks if os.path.exists(os.path.dirname(mark))))
    patiently(over, PATIENCE, "ended jobs to end")
    arena.end(kill=arena.rng.random() < 0.5)
    for file in files[:3]:
        if os.path.exists(arena.path(file)):
            os.remove(arena.path(file))
    if how == "emptied":
        os.close(os.open(arena.path("voda.db"), os.O_CREAT | os.O_WRONLY, 0o600))
    if how == "older":
        for file in os.listdir(older):
            shutil.copy2(os.path.join(older, file), arena.path(file))
        shutil.rmtree(older)
    if arena.rng.random() < 0.5:
        arena.said += ", and Voda was started before the rebuild"
        arena.start()
        new = arena.submit()
        assert new.id == max(job.id for job in arena.jobs.values()), "an id was used again"
        new.release()
        arena.completes(new)
        arena.end(kill=False)
    arena.up.cli("store", "rebuild")
    for name, job in arena.jobs.items():
        job.counted = False
        if job.deleted and name in asked and not os.path.exists(os.path.join(arena.folder(job), "ended")):
            job.deleted = False  # it had no folder that could tell of its end
        if not job.over:
            job.held, job.most = asked.get(name, (False, job.submitted_most))
    arena.start()


# ---- sockets

@attack
def squatter(arena):
    """Somebody listens on the port while Voda is down, and answers; the command line sends it no token."""
    job = arena.submit()
    arena.end(kill=arena.rng.random() < 0.7)
    thief = socket.create_server(("127.0.0.1", arena.port))
    thief.settimeout(0.1)
    over = threading.Event()
    answer = arena.rng.choice([b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"HTTP/1.1 401 Unauthorized\r\n\r\n",
                               b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"])

    def listen():
        while not over.is_set():
            try:
                caller, _ = thief.accept()
            except TimeoutError:
                continue
            with caller:
                caller.settimeout(5)
                try:
                    text = caller.recv(65536)
                    caller.sendall(answer)
                except OSError:
                    continue
                if arena.up.token.encode() in text or b"earer" in text:
                    arena.stolen.append(text)
    listener = threading.Thread(target=listen)
    listener.start()
    try:
        for words in (["get", "jobs"], ["logs", job.name], ["delete", job.name], ["hold", job.name], ["explain", job.name]):
            done = arena.up.cli(*words, check=False)
            assert done.returncode != 0, f"voda {words[0]} succeeded without Voda"
    finally:
        over.set()
        listener.join()
        thief.close()
        arena.start()
    job.release()
    arena.completes(job)


@attack
def strangers(arena):
    """Every route without a token and with wrong ones, from another user, too, who also tries the folder and the socket."""
    job = arena.submit()
    token = arena.up.token
    wrong = [False, "x", token[:-1], token + "x", token.swapcase(), "null", "Basic " + token, progress_token(arena, job)]
    document = arena.up.ask("GET", "/api/v1/openapi.json")
    routes = [(method.upper(), path.replace("{name}", job.name))
              for path, methods in document["paths"].items() for method in methods]
    routes += [("POST", "/training"), ("DELETE", "/training"), ("GET", "/training"), ("PUT", "/algorithm"),
               ("PUT", "/ratelimit"), ("POST", "/allocation"), ("GET", "/metrics")]
    for method, path in routes:
        if path.endswith("/progress") or path.split("?")[0] in ("/livez", "/readyz"):
            continue
        for one in arena.rng.sample(wrong, 3):
            status = status_of(arena, method, path, "{}" if method != "GET" else None, token=one)
            assert status in (401, 403), f"{status} for {method} {path} with a wrong token"
    for header in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert status_of(arena, "POST", f"/api/v1/jobs/{job.name}/hold", headers=header) == 403, header
    if arena.root:
        program = f"""
import os, socket, urllib.request, urllib.error
def tried(what, deed):
    try:
        deed()
        print("was let in:", what)
    except (OSError, urllib.error.URLError):
        pass
tried("token", lambda: open({arena.path("token")!r}))
tried("folder", lambda: os.listdir({arena.data!r}))
tried("store", lambda: open({arena.path("voda.db")!r}))
tried("socket", lambda: socket.socket(socket.AF_UNIX).connect({arena.path("socket")!r}))
for path in ("/api/v1/jobs", "/api/v1/events", "/metrics", "/api/v1/jobs/{job.name}/logs"):
    tried(path, lambda: urllib.request.urlopen("http://127.0.0.1:{arena.port}" + path, timeout={PATIENCE}).read(10))
"""
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", live.PYTHON, "-c", program],
                              capture_output=True, text=True, timeout=PATIENCE, cwd="/")
        assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr
    job.release()
    arena.completes(job)


# ---- the run

def keep(arena):
    """VODA_KEEP=DIR keeps a copy of the folder there, without pipes and links."""
    def special(folder, names):
        paths = {name: os.path.join(folder, name) for name in names}
        return [name for name, path in paths.items()
                if os.path.islink(path) or not (os.path.isfile(path) or os.path.isdir(path))]
    if os.environ.get("VODA_KEEP"):
        shutil.copytree(arena.base, os.path.join(os.environ["VODA_KEEP"], os.path.basename(arena.base)), ignore=special)


def ended(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the arena is being cleared
    sys.exit(143)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    arguments.add_argument("--seed", type=int, default=int(os.environ.get("VODA_SEED", "1")))
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--only", type=lambda text: text.split(","), default=sorted(ATTACKS), metavar="NAME,…")
    given = arguments.parse_args()
    for name in given.only:
        if name not in ATTACKS:
            arguments.error(f"no attack {name}; there are {', '.join(sorted(ATTACKS))}")
    print(f"seed {given.seed}, {given.seconds:g} s", flush=True)
    signal.signal(signal.SIGTERM, ended)
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("an attack did not end"))
    signal.alarm(int(given.seconds) + 10 * PATIENCE)
    times, impossible = dict.fromkeys(given.only, 0), {}
    draw = random.Random(given.seed)
    arena, name, began = None, "the start", time.monotonic()
    try:
        arena = Arena(given.seed)
        hand = []
        while time.monotonic() - began < given.seconds:
            if not hand:  # each once, before any comes again
                hand = [one for one in given.only if one not in impossible]
                draw.shuffle(hand)
                if not hand:
                    break
            name, arena.said = hand.pop(), ""
            arena.stream()
            # What an attack draws depends on its number alone, and not on how far the jobs had come by then.
            arena.rng.seed(f"{given.seed} {sum(times.values())}")
            try:
                ATTACKS[name](arena)
            except Impossible as why:
                impossible[name] = str(why)
                continue
            arena.check()
            arena.tidy()
            times[name] += 1
            print(f"{time.monotonic() - began:6.1f} s  {name}{': ' * bool(arena.said)}{arena.said}", flush=True)
    except (Exception, SystemExit) as error:
        print(f"\nFAILED: seed {given.seed}, attack {name} (number {sum(times.values()) + 1})")
        if arena:
            print(f"{arena.said or ATTACKS[name].__doc__}\n{arena.tail()}")
            keep(arena)
        traceback.print_exc()
        sys.stdout.flush()
        print(f"{sum(times.values())} passed, 1 failed")
        sys.exit(1)
    finally:
        signal.alarm(0)
        if arena:
            arena.close()
    print(f"{'attack':<18}{'times':>6}  held")
    for name, count in times.items():
        held = f"not possible here: {impossible[name]}" if name in impossible else "yes" if count else "-"
        print(f"{name:<18}{count:>6}  {held}")
    print(f"{arena.count} jobs in {time.monotonic() - began:.0f} s\n{sum(times.values())} passed, 0 failed")


if __name__ == "__main__":
    main()
