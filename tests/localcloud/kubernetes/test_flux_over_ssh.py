"""The small Flux reads over SSH, and says of what is wrong with it what the real one said."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from localcloud.git.world.git_commands import run_git
from localcloud.git.world.git_repository import GitRepository
from localcloud.kubernetes.world.writes.patches import MERGE
from tests.support.recorded_answers import recorded
from tests.support.small_flux import SOURCE, FluxCluster, flux_object
from tests.support.sources_over_ssh import OTHER, RECORDED, other_sources, plain, secrets, served

MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: over-ssh, namespace: flux-system}\n"
OF_ALGORITHMS = {"old-server"}
"""The real one names its algorithms, which are those of Go."""


class OverSsh(FluxCluster):
    """A cluster with Flux, and its sources."""

    def add(self, name: str, data: Mapping[str, str], spec: Mapping[str, object]) -> None:
        coded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        metadata = {"name": name, "namespace": "flux-system"}
        self.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": coded})
        whole = {"interval": "1h", "ref": {"branch": "main"}, "secretRef": {"name": name}, **spec}
        given = {key: value for key, value in whole.items() if value}
        self.apply(flux_object(SOURCE, name, given))

    def told(self, name: str) -> str:
        conditions = self.world.get(self.at(*SOURCE, name))["status"]["conditions"]
        (ready,) = (found for found in conditions if found["type"] == "Ready")
        return plain(f"{ready['reason']}: {ready['message']}")


def test_the_small_flux_says_of_ssh_what_the_real_one_said(tmp_path: Path) -> None:
    real = {name: said for name, said in recorded(RECORDED)["answers"].items() if name not in OF_ALGORITHMS}
    cluster = OverSsh()
    cluster.install()
    with GitRepository.create(tmp_path / "acme" / "fleet.git") as repository:
        first = repository.commit({"a.yaml": MAP})
        with served(tmp_path) as server:
            url, port = server.url("acme/fleet"), server.port
            given = secrets(server.known_hosts)
            for name, data in given.items():
                cluster.add(name, data, {"url": url})
            for name, spec in other_sources(url).items():
                cluster.add(name, given["good"], {"url": url, **spec})
            cluster.let_time_pass()
            told = {name: cluster.told(name) for name in real if name != "changed"}
            cluster.sync(path="./", sourceRef={"kind": "GitRepository", "name": "good"})
            cluster.let_time_pass()
            assert cluster.ready()[2] == f"Applied revision: main@sha1:{first}"
            assert "over-ssh" in cluster.maps("flux-system")
        with served(tmp_path, OTHER, port):
            change = {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "r1"}}}
            cluster.world.patch(cluster.at(*SOURCE, "good"), change, MERGE)
            cluster.let_time_pass()
            told["changed"] = cluster.told("good")
    assert told == real


ODD: Mapping[str, tuple[Mapping[str, object], str]] = {
    "short-commit": ({"ref": {"commit": "abc"}}, "object not found"),
    "no-number": ({"url": "ssh://git@127.0.0.1:abc/acme/fleet.git"}, "URLInvalid: failed to parse url"),
    "no-port": ({"url": "ssh://git@127.0.0.1:99999/acme/fleet.git"}, "URLInvalid: failed to parse url"),
    "no-address": ({"url": "ssh://git@[::1/acme/fleet.git"}, "URLInvalid: failed to parse url"),
}


def test_no_source_stops_the_others_and_an_annotated_tag_is_its_commit(tmp_path: Path) -> None:
    cluster = OverSsh()
    cluster.install()
    with GitRepository.create(tmp_path / "acme" / "fleet.git") as repository, served(tmp_path) as server:
        first = repository.commit({"a.yaml": MAP})
        run_git(
            repository.path, "-c", "user.name=a", "-c", "user.email=a", "tag", "-a", "-m", "a", "v1", first
        )
        url, good = server.url("acme/fleet"), secrets(server.known_hosts)["good"]
        for name, (spec, _) in ODD.items():
            cluster.add(name, good, {"url": url, **spec})
        hosts = f"git.example.com ssh-ed25519 AAAA\n{server.known_hosts}"
        cluster.add("broken-host-key", {**good, "known_hosts": hosts}, {"url": url})
        cluster.add("tagged", good, {"url": url, "ref": {"tag": "v1"}})
        cluster.let_time_pass()
        assert cluster.told("tagged") == "Succeeded: stored artifact for revision 'v1@sha1:COMMIT'"
        assert cluster.told("broken-host-key").endswith("knownhosts: a key of it cannot be read")
        for name, (_, said) in ODD.items():
            assert said in cluster.told(name)
