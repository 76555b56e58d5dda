"""Renders charts with the real ``helm``, and keeps releases where Helm keeps them."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from localcloud.common.programs import program
from localcloud.flux.flux_conditions import ObjectNotReady

_SECONDS = 60
_HOOK = "helm.sh/hook"


@dataclass(frozen=True)
class Chart:
    """The files of a chart, and what its Chart.yaml says; ``version`` may be more exact than there."""

    name: str
    version: str
    app_version: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Release:
    """A release: its name and namespace, and the number of its revision."""

    name: str
    namespace: str
    revision: int

    @property
    def secret(self) -> str:
        """The name of the Secret that Helm keeps it in."""
        return f"sh.helm.release.v1.{self.name}.v{self.revision}"


def chart_of(files: Mapping[str, bytes], folder: str, *, revision: str = "") -> Chart:
    """Return the chart in a folder; raise NotReady without one. ``revision`` goes into the version."""
    prefix = f"{folder.strip('./')}/"
    inside = {name.removeprefix(prefix): data for name, data in files.items() if name.startswith(prefix)}
    try:
        about = yaml.safe_load(inside["Chart.yaml"])
        name, version = str(about["name"]), str(about["version"])
    except KeyError:
        text = f"chart '{folder}': no Chart.yaml with a name and a version"
        raise ObjectNotReady("InvalidChartReference", f"invalid chart reference: {text}") from None
    mark = f"+{revision[:12]}" if revision else ""
    return Chart(name, version + mark, str(about.get("appVersion", "")), inside)


def rendered(chart: Chart, release: Release, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects that ``helm template`` makes; raise NotReady with Helm's message, or for a hook."""
    command = program("helm")
    if command is None:
        raise ObjectNotReady("InstallFailed", "the local Flux needs helm to render a chart")
    with tempfile.TemporaryDirectory(prefix="chart-") as root:
        for name, content in chart.files.items():
            path = Path(root, chart.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        arguments = [command, "template", release.name, chart.name, "--namespace", release.namespace]
        arguments += ["--include-crds", "--skip-tests", "--values", "-"]
        if release.revision > 1:
            arguments.append("--is-upgrade")
        try:
            done = subprocess.run(
                arguments,
                cwd=root,
                input=json.dumps(values).encode(),
                env={"HOME": root, "PATH": os.defpath},
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ObjectNotReady("InstallFailed", f"no end of helm after {_SECONDS} s") from None
    if done.returncode:
        raise ObjectNotReady(
            "InstallFailed", done.stderr.decode(errors="replace").strip().removeprefix("Error: ")
        )
    objects = [item for item in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if item]
    for item in objects:
        if _HOOK in (item["metadata"].get("annotations") or {}):
            named = f"{item['kind']}/{item['metadata']['name']}"
            raise ObjectNotReady("InstallFailed", f"the local Flux runs no hooks, and the chart has {named}")
    return objects


def release_secret(release: Release, chart: Chart, status: str, objects: Sequence[Any]) -> dict[str, Any]:
    """Return the Secret of a release in Helm's encoding (``helm.sh/helm``, ``pkg/storage/driver``)."""
    content = {
        "name": release.name,
        "namespace": release.namespace,
        "version": release.revision,
        "info": {"status": status},
        "chart": {"metadata": {"name": chart.name, "version": chart.version}},
        "manifest": yaml.dump_all(objects, explicit_start=True),
    }
    packed = base64.b64encode(gzip.compress(json.dumps(content).encode(), mtime=0))
    labels = {"name": release.name, "owner": "helm", "status": status, "version": str(release.revision)}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {"name": release.secret, "namespace": release.namespace, "labels": labels},
        "data": {"release": base64.b64encode(packed).decode()},
    }


def manifest_of(secret: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of a release from its Secret."""
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    content = json.loads(gzip.decompress(packed))
    return list(yaml.safe_load_all(content["manifest"]))
