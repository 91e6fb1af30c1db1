"""Tells Voda how far a training job is. Copy this file beside your script, or put its folder on PYTHONPATH.

    from voda_progress import Progress

    progress = Progress(total_epochs=10)
    progress.begin(epoch=start)            # epochs done so far: 0, or what the checkpoint says
    for epoch in range(start, 10):
        for step, batch in enumerate(batches):
            ...
            progress.step(step + 1, len(batches))
        progress.epoch(epoch, loss=loss)   # epoch number `epoch`, from 0, is done

Keras, Lightning and the Hugging Face Trainer: keras_callback(), lightning_callback(), huggingface_callback().

Reports go to VODA_PROGRESS_URL with VODA_PROGRESS_TOKEN, which Voda sets for every job, and on Voda's own machine over
the Unix socket VODA_PROGRESS_SOCKET. Where there is no URL, or with csv=True, they go to METRICS_DIR/JOB_NAME.csv, one
row per epoch. Without these variables nothing happens, so a script runs unchanged anywhere.

Only rank 0 reports. Training is never stopped by this module and never waits for it: no exception leaves it, and a
thread of its own sends what was said. While Voda cannot be reached, epochs are kept and sent later, and steps are
dropped. At exit there are two seconds to send the rest. What goes wrong is logged once as `voda_progress`.
Python 3.8 or later, standard library only.
"""

import atexit
import collections
import datetime
import functools
import http.client
import json
import logging
import math
import os
import re
import socket
import sys
import threading
import time
import urllib.parse

__all__ = ["Progress", "keras_callback", "lightning_callback", "huggingface_callback"]

_LOG = logging.getLogger("voda_progress")
_REQUEST_SECONDS = 3.0
_FLUSH_SECONDS = 2.0
_STEP_SECONDS = 5.0
_KEPT_MESSAGES = 1024
_LONGEST_BACKOFF = 15.0
_CELL = re.compile(r'[\s,"]+')  # what a cell must not hold, so that a line is split at its commas


def _never_raises(method):
    """Training goes on whatever happens here. For methods of Progress and of callbacks, which have one."""

    @functools.wraps(method)
    def wrapped(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except Exception as error:  # pylint: disable=broad-except
            progress = self if isinstance(self, Progress) else self.progress
            progress._complain(method.__name__ + ": %s: %s", type(error).__name__, error)
            return None

    return wrapped


def _never_raise(callback):
    """A class decorator: the same for all hooks of a callback."""
    for name, member in list(vars(callback).items()):
        if name.startswith("on_"):
            setattr(callback, name, _never_raises(member))
    return callback


def _number(value):
    """A finite float, or None for what is no number (also NaN and infinities)."""
    try:
        result = float(value)
    except Exception:  # pylint: disable=broad-except  (tensors raise all kinds)
        return None
    return result if math.isfinite(result) else None


def _count(value, least=0):
    """A whole number of at least `least`, or None."""
    result = _number(value)
    if result is None or result < least or result != int(result):
        return None
    return int(result)


def _from_environment(names, least):
    for name in names:
        value = _count(os.environ.get(name), least)
        if value is not None:
            return value
    return None


def _from_frameworks(torch_name, horovod_name):
    """Rank or size from a framework that is already imported and initialised. Elastic Horovod changes both without
    a new process, and its environment then lies."""
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        return getattr(torch, torch_name)()
    for name in ("torch", "tensorflow", "tensorflow.keras", "keras", "mxnet"):
        horovod = sys.modules.get("horovod." + name)
        if horovod is not None and hasattr(horovod, "is_initialized") and horovod.is_initialized():
            return getattr(horovod, horovod_name)()
    return None


def _rank():
    try:
        rank = _from_frameworks("get_rank", "rank")
    except Exception:  # pylint: disable=broad-except
        rank = None
    if rank is None:
        rank = _from_environment(("RANK", "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "VODA_WORKER"), 0)
    return rank or 0


def _workers():
    """Workers as Voda counts them: under torchrun its agents, of which each may have several processes."""
    agents = _from_environment(("GROUP_WORLD_SIZE",), 1)
    if agents is not None:
        return agents
    try:
        size = _from_frameworks("get_world_size", "size")
    except Exception:  # pylint: disable=broad-except
        size = None
    if size is None:
        size = _from_environment(("WORLD_SIZE", "HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"), 1)
    return size


class _Outbox:
    """A bounded queue and the daemon thread that empties it into `deliver`.

    `deliver` returns "done", or "again" to be called later with the same message. Messages to keep are delivered in
    order, the oldest falling out when there are too many. Of the others only the newest counts, and it is dropped
    when it cannot be delivered at once. After a fork the child starts with an empty queue."""

    def __init__(self, name, deliver, complain):
        self._name = name
        self._deliver = deliver
        self._complain = complain
        self._reset()

    def _reset(self):
        self._pid = os.getpid()
        self._changed = threading.Condition()  # its lock is reentrant: a signal handler may call us
        self._kept = collections.deque()
        self._newest = None
        self._busy = False
        self._closing = False
        self._thread = None

    def put(self, message, keep):
        if self._pid != os.getpid():
            self._reset()
        with self._changed:
            if keep:
                if len(self._kept) >= _KEPT_MESSAGES:
                    self._kept.popleft()
                    self._complain("%s: more than %d reports wait; the oldest are dropped", self._name, _KEPT_MESSAGES)
                self._kept.append(message)
                self._newest = None
            else:
                self._newest = message
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="voda_progress " + self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds):
        """Waits until everything is delivered, but no longer than this. Returns whether it is."""
        if self._pid != os.getpid():
            return True
        deadline = time.monotonic() + seconds
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            try:
                while self._kept or self._newest is not None or self._busy:
                    left = deadline - time.monotonic()
                    if left <= 0 or self._thread is None:
                        return False
                    self._changed.wait(left)
                return True
            finally:
                self._closing = False

    def _run(self):
        failures = 0
        while True:
            with self._changed:
                while not self._kept and self._newest is None:
                    self._changed.wait()
                kept = bool(self._kept)
                message = self._kept[0] if kept else self._newest
                self._busy = True
            try:
                again = self._deliver(message) == "again"
            except Exception as error:  # pylint: disable=broad-except
                self._complain(self._name + ": %s: %s", type(error).__name__, error)
                again = False
            with self._changed:
                self._busy = False
                if kept:
                    if not again and self._kept and self._kept[0] is message:
                        self._kept.popleft()
                elif self._newest is message:
                    self._newest = None
                self._changed.notify_all()
                if not again:
                    failures = 0
                    continue
                failures += 1
                pause = min(0.5 * 2 ** min(failures, 10), _LONGEST_BACKOFF)
                until = time.monotonic() + pause
                while True:  # whoever flushes gets a quick try
                    left = min(until - time.monotonic(), 0.25 if self._closing else pause)
                    if left <= 0:
                        break
                    self._changed.wait(left)
                    if self._closing:
                        until = min(until, time.monotonic() + 0.25)


class _SocketConnection(http.client.HTTPConnection):
    """A connection to a Unix socket in the place of the URL's host."""

    def __init__(self, path, host, port, timeout):
        super().__init__(host, port, timeout=timeout)
        self._path = path

    def connect(self):
        folder, name = None, self._path
        try:
            if len(os.fsencode(name)) > 107:  # too long for the system: by a descriptor of its folder
                folder = os.open(os.path.dirname(name), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                name = "/proc/self/fd/%d/%s" % (folder, os.path.basename(name))
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(self.timeout)
            self.sock.connect(name)
        finally:
            if folder is not None:
                os.close(folder)


class _HttpSink:
    """Posts one JSON object per report. Redirects are not followed and proxies not used: the token goes to Voda, and
    where Voda has a Unix socket, to nobody who has taken its port."""

    def __init__(self, url, token, complain, unix_socket=None):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("VODA_PROGRESS_URL is %r; it must be http://HOST:PORT/PATH" % url)
        self._scheme, self._host, self._port = parts.scheme, parts.hostname, parts.port
        self._target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        self._headers = {"Content-Type": "application/json", "Connection": "close"}
        if token:
            self._headers["Authorization"] = "Bearer " + token
        self._socket = unix_socket
        self._complain = complain
        self._steps_refused = False
        self._unanswered = None

    def deliver(self, message):
        step = message.get("phase") == "step"
        repeated, self._unanswered = message is self._unanswered, None
        if step and self._steps_refused:
            return "done"
        connection = self._connection()
        try:
            body = json.dumps(message, allow_nan=False).encode()
            connection.request("POST", self._target, body, self._headers)
            response = connection.getresponse()
            answer = b"" if response.status < 300 else response.read(4096)
        except (OSError, http.client.HTTPException) as error:
            self._complain("cannot reach Voda, will try again: %s: %s", type(error).__name__, error)
            self._unanswered = message
            return "again"
        finally:
            connection.close()
        if 200 <= response.status < 300:
            return "done"
        if response.status in (408, 425, 429) or response.status >= 500:
            self._complain("Voda answers %d, will try again", response.status)
            return "again"
        text = answer.decode("utf-8", "replace").strip()[:300]
        if step:  # a Voda that takes epochs only
            self._steps_refused = True
            _LOG.debug("Voda takes no steps: %d: %s", response.status, text)
        elif not repeated:  # else it may have had it: only its answer was lost
            self._complain("Voda refused a report with %d: %s", response.status, text)
        return "done"

    def _connection(self):
        if self._socket:
            return _SocketConnection(self._socket, self._host, self._port, _REQUEST_SECONDS)
        kind = http.client.HTTPSConnection if self._scheme == "https" else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=_REQUEST_SECONDS)


class _CsvSink:
    """METRICS_DIR/JOB_NAME.csv: a header, then one row per epoch, each appended in one write. The columns of a file
    stay as they were when it was begun. A last line without its end, as a crash leaves it, is dropped by replacing the
    file, never by cutting it: whoever reads along sees another file and begins anew."""

    def __init__(self, path, complain):
        self._path = path
        self._complain = complain
        self._columns = None
        self._last = -1

    def deliver(self, row):
        try:
            self._open()
            if row["epoch"] <= self._last:
                return "done"  # a repeated epoch: its row is there already
            if self._columns is None:
                self._columns = ["epoch"] + sorted(set(row) - {"epoch"})
                self._append(self._columns)
            unknown = sorted(set(row) - set(self._columns))
            if unknown:
                self._complain("%s has no column for %s", self._path, ", ".join(unknown))
            self._append([row.get(name) for name in self._columns])
            self._last = row["epoch"]
        except OSError as error:
            self._columns = None  # look again at what the file holds
            self._last = -1
            self._complain("cannot write %s, will try again: %s", self._path, error)
            return "again"
        return "done"

    def _open(self):
        if self._columns is not None:
            return
        self._columns, self._last, size, whole = self.read()
        if whole < size:
            temporary = "%s.%d" % (self._path, os.getpid())
            with open(self._path, "rb") as old, open(temporary, "wb") as new:
                new.write(old.read(whole))
            os.replace(temporary, self._path)

    def read(self):
        """What the file holds: its columns (None: no header), its last epoch (-1: none), its size and that of its
        whole lines. Reads no more than its two ends."""
        try:
            with open(self._path, "rb") as file:
                head = file.readline(1 << 16)
                size = file.seek(0, os.SEEK_END)
                start = max(len(head), size - (1 << 20))
                file.seek(start)
                tail = file.read()
        except FileNotFoundError:
            return None, -1, 0, 0
        if not head.endswith(b"\n") and len(head) == size:
            return None, -1, size, 0
        columns = head.decode("utf-8", "replace").rstrip("\r\n").split(",")
        if "epoch" not in columns:
            raise ValueError("%s does not begin with a header that names epoch; it is left alone" % self._path)
        tail = tail[:tail.rfind(b"\n") + 1]
        at = columns.index("epoch")
        for line in reversed(tail.decode("utf-8", "replace").splitlines()):
            cells = line.split(",")
            epoch = _count(cells[at]) if at < len(cells) else None
            if epoch is not None:
                return columns, epoch, size, start + len(tail)
        return columns, -1, size, start + len(tail)

    def _append(self, cells):
        line = (",".join("" if cell is None else _CELL.sub(" ", str(cell)) for cell in cells) + "\n").encode()
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.write(file, line) != len(line):
                raise OSError("the disk is full")  # the next try drops what was written
        finally:
            os.close(file)


class Progress:
    """Reports of one training process.

    total_epochs    epochs of the whole training; EPOCHS of the environment where not given
    csv             True: also write the CSV file; False: never; None (default): only where there is no URL
    url, token      instead of the environment's; url=False: the CSV file only
    rank, workers   where they cannot be found out; normally from torch.distributed, Horovod or the environment
    local_batch_size, global_batch_size, columns...   go into every row of the CSV file as they are
    """

    def __init__(self, total_epochs=None, csv=None, rank=None, workers=None, url=None, token=None,
                 step_seconds=_STEP_SECONDS, **columns):
        self._arguments = dict(columns, total_epochs=total_epochs, csv=csv, rank=rank, workers=workers, url=url,
                               token=token, step_seconds=step_seconds)
        self._complained = set()
        self._total = None
        self._fixed_rank = None
        self._fixed_workers = None
        self._columns = columns
        self._step_seconds = _STEP_SECONDS
        self._next_step = 0.0
        self._last_step = (None, None)
        self._epoch = 0
        self._started = None  # monotonic time, wall time, workers
        self._http = None
        self._csv = None
        self._csv_sink = None
        self._set_up(total_epochs, csv, rank, workers, url, token, step_seconds)

    @_never_raises
    def _set_up(self, total_epochs, csv, rank, workers, url, token, step_seconds):
        self._total = _count(total_epochs, 1)
        if self._total is None:
            self._total = _from_environment(("EPOCHS",), 1)
        self._fixed_rank = _count(rank)
        self._fixed_workers = _count(workers, 1)
        seconds = _number(step_seconds)
        self._step_seconds = max(_STEP_SECONDS if seconds is None else seconds, 0.0)
        unix_socket = os.environ.get("VODA_PROGRESS_SOCKET") if url is None else None
        url = (url or os.environ.get("VODA_PROGRESS_URL")) if url is not False else None
        folder, job = os.environ.get("METRICS_DIR"), os.environ.get("JOB_NAME")
        if folder and job and (csv or (csv is None and not url)):
            path = os.path.join(folder, os.path.basename(job) + ".csv")
            self._csv_sink = _CsvSink(path, self._complain)
            self._csv = _Outbox("csv", self._csv_sink.deliver, self._complain)
        if url:
            sink = _HttpSink(url, token or os.environ.get("VODA_PROGRESS_TOKEN"), self._complain, unix_socket)
            self._http = _Outbox("http", sink.deliver, self._complain)
        if self._http or self._csv:
            atexit.register(self.close)

    # What a training loop calls.

    @_never_raises
    def begin(self, epoch=None):
        """Training begins, or goes on, with this many epochs done. Again after every restart and re-forming.
        A fraction means the middle of an epoch, whose time is then not reported. Without a number: after the last
        row of the CSV file, else at 0."""
        done = _number(epoch)
        if done is None or done < 0:
            done = self._csv_sink.read()[1] + 1 if self._csv_sink and self._reports() else 0
        self._epoch = int(done + 1e-3)  # 2.9999999 of a framework is 3
        self._start_epoch()
        if done > self._epoch + 1e-3:
            self._started = None
        self._send({"epoch": self._epoch, "phase": "begin"}, None)

    @_never_raises
    def epoch(self, epoch=None, loss=None, epoch_seconds=None, **metrics):
        """Epoch number `epoch` (from 0; default: the next one) is done. Further metrics go into the CSV file."""
        number = _count(epoch)
        if number is None:
            number = self._epoch
        now, workers = time.monotonic(), self.workers
        seconds, since = _number(epoch_seconds), None
        if self._started is not None:
            began, since, workers_then = self._started
            if seconds is None and workers_then == workers:  # else the epoch saw two sizes and says nothing of either
                seconds = now - began
        steps = _count(self._last_step[1], 1) or _count(self._last_step[0], 1)
        self._epoch = number + 1
        self._start_epoch()
        if not self._reports():
            return
        row = {"epoch_time_sec": seconds, "step_time_sec": seconds / steps if seconds and steps else None,
               "steps": steps, "start_time": since.strftime("%Y-%m-%d %H:%M:%S.%f") if since else None}
        if loss is not None:
            row["loss"] = _number(loss)
        for name, value in metrics.items():
            row.setdefault(name, value if isinstance(value, (str, int)) else _number(value))
        self._send({"epoch": number, "phase": "epoch", "epoch_seconds": seconds, "loss": _number(loss)}, row)

    def step(self, step, steps=None, loss=None):
        """Step number `step` (from 1) of `steps` in this epoch is done. Cheap: at most one report per few seconds."""
        self._last_step = (step, steps)
        now = time.monotonic()
        if now >= self._next_step:
            self._next_step = now + self._step_seconds
            self._say_step(step, steps, loss)

    @_never_raises
    def _say_step(self, step, steps, loss):
        if self._http is not None and self._reports() and _count(step) is not None:
            self._send({"epoch": self._epoch, "phase": "step", "step": _count(step), "steps": _count(steps, 1),
                        "loss": _number(loss)}, None)

    @_never_raises
    def flush(self, seconds=_FLUSH_SECONDS):
        """Waits until everything was sent, at most so long. Returns whether it was."""
        deadline = time.monotonic() + seconds
        sent = True
        for outbox in (self._csv, self._http):
            if outbox is not None:
                sent = outbox.flush(max(deadline - time.monotonic(), 0)) and sent
        return sent

    @_never_raises
    def close(self):
        """Called at exit; harmless to call before, and more than once."""
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()
        return False

    def __reduce__(self):  # a copy in another process starts anew
        return _make, (self._arguments,)

    # For callbacks, and for loops that know better.

    @property
    def total_epochs(self):
        return self._total

    @total_epochs.setter
    def total_epochs(self, total):
        self._total = _count(total, 1)

    @property
    def workers(self):
        return self._fixed_workers if self._fixed_workers is not None else _workers()

    @workers.setter
    def workers(self, workers):
        self._fixed_workers = _count(workers, 1)

    def set_rank(self, rank):
        self._fixed_rank = _count(rank)

    # Inside.

    def _start_epoch(self):
        self._started = (time.monotonic(), datetime.datetime.now(), self.workers)
        self._next_step = max(self._next_step, time.monotonic() + self._step_seconds)
        self._last_step = (None, None)

    def _reports(self):
        if self._http is None and self._csv is None:
            return False
        return (self._fixed_rank if self._fixed_rank is not None else _rank()) == 0

    def _send(self, message, row):
        if not self._reports():
            return
        common = {"total_epochs": self._total, "workers": self.workers}
        if self._http is not None:
            message = {name: value for name, value in dict(message, **common).items() if value is not None}
            self._http.put(message, keep=message["phase"] != "step")
        if self._csv is not None and row is not None:
            whole = {"local_batch_size": None, "global_batch_size": None}
            whole.update(self._columns)
            self._csv.put(dict(whole, epoch=message["epoch"], **dict(row, **common)), keep=True)

    def _complain(self, text, *values):
        """Logs each kind of trouble once."""
        try:
            if text not in self._complained:
                self._complained.add(text)
                _LOG.warning(text, *values)
        except Exception:  # pylint: disable=broad-except
            pass


def _make(arguments):
    return Progress(**arguments)


def _import_first(names):
    """The first of these modules that is imported already, else the first that can be imported."""
    for name in names:
        if sys.modules.get(name) is not None:
            return sys.modules[name]
    missing = None
    for name in names:
        try:
            return __import__(name, fromlist=["_"])
        except ImportError as error:
            missing = missing or error
    raise missing


def keras_callback(progress=None, **options):
    """A callback for model.fit(callbacks=[...]), with TensorFlow's Keras or Keras alone. `options` as of Progress."""
    base = _import_first(("tensorflow.keras.callbacks", "keras.callbacks")).Callback

    @_never_raise
    class VodaProgress(base):
        def __init__(self):
            super().__init__()
            self.progress = progress or Progress(**options)
            self._began = False

        def on_train_begin(self, logs=None):
            self._began = False
            if self.progress.total_epochs is None:
                self.progress.total_epochs = (self.params or {}).get("epochs")

        def on_epoch_begin(self, epoch, logs=None):
            if not self._began:
                self.progress.begin(epoch)
                self._began = True

        def on_train_batch_end(self, batch, logs=None):
            self.progress.step(batch + 1, (self.params or {}).get("steps"), (logs or {}).get("loss"))

        def on_epoch_end(self, epoch, logs=None):
            self.progress.epoch(epoch, **_metrics(logs))

        def on_train_end(self, logs=None):
            self.progress.flush()

    return VodaProgress()


def lightning_callback(progress=None, loss="train_loss", **options):
    """A callback for Trainer(callbacks=[...]) of lightning or pytorch_lightning. `loss` names the logged metric to
    report; where it is not logged, the loss of the epoch's last batch is taken."""
    base = _import_first(("lightning.pytorch", "pytorch_lightning")).Callback

    @_never_raise
    class VodaProgress(base):
        def __init__(self):
            super().__init__()
            self.progress = progress or Progress(**options)
            self._loss = None

        def on_train_start(self, trainer, pl_module):
            self.progress.set_rank(trainer.global_rank)
            if self.progress.total_epochs is None:
                self.progress.total_epochs = trainer.max_epochs
            self.progress.begin(trainer.current_epoch)

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, *_):
            self._loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            self.progress.step(batch_idx + 1, _count(trainer.num_training_batches, 1), self._loss)

        def on_train_epoch_end(self, trainer, pl_module):
            metrics = _metrics(trainer.callback_metrics)
            for name in (loss + "_epoch", loss, "loss"):
                if metrics.get(name) is not None:
                    metrics["loss"] = metrics[name]
                    break
            else:
                metrics["loss"] = self._loss
            self.progress.epoch(trainer.current_epoch, **metrics)

        def on_train_end(self, trainer, pl_module):
            self.progress.flush()

    return VodaProgress()


def huggingface_callback(progress=None, steps_per_epoch=None, **options):
    """A callback for transformers.Trainer(callbacks=[...]). With `steps_per_epoch` so many optimizer steps count as
    an epoch: for training by max_steps that never sees its data twice, where one would otherwise never end."""
    base = _import_first(("transformers",)).TrainerCallback
    size = _count(steps_per_epoch, 1)

    @_never_raise
    class VodaProgress(base):
        def __init__(self):
            self.progress = progress or Progress(**options)
            self._logs = {}
            self._ended = False

        def on_train_begin(self, args, state, control, **_):
            self._ended = False
            self.progress.set_rank(0 if state.is_world_process_zero else 1)
            if self.progress.total_epochs is None:
                total = state.max_steps / size if size else state.num_train_epochs
                self.progress.total_epochs = math.ceil(_number(total) or 0)
            self.progress.begin(state.global_step / size if size else state.epoch or 0)

        def on_log(self, args, state, control, logs=None, **_):
            self._logs.update(_metrics(logs))
            self._say_epoch()

        def on_step_end(self, args, state, control, **_):
            if size:
                if state.global_step % size == 0:
                    self.progress.epoch(state.global_step // size - 1, **self._logs)
                else:
                    self.progress.step(state.global_step % size, size)
            elif state.max_steps and state.num_train_epochs:
                each = max(int(state.max_steps / state.num_train_epochs), 1)
                self.progress.step((state.global_step - 1) % each + 1, each)

        def on_epoch_begin(self, args, state, control, **_):
            self._say_epoch()

        def on_epoch_end(self, args, state, control, **_):
            self._ended = not size

        def on_train_end(self, args, state, control, **_):
            self._say_epoch()
            self.progress.flush()

        def _say_epoch(self):
            """An epoch is logged, if at all, right after its end: with its loss it is reported."""
            if self._ended:
                self._ended = False
                self.progress.epoch(**self._logs)  # counted: state.epoch is no whole number after every epoch

    return VodaProgress()


def _metrics(logs):
    """Logged values as keyword arguments of Progress.epoch."""
    values = {str(name): _number(value) for name, value in dict(logs or {}).items()}
    for taken in ("epoch", "epoch_seconds", "self"):
        values.pop(taken, None)
    return values

