"""The real Flux controllers report of the objects of ``tests/support/flux_scenarios.py`` what is recorded."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.authority.flux_components import NAMESPACE
from tests.authority.programs import SOURCE
from tests.authority.real_flux import RealFlux, eventually, real_flux
from tests.support import flux_scenarios
from tests.support.flux_scenarios import (
    FILES,
    KUSTOMIZATIONS,
    PIN_REPOSITORY,
    PINNED,
    SOURCES,
    push_by_force,
    write_pins,
)
from tests.support.recorded_answers import FOLDER, recorded

pytestmark = pytest.mark.timeout(600)
_KINDS = {"g": "GitRepository", "k": "Kustomization"}
_REPOSITORY = "acme/fleet"
_QUIET_SECONDS = 10.0


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


def test_the_real_controllers_report_of_pins_what_is_recorded(tmp_path: Path) -> None:
    with real_flux(tmp_path) as flux:
        repository = flux.host.create_repository(PIN_REPOSITORY)
        pins, url = write_pins(repository), flux.host.clone_url(PIN_REPOSITORY)
        for name, ref in pins.refs().items():
            flux.flux_object("GitRepository", name, {"interval": "1h", "url": url, "ref": dict(ref)})

        def told() -> dict[str, Any]:
            return {
                name: pins.plain(flux_scenarios.shown_source(flux.get("GitRepository", name) or {}))
                for name in pins.refs()
            }

        answers = {"first": _settled(told)}
        push_by_force(repository, pins)
        for name in pins.refs():
            flux.request("GitRepository", name, "r1")
        answers["forced"] = _settled(told)
        flux.restart_sources()
        eventually(lambda: told() != answers["forced"])
        answers["lost"] = _settled(told)
    if "RECORD_ANSWERS" in os.environ:
        text = json.dumps({"version": SOURCE.version, **answers}, indent=1, ensure_ascii=False)
        (FOLDER / PINNED).write_text(text + "\n")
    assert {"version": SOURCE.version, **answers} == recorded(PINNED)


def _settled(told: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what is reported once it has not changed for ten seconds."""
    last, since = told(), time.monotonic()
    while time.monotonic() - since < _QUIET_SECONDS:
        time.sleep(0.5)
        now = told()
        if now != last:
            last, since = now, time.monotonic()
    return last
