"""Builds with the real kustomize, which kubectl brings along."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from localcloud.common.programs import program
from localcloud.flux.flux_conditions import ObjectNotReady

BUILD_FOLDER = "/tmp/kustomization-1"  # noqa: S108 - as messages of Flux name the folder of a build
_SECONDS = 30


def kustomize_command() -> tuple[str, ...]:
    """Return the command that builds a folder, () when there is none."""
    kustomize, kubectl = shutil.which("kustomize"), program("kubectl")
    if kustomize:
        return (kustomize, "build")
    return (kubectl, "kustomize") if kubectl else ()


def built(files: Mapping[str, bytes], folder: str, command: tuple[str, ...]) -> bytes:
    """Return the YAML that kustomize makes of a folder; raise NotReady (BuildFailed) with its message.

    As in kustomize-controller, a file may be outside the folder, but not outside the repository.
    """
    if not command:
        raise ObjectNotReady(
            "BuildFailed", f"kustomize build failed: the local Flux needs kubectl to build {folder}"
        )
    with tempfile.TemporaryDirectory(prefix="kustomization-") as root:
        for name, content in files.items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        arguments = [*command, "--load-restrictor=LoadRestrictionsNone", str(Path(root, folder))]
        try:
            done = subprocess.run(arguments, capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise ObjectNotReady(
                "BuildFailed", f"kustomize build failed: no end after {_SECONDS} s"
            ) from None
        if done.returncode:
            text = (
                done.stderr.decode(errors="replace").strip().removeprefix("error: ").removeprefix("Error: ")
            )
            raise ObjectNotReady("BuildFailed", f"kustomize build failed: {text.replace(root, BUILD_FOLDER)}")
        return done.stdout
