#!/usr/bin/python3
"""A stand-in for the server of docs/API.md, with fixed data, for the tests of the command line.

Usage: cli_standin.py FOLDER [CERTIFICATE KEY]
Listens on a free port of 127.0.0.1, writes the URL to FOLDER/server and a token to FOLDER/token, and appends each
request to FOLDER/requests as one line of JSON. Routes below /__ are for the test itself: they set jobs, send events and
make faults.
"""
import http.server
import json
import os
import queue
import ssl
import sys
import threading
import urllib.parse

TOKEN = "secret-token"
NOW = 1700000100.0
ACTIVE = ("Submitted", "Waiting", "Running")


def job(number, name, status, **fields):
    made = {
        "id": number, "name": name, "category": name.rsplit("-", 2)[0], "kind": "PyTorchJob", "gpu_type": "default",
        "status": status, "held": False, "priority": 0, "min": 1, "num": 2, "max": 4, "gpus_per_worker": 1,
        "workers": 0, "planned": 0, "nodes": [], "submitted": 1700000000.5, "first_started": None, "ended": None,
        "waiting_seconds": 0.0, "running_seconds": 0.0, "total_seconds": 0.0, "gpu_seconds": 0.0, "progress": None,
        "remaining_seconds": None, "starts": 0, "failures": 0, "message": "", "warnings": []}
    made.update(fields)
    return made


JOBS = {entry["name"]: entry for entry in [
    job(1, "tensorflow2-keras-mnist-elastic-20211015-035048", "Running", workers=1, planned=1, nodes=["a"],
        first_started=1700000000.5, running_seconds=28.4, total_seconds=28.9, gpu_seconds=28.4, starts=1, kind="MPIJob",
        progress={"epoch": 3, "total_epochs": 10, "fraction": 0.3, "loss": 0.125, "updated": 1700000020.0},
        remaining_seconds=63.0),
    job(2, "resnet-20211015-035101", "Running", workers=3, planned=2, nodes=["a", "b", ""], priority=3, max=8,
        waiting_seconds=65.2, running_seconds=3723.9, total_seconds=3789.1, starts=2, gpu_type="v100",
        progress={"epoch": 1, "total_epochs": None, "fraction": None, "loss": None, "updated": 1700000020.0}),
    job(3, "bert-20211015-035202", "Waiting", waiting_seconds=7260.0, total_seconds=7260.0, held=True),
    job(4, "odd-20211015-035303", "Failed", ended=1700000090.0, running_seconds=5.0, total_seconds=5.0, starts=1,
        failures=1, gpu_type="default",
        message="worker 0 ended with exit code 1:\nTraceback: \x1b[31mred\x1b[0m\n  yes: no # ~\n"),
    job(5, "done-20211015-035404", "Completed", ended=1700000050.0, running_seconds=40.0, total_seconds=40.0, starts=1),
]}
DETAILS = {
    "sizes": [{"time": 1700000000.5, "round": 1, "from": 0, "to": 1, "reason": "runs on 1 worker (1 GPU)",
               "trigger": "job arrived"}],
    "speedup": {"1": 1.0, "2": 1.9}, "measured": [1],
    "document": "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata:\n  name: \"x\"\n"}
NODES = {
    "a": {"name": "a", "gpu_type": "default", "gpus": 4, "used": 2, "state": "ready", "devices": [],
          "jobs": [{"name": "tensorflow2-keras-mnist-elastic-20211015-035048", "workers": 1},
                   {"name": "resnet-20211015-035101", "workers": 1}]},
    "b": {"name": "b", "gpu_type": "v100", "gpus": 4, "used": 1, "state": "cordoned", "devices": [0, 1, 2, 3],
          "jobs": [{"name": "resnet-20211015-035101", "workers": 1}]}}
EXPLAIN = {
    "job": "bert-20211015-035202", "status": "Waiting", "held": False, "workers": 0, "planned": 0, "position": 2,
    "waiting": 3, "code": "waits_for_gpus", "text": "waits: needs 2 GPUs, 1 free when its turn came", "needs_gpus": 2,
    "free_gpus": 1, "ahead": [{"name": "resnet-20211015-035101", "status": "Running", "workers": 3, "gpus": 3}],
    "now": 1700000000.0, "expected_start": 1700000100.0, "expected_start_guessed": True,
    "last_change": {"time": 1700000010.0, "round": 3, "from": 4, "to": 0, "reason": "gave way", "trigger": "job arrived"},
    "next_round": 1700000030.0}
# Of a job that runs.
EXPLAIN_RUNNING = EXPLAIN | {
    "status": "Running", "workers": 4, "planned": 4, "position": 1, "code": "priced",
    "text": "runs on 4 workers (4 GPUs): it is alone on 8 GPUs, 4 idle; it takes no more GPUs for another 2 h, because "
            "nothing is known about how it scales across nodes; report progress to change that",
    "needs_gpus": 0, "ahead": [], "expected_start": None, "last_change": None, "ceiling": "reach",
    "numbers": {"jobs": 1, "gpus": 8, "idle": 4, "until": 1700007200.0}}
ALGORITHMS = {"algorithms": [
    {"name": "FIFO", "summary": "by submit time", "options": []},
    {"name": "Tiresias", "summary": "least attained service first",
     "options": [{"name": "threshold", "default": "3600", "help": "GPU-seconds"}]},
    {"name": "Price", "summary": "GPUs have a price", "options": []}], "default": "Price"}
ROUNDS = {"rounds": [
    {"gpu_type": "default", "round": 7, "time": 1700000090.0, "algorithm": "Price", "trigger": "job arrived",
     "seconds": 0.002, "note": "", "changes": [
         {"job": "resnet-20211015-035101", "from": 4, "to": 2, "reason": "runs on 2 workers: the price rose"}]},
    {"gpu_type": "default", "round": 6, "time": 1700000060.0, "algorithm": "Price", "trigger": "time", "seconds": 1.5,
     "note": "", "changes": []}]}

lock = threading.Lock()
streams = []
keys = {}
faults = {}
page = 100000
seq = 0


def send_event(kind, name, **fields):
    global seq
    with lock:
        seq += 1
        event = {"seq": seq, "time": NOW, "type": kind, "gpu_type": "default", "job": name, **fields}
        for wanted, box in streams:
            if wanted in (None, name):
                box.put(f"id: {seq}\nevent: {kind}\ndata: {json.dumps(event)}\n\n")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def reply(self, status, value, kind="application/json"):
        body = (value if isinstance(value, str) else json.dumps(value)).encode() if value is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code, message):
        self.reply(status, {"error": {"code": code, "message": message}})

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def handle_all(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        url = urllib.parse.urlsplit(self.path)
        query = {key: values[-1] for key, values in urllib.parse.parse_qs(url.query, keep_blank_values=True).items()}
        path = [urllib.parse.unquote(part) for part in url.path.strip("/").split("/")]
        if not path[0].startswith("__"):
            with lock, open(os.path.join(folder, "requests"), "a") as log:
                log.write(json.dumps({"method": self.command, "path": self.path, "body": body,
                                      "type": self.headers.get("Content-Type"),
                                      "key": self.headers.get("Idempotency-Key")}) + "\n")
        if path == ["livez"]:
            return self.reply(200, "ok\n", "text/plain")
        if self.headers.get("Authorization") != "Bearer " + TOKEN:
            return self.refuse(401, "unauthorized", "no token, or a wrong one")
        if path[0] == "__fault":
            faults.update(json.loads(body))
            return self.reply(200, {})
        if path[0] == "__job":  # changes a job, then says so
            change = json.loads(body)
            JOBS[path[1]].update(change["fields"])
            send_event(change["event"], path[1])
            return self.reply(200, {})
        if path[0] == "__job_quietly":
            JOBS[path[1]].update(json.loads(body))
            return self.reply(200, {})
        if path[0] == "__many":  # that many jobs more
            for number in range(int(path[1])):
                name = f"many-{number:06}-20211015-040000"
                JOBS[name] = job(1000 + number, name, "Waiting", waiting_seconds=float(number))
            return self.reply(200, {})
        if path[0] == "__lagged":
            with lock:
                for _, box in streams:
                    box.put("id: 1\nevent: lagged\ndata: {\"seq\": 1}\n\n")
                    box.put(None)
            return self.reply(200, {})
        if path[0] == "__cut":  # ends all streams
            with lock:
                for _, box in streams:
                    box.put(None)
            return self.reply(200, {})
        if path[0] == "__streams":
            return self.reply(200, str(len(streams)), "text/plain")
        if faults.get("garbage"):
            return self.reply(200, "<html>not Voda</html>", "text/html")
        if faults.get("status"):
            return self.reply(faults["status"], "<html>proxy</html>", "text/html")
        if path[:2] != ["api", "v1"]:
            return self.refuse(404, "not_found", "no such route")
        return self.api(path[2:], query, body)

    def api(self, path, query, body):
        method = self.command
        match (method, *path):
            case ("GET", "info"):
                counts = {}
                for entry in JOBS.values():
                    counts[entry["status"]] = counts.get(entry["status"], 0) + 1
                return self.reply(200, {"version": "0.1.0", "cluster": "local", "gpu_types": ["default", "v100"],
                                        "gpus": 8, "gpus_used": 3, "started": NOW - 100, "now": NOW, "jobs": counts})
            case ("GET", "jobs"):
                return self.list_jobs(query)
            case ("POST", "jobs"):
                return self.create(query, body)
            case ("GET", "events"):
                return self.events(query.get("job"))
            case (_, "jobs", name, *_) if name not in JOBS:
                return self.refuse(404, "not_found", f"there is no job \"{name}\"; `voda get jobs` lists them")
            case ("GET", "jobs", name):
                return self.reply(200, JOBS[name] | DETAILS)
            case ("GET", "jobs", name, "explain"):
                explained = EXPLAIN_RUNNING if name.startswith("resnet") else EXPLAIN
                return self.reply(200, explained | {"job": name})
            case ("GET", "jobs", name, "logs"):
                return self.logs(query)
            case ("PATCH", "jobs", name):
                JOBS[name].update(json.loads(body))
                return self.reply(200, JOBS[name])
            case ("DELETE", "jobs", name):
                if (JOBS[name]["status"] in ACTIVE) == ("erase" in query):
                    return self.refuse(409, "conflict", f"{name} has ended already")
                return self.reply(202, JOBS[name])
            case ("POST", "jobs", name, "hold" | "resume"):
                return self.reply(200, JOBS[name])
            case ("GET", "nodes"):
                return self.reply(200, {"nodes": list(NODES.values())})
            case ("POST", "nodes"):
                node = json.loads(body)
                if node["name"] in NODES:
                    return self.refuse(409, "conflict", f"there is a node \"{node['name']}\" already")
                return self.reply(201, node)
            case (_, "nodes", name, *_) if name not in NODES:
                return self.refuse(404, "not_found", f"there is no node \"{name}\"; `voda get nodes` lists them")
            case ("POST" | "DELETE", "nodes", name, *_):
                return self.reply(202 if method == "DELETE" else 200, NODES[name])
            case ("GET", "algorithms"):
                return self.reply(200, ALGORITHMS)
            case ("GET", "rounds"):
                return self.reply(200, {"rounds": ROUNDS["rounds"][:int(query.get("limit", 20))]})
            case ("GET", "settings"):
                return self.reply(200, {"gpu_type": query.get("gpu_type"), "algorithm": "Price", "options": {},
                                        "rate_limit_seconds": 30})
            case ("PUT", "settings"):
                wanted = json.loads(body)
                known = [entry["name"] for entry in ALGORITHMS["algorithms"]]
                if wanted.get("algorithm", "FIFO") not in known:
                    return self.refuse(400, "invalid", f"algorithm: unknown \"{wanted['algorithm']}\"; known are "
                                       + ", ".join(known))
                return self.reply(200, wanted)
        return self.refuse(404, "not_found", "no such route")

    def list_jobs(self, query):
        chosen = [entry for entry in JOBS.values()
                  if ("status" not in query or entry["status"] in query["status"].split(","))
                  and query.get("gpu_type") in (None, entry["gpu_type"])
                  and query.get("category") in (None, entry["category"])
                  and entry["id"] > int(query.get("after", 0))]
        limit = min(int(query.get("limit", 100)), page)
        more = len(chosen) > limit
        chosen = chosen[:limit]
        return self.reply(200, {"jobs": chosen, "next": chosen[-1]["id"] if more else None})

    def create(self, query, body):
        if "bad" in body:
            return self.refuse(400, "invalid", "spec.pytorchReplicaSpecs.Worker.replicas: 0; give at least 1")
        key = self.headers.get("Idempotency-Key")
        documents = [part for part in body.split("---\n") if part.strip()]
        if key not in keys:
            keys[key] = [job(100 + len(keys) * 10 + number, f"mnist-20260101-12000{len(keys)}{number}", "Submitted",
                             planned=2, warnings=["container image: ignored, jobs run on this machine"])
                         for number, _ in enumerate(documents)]
        if faults.get("drop", 0) > 0:  # accepted, but the answer is lost
            faults["drop"] -= 1
            self.close_connection = True
            return self.connection.shutdown(2)
        if query.get("dry_run") == "true":
            planned = {"would_get": 2, "because": "runs on 2 workers (2 GPUs), the size it asked for"}
            return self.reply(200, {"jobs": [entry | planned for entry in keys[key]], "dry_run": True})
        return self.reply(201, {"jobs": keys[key]})

    def logs(self, query):
        lines = [f"worker {query.get('worker', '0')} line {number}\n" for number in range(5)]
        if "tail" in query:
            lines = lines[len(lines) - int(query["tail"]):]
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            self.chunk(line)
        if query.get("follow") == "true":
            box = queue.Queue()
            threading.Timer(0.3, lambda: box.put("a later line\n")).start()
            self.chunk(box.get())
        self.wfile.write(b"0\r\n\r\n")

    def events(self, name):
        if name is not None and name not in JOBS:
            return self.refuse(404, "not_found", f"there is no job \"{name}\"; `voda get jobs` lists them")
        box = queue.Queue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        with lock:
            streams.append((name, box))
        try:
            while True:
                try:
                    text = box.get(timeout=5)
                except queue.Empty:
                    text = ": still here\n\n"
                if text is None:
                    break
                for piece in range(0, len(text), 7):  # in small pieces, as a network may cut them
                    self.chunk(text[piece:piece + 7])
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
        finally:
            with lock:
                streams.remove((name, box))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_all


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients of these tests go away in every way there is


folder = sys.argv[1]
page = int(os.environ.get("STANDIN_PAGE", "100000"))
server = Server(("127.0.0.1", int(os.environ.get("STANDIN_PORT", "0"))), Handler)
scheme = "http"
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "https"
with open(os.open(os.path.join(folder, "token"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
    file.write(TOKEN + "\n")
temporary = os.path.join(folder, "server.new")
with open(temporary, "w") as file:
    file.write(f"{scheme}://127.0.0.1:{server.server_address[1]}\n")
os.rename(temporary, os.path.join(folder, "server"))
server.serve_forever()
