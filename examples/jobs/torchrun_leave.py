"""Lets a worker of torchrun leave the rendezvous when it is stopped, so that the others go on in seconds.

torchrun that gets SIGTERM stops its worker and is gone without a word. The others see their connections break and meet
again, but the rendezvous counts the missing one as there until three keep-alives, 5 s apart, have failed: a shrink
takes 16 s. Recent PyTorch 2 takes `keep_alive_interval` in rdzvConf; before, it is fixed. So the worker says goodbye in
torchrun's name: it takes its parent off the list in the rendezvous store, as torchrun itself does before it joins anew.
A shrink then takes as long as a growth.

    import torchrun_leave
    torchrun_leave.on_sigterm()  # first thing, before torch is imported
    import torch

It reads what PyTorch keeps to itself, so anything unexpected is ignored: then leaving takes as long as without it.
"""

import os
import pickle
import signal
import socket
import sys
import threading

_STORE_SECONDS = 2


def on_sigterm():
    """From now on SIGTERM ends this process, after it has left. A thread does it: the main one may hang in a collective
    operation with somebody who left already, where Python runs no signal handler."""
    if threading.current_thread() is not threading.main_thread():
        return
    receive, send = os.pipe()
    os.set_blocking(send, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(send, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(receive,), name="torchrun_leave", daemon=True).start()


def _wait(receive):
    while signal.SIGTERM not in os.read(receive, 1):
        pass
    try:
        leave()
    except Exception as error:  # pylint: disable=broad-except
        print("torchrun_leave: %s: %s" % (type(error).__name__, error), file=sys.stderr)
    finally:
        os._exit(128 + signal.SIGTERM)


def leave():
    """Takes the torchrun above this process off the list of its rendezvous. Without torchrun there is nothing to do."""
    endpoint, run = os.environ.get("PET_RDZV_ENDPOINT"), os.environ.get("TORCHELASTIC_RUN_ID")
    if not endpoint or not run or os.environ.get("PET_RDZV_BACKEND") != "c10d":
        return
    from torch.distributed.elastic.rendezvous import RendezvousParameters
    from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend

    backend, _ = create_backend(RendezvousParameters("c10d", endpoint, run, 1, 1, is_host="false",
                                                     read_timeout=str(_STORE_SECONDS)))
    for _ in range(20):  # others may write at the same time: then read again
        content = backend.get_state()
        if content is None:
            return
        state, token = pickle.loads(content[0]), content[1]
        me = next((node for node in state.participants if _is_parent(node)), None)
        if me is None:
            return
        del state.participants[me]
        state.last_heartbeats.pop(me, None)
        if not state.participants:
            if state.complete:
                state.complete = False
                state.round += 1
            else:
                state.deadline = None
        answer = backend.set_state(pickle.dumps(state), token)
        if answer is not None and answer[2]:
            return


def _is_parent(node):
    host = getattr(node, "fqdn", None) or getattr(node, "addr", None)
    return node.pid == os.getppid() and host == socket.getfqdn()
