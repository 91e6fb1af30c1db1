#!/usr/bin/env python3
"""Writes a container image of Voda without a container engine: the release binary, exactly the shared libraries it
loads, the certificate authorities of Debian and the few files of /etc that glibc reads. The archive is both an OCI
layout and what `docker save` writes, so `ctr images import`, `docker load` and `podman load` take it. The same files
give the same bytes: names are sorted, and times and owners are fixed.

    tools/make_image.py [--binary FILE] [--name NAME] [--output FILE]
    tools/make_image.py --root DIR      the tree alone, for the Dockerfile

The test cluster makes its own images with Layer and archive (tests/kubernetes/images.py).
"""
import argparse
import glob
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
from typing import NamedTuple

USER = 65532
HOME = "var/lib/voda"
AUTHORITIES = "/usr/share/ca-certificates/mozilla"  # not /etc/ssl/certs, which has what was added on this machine
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

ETC = {
    "etc/passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nvoda:x:{USER}:{USER}:voda:/{HOME}:/usr/sbin/nologin\n",
    "etc/group": f"root:x:0:\nvoda:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",  # without it glibc asks DNS first and does not see the pod's /etc/hosts
}
FOLDERS = {"dev": 0o755, "proc": 0o755, "sys": 0o755, "tmp": 0o1777, HOME: 0o700}
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"}


class ImageError(Exception):
    """What went wrong and what to do about it."""


class Entry(NamedTuple):
    kind: bytes = tarfile.REGTYPE
    mode: int = 0o644
    content: bytes = b""
    target: str = ""
    owner: int = 0


class Layer:
    """A tar archive that is the same whenever it is made."""

    def __init__(self):
        self._buffer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._buffer, mode="w", format=tarfile.GNU_FORMAT)

    def add(self, name, content=b"", kind=tarfile.REGTYPE, mode=0o644, target="", owner=0):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.linkname, entry.size = kind, mode, target, len(content)
        entry.uid = entry.gid = owner
        self._tar.addfile(entry, io.BytesIO(content))

    def bytes(self):
        self._tar.close()
        return self._buffer.getvalue()


def architecture():
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)


def archive(path, name, layer, config):
    """Writes an image of one layer. Returns the digest of its manifest, by which a registry will know it."""
    blobs = {}

    def blob(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": "sha256:" + digest, "size": len(content)}

    def encode(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    where = {"architecture": architecture(), "os": "linux"}
    layers = [blob("layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0))]
    settings = blob("config.v1+json", encode({
        **where, "created": "1970-01-01T00:00:00Z", "config": config,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}))
    manifest = blob("manifest.v1+json", encode({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": settings, "layers": layers}))
    digest = manifest["digest"]
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    files = {
        **blobs,
        "oci-layout": encode({"imageLayoutVersion": "1.0.0"}),
        "index.json": encode({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                              "manifests": [{**manifest, "platform": where, "annotations": names}]}),
        "manifest.json": encode([{"Config": file_of(settings), "RepoTags": [name],
                                  "Layers": [file_of(one) for one in layers]}]),
    }
    image = Layer()
    for file, content in sorted(files.items()):
        image.add(file, content)
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as output:
        output.write(image.bytes())
    os.replace(temporary, path)
    return digest


def file_of(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def libraries(binary):
    """Path in the image -> content, for all that the loader loads, itself included."""
    answer = subprocess.run(["ldd", binary], capture_output=True, text=True, env={"PATH": PATH, "LC_ALL": "C"})
    if "not a dynamic executable" in answer.stdout + answer.stderr:
        return {}
    if answer.returncode != 0:
        raise ImageError(f"ldd {binary}: {(answer.stderr or answer.stdout).strip()}")
    missing = re.findall(r"(\S+) => not found", answer.stdout)
    if missing:
        raise ImageError(f"{binary} needs {', '.join(missing)}, which this machine does not have")
    found = {}
    for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", answer.stdout, re.MULTILINE):
        folder, file = os.path.split(path)
        target = os.path.join(os.path.realpath(folder), file)  # by the name that is asked for, not that of the version
        if not re.match(r"/usr/lib(64)?/", target):
            raise ImageError(f"{binary} loads {path}, outside /usr/lib, where the loader of the image does not look")
        found[target.lstrip("/")] = read(path)
    return found


def authorities():
    paths = sorted(glob.glob(os.path.join(AUTHORITIES, "*.crt")))
    if not paths:
        raise ImageError(f"no certificates in {AUTHORITIES}; install the package ca-certificates")
    return b"".join(read(path).rstrip(b"\n") + b"\n" for path in paths)


def tree(binary):
    """Everything in the image: name -> Entry, parents before children."""
    entries = {name: Entry(content=text.encode()) for name, text in ETC.items()}
    entries["etc/ssl/certs/ca-certificates.crt"] = Entry(content=authorities())
    entries["usr/bin/voda"] = Entry(mode=0o755, content=read(binary))
    for name, content in libraries(binary).items():
        entries[name] = Entry(mode=0o755 if "/ld-" in name else 0o644, content=content)
    for name, mode in FOLDERS.items():
        entries[name] = Entry(kind=tarfile.DIRTYPE, mode=mode, owner=USER if name == HOME else 0)
    for name, target in LINKS.items():
        entries[name] = Entry(kind=tarfile.SYMTYPE, mode=0o777, target=target)
    for name in list(entries):
        while name := os.path.dirname(name):
            entries.setdefault(name, Entry(kind=tarfile.DIRTYPE, mode=0o755))
    return dict(sorted(entries.items()))


def write_tree(entries, root):
    if os.path.exists(root) and os.listdir(root):
        raise ImageError(f"{root} is not empty; name a new folder")
    os.makedirs(root, exist_ok=True)
    for name, entry in entries.items():
        path = os.path.join(root, name)
        if entry.kind == tarfile.SYMTYPE:
            os.symlink(entry.target, path)
            continue
        if entry.kind == tarfile.DIRTYPE:
            os.mkdir(path)
        else:
            with open(path, "wb") as file:
                file.write(entry.content)
        os.chmod(path, entry.mode)
        if entry.owner and os.geteuid() == 0:
            os.chown(path, entry.owner, entry.owner)


def version(binary):
    try:
        return subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    except (OSError, subprocess.CalledProcessError, IndexError) as error:
        raise ImageError(f"{binary} --version says no version: {error}; build it first: make") from None


def config(number):
    return {
        "User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/voda"], "Cmd": ["--help"], "WorkingDir": "/" + HOME,
        "Env": ["PATH=" + PATH, "HOME=/" + HOME],
        "ExposedPorts": {f"{port}/tcp": {} for port in range(55587, 55591)},
        "Labels": {"org.opencontainers.image.title": "voda", "org.opencontainers.image.version": number,
                   "org.opencontainers.image.licenses": "Apache-2.0"},
    }


def main():
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description="Writes a container image of Voda without a container engine.")
    parser.add_argument("--binary", default=os.path.join(top, "build", "release", "voda"))
    parser.add_argument("--name", help="name and tag; else localhost/voda:VERSION")
    parser.add_argument("--output", default=os.path.join(top, "build", "voda-image.tar"))
    parser.add_argument("--root", help="write the tree into this folder instead of an archive")
    options = parser.parse_args()
    try:
        number = version(options.binary)
        name = options.name or f"localhost/voda:{number}"
        if not re.fullmatch(r"[a-z0-9][a-z0-9._:/-]*:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", name):
            raise ImageError(f"--name {name}: not of the form NAME:TAG, as localhost/voda:{number}")
        entries = tree(options.binary)
        if options.root:
            write_tree(entries, options.root)
            return
        layer = Layer()
        for path, entry in entries.items():
            layer.add(path, entry.content, entry.kind, entry.mode, entry.target, entry.owner)
        digest = archive(options.output, name, layer.bytes(), config(number))
        unpacked = sum(len(entry.content) for entry in entries.values())
        print(f"name     {name}\n"
              f"archive  {os.path.relpath(options.output)}\n"
              f"size     {os.path.getsize(options.output) / 1e6:.1f} MB, unpacked {unpacked / 1e6:.1f} MB\n"
              f"digest   {digest}")
    except (ImageError, OSError) as error:
        print(f"image: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
