"""Commits to a platform that people reported as outages, and a cluster with the real Flux that pulls them.

``platform_commits.md`` has what each did to a real cluster, next to what a plan has to say before the merge.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.kubernetes.world.object_store import At, Object
from shared.masking import cut
from tests.authority.flux_components import NAMESPACE
from tests.authority.real_flux import RealFlux, eventually

ROOT = "flux-system"
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


@dataclass(frozen=True)
class PlatformCommit:
    """A commit: the tree before, and the files that it writes, None for one that it removes.

    ``reported`` names who met it, ``plan`` is what is said before the merge. ``facts`` are those of the
    cluster. ``earlier`` are files of a commit before the tree. ``given`` is applied to the cluster by others.
    """

    name: str
    reported: str
    plan: str
    before: Mapping[str, str]
    changes: Mapping[str, str | None]
    facts: Mapping[str, str] = field(default_factory=lambda: {"cluster_name": "one"})
    earlier: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] | None = None


def deployment(name: str, namespace: str, image: str = "3.10") -> str:
    """Return the manifest of a Deployment with one pod."""
    labels = f"{{app: {name}}}"
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec:\n  replicas: 1\n  selector: {{matchLabels: {labels}}}\n"
        f"  template:\n    metadata: {{labels: {labels}}}\n"
        f'    spec: {{containers: [{{name: {name}, image: "registry.k8s.io/pause:{image}"}}]}}\n'
    )


def layer(name: str, path: str = "", **more: object) -> str:
    """Return the Kustomization of a layer."""
    spec = {
        **{"interval": "10m", "retryInterval": "20s", "serviceAccountName": "kustomize-controller"},
        **{"path": f"./platform/layers/{path or name}", "prune": True, "wait": True, "timeout": "20s"},
        **{"sourceRef": {"kind": "GitRepository", "name": ROOT}, **more},
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    api = "kustomize.toolkit.fluxcd.io/v1"
    return json.dumps({"apiVersion": api, "kind": "Kustomization", "metadata": metadata, "spec": spec})


def namespace(name: str) -> str:
    """Return the manifest of a namespace."""
    return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def listed(*resources: str) -> str:
    """Return a kustomization file."""
    return json.dumps({"resources": list(resources)})


NAMESPACES = """\
apiVersion: v1
kind: Namespace
metadata: {name: platform}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: platform-info, namespace: platform}
data: {owner: platform-team}
"""
_CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: samples, namespace: monitoring}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
"""
_STORE = """\
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: store
  namespace: platform
  annotations: {kustomize.toolkit.fluxcd.io/force: enabled}
spec:
  serviceName: store
  replicas: 0
  selector: {matchLabels: {app: store}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}
  template:
    metadata: {labels: {app: store}}
    spec: {containers: [{name: store, image: "registry.k8s.io/pause:3.10"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
"""
_BACKUPS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.data.example.com}
spec:
  group: data.example.com
  names: {kind: Backup, listKind: BackupList, plural: backups, singular: backup}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
_BACKUP = {
    "apiVersion": "data.example.com/v1",
    "kind": "Backup",
    "metadata": {"name": "nightly", "namespace": "default"},
}
_SCRIPT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: rotate, namespace: platform}
data:
  cluster: ${cluster_name}
  rotate.sh: |
    target="${backup_target}/$(date +%F)"
    for file in "$HOME"/*.db; do cp "$file" "${target}/${file##*/}"; done
    echo "the last $${keep:-7} days"
"""
_INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: status
  namespace: platform
  annotations: {example.com/zone: "${cluster_label_zone:=none}"}
spec:
  rules:
  - host: status.${cluster_name}.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: status, port: {number: 80}}}}
"""
_SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: mail-relay, namespace: platform}
stringData: {password: correct-horse-example}
data: {fallback: YmF0dGVyeS1zdGFwbGUtZXhhbXBsZQ==}
"""
_SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: gateway, namespace: platform}
spec: {selector: {app: gateway}, ports: [{name: http, port: 80, targetPort: 8080}]}
"""
_MONITORING = {
    "platform/kustomization.yaml": listed("namespaces.yaml", "monitoring.yaml"),
    "platform/namespaces.yaml": NAMESPACES,
    "platform/monitoring.yaml": layer("monitoring"),
    "platform/layers/monitoring/agent.yaml": deployment("agent", "monitoring"),
    "platform/layers/monitoring/claim.yaml": _CLAIM,
    "platform/layers/monitoring/namespace.yaml": namespace("monitoring"),
}
_EDGE = {
    "platform/kustomization.yaml": listed("namespaces.yaml", "core.yaml", "edge.yaml"),
    "platform/namespaces.yaml": NAMESPACES,
    "platform/core.yaml": layer("core"),
    "platform/edge.yaml": layer("edge"),
    "platform/layers/core/gateway.yaml": deployment("gateway", "platform"),
    "platform/layers/edge/proxy.yaml": deployment("proxy", "platform"),
}
_FACTS = {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-facts"}]}
_STATUS = {
    "platform/kustomization.yaml": listed("namespaces.yaml", "status.yaml"),
    "platform/namespaces.yaml": NAMESPACES,
    "platform/status.yaml": layer("status", postBuild=_FACTS),
    "platform/layers/status/ingress.yaml": _INGRESS,
}
_TIER = {"platform/layers/status/ingress.yaml": _INGRESS.replace("cluster_name", "cluster_label_tier")}
_LIST = {"platform/kustomization.yaml": listed("namespaces.yaml"), "platform/namespaces.yaml": NAMESPACES}
_MOVED = {path: None for path in _MONITORING if "/layers/" in path} | {
    path.replace("/monitoring/", "/observability/"): text
    for path, text in _MONITORING.items()
    if "/layers/" in path
}

COMMITS = [
    PlatformCommit(
        "kustomization renamed",
        "fluxcd/flux2#3316, #2421",
        "needs approval: - Kustomization monitoring with Namespace, claim and Deployment, + observability",
        _MONITORING,
        {"platform/monitoring.yaml": layer("observability", "monitoring")},
    ),
    PlatformCommit(
        "path gone",
        "fluxcd/flux2#1303",
        "refused at `spec.path`; never a removal",
        _MONITORING,
        _MOVED,
    ),
    PlatformCommit(
        "definition removed",
        "istio/istio#19815, fluxcd/kustomize-controller#90",
        "needs approval: - CustomResourceDefinition, and every Backup of the clusters with it",
        {
            **_LIST,
            "platform/kustomization.yaml": listed("namespaces.yaml", "crds/backups.yaml"),
            "platform/crds/backups.yaml": _BACKUPS,
        },
        {"platform/kustomization.yaml": listed("namespaces.yaml"), "platform/crds/backups.yaml": None},
        given=_BACKUP,
    ),
    PlatformCommit(
        "two owners",
        "fluxcd/kustomize-controller#732",
        "refused: Deployment platform/gateway is in both layers",
        _EDGE,
        {"platform/layers/edge/gateway.yaml": deployment("gateway", "platform", "3.9")},
    ),
    PlatformCommit(
        "forced StatefulSet",
        "devantler-tech/platform#2159, fluxcd/flux2#4392",
        "needs approval, as a removal: deleted and created again, with its claims",
        {
            **_LIST,
            "platform/kustomization.yaml": listed("namespaces.yaml", "store.yaml"),
            "platform/store.yaml": _STORE,
        },
        {"platform/store.yaml": _STORE.replace("10Gi", "20Gi")},
    ),
    PlatformCommit(
        "dollars in a script",
        "fluxcd/kustomize-controller#253, rwlove/home-ops#11150",
        "refused: `backup_target`, `target` and `file` are no facts",
        {
            "platform/kustomization.yaml": listed("namespaces.yaml", "jobs.yaml"),
            "platform/namespaces.yaml": NAMESPACES,
            "platform/jobs.yaml": layer("jobs", postBuild=_FACTS),
            "platform/layers/jobs/runner.yaml": deployment("runner", "platform"),
        },
        {"platform/layers/jobs/rotate.yaml": _SCRIPT},
    ),
    PlatformCommit(
        "variable without a value",
        "fluxcd/kustomize-controller#290",
        "refused for this cluster: `cluster_label_tier` has no value",
        _STATUS,
        _TIER,
    ),
    PlatformCommit(
        "variable with a value",
        "the same commit, on another cluster",
        "~ Ingress platform/status",
        _STATUS,
        _TIER,
        facts={"cluster_name": "one", "cluster_label_tier": "gold"},
    ),
    PlatformCommit(
        "case of a file name",
        "fluxcd/flux2#4407",
        "refused at `platform/Kustomization.yaml`",
        {
            **_LIST,
            "platform/examples.yaml": namespace("do-not-apply"),
        },
        {"platform/kustomization.yaml": None, "platform/Kustomization.yaml": listed("namespaces.yaml")},
    ),
    PlatformCommit(
        "values among manifests",
        "fluxcd/flux2#5313, #5232",
        "refused at `platform/gateway-values.yaml`: no Kubernetes object",
        {"platform/namespaces.yaml": NAMESPACES},
        {"platform/gateway-values.yaml": "replicaCount: 3\nservice: {type: ClusterIP, port: 8080}\n"},
    ),
    PlatformCommit(
        "cycle in dependsOn",
        "fluxcd/kustomize-controller#1712",
        "refused: core waits for edge, and edge for core",
        {**_EDGE, "platform/edge.yaml": layer("edge", dependsOn=[{"name": "core"}])},
        {"platform/core.yaml": layer("core", dependsOn=[{"name": "edge"}])},
    ),
    PlatformCommit(
        "Secret in plain text",
        "goauthentik/helm#217",
        "refused, both fields; no value is printed",
        _LIST,
        {
            "platform/kustomization.yaml": listed("namespaces.yaml", "mail-relay.yaml"),
            "platform/mail-relay.yaml": _SECRET,
        },
    ),
    PlatformCommit(
        "below a suspended Kustomization",
        "fluxcd/flux2#2379",
        "planned, with a note: the change of Deployment monitoring/agent reaches no cluster",
        {**_MONITORING, "platform/monitoring.yaml": layer("monitoring", suspend=True)},
        {"platform/layers/monitoring/agent.yaml": deployment("agent", "monitoring", "3.9")},
        earlier=_MONITORING,
    ),
    PlatformCommit(
        "refactoring",
        "fluxcd/kustomize-controller#732",
        "no change of any object, nothing to approve",
        {
            **_LIST,
            "platform/kustomization.yaml": listed("namespaces.yaml", "gateway.yaml"),
            "platform/gateway.yaml": f"{deployment('gateway', 'platform')}---\n{_SERVICE}",
        },
        {
            "platform/gateway.yaml": None,
            "platform/namespaces.yaml": None,
            "platform/kustomization.yaml": listed("gateway", "info.yaml", "namespace.yaml"),
            "platform/gateway/kustomization.yaml": listed("deployment.yaml", "service.yaml"),
            "platform/gateway/deployment.yaml": deployment("gateway", "platform"),
            "platform/gateway/service.yaml": _SERVICE,
            "platform/info.yaml": NAMESPACES.partition("---\n")[2].replace("owner:", "'owner':"),
            "platform/namespace.yaml": f"# The namespace of the team.\n{namespace('platform')}\n",
        },
    ),
]


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
        """Delete the Kustomizations with all that they applied, and the source."""
        kinds = self.flux.kinds["Kustomization"]
        names = [value["metadata"]["name"] for value in self.flux.world.list(kinds, NAMESPACE)[0]]
        for name in names:  # one that is suspended leaves its objects behind
            metadata = {"name": name, "namespace": NAMESPACE}
            resumed = {"kind": "Kustomization", "metadata": metadata, "spec": {"suspend": False}}
            self.flux.apply(resumed, manager="resumed")
        for name in sorted(names, key=ROOT.__eq__, reverse=True):  # it would apply the others again
            self.flux.delete("Kustomization", name)
        assert eventually(lambda: not self.objects()), self.objects()
        self.flux.delete("GitRepository", ROOT)

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
    return f"roadstead/pin/{commit}"


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
