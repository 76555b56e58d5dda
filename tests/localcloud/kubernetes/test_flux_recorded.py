"""The small Flux reports of faulty sources and Kustomizations what the real controllers reported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localcloud.flux.flux_controllers import GitRef, SourceRevision
from localcloud.flux.sources.git_source import commit_of
from localcloud.git.world.git_repository import GitRepository
from localcloud.kubernetes.world.writes.patches import MERGE
from tests.support import flux_scenarios
from tests.support.flux_scenarios import FILES, KUSTOMIZATIONS, SOURCES, Pins, push_by_force, write_pins
from tests.support.recorded_answers import recorded
from tests.support.small_flux import KUSTOMIZATION, SOURCE, URL, FluxCluster, flux_object, git_secret

KINDS = {"g": SOURCE, "k": KUSTOMIZATION}


class Faulty(FluxCluster):
    """A cluster with Flux, and everything that can be wrong."""

    def _read(self, url: str, ref: GitRef) -> SourceRevision | None:
        found = super()._read(url, ref)
        if found is None:
            return None
        return SourceRevision(found.revision, found.files, lambda _user, password: password in ("", "token"))

    def start(self) -> None:
        self.world.missing_images.add("x:1-missing")
        self.install()
        self.apply(git_secret("bad", "wrong"))
        for name, spec in SOURCES.items():
            self.source(name, spec)
        for name, spec in KUSTOMIZATIONS.items():
            self.kustomization(name, spec)

    def source(self, name: str, spec: Mapping[str, Any]) -> None:  # type: ignore[override]
        whole = {"interval": "1m", "url": URL, "ref": {"branch": "main"}, **spec}
        self.apply(flux_object(SOURCE, name, whole))

    def kustomization(self, name: str, spec: Mapping[str, Any]) -> None:
        ref = {"kind": "GitRepository", "name": "good"}
        whole = {"interval": "10m", "path": f"./{name}", "prune": True, "sourceRef": ref, **spec}
        self.apply(flux_object(KUSTOMIZATION, name, whole))

    def request(self, name: str) -> None:
        kind, _, plain = name.partition(" ")
        change = {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "r1"}}}
        self.world.patch(self.at(*KINDS[kind], plain), change, MERGE)

    def reported(self, names: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name in names:
            kind, _, plain = name.partition(" ")
            found[name] = flux_scenarios.shown(self.world.get(self.at(*KINDS[kind], plain)))
        return found


def test_the_small_flux_reports_what_the_real_one_reported() -> None:
    real = recorded(flux_scenarios.RECORDED)
    cluster = Faulty({name: text.encode() for name, text in FILES.items()})
    cluster.start()
    cluster.let_time_pass()
    assert cluster.reported(real["first"]) == real["first"]
    cluster.source("good", {"ref": {"branch": "gone"}})
    cluster.kustomization("good", {"path": "./nowhere"})
    for name in ("g branch", "k broken", "k paused", "g suspended"):
        cluster.request(name)
    cluster.let_time_pass(40)
    assert cluster.reported(real["second"]) == real["second"]
    assert cluster.maps() == ["one"], "nothing of a Kustomization with a refused object is applied"


class Pinned(FluxCluster):
    """A cluster with Flux, and a repository on disk."""

    repository: GitRepository

    def _read(self, url: str, ref: GitRef) -> SourceRevision | None:
        return SourceRevision(commit_of(self.repository, ref), dict) if url == URL else None

    def reported(self, pins: Pins) -> dict[str, Any]:
        found = {name: self.world.get(self.at(*SOURCE, name)) for name in pins.refs()}
        return {name: pins.plain(flux_scenarios.shown_source(value)) for name, value in found.items()}

    def scale(self, replicas: int) -> None:
        at = self.at("apps/v1", "Deployment", "source-controller")
        self.world.patch(at, {"spec": {"replicas": replicas}}, MERGE)
        self.let_time_pass()


def test_the_small_flux_reports_of_pins_what_the_real_one_reported(tmp_path: Path) -> None:
    real = recorded(flux_scenarios.PINNED)
    with GitRepository.create(tmp_path / "pins.git") as repository:
        cluster, pins = Pinned(), write_pins(repository)
        cluster.repository = repository
        cluster.install()
        for name, ref in pins.refs().items():
            cluster.apply(flux_object(SOURCE, name, {"interval": "1h", "url": URL, "ref": ref}))
        cluster.let_time_pass()
        assert cluster.reported(pins) == real["first"]
        push_by_force(repository, pins)
        for name in pins.refs():
            change = {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "r1"}}}
            cluster.world.patch(cluster.at(*SOURCE, name), change, MERGE)
        cluster.let_time_pass()
        assert cluster.reported(pins) == real["forced"]
        cluster.scale(0)
        cluster.scale(1)
        assert cluster.reported(pins) == real["lost"]
