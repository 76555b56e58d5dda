"""What git says of the systems of teams, and the files of the teams, which reach for what is not theirs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

REACHED = "reached"
"""The ConfigMap that a team tries to have applied in the namespace of Flux."""
COMPONENTS = b"""\
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: cluster-reconciler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: kustomize-controller, namespace: flux-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: flux-edit, labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}}
rules: [{apiGroups: [kustomize.toolkit.fluxcd.io], resources: ["*"], verbs: ["*"]}]
"""
"""What the components need besides, where people without all rights have objects of Flux."""


@dataclass(frozen=True)
class DesiredSystem:
    """The manifest of a system, with a namespace of its name; ``invalid``: it has an error.

    ``retained``: Azure manages the namespace, which stays when the system goes.
    """

    name: str
    clusters: frozenset[str]
    invalid: bool = False
    retained: bool = False

    def on(self, clusters: Collection[str]) -> list[str]:
        """Return those of these clusters that the system is on."""
        return sorted(self.clusters & {*clusters})

    def files(self, fleet: str, clusters: Collection[str]) -> dict[str, bytes]:
        """Return the system's manifest, and its team's folder; none without a cluster."""
        names = self.on(clusters)
        if not names:
            return {}
        url = f"https://github.com/example/{fleet}"
        manifest = f"""\
apiVersion: roadstead.dev/v1alpha1
kind: System
metadata: {{name: {self.name}}}
spec:
  {"ownrs" if self.invalid else "owners"}: [{self.name}@example.com]
  clusters: {{names: [{", ".join(names)}]}}
  namespaces: [{self.name}]
{"  managedNamespaces: {deletePolicy: Keep}" if self.retained else ""}
  source: {{repository: "{url}", path: ./teams/{self.name}}}
"""
        own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n"
        reach = f"""\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: reach}}
spec:
  interval: 1m
  path: ./reach
  prune: true
  sourceRef: {{kind: GitRepository, name: {self.name}}}
"""
        beyond = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {REACHED}, namespace: flux-system}}\n"
        return {
            f"systems/{self.name}.yaml": manifest.encode(),
            f"teams/{self.name}/own.yaml": own.encode(),
            f"teams/{self.name}/reach.yaml": reach.encode(),
            "reach/beyond.yaml": beyond.encode(),
        }
