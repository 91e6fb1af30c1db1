"""What the benchmarks ask the API server with: prepared requests over a fixed number of connections, each with one
request under way, and watches whose events are stamped as they arrive. Both run in processes of their own, so that
neither waits for the other; their clock is the machine's monotonic one."""
import http.client
import json
import multiprocessing
import os
import re
import selectors
import socket
import ssl
import statistics
import threading
import time

from processes import ClusterError, wait_for

VERSION = re.compile(rb'"resourceVersion":"([0-9]+)"')
_fork = multiprocessing.get_context("fork")


def request(cluster, method, path, body=None, content="application/json", token=None):
    """The bytes of one HTTP request, as the administrator unless told otherwise."""
    text = b"" if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
    head = (f"{method} {path} HTTP/1.1\r\nHost: {cluster.address[0]}:{cluster.address[1]}\r\n"
            f"Authorization: Bearer {token or cluster.api.token}\r\nUser-Agent: voda-bench\r\n"
            f"Accept: application/json\r\nContent-Type: {content}\r\nContent-Length: {len(text)}\r\n\r\n")
    return head.encode() + text


class Answers:
    """What came of a burst: for each request when it was sent, when its answer was there, and the status."""

    def __init__(self, rows, cpu):
        self.rows = rows
        self.cpu = cpu  # seconds of the client itself

    @property
    def first(self):
        return min(row[0] for row in self.rows)

    @property
    def seconds(self):
        return max(row[1] for row in self.rows) - self.first

    @property
    def rate(self):
        return len(self.rows) / self.seconds

    @property
    def p99_ms(self):
        times = sorted(row[1] - row[0] for row in self.rows)
        return 1000 * times[min(len(times) - 1, len(times) * 99 // 100)]

    def check(self, what):
        bad = [row[2] for row in self.rows if row[2] >= 300]
        if bad:
            raise ClusterError(f"{what}: {len(bad)} of {len(self.rows)} requests failed, the first with {bad[0]}")
        return self


def burst(cluster, requests, connections):
    """Sends all requests, in order, over so many connections."""
    here, there = _fork.Pipe(duplex=False)
    process = _fork.Process(target=_burst, args=(cluster.address, cluster.certificates.authority, requests,
                                                 min(connections, len(requests)), there), daemon=True)
    process.start()
    there.close()
    try:
        result = here.recv()
    except EOFError:
        raise ClusterError("the process that sends requests has died") from None
    process.join()
    if isinstance(result, str):
        raise ClusterError(result)
    return Answers(*result)


def _connect(address, authority):
    context = ssl.create_default_context(cafile=authority)
    plain = socket.create_connection(address, timeout=60)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain, server_hostname=address[0])


def _whole(answer):
    """Whether an HTTP answer is complete; Go sends longer ones in chunks."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = answer[:end].lower()
    at = head.find(b"content-length:")
    if at >= 0:
        return len(answer) >= end + 4 + int(head[at + 15:].split(b"\r\n", 1)[0])
    return answer.endswith(b"\r\n0\r\n\r\n")


def _burst(address, authority, requests, connections, out):
    try:
        out.send(_burst_rows(address, authority, requests, connections))
    except Exception as error:  # whatever it is, the parent tells
        out.send(f"sending requests: {error!r}")


def _burst_rows(address, authority, requests, connections):
    rows = [None] * len(requests)
    choose = selectors.DefaultSelector()
    sockets = [_connect(address, authority) for _ in range(connections)]
    begun = time.process_time()
    following = 0
    for one in sockets:
        state = [following, time.monotonic(), bytearray()]
        one.sendall(requests[following])
        following += 1
        choose.register(one, selectors.EVENT_READ, state)
    done = 0
    while done < len(requests):
        ready = choose.select(60)
        if not ready:
            raise ClusterError("no answer within 60 s")
        for key, _ in ready:
            one, state = key.fileobj, key.data
            while True:
                got = one.recv(65536)
                if not got:
                    raise ClusterError("the API server closed a connection")
                state[2] += got
                if not one.pending():
                    break
            if not _whole(state[2]):
                continue
            rows[state[0]] = (state[1], time.monotonic(), int(state[2][9:12]))
            done += 1
            if following < len(requests):
                state[:] = [following, time.monotonic(), bytearray()]
                one.sendall(requests[following])
                following += 1
    for one in sockets:
        one.close()
    return rows, time.process_time() - begun


class Watch:
    """Events of a collection from now on. `look(line)` makes a record of one event's JSON line (bytes), or None."""

    def __init__(self, cluster, path, look):
        version = cluster.api.ask("GET", path + "?limit=1")["metadata"]["resourceVersion"]
        self.records = []  # (time of arrival, record)
        self.end = None
        self._changed = threading.Condition()
        here, there = _fork.Pipe(duplex=False)
        self._process = _fork.Process(target=_watch, daemon=True, args=(
            cluster.address, cluster.certificates.authority, cluster.api.token,
            path, version, look, there))
        self._process.start()
        there.close()
        self._pipe = here
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.join()
        self._thread.join()

    def _read(self):
        while True:
            try:
                batch = self._pipe.recv()
            except (EOFError, OSError):
                batch = None
            with self._changed:
                if isinstance(batch, list):
                    self.records += batch
                else:
                    self.end = batch or "the watch has ended"
                self._changed.notify_all()
                if self.end:
                    return

    def wait(self, condition, seconds, what):
        """Until condition(records) is true."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not condition(self.records):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ClusterError(f"waited {seconds} s for {what() if callable(what) else what}")
                if self.end:
                    raise ClusterError(f"{self.end}; waited for {what() if callable(what) else what}")
                self._changed.wait(left)

    def quiet(self, seconds, most):
        """Waits until nothing has come for so long; False where it never was quiet."""
        deadline = time.monotonic() + most
        with self._changed:
            while time.monotonic() < deadline:
                count = len(self.records)
                self._changed.wait_for(lambda: len(self.records) > count, seconds)
                if len(self.records) == count:
                    return True
        return False


def _watch(address, authority, token, path, version, look, out):
    context = ssl.create_default_context(cafile=authority)
    while True:  # the server ends watches now and then
        connection = http.client.HTTPSConnection(*address, context=context)
        connection.request("GET", f"{path}?watch=1&resourceVersion={version}", headers={
            "Authorization": f"Bearer {token}", "Accept": "application/json", "User-Agent": "voda-bench"})
        answer = connection.getresponse()
        rest = b""
        while got := answer.read1(1 << 20):
            now = time.monotonic()
            *lines, rest = (rest + got).split(b"\n")
            if answer.status != 200 or any(line.startswith(b'{"type":"ERROR"') for line in lines):
                out.send(f"watch of {path} from {version}: {got[:500]!r}")
                return
            if lines:
                version = VERSION.search(lines[-1]).group(1).decode()
            batch = [(now, record) for record in map(look, lines) if record is not None]
            if batch:
                out.send(batch)
        connection.close()


# Processes and the API server's own counters

def cpu(pid):
    """Seconds of CPU time that a process has used."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid, field="VmHWM"):
    """Peak resident memory, or what `field` of /proc/PID/status says."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    raise ClusterError(f"process {pid} has no {field}")


WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION")


def writes(cluster):
    """(verb, resource or resource/subresource, code) -> how often, by the API server's count."""
    found = {}
    for line in cluster.api.ask("GET", "/metrics").splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels, _, value = line[len("apiserver_request_total{"):].rpartition("} ")
        fields = dict(part.split("=", 1) for part in labels.split(",") if "=" in part)
        fields = {key: text.strip('"') for key, text in fields.items()}
        if fields["verb"] not in WRITES or fields["resource"] == "leases":
            continue  # leases: those of 600 nodes, and of the election
        what = fields["resource"] + ("/" + fields["subresource"] if fields.get("subresource") else "")
        key = (fields["verb"], what, fields["code"])
        found[key] = found.get(key, 0) + float(value)
    return found


def difference(after, before):
    return {key: int(value - before.get(key, 0)) for key, value in after.items() if value != before.get(key, 0)}


def settled_writes(cluster, quiet=3.0, most=120):
    """The counters once nothing but leases has been written for `quiet` seconds."""
    last = [writes(cluster), time.monotonic()]

    def still():
        now = writes(cluster)
        if now != last[0]:
            last[:] = [now, time.monotonic()]
        return time.monotonic() - last[1] >= quiet
    try:
        wait_for(still, most, "writes to end", every=0.5)
    except ClusterError:
        pass
    return last[0]


def median(values):
    return statistics.median(values) if values else float("nan")


def table(header, rows):
    """As Markdown, aligned."""
    rows = [header, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
