"""A platform on a cluster with the real Flux that pulls it, and what becomes of its objects."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from localcloud.kubernetes.world.object_store import At, Object
from shared.masking import cut
from tests.authority.flux_components import NAMESPACE
from tests.authority.platform_commits import ROOT
from tests.authority.real_flux import RealFlux, eventually

_QUIET_SECONDS, _RETRIED_SECONDS = 6.0, 30.0
_WATCHED = (
    *("Namespace", "ConfigMap", "Secret", "Deployment", "StatefulSet", "PersistentVolumeClaim", "Service"),
    *("Ingress", "CustomResourceDefinition", "Kustomization"),
)
_OF_OTHERS = re.compile(rf"Kustomization {NAMESPACE}/{ROOT}$|ConfigMap \S+/kube-root-ca\.crt$")
_MESSAGE = 160
_FORMS = (
    (re.compile(r"/\S*?/kustomization-\d+"), "FOLDER"),
    (re.compile(r"(after|in) [0-9.]+m?s"), r"\1 SECONDS"),
)


class Platform:
    """The platform of one cluster: a repository, and the source and the Kustomization that pull from it."""

    def __init__(self, flux: RealFlux, repository: str) -> None:
        self.flux = flux
        self.repository = flux.host.create_repository(repository)
        self._url = flux.host.clone_url(repository)
        self._there: frozenset[str] = frozenset()
        self._there = frozenset(self.objects())

    def commit(self, files: Mapping[str, str | None]) -> str:
        """Commit changed files to main, and hold the commit with a branch of its own."""
        content = {path: None if text is None else text.encode() for path, text in files.items()}
        commit = self.repository.commit(content)
        self.repository.reset(commit, _pin(commit))
        return commit

    def move(self, commit: str) -> None:
        """Move the pin to a commit, and wait until nothing changes any more."""
        spec = {"interval": "1h", "url": self._url, "ref": {"branch": _pin(commit)}}
        self.flux.flux_object("GitRepository", ROOT, spec)
        revision = f"{_pin(commit)}@sha1:{commit}"
        assert eventually(lambda: self._artifact().get("revision") == revision), commit
        source = {"kind": "GitRepository", "name": ROOT}
        root = {"interval": "10m", "path": "./platform", "prune": True, "retryInterval": "20s"}
        self.flux.flux_object("Kustomization", ROOT, {**root, "sourceRef": source})
        assert eventually(lambda: self._status("Kustomization").get("lastAttemptedRevision") == revision)
        self.settle()

    def settle(self) -> None:
        """Wait until every Kustomization has said what became of its revision, and nothing changes any more.

        A Kustomization that is not ready is tried again every twenty seconds, which may change more.
        """
        since, deadline = time.monotonic(), time.monotonic() + 180
        objects, told = self.objects(), list[str]()
        while time.monotonic() < deadline:
            time.sleep(0.5)
            self._bind_claims()
            before = objects, told
            objects, now = self.objects(), [*self.kustomizations({}).values()]
            busy = any("Unknown" in text for text in now)
            told = told if busy else now
            if (objects, told) != before:
                since = time.monotonic()
            quiet = _QUIET_SECONDS if all(text.endswith("Ready") for text in told) else _RETRIED_SECONDS
            if told and not busy and time.monotonic() - since >= quiet:
                return

    def objects(self) -> dict[str, tuple[str, str]]:
        """Return what the platform has in the cluster, each with its uid and a digest of what it is."""
        found = {}
        for kind in _WATCHED:
            for value in self.flux.world.list(self.flux.kinds[kind])[0]:
                name = f"{kind} {_named(value)}"
                if name not in self._there and not _OF_OTHERS.match(name):
                    found[name] = value["metadata"]["uid"], _digest(value)
        return found

    def kustomizations(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return of each Kustomization the revision that it applied, by ``names``, and its readiness."""
        found = {}
        for value in self.flux.world.list(self.flux.kinds["Kustomization"], NAMESPACE)[0]:
            status = value.get("status") or {}
            applied = names.get(str(status.get("lastAppliedRevision", "")).rpartition(":")[2], "nothing")
            found[value["metadata"]["name"]] = f"has {applied}: {_readiness(status)}"
        return found

    def remove(self) -> None:
        """Delete the Kustomizations with all that they applied, and the source.

        One that is suspended leaves its objects behind, and the one above it may suspend it again before it
        is deleted: what is left after all of them is deleted by itself.
        """
        for name in self._kustomizations():
            metadata = {"name": name, "namespace": NAMESPACE}
            resumed = {"kind": "Kustomization", "metadata": metadata, "spec": {"suspend": False}}
            self.flux.apply(resumed, manager="resumed")
        assert eventually(self._is_removed), self.objects()
        self.flux.delete("GitRepository", ROOT)

    def _is_removed(self) -> bool:
        """Delete what is there, and the root first, which would apply the others again."""
        names = self._kustomizations()
        for name in sorted(names, key=ROOT.__eq__, reverse=True):
            self.flux.delete("Kustomization", name)
        left = () if names else self.objects()
        for found in left:
            kind, _, named = found.partition(" ")
            namespace, _, name = named.rpartition("/")
            self.flux.delete(kind, name, namespace)
        return not names and not left

    def _kustomizations(self) -> list[str]:
        found = self.flux.world.list(self.flux.kinds["Kustomization"], NAMESPACE)[0]
        return [value["metadata"]["name"] for value in found]

    def fetched(self) -> str:
        """Return when the source was last stored, "" while it is not."""
        return str(self._artifact().get("lastUpdateTime", ""))

    def _artifact(self) -> Mapping[str, Any]:
        return self._status("GitRepository").get("artifact") or {}

    def _status(self, kind: str) -> Mapping[str, Any]:
        return (self.flux.get(kind, ROOT) or {}).get("status") or {}

    def _bind_claims(self) -> None:
        """Give claims a volume: nobody provisions here."""
        kind = self.flux.kinds["PersistentVolumeClaim"]
        for value in self.flux.world.list(kind)[0]:
            if (value.get("status") or {}).get("phase") != "Bound":
                at = At(kind, value["metadata"]["name"], value["metadata"]["namespace"])
                self.flux.world.set_status(at, {"phase": "Bound"}, manager="binder")


def difference(before: Mapping[str, tuple[str, str]], after: Mapping[str, tuple[str, str]]) -> Iterable[str]:
    """Yield what became of each object that changed: "-", "+", "~", and "-/+" for one created again."""
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if new is None:
            yield f"- {name}"
        elif old is None:
            yield f"+ {name}"
        elif old[0] != new[0]:
            yield f"-/+ {name}"
        elif old[1] != new[1]:
            yield f"~ {name}"


def plain(text: str) -> str:
    """Return the beginning of a message, without what differs from run to run."""
    for form, instead in _FORMS:
        text = form.sub(instead, text)
    return cut(" ".join(text.split()), _MESSAGE, "...")


def _pin(commit: str) -> str:
    return f"roadstead/pin/example/{commit}"


def _named(value: Object) -> str:
    metadata = value["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _digest(value: Object) -> str:
    content = {key: part for key, part in value.items() if key not in ("metadata", "status")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _readiness(status: Mapping[str, Any]) -> str:
    for item in status.get("conditions") or ():
        if item["type"] == "Ready":
            if item["status"] == "True":
                return "Ready"
            return f"{item['status']} {item['reason']}: {plain(item['message'])}"
    return "Unknown"
