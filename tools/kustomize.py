"""The kustomize of the package: what Go builds of a module of one version, or a program that is given."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

MODULE, VERSION = "sigs.k8s.io/kustomize/kustomize/v5", "v5.8.1"
TOOLCHAIN = "go1.26.8"
"""The Go that builds it, which an older or newer one downloads: each gives other bytes."""
_BUILD = ("install", "-trimpath", "-ldflags=-s -w", f"{MODULE}@{VERSION}")
_PLATFORM = {"GOOS": "linux", "GOARCH": "amd64", "CGO_ENABLED": "0", "GOTOOLCHAIN": TOOLCHAIN}
_BUILT_FROM = re.compile(re.escape(MODULE.encode()) + rb"\t(v[0-9]+\.[0-9]+\.[0-9]+)")
_ELF_64, _AMD64 = b"\x7fELF\x02\x01", b"\x3e\x00"


class NotBrought(Exception):
    """There is no kustomize where one was asked for; the message says why."""


def bring(target: Path, given: str = "") -> None:
    """Put kustomize at a path: the program ``given``, or what Go builds.

    Without both, what is there stays. Raise NotBrought for a program that no function app can run, and where
    Go fails.
    """
    if given:
        _copy(Path(given), target)
    elif shutil.which("go"):
        with tempfile.TemporaryDirectory(prefix="kustomize-") as folder:
            _copy(_built(Path(folder)), target)


def version_of(program: Path) -> str:
    """Return the version of the module that a program was built from, "" where it does not say so."""
    found = _BUILT_FROM.search(program.read_bytes())
    return found[1].decode() if found else ""


def _built(folder: Path) -> Path:
    """Return the program that Go builds in a folder, from modules that it may have already."""
    modules = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True).stdout
    own = {"GOPATH": str(folder), "GOMODCACHE": modules.strip(), "GOFLAGS": ""}
    environment = {name: value for name, value in os.environ.items() if name != "GOBIN"}
    done = subprocess.run(["go", *_BUILD], env={**environment, **own, **_PLATFORM}, check=False)
    found = sorted(folder.rglob("bin/**/kustomize"))  # in a folder of its platform, where that is another one
    if done.returncode or not found:
        raise NotBrought(f"go {' '.join(_BUILD)} failed: see above")
    return found[0]


def _copy(program: Path, target: Path) -> None:
    try:
        content = program.read_bytes()
    except OSError as error:
        raise NotBrought(f"KUSTOMIZE={program}: {error.strerror}") from error
    if not (content.startswith(_ELF_64) and content[18:20] == _AMD64):
        raise NotBrought(f"KUSTOMIZE={program} is no program for Linux on amd64, which function apps run")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(0o755)
