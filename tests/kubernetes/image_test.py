"""The image that tools/make_image.py writes: the same bytes each time, nothing in it but what it needs, and it runs in
containerd with runc as its own user on a root that cannot be written. As root, on a machine that can run containers.

    /usr/bin/python3 tests/kubernetes/image_test.py      VODA_BINARY names another binary than build/release/voda
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import control_groups  # noqa: E402
import real_nodes  # noqa: E402
from cluster import ROOT  # noqa: E402
from processes import ClusterError, Part, free_ports, run, wait_for  # noqa: E402

BINARY = os.environ.get("VODA_BINARY") or os.path.join(ROOT, "build", "release", "voda")
TOOL = os.path.join(ROOT, "tools", "make_image.py")
NAME = "localhost/voda:test"
USER = 65532

CONTAINERD = """version = 2
root = "{folder}/containerd"
state = "{folder}/run"
oom_score = 0
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{folder}/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
"""


def make(*arguments, check=True):
    return run(sys.executable, TOOL, "--binary", BINARY, *arguments, check=check, seconds=120)


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="voda-image-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.image = os.path.join(cls.folder, "voda.tar")
        cls.printed = make("--name", NAME, "--output", cls.image).stdout


class Archive(Folder):
    def blob(self, archive, descriptor):
        content = archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
        self.assertEqual("sha256:" + hashlib.sha256(content).hexdigest(), descriptor["digest"])
        self.assertEqual(len(content), descriptor["size"])
        return content

    def test_names_size_and_digest_are_printed(self):
        with tarfile.open(self.image) as archive:
            digest = json.load(archive.extractfile("index.json"))["manifests"][0]["digest"]
        self.assertRegex(self.printed, rf"name +{NAME}\n.*\nsize +[0-9.]+ MB.*\ndigest +{digest}\n")
        self.assertLess(os.path.getsize(self.image), 25e6)

    def test_the_same_binary_gives_the_same_bytes(self):
        time.sleep(1.1)  # an archive that held the time would differ
        copy = os.path.join(self.folder, "copy")
        shutil.copyfile(BINARY, copy)
        os.chmod(copy, 0o700)
        again = os.path.join(self.folder, "again.tar")
        run(sys.executable, TOOL, "--binary", copy, "--name", NAME, "--output", again, seconds=120)
        with open(self.image, "rb") as one, open(again, "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_both_manifests_lead_to_the_same_layer(self):
        with tarfile.open(self.image) as archive:
            index = json.load(archive.extractfile("index.json"))["manifests"][0]
            manifest = json.loads(self.blob(archive, index))
            config = json.loads(self.blob(archive, manifest["config"]))
            layer = self.blob(archive, manifest["layers"][0])
            docker = json.load(archive.extractfile("manifest.json"))[0]
        self.assertEqual(index["annotations"]["io.containerd.image.name"], NAME)
        self.assertEqual(docker["RepoTags"], [NAME])
        self.assertEqual(docker["Layers"], ["blobs/sha256/" + hashlib.sha256(layer).hexdigest()])
        self.assertEqual(config["config"]["User"], f"{USER}:{USER}")
        self.assertEqual(config["config"]["Entrypoint"], ["/usr/bin/voda"])

    def test_holds_the_binary_its_libraries_and_little_else(self):
        with tarfile.open(self.image) as archive:
            docker = json.load(archive.extractfile("manifest.json"))[0]
            with tarfile.open(fileobj=archive.extractfile(docker["Layers"][0]), mode="r:gz") as layer:
                members = layer.getmembers()
                authorities = layer.extractfile("etc/ssl/certs/ca-certificates.crt").read().decode()
        files = {one.name for one in members if one.isfile()}
        needed = set(re.findall(r"([^\s/]+) \(0x", run("ldd", BINARY).stdout)) - {"linux-vdso.so.1"}
        self.assertEqual({os.path.basename(name) for name in files if name.startswith("usr/lib")}, needed)
        self.assertEqual({name for name in files if not name.startswith("usr/lib")},
                         {"etc/group", "etc/nsswitch.conf", "etc/passwd", "etc/ssl/certs/ca-certificates.crt",
                          "usr/bin/voda"})
        self.assertEqual([one.name for one in members], sorted(one.name for one in members))
        self.assertEqual({one.mtime for one in members}, {0})
        self.assertEqual([one.name for one in members if one.uid], ["var/lib/voda"])
        self.assertFalse([one.name for one in members if one.mode & 0o6000], "set-user-id files")
        self.assertGreater(authorities.count("BEGIN CERTIFICATE"), 50)

    def test_the_tree_is_the_same_without_an_archive(self):
        root = os.path.join(self.folder, "root")
        make("--root", root)
        self.assertEqual(os.readlink(os.path.join(root, "lib")), "usr/lib")
        with open(BINARY, "rb") as one, open(os.path.join(root, "usr/bin/voda"), "rb") as other:
            self.assertEqual(one.read(), other.read())
        self.assertIn("not empty", make("--root", root, check=False).stderr)

    def test_what_cannot_be_made_is_said(self):
        for arguments, message in ((["--binary", "/no/such"], "build it first"), (["--name", "Voda"], "NAME:TAG"),
                                   (["--output", "/no/such/folder/x"], "/no/such/folder")):
            answer = make(*arguments, check=False)
            self.assertEqual(answer.returncode, 1)
            self.assertRegex(answer.stderr, f"^image: .*{message}")


class Container(Folder):
    """A containerd of its own, with one image in it."""

    @classmethod
    def setUpClass(cls):
        reason = real_nodes.why_not()
        if reason:
            raise AssertionError(f"no containers on this machine: {reason}")
        super().setUpClass()
        cls.namespace = f"voda-image-{os.getpid()}"  # its control groups have that name, too
        cls.socket = os.path.join(cls.folder, "c.sock")
        config = os.path.join(cls.folder, "containerd.toml")
        with open(config, "w") as file:
            file.write(CONTAINERD.format(folder=cls.folder))
        cls.addClassCleanup(cls.clean_up)
        cls.containerd = Part("containerd", ["containerd", "--config", config], os.path.join(cls.folder, "log"),
                              ready=lambda _: cls.ctr("version", check=False).returncode == 0)
        cls.containerd.start()
        cls.ctr("images", "import", cls.image)

    @classmethod
    def clean_up(cls):
        for container in cls.ctr("containers", "list", "--quiet", check=False).stdout.split():
            cls.ctr("tasks", "delete", "--force", container, check=False)
            cls.ctr("containers", "delete", container, check=False)
        cls.containerd.stop()
        left = control_groups.remove(cls.namespace)
        real_nodes.unmount(cls.folder)
        if left or real_nodes.shims([cls.socket]):
            raise ClusterError(f"left behind: {left}, {real_nodes.shims([cls.socket])}")

    @classmethod
    def ctr(cls, *arguments, check=True):
        return run("ctr", "--address", cls.socket, "--namespace", cls.namespace, *arguments, check=check)

    def voda(self, *arguments, check=True):
        """Runs `voda` in a container of its own."""
        return self.ctr("run", "--rm", "--read-only", NAME, f"c{time.monotonic_ns()}", "/usr/bin/voda", *arguments,
                        check=check)

    def test_is_there_by_its_name(self):
        self.assertEqual(self.ctr("images", "list", "--quiet").stdout.split(), [NAME])

    def test_says_its_version(self):
        self.assertEqual(self.voda("--version").stdout, run(BINARY, "--version").stdout)

    def test_starts_without_arguments_as_the_image_says(self):
        answer = self.ctr("run", "--rm", "--read-only", NAME, "plain")
        self.assertIn("Usage: ", answer.stdout)

    def test_the_root_cannot_be_written(self):
        answer = self.voda("up", "--slots", "1", "--data", "/var/lib/voda/data", check=False)
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("Read-only file system", answer.stdout + answer.stderr)

    def test_serves_as_its_own_user(self):
        """As the chart runs it: a volume of the user's group is all that can be written."""
        volume = os.path.join(self.folder, "volume")
        os.mkdir(volume)
        os.chown(volume, 0, USER)
        os.chmod(volume, 0o2770)
        port = free_ports(3)[0]  # Voda takes three in a row
        flags = ["--net-host", "--mount", f"type=bind,src={volume},dst=/var/lib/voda,options=rbind:rw"]
        log = os.path.join(self.folder, "serve.log")
        with open(log, "wb") as output:
            process = subprocess.Popen(
                ["ctr", "--address", self.socket, "--namespace", self.namespace, "run", "--rm", "--read-only", *flags,
                 NAME, "serve", "/usr/bin/voda", "up", "--slots", "1", "--data", "/var/lib/voda/data", "--listen",
                 f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def alive():
            if process.poll() is not None:
                with open(log, errors="replace") as file:
                    raise AssertionError(f"it ended: {file.read()}")
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=2).status == 200
            except OSError:
                return False
        wait_for(alive, 30, "an answer from the container")
        pid = next(line.split()[1] for line in self.ctr("tasks", "list").stdout.splitlines() if "serve" in line)
        with open(f"/proc/{pid}/status") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        self.assertEqual(set(status["Uid"].split() + status["Gid"].split()), {str(USER)})
        self.assertEqual(int(status["CapEff"], 16), 0)
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual(os.stat(os.path.join(volume, "data")).st_uid, USER)
        self.ctr("tasks", "kill", "--signal", "SIGTERM", "serve")
        self.assertEqual(process.wait(30), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
