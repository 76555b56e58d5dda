"""What can be wrong with a source or a Kustomization of Flux: the files of a repository, and the objects.

``tests/localcloud/recorded/flux.json`` has what the real controllers reported of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localcloud.git.world.git_commands import run_git
from localcloud.git.world.git_repository import GitRepository

RECORDED = "flux.json"
"""The recording: ``first`` and ``second`` are what the real controllers reported, by object."""

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: team}\ndata: {colour: blue}\n"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: team}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: a, image: "x:1-missing"}]}
"""
FILES: Mapping[str, str] = {
    "good/ns.yaml": NAMESPACE,
    "good/one.yaml": MAP,
    "broken/bad.yaml": "a: [1\n",
    "nokind/bad.yaml": "hello: world\n",
    "noname/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: team}\n",
    "empty/readme.txt": "x\n",
    "nons/a.yaml": MAP.replace(", namespace: team", ""),
    "gonens/a.yaml": MAP.replace("namespace: team", "namespace: gone"),
    "unknown/a.yaml": "apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: g, namespace: team}\n",
    "invalid/a.yaml": MAP.replace("one", "two"),
    "invalid/b.yaml": MAP.replace("one", "three").replace("colour: blue", "colour: 1"),
    "absent/kustomization.yaml": "resources: [nope.yaml]\n",
    "dup/a.yaml": MAP,
    "dup/b.yaml": MAP,
    "unhealthy/a.yaml": WEB,
    "var/a.yaml": MAP.replace("one", "vars"),
}
SOURCES: Mapping[str, Mapping[str, Any]] = {
    "good": {},
    "branch": {"ref": {"branch": "gone"}},
    "repo": {"url": "https://git.example.org/nothing.git"},
    "nosecret": {"secretRef": {"name": "absent"}},
    "refused": {"secretRef": {"name": "bad"}},
    "suspended": {"suspend": True},
}
KUSTOMIZATIONS: Mapping[str, Mapping[str, Any]] = {
    **{name.split("/")[0]: {} for name in FILES},
    "nowhere": {},
    "waiting": {"sourceRef": {"kind": "GitRepository", "name": "branch"}},
    "nosource": {"sourceRef": {"kind": "GitRepository", "name": "nope"}},
    "dep": {"path": "./good", "dependsOn": [{"name": "nowhere"}]},
    "depabsent": {"path": "./good", "dependsOn": [{"name": "zzz"}]},
    "unhealthy": {"wait": True, "timeout": "10s"},
    "paused": {"path": "./good", "suspend": True},
    "var": {"postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "absent"}]}},
    "healthy": {"path": "./good", "wait": True, "timeout": "20s"},
}

PINNED = "flux_pins.json"
"""The recording of pins: ``first``, ``forced`` after a push by force, ``lost`` after the storage was lost."""
PIN_REPOSITORY = "acme/pins"


@dataclass(frozen=True)
class Pins:
    """The commits of the repository that is pinned."""

    pinned: str
    """On main, before its head."""
    aside: str
    """On the branch ``aside`` alone."""

    def refs(self) -> Mapping[str, Mapping[str, str]]:
        """Return the sources by name, each by its ``spec.ref``."""
        own, tag, other = f"roadstead/pin/{self.pinned}", f"pins/{self.pinned}", f"refs/pins/{self.pinned}"
        main, nothing = {"branch": "main"}, "0" * 40
        return {
            "main": main,
            "branch-commit": {**main, "commit": self.pinned},
            "commit": {"commit": self.pinned},
            "commit-aside": {"commit": self.aside},
            "branch-commit-aside": {**main, "commit": self.aside},
            "branch-commit-none": {**main, "commit": nothing},
            "branch-none-commit": {"branch": "gone", "commit": self.pinned},
            "branch": {"branch": own},
            "tag": {"tag": tag},
            "tag-none": {"tag": "gone"},
            "tag-annotated": {"tag": "annotated"},
            "name-branch": {"name": f"refs/heads/{own}"},
            "name-tag": {"name": f"refs/tags/{tag}"},
            "name-annotated": {"name": "refs/tags/annotated"},
            "name-other": {"name": other},
            "name-none": {"name": "refs/heads/gone"},
            "name-short": {"name": "main"},
            "commit-over-name": {"commit": self.pinned, "name": "refs/heads/gone"},
            "name-over-tag": {"name": f"refs/heads/{own}", "tag": "gone"},
            "tag-over-branch": {"tag": tag, "branch": "gone"},
        }

    def plain(self, told: Any) -> Any:
        """Return what was reported, with names instead of commits."""
        text = json.dumps(told).replace(self.pinned, "PINNED").replace(self.aside, "ASIDE")
        return json.loads(_COMMITS.sub("COMMIT", _URLS.sub("URL", text)))


_COMMITS = re.compile(r"(?!0{40})[0-9a-f]{40}")
_URLS = re.compile(r"https?://[^'\s]+?\.git")


def write_pins(repository: GitRepository) -> Pins:
    """Write the history, and every ref that a source may name."""
    first = repository.commit({"platform/a.yaml": NAMESPACE.encode()}, message="first")
    repository.reset(first, "aside")
    pinned = repository.commit({"platform/b.yaml": MAP.encode()}, message="second")
    repository.commit({"platform/b.yaml": MAP.replace("blue", "red").encode()}, message="third")
    aside = repository.commit({"c.yaml": MAP.encode()}, branch="aside", message="aside")
    for ref in (f"heads/roadstead/pin/{pinned}", f"tags/pins/{pinned}", f"pins/{pinned}"):
        repository.point(f"refs/{ref}", pinned)
    run_git(repository.path, "tag", "-a", "-m", "a note", "annotated", pinned)
    return Pins(pinned, aside)


def push_by_force(repository: GitRepository, pins: Pins) -> None:
    """Take the pinned commit, and that aside, off their branches."""
    repository.reset(f"{pins.pinned}~1")
    repository.commit({"platform/d.yaml": MAP.replace("one", "new").encode()}, message="rewritten")
    repository.reset(f"{pins.aside}~1", "aside")


_FORMS = (
    (re.compile(r"/\S*/kustomization-\d+"), "FOLDER"),
    (re.compile(r"'(?:https?://)\S+?'"), "'URL'"),
    (re.compile(r"@sha1:[0-9a-f]{40}"), "@sha1:COMMIT"),
    (re.compile(r"(authentication required|repository not found)(: .*)?$"), r"\1"),
    (re.compile(r"(after|in) [0-9.]+m?s"), r"\1 SECONDS"),
    (re.compile(r"yaml: line \d+: .*"), "yaml: PROBLEM"),
    (re.compile(r"in object .*"), "in object OBJECT"),
    (re.compile(r"accumulating resources: .*"), "accumulating resources: PROBLEM"),
)


def shown(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a Flux object what does not differ from run to run."""
    status = value.get("status") or {}
    names = ("observedGeneration", "lastAttemptedRevision", "lastAppliedRevision", "lastHandledReconcileAt")
    told = {name: _plain(status[name]) for name in names if status.get(name, -1) != -1}
    conditions = [
        [
            condition["type"],
            condition["status"],
            condition["reason"],
            condition["observedGeneration"],
            _plain(condition["message"]),
        ]
        for condition in status.get("conditions") or ()
    ]
    return {**told, "artifact": "artifact" in status, "conditions": conditions}


def shown_source(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a source its conditions, and the revision of its artifact."""
    status = value.get("status") or {}
    names = ("type", "status", "reason", "message")
    conditions = [[item[name] for name in names] for item in status.get("conditions") or ()]
    return {"revision": (status.get("artifact") or {}).get("revision"), "conditions": conditions}


def _plain(text: Any) -> Any:
    for form, instead in _FORMS if isinstance(text, str) else ():
        text = form.sub(instead, text)
    return text
