"""What can be wrong with a source or a Kustomization of Flux: the files of a repository, and the objects.

``tests/localcloud/recorded/flux.json`` has what the real controllers reported of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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


def _plain(text: Any) -> Any:
    for form, instead in _FORMS if isinstance(text, str) else ():
        text = form.sub(instead, text)
    return text
