"""The two images that real nodes need, written as archives without a registry: `pause`, a program that waits, and
`worker`, which is a few files of /etc and busybox. Pods mount the host's /usr, so what Debian has installed runs in
them; the image's own /usr is there for pods that do not."""
import os
import sys
import tarfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))

import make_image  # noqa: E402
from make_image import Layer  # noqa: E402
from processes import run  # noqa: E402

PAUSE = "voda.test/pause:1"
WORKER = "voda.test/worker:1"

PAUSE_SOURCE = """
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void leave(int number) { (void)number; _exit(0); }
static void reap(int number) { (void)number; while (waitpid(-1, NULL, WNOHANG) > 0) {} }
int main(void) {
  signal(SIGTERM, leave);
  signal(SIGINT, leave);
  signal(SIGCHLD, reap);
  for (;;) pause();
}
"""

SSHD_CONFIG = """Port 22
HostKey /etc/ssh/ssh_host_key
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile none
"""
SSH_CONFIG = """Host *
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""
FILES = {  # of the worker image
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
                  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "etc/ssh/sshd_config": SSHD_CONFIG,
    "etc/ssh/ssh_config": SSH_CONFIG,
}
FOLDERS = ["dev", "etc", "etc/alternatives", "etc/ssh", "opt", "proc", "root", "run", "run/sshd", "sys", "tmp", "usr",
           "usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "var", "voda", "outputs"]
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin", "var/run": "/run"}
COMMANDS = ["cat", "echo", "env", "false", "hostname", "ls", "sh", "sleep", "true"]  # that busybox is without /usr


def archive(path, name, layer, command):
    make_image.archive(path, name, layer.bytes(), {"Cmd": command, "Env": ["PATH=" + make_image.PATH]})
    return path


def pause(folder):
    source, program = os.path.join(folder, "pause.c"), os.path.join(folder, "pause")
    with open(source, "w") as file:
        file.write(PAUSE_SOURCE)
    run("gcc", "-Os", "-static", "-s", "-o", program, source)
    layer = Layer()
    with open(program, "rb") as file:
        layer.add("pause", file.read(), mode=0o755)
    return archive(os.path.join(folder, "pause.tar"), PAUSE, layer, ["/pause"])


def worker(folder):
    key = os.path.join(folder, "ssh_host_key")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key)
    layer = Layer()
    for name in FOLDERS:
        layer.add(name, kind=tarfile.DIRTYPE, mode=0o1777 if name == "tmp" else 0o700 if name == "root" else 0o755)
    for name, target in LINKS.items():
        layer.add(name, kind=tarfile.SYMTYPE, target=target)
    for name, content in FILES.items():
        layer.add(name, content.encode())
    with open(key, "rb") as file:
        layer.add("etc/ssh/ssh_host_key", file.read(), mode=0o600)
    with open("/bin/busybox", "rb") as file:
        layer.add("opt/busybox", file.read(), mode=0o755)
    for name in COMMANDS:
        layer.add("usr/bin/" + name, kind=tarfile.SYMTYPE, target="/opt/busybox")
    return archive(os.path.join(folder, "worker.tar"), WORKER, layer, ["/bin/sleep", "3600"])
