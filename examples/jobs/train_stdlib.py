"""Elastic training with nothing but Python's standard library: logistic regression on points in four dimensions.

Worker 0 trains. The others connect to it and compute shards of each step, also waiting for the data of those shards,
so more workers are faster. Whoever comes or goes is taken into account at the next step; the shards of a worker that
vanishes in the middle of one are computed again. Weights and gradients are whole numbers of 2^-32, and sums of whole
numbers do not depend on their order: the result is the same bit for bit on any number of workers, whatever happens to
them. After every epoch worker 0 writes a checkpoint, and goes on from it when it is started again.

Environment: EPOCHS (30), STEPS_PER_EPOCH (10), WAIT_MS (200: data for one whole step), SEED (1), VODA_WORKER (0, else
RANK), VODA_JOB_DIR (default: the current folder). There it keeps checkpoint.json, and every start adds a line to
starts.log.
"""

import hashlib
import json
import math
import os
import random
import secrets
import select
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

from voda_progress import Progress  # noqa: E402

EPOCHS = int(os.environ.get("EPOCHS", "30"))
STEPS = int(os.environ.get("STEPS_PER_EPOCH", "10"))
WAIT = float(os.environ.get("WAIT_MS", "200")) / 1000
SEED = int(os.environ.get("SEED", "1"))
WORKER = int(os.environ.get("VODA_WORKER") or os.environ.get("RANK") or "0")
FOLDER = os.environ.get("VODA_JOB_DIR", ".")
CHECKPOINT = os.path.join(FOLDER, "checkpoint.json")
ADDRESS = os.path.join(FOLDER, "worker0.json")

SHARDS = 12  # of a step; divides evenly among 1, 2, 3, 4 and 6 workers
SAMPLES = 6  # of a shard
TRUTH = (1.5, -2.0, 1.0, 0.5, -0.25)  # what is to be learned; the last one is the bias
ONE = 1 << 32
LOST_SECONDS = 20  # a helper that is silent for so long is dropped


def compute(weights, epoch, step, shard):
    """The gradient and the loss of one shard, in whole numbers."""
    chance = random.Random("%d %d %d %d" % (SEED, epoch, step, shard))
    gradient, loss = [0] * len(TRUTH), 0
    for _ in range(SAMPLES):
        features = [chance.gauss(0, 1) for _ in TRUTH[1:]] + [1.0]
        label = 1 if sum(t * x for t, x in zip(TRUTH, features)) + chance.gauss(0, 0.3) > 0 else 0
        score = sum(w / ONE * x for w, x in zip(weights, features))
        score = min(max(score, -30.0), 30.0)
        guess = 1 / (1 + math.exp(-score))
        for i, x in enumerate(features):
            gradient[i] += round((guess - label) * x * ONE)
        loss -= round(math.log(guess if label else 1 - guess) * ONE)
    return gradient + [loss]


def compute_shards(weights, epoch, step, shards):
    time.sleep(WAIT * len(shards) / SHARDS)
    parts = [compute(weights, epoch, step, shard) for shard in shards]
    return [sum(column) for column in zip(*parts)]


def read_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def write_json(path, value):
    temporary = "%s.%d" % (path, os.getpid())
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(value, file)
    os.replace(temporary, path)


def checksum(state):
    return hashlib.sha256(json.dumps([state["weights"], state["losses"]]).encode()).hexdigest()[:16]


def say(text):
    print(text, flush=True)


class Peer:
    """A connection that carries one JSON value per line."""

    def __init__(self, connection):
        self.connection = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.shards = []
        self._rest = b""

    def gone(self):
        """Whether the other has closed. Does not wait; what the other has sent stays to be received."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def send(self, value):
        self.connection.sendall(json.dumps(value).encode() + b"\n")

    def receive(self):
        """The next value. Waits as long as the connection's timeout; OSError when the other is gone."""
        while b"\n" not in self._rest:
            more = self.connection.recv(65536)
            if not more:
                raise ConnectionError("the other worker is gone")
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)


class Helpers:
    """The other workers, as worker 0 sees them."""

    def __init__(self):
        self._secret = secrets.token_hex(16)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self._peers = {}  # by worker number
        write_json(ADDRESS, {"port": self._listener.getsockname()[1], "secret": self._secret})

    def __len__(self):
        return len(self._peers)

    def admit(self):
        """Takes in who has come, and forgets who has gone."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # nobody, or one who is gone already
                break
            try:
                connection.settimeout(1)
                peer = Peer(connection)
                hello = peer.receive()
                connection.settimeout(LOST_SECONDS)
                if secrets.compare_digest(str(hello["secret"]), self._secret):
                    self._peers[int(hello["worker"])] = peer
            except (OSError, ValueError, KeyError, TypeError):
                connection.close()
        for worker, peer in list(self._peers.items()):
            if peer.gone():
                self._drop(worker)

    def compute(self, weights, epoch, step):
        """The sum over all shards: each helper's share and our own, at the same time."""
        workers = sorted(self._peers)
        for at, worker in enumerate(workers, start=1):
            peer = self._peers[worker]
            peer.shards = list(range(at, SHARDS, len(workers) + 1))
            try:
                peer.send({"weights": weights, "epoch": epoch, "step": step, "shards": peer.shards})
            except OSError:
                pass  # found out below
        sums = [compute_shards(weights, epoch, step, range(0, SHARDS, len(workers) + 1))]
        again = []
        for worker in workers:
            peer = self._peers[worker]
            try:
                sums.append([int(value) for value in peer.receive()])
            except (OSError, ValueError, TypeError):
                self._drop(worker)
                again += peer.shards
        if again:
            sums.append(compute_shards(weights, epoch, step, again))
        return [sum(column) for column in zip(*sums)]

    def finish(self):
        for peer in self._peers.values():
            try:
                peer.send({"done": True})
            except OSError:
                pass

    def close(self):
        self._listener.close()
        for worker in list(self._peers):
            self._drop(worker)

    def _drop(self, worker):
        self._peers.pop(worker).connection.close()


def train():
    state = read_json(CHECKPOINT) or {"epoch": 0, "weights": [0] * len(TRUTH), "losses": []}
    helpers = Helpers()
    progress = Progress(total_epochs=EPOCHS, workers=1)
    progress.begin(epoch=state["epoch"])
    for epoch in range(state["epoch"], EPOCHS):
        began = time.monotonic()
        weights, loss = state["weights"], 0
        for step in range(STEPS):
            helpers.admit()
            if progress.workers != len(helpers) + 1:
                progress.workers = len(helpers) + 1
                progress.begin(epoch + step / STEPS)
            sums = helpers.compute(weights, epoch, step)
            weights = [w - g // (SHARDS * SAMPLES) for w, g in zip(weights, sums)]  # learning rate 1
            loss += sums[-1]
            progress.step(step + 1, STEPS)
        loss = loss / ONE / (STEPS * SHARDS * SAMPLES)
        state = {"epoch": epoch + 1, "weights": weights, "losses": state["losses"] + [round(loss, 9)]}
        write_json(CHECKPOINT, state)
        say("epoch %d/%d workers %d loss %.4f (%.1f s)" %
            (epoch + 1, EPOCHS, len(helpers) + 1, loss, time.monotonic() - began))
        progress.epoch(epoch, loss=loss)
    helpers.finish()
    say("done steps=%d loss=%.4f checksum=%s" % (EPOCHS * STEPS, (state["losses"] or [0])[-1], checksum(state)))


def finished():
    state = read_json(CHECKPOINT)
    return state is not None and state["epoch"] >= EPOCHS


def help_worker0():
    """Computes what worker 0 asks for until it says that all is done. Looks for it again when it is gone."""
    while not finished():
        address = read_json(ADDRESS)
        try:
            if address is None:
                raise ConnectionError("worker 0 has not started")
            peer = Peer(socket.create_connection(("127.0.0.1", address["port"]), timeout=5))
            peer.connection.settimeout(3 * LOST_SECONDS)  # it may be somebody else with an old port of worker 0
            peer.send({"worker": WORKER, "secret": address["secret"]})
            say("worker %d helps" % WORKER)
            while True:
                task = peer.receive()
                if task.get("done"):
                    return
                peer.send(compute_shards(task["weights"], task["epoch"], task["step"], task["shards"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # gone, or a stranger
            time.sleep(0.1)


def main():
    state = read_json(CHECKPOINT) or {"epoch": 0}
    with open(os.path.join(FOLDER, "starts.log"), "a") as file:
        file.write("start worker=%d epoch=%d\n" % (WORKER, state["epoch"]))
    say("start worker=%d epoch=%d" % (WORKER, state["epoch"]))
    if WORKER == 0:
        train()
    else:
        help_worker0()


if __name__ == "__main__":
    main()
