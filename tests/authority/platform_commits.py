"""Commits to a platform that people reported as outages, and a cluster with the real Flux that pulls them.

``platform_commits.md`` has what each did to a real cluster, next to what a plan has to say before the merge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.authority.flux_components import NAMESPACE

ROOT = "flux-system"


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
