"""The real Flux controllers report of the objects of ``tests/support/flux_scenarios.py`` what is recorded."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.authority.flux_components import NAMESPACE
from tests.authority.real_flux import RealFlux, eventually, real_flux
from tests.support import flux_scenarios
from tests.support.flux_scenarios import FILES, KUSTOMIZATIONS, SOURCES
from tests.support.recorded_answers import recorded

pytestmark = pytest.mark.timeout(600)
_KINDS = {"g": "GitRepository", "k": "Kustomization"}
_REPOSITORY = "acme/fleet"


@pytest.fixture
def flux(tmp_path: Path) -> Iterator[RealFlux]:
    with real_flux(tmp_path) as running:
        running.host.create_repository(_REPOSITORY)
        commit(tmp_path / "copy", running.host.clone_url(_REPOSITORY))
        yield running


def source(flux: RealFlux, name: str, spec: Mapping[str, Any]) -> None:
    url = flux.host.clone_url(_REPOSITORY)
    whole = {"interval": "1m", "url": url, "ref": {"branch": "main"}, **spec}
    whole["url"] = whole["url"].replace("https://git.example.org/nothing", f"{url}-nothing")
    flux.flux_object("GitRepository", name, whole)


def kustomization(flux: RealFlux, name: str, spec: Mapping[str, Any]) -> None:
    ref = {"kind": "GitRepository", "name": "good"}
    whole = {"interval": "10m", "path": f"./{name}", "prune": True, "sourceRef": ref, **spec}
    flux.flux_object("Kustomization", name, whole)


def reported(flux: RealFlux, names: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name in names:
        kind, _, plain = name.partition(" ")
        found[name] = flux_scenarios.shown(flux.get(_KINDS[kind], plain) or {})
    return found


def commit(folder: Path, url: str) -> None:
    """Push the files to the branch main."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    people = [f"GIT_{role}_{field}" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")]
    environment = {**os.environ, **dict.fromkeys(people, "test@example.org")}
    for command in ("init -q -b main", "add -A", "commit -qm files", f"push -q {url} main"):
        subprocess.run(["git", *command.split()], cwd=folder, env=environment, check=True)


def test_the_real_controllers_report_what_is_recorded(flux: RealFlux) -> None:
    real = recorded(flux_scenarios.RECORDED)
    data = {"username": "x", "password": "wrong"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad", "namespace": NAMESPACE}}
    flux.apply({**secret, "stringData": data})
    for name, spec in SOURCES.items():
        source(flux, name, spec)
    others = dict(KUSTOMIZATIONS)
    unhealthy = others.pop("unhealthy")
    for name, spec in others.items():
        kustomization(flux, name, spec)
    eventually(lambda: reported(flux, real["first"]) == real["first"])
    assert reported(flux, real["first"]) == real["first"]
    kustomization(flux, "unhealthy", unhealthy)  # in the namespace that there is now
    source(flux, "good", {"ref": {"branch": "gone"}})
    kustomization(flux, "good", {"path": "./nowhere"})
    for name in ("g branch", "k broken", "k paused", "g suspended"):
        kind, _, plain = name.partition(" ")
        flux.request(_KINDS[kind], plain, "r1")
    eventually(lambda: reported(flux, real["second"]) == real["second"])
    assert reported(flux, real["second"]) == real["second"]
