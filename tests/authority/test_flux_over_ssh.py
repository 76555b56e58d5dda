"""The real Flux over SSH: a fleet from push to Ready, and what the source-controller says when SSH fails.

The fleet has what docs/how-to/connect-git.md says: its address, a bootstrap secret with the key and
the known hosts. The messages are recorded in ``tests/localcloud/recorded``.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from localcloud.git.wire.ssh_server import GitOverSsh, known_hosts, public_key
from tests.authority.flux_components import NAMESPACE
from tests.authority.programs import SOURCE
from tests.authority.real_fleet import READY_SECONDS, RealFleet, real_fleet
from tests.authority.real_flux import RealFlux, eventually, real_flux
from tests.support.recorded_answers import record, recorded
from tests.support.sources_over_ssh import (
    HOST_KEY,
    KEY,
    OTHER,
    RECORDED,
    other_sources,
    plain,
    secrets,
    served,
)

pytestmark = pytest.mark.timeout(1200)
SECRET = """\
  bootstrapSecrets:
    - name: fleet-key
      vault: platform
      keys: {identity: fleet-ssh-key, known_hosts: fleet-known-hosts}
"""
MORE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: platform}\n"


def message(flux: RealFlux, name: str) -> str:
    """Return the reason and the message of a source, "" while Flux works on its newest version."""
    live = flux.get("GitRepository", name) or {}
    conditions = {found["type"]: found for found in (live.get("status") or {}).get("conditions") or ()}
    ready = conditions.get("Ready", {"status": "Unknown"})
    if ready["status"] == "Unknown" or ready["observedGeneration"] != live["metadata"]["generation"]:
        return ""
    return f"{ready['reason']}: {ready['message']}"


def test_the_real_source_controller_reads_over_ssh_and_says_why_not(tmp_path: Path) -> None:
    with real_flux(tmp_path) as flux:
        flux.host.create_repository("acme/fleet").commit({"a.yaml": b"a: 1\n"})
        with served(tmp_path / "host") as server:
            url, port = server.url("acme/fleet"), server.port
            names = _sources(flux, url, secrets(server.known_hosts))
            more = other_sources(url)
            for name, spec in more.items():
                _source(flux, name, {"url": url, "secretRef": {"name": "good"}, **spec})
            names = [*names, *more]
            told = _told(flux, names)
        with served(tmp_path / "host", OTHER, port):
            flux.request("GitRepository", "good", "changed")
            eventually(lambda: "Succeeded" not in message(flux, "good"))
            told["changed"] = _told(flux, ["good"])["good"]
        with GitOverSsh(tmp_path / "host", HOST_KEY, public_key(KEY), old=True) as old:
            secret = {"old-server": {"identity": KEY, "known_hosts": old.known_hosts}}
            _sources(flux, old.url("acme/fleet"), secret)
            told |= _told(flux, ["old-server"])
        kept = (flux.get("GitRepository", "good") or {})["status"].get("artifact")
    if "RECORD_ANSWERS" in os.environ:
        record(RECORDED, SOURCE.version, told)
    assert {"version": SOURCE.version, "answers": told} == recorded(RECORDED)
    assert kept


def _told(flux: RealFlux, names: Sequence[str]) -> dict[str, str]:
    """Return the first message of each source; Flux takes it away while it tries again."""
    told: dict[str, str] = {}

    def told_by_all() -> bool:
        told.update({name: text for name in names if name not in told and (text := message(flux, name))})
        return len(told) == len(names)

    eventually(told_by_all)
    return {name: plain(told.get(name, "")) for name in names}


def _sources(flux: RealFlux, url: str, data: Mapping[str, Mapping[str, str]]) -> list[str]:
    for name, strings in data.items():
        metadata = {"name": name, "namespace": NAMESPACE}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        flux.apply({**secret, "stringData": strings})
        _source(flux, name, {"url": url, "secretRef": {"name": name}})
    return [*data]


def _source(flux: RealFlux, name: str, spec: Mapping[str, object]) -> None:
    whole = {"interval": "1h", "ref": {"branch": "main"}, **spec}
    flux.flux_object("GitRepository", name, {key: value for key, value in whole.items() if value})


def test_a_fleet_over_ssh_becomes_ready_and_flux_takes_a_new_host_key_from_the_vault(tmp_path: Path) -> None:
    root, port = tmp_path / "cloud" / "repositories", _free_port()
    old, new = known_hosts(HOST_KEY, port), known_hosts(OTHER, port)
    settings = {
        "GIT_HOST": "git",
        "GIT_URL": f"ssh://git@127.0.0.1:{port}/example/fleet.git",
        "GIT_SSH_KEY": KEY,
        "GIT_KNOWN_HOSTS": f"{old}\n{new}",
    }
    with real_fleet(tmp_path, settings) as fleet:
        operator = fleet.operator
        _in_vault(fleet, "fleet-ssh-key", KEY)
        _in_vault(fleet, "fleet-known-hosts", old)
        files = fleet.files(flux="    secretRef: {name: fleet-key}\n", extra=SECRET)

        def applied(commit: str) -> bool:
            return operator.phases() == {"one": "Ready"} and commit in fleet.revision()

        with served(root, port=port):
            first = operator.push(files)
            operator.wait(lambda: applied(first), "it is Ready", seconds=READY_SECONDS)
        with served(root, OTHER, port):
            second = operator.push(files | {"platform/more.yaml": MORE})
            operator.wait(lambda: "key mismatch" in _shown(fleet), "it is said", seconds=READY_SECONDS)
            assert "known_hosts" in _shown(fleet)
            _in_vault(fleet, "fleet-known-hosts", new)
            operator.wait(lambda: applied(second), "Flux reads again", seconds=READY_SECONDS)
        assert KEY.splitlines()[1] not in _shown(fleet)


def _shown(fleet: RealFleet) -> str:
    return json.dumps([fleet.operator.api.get(f"clusters/one{path}") for path in ("", "/why", "/events")])


def _in_vault(fleet: RealFleet, name: str, value: str) -> None:
    """Set a secret of the vault as its owner does."""
    trust = ssl.create_default_context(cafile=str(fleet.state / "ca.pem"))
    url = f"https://127.0.0.1:{fleet.operator.cloud.ports['vault']}/_local/secrets/{name}"
    httpx.put(url, json={"value": value}, verify=trust, trust_env=False).raise_for_status()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
