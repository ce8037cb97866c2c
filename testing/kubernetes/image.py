#!/usr/bin/env python3
"""Packs files and folders of this machine into a container image, with the shared libraries that they need.

The result is an archive as `docker save` writes it; `cluster.sh load` and `podman load` read it. No registry and no
builder takes part, and the same files give the same bytes.
"""

import argparse
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

# More in one image is a mistake in its list.
FILES_MAX = 50_000


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="name and tag, such as localhost/narrows:1")
    parser.add_argument("archive", type=Path, help="the archive that is written")
    parser.add_argument("files", nargs="*", metavar="SOURCE[:PLACE]", help="a file or folder, and its place in the image")
    parser.add_argument("--entry", default="", help="the program that a container starts, with arguments, split at spaces")
    parser.add_argument("--text", action="append", default=[], metavar="PLACE=TEXT", help="a file with this text")
    parser.add_argument("--path", default="/usr/bin:/bin:/", help="folders that programs are looked for in")
    parser.add_argument("--user", default="65532:65532", help="numbers of the user and the group that it runs as")
    parser.add_argument("--writable", action="append", default=["/tmp"], metavar="PLACE", help="a folder for all to write to")
    return parser.parse_intermixed_args()


def libraries(path):
    """Shared libraries of a program, by their place; none of a file that is no dynamic program."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listed, re.MULTILINE)


def collect(listed):
    """Files by their place in the image."""
    files = {}
    for item in listed:
        source, _, place = item.partition(":")
        place = place or os.path.abspath(source)
        if not os.path.exists(source):
            sys.exit(f"error: cannot pack {source}: no such file or folder")
        if os.path.isfile(source):
            files[place] = os.path.realpath(source)
            continue
        for folder, _, names in os.walk(source, followlinks=True):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    files[os.path.join(place, os.path.relpath(path, source))] = os.path.realpath(path)
        if len(files) > FILES_MAX:
            sys.exit(f"error: {source} has more than {FILES_MAX:,} files")
    for path in list(files.values()):
        for library in libraries(path):
            files.setdefault(library, os.path.realpath(library))
    return files


def entry(name, mode, size=0, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name.lstrip("/"))
    info.mode, info.size, info.type = mode, size, kind
    return info


def layer(files, texts, writable):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for folder in sorted(set(writable)):
            tar.addfile(entry(folder, 0o1777, kind=tarfile.DIRTYPE))
        for place, path in sorted(files.items()):
            with open(path, "rb") as file:
                mode = 0o755 if os.access(path, os.X_OK) else 0o644
                tar.addfile(entry(place, mode, os.path.getsize(path)), file)
        for place, text in texts:
            body = text.encode()
            tar.addfile(entry(place, 0o755, len(body)), io.BytesIO(body))
    return data.getvalue()


def main():
    given = arguments()
    texts = [text.partition("=")[::2] for text in given.text]
    content = layer(collect(given.files), texts, given.writable)
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {"Entrypoint": given.entry.split(), "Env": ["PATH=" + given.path], "User": given.user, "WorkingDir": "/tmp"},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(content).hexdigest()]},
    }
    config = json.dumps(config).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [given.name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(given.archive, "w") as tar:
        for name, body in ((config_name, config), ("layer.tar", content), ("manifest.json", manifest)):
            tar.addfile(entry(name, 0o644, len(body)), io.BytesIO(body))
    print(f"{given.name}: {len(content) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
