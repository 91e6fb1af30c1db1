"""A proxy between a program and the API server of a test cluster. It speaks TLS with the cluster's own certificates on
both sides, passes everything through as it is, watches piece by piece, and keeps a record of what was written. It can
refuse, delay or lose what is asked, cut watches, and stop everything at a certain write.

    with Proxy(cluster) as proxy:
        voda = Voda(cluster, kubeconfig=proxy.kubeconfig)
        proxy.cut_at(7, voda.kill, before=False)   # the seventh write arrives, its answer does not, and Voda is killed
        proxy.fault = lambda request: Refusal(429, retry_after=1) if request.kind == "write" else None
"""
import collections
import http.client
import http.server
import json
import os
import select
import socket
import ssl
import threading
import time
import urllib.parse

Request = collections.namedtuple("Request", "number kind method path")  # number: of writes alone, from 1
Write = collections.namedtuple("Write", "number method path status")
LOSE = "lose"  # as the result of a fault: the server gets the request, the program no answer
DROP = "drop"  # the server does not get it either
REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
APART = {"leases": "lease", "events": "event", "tokenreviews": "review", "subjectaccessreviews": "review",
         "status": "condition"}


class Refusal:
    """An answer in the place of the server's."""

    def __init__(self, status, retry_after=None):
        self.status = status
        self.retry_after = retry_after


def kind_of(method, path):
    """What a request is: "watch", "read", "write", or one of those that are counted apart."""
    parts = urllib.parse.urlsplit(path)
    if method in ("GET", "HEAD"):
        query = urllib.parse.parse_qs(parts.query)
        streams = query.get("watch", ["false"])[0] in ("1", "true") or query.get("follow", [""])[0] == "true"
        return "watch" if streams else "read"
    return next((APART[part] for part in parts.path.split("/") if part in APART), "write")


class Proxy:
    def __init__(self, cluster, token=None):
        self.cluster = cluster
        self.fault = None  # Request -> None, Refusal, LOSE or DROP
        self.delay = 0.0   # seconds, before anything but a watch goes on to the server
        self.writes = []   # all of them that were answered, by the server or in its place
        self.counts = collections.Counter()  # by kind
        self.watched_at = 0.0  # when something of a watch last went through
        self.watched = 0       # events of watches that did
        self._lock = threading.Lock()
        self._number = 0
        self._cut = None
        self._shut = False
        self._watches = set()
        self._clients = set()
        certificates = cluster.certificates
        self._upstream = ssl.create_default_context(cafile=certificates.authority)
        server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_side.load_cert_chain(certificates.path("apiserver.crt"), certificates.path("apiserver.key"))
        handler = type("ForThisProxy", (Handler,), {"proxy": self})
        self._server = Server(("127.0.0.1", 0), handler)
        self._server.socket = server_side.wrap_socket(self._server.socket, server_side=True,
                                                      do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        path = os.path.join(cluster.folder, f"proxy-{self._server.server_address[1]}.kubeconfig")
        self.kubeconfig = certificates.kubeconfig(path, self.url, token or cluster.voda.token, "voda-system")

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._hang_up(self._clients)

    # What tests ask for

    def cut_at(self, number, action, before):
        """At the write of this number, counted from the last call of open(), the action is run and nothing goes through
        any more until the next one. The write itself does not reach the server (`before`), or does and is not answered.
        Those that come behind it never reach the server."""
        with self._lock:
            self._cut = Cut(number, action, before)
        return self._cut

    def open(self):
        """Everything goes through, and the counts begin anew."""
        with self._lock:
            self._cut = None
            self._shut = False
            self._number = 0
            self.writes = []
            self.counts = collections.Counter()

    def cut_watches(self):
        with self._lock:
            cut = list(self._watches)
        self._hang_up(cut)
        return len(cut)

    def quiet(self, seconds):
        """Whether no watch has brought anything for so long."""
        return time.monotonic() - self.watched_at >= seconds

    # What its threads do

    @staticmethod
    def _hang_up(sockets):
        for one in list(sockets):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def enter(self, method, path):
        """The request as it is counted, or None when nothing may pass."""
        kind = kind_of(method, path)
        with self._lock:
            if self._shut:
                return None
            self.counts[kind] += 1
            if kind == "write":
                self._number += 1
            request = Request(self._number if kind == "write" else None, kind, method, path)
            cut = self._cut
        if cut and request.number:
            if request.number > cut.number:
                cut.done.wait()
                return None
            if request.number == cut.number and cut.before:
                self._fire(cut)
                return None
        return request

    def leave(self, request, status):
        """Records what was answered. False: the program does not get to hear it."""
        with self._lock:
            cut = self._cut
            if request.kind == "write":
                self.writes.append(Write(request.number, request.method, request.path.split("?")[0], status))
        if cut and request.number == cut.number and not cut.before:
            self._fire(cut)
        return not self._shut

    def _fire(self, cut):
        with self._lock:
            self._shut = True
        cut.action()
        cut.done.set()
        self._hang_up(self._clients)


class Cut:
    def __init__(self, number, action, before):
        self.number = number
        self.action = action
        self.before = before
        self.done = threading.Event()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a program that was killed hangs up; that is what tests are about


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection of the program, with one of its own to the server."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy = None
    _server = None

    def setup(self):
        super().setup()
        self.proxy._clients.add(self.connection)

    def finish(self):
        self.proxy._clients.discard(self.connection)
        if self._server:
            self._server.close()
        super().finish()

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if not self._pass_on(body):
                self.close_connection = True
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # the server is away, and so are we

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET

    def _pass_on(self, body):
        """False: hang up."""
        proxy = self.proxy
        request = proxy.enter(self.command, self.path)
        if request is None:
            return False
        fault = proxy.fault(request) if proxy.fault else None
        if fault == DROP:
            return False
        if isinstance(fault, Refusal):
            return proxy.leave(request, fault.status) and self._refuse(fault)
        if proxy.delay and request.kind != "watch":
            time.sleep(proxy.delay)
        if proxy._shut:
            return False
        server = self._connection()
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        server.request(self.command, self.path, body=body or None, headers=headers)
        answer = server.getresponse()
        if request.kind == "watch" and answer.status == 200:
            return self._stream(answer)
        data = answer.read()
        if not proxy.leave(request, answer.status) or fault == LOSE:
            return False
        self._answer(answer.status, answer.getheaders(), data)
        return True

    def _connection(self):
        if self._server and self._server.sock and not select.select([self._server.sock], [], [], 0)[0]:
            return self._server
        if self._server:
            self._server.close()
        host, port = self.proxy.cluster.address
        self._server = http.client.HTTPSConnection(host, port, context=self.proxy._upstream, timeout=60)
        self._server.connect()
        self._server.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._server

    def _answer(self, status, headers, data):
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}"]
        lines += [f"{name}: {value}" for name, value in headers
                  if name.lower() not in ("content-length", "transfer-encoding", "connection")]
        lines.append(f"Content-Length: {len(data)}")
        self.wfile.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if self.command == "HEAD" else data))

    def _refuse(self, refusal):
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": refusal.status,
                  "reason": REASONS[refusal.status], "message": "the test's proxy says so"}
        headers = [("Content-Type", "application/json")]
        if refusal.retry_after is not None:
            headers.append(("Retry-After", str(refusal.retry_after)))
        self._answer(refusal.status, headers, json.dumps(status).encode())
        return True

    def _stream(self, answer):
        """Until one side ends it."""
        proxy = self.proxy
        upstream = self._server.sock
        upstream.settimeout(None)
        proxy._watches.update((self.connection, upstream))
        try:
            lines = ["HTTP/1.1 200 OK", f"Content-Type: {answer.getheader('Content-Type')}",
                     "Transfer-Encoding: chunked", "", ""]
            self.wfile.write("\r\n".join(lines).encode())
            while not proxy._shut:
                if not select.select([upstream, self.connection], [], [], 1 if not upstream.pending() else 0)[0] \
                        and not upstream.pending():
                    continue
                if select.select([self.connection], [], [], 0)[0]:
                    return False  # the program says nothing during a watch: it has hung up
                piece = answer.read1(65536)
                if not piece:
                    self.wfile.write(b"0\r\n\r\n")
                    return True
                proxy.watched_at = time.monotonic()
                proxy.watched += piece.count(b"\n")
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        finally:
            proxy._watches.difference_update((self.connection, upstream))
            self._server.close()
            self._server = None
        return False
