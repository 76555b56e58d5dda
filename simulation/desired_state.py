"""What people want of their fleets, as values, and the files of the repository that say so.

Small on purpose: few fields, few objects of Flux. What can be asked for is in these classes; how a fleet
changes from one commit to the next is in ``people``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
GROUPS = {"d": "rg-c"}
"""The cluster that lives in another one's resource group."""


@dataclass(frozen=True)
class Pool:
    """A node pool of a manifest."""

    name: str
    count: int = 1
    size: str = "Standard_D4s_v5"
    label: str = ""
    mode: str = "User"


SYSTEM = Pool("system", mode="System")


@dataclass(frozen=True)
class Wish:
    """A cluster's manifest; ``wrong``: with a mistake in it, ``suspended``: until when, as git says it."""

    name: str
    pools: tuple[Pool, ...] = (SYSTEM,)
    version: str = "1.33"
    tag: str = ""
    protected: bool = False
    wrong: bool = False
    suspended: str = ""
    adopt: str = ""

    def with_pool(self, pool: Pool) -> Wish:
        """Return the wish with a pool in the place of the one of its name, or one more."""
        others = tuple(p for p in self.pools if p.name != pool.name)
        if len(others) == len(self.pools):
            return replace(self, pools=(*self.pools, pool))
        return replace(self, pools=tuple(pool if p.name == pool.name else p for p in self.pools))


def group_of(name: str) -> str:
    """Return the resource group of the cluster of a name."""
    return GROUPS.get(name, f"rg-{name}")


def like_a_strangers(wish: Wish) -> bool:
    """Tell whether a wish is what people make by hand; an older version is no difference."""
    return wish.pools == (SYSTEM,) and not wish.tag and wish.version <= "1.33"


@dataclass(frozen=True)
class FleetWish:
    """What a commit asks for; ``note`` changes nothing but the commit."""

    clusters: Mapping[str, Wish] = field(default_factory=dict)
    budget: int = 1
    wrong: bool = False
    note: int = 0

    def with_cluster(self, wish: Wish) -> FleetWish:
        """Return the fleet with one cluster more, or changed."""
        return replace(self, clusters={**self.clusters, wish.name: wish})

    def without(self, *names: str) -> FleetWish:
        """Return the fleet without some clusters."""
        return replace(self, clusters={n: c for n, c in self.clusters.items() if n not in names})

    @property
    def mended(self) -> FleetWish:
        """The same without its mistakes."""
        clusters = {name: replace(wish, wrong=False) for name, wish in self.clusters.items()}
        return replace(self, clusters=clusters, wrong=False)

    def files(self, fleet: str) -> dict[str, bytes]:
        """Return the files of the repository."""
        files = {f"clusters/{name}/cluster.yaml": _cluster(wish) for name, wish in self.clusters.items()}
        files |= {"fleet.yaml": _fleet(fleet, self.budget, self.wrong), "README.md": str(self.note).encode()}
        return files | {"flux/gotk-components.yaml": COMPONENTS, "platform/apps.yaml": PLATFORM}


@lru_cache(maxsize=512)
def _cluster(wish: Wish) -> bytes:
    adopt = f", annotations: {{roadstead.dev/adopt: {wish.adopt}}}" if wish.adopt else ""
    text = f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Cluster
metadata: {{name: {wish.name}{adopt}}}
spec:
  {"locaton" if wish.wrong else "location"}: eastus
  resourceGroup: {group_of(wish.name)}
  kubernetesVersion: "{wish.version}"
  deletionProtection: {str(wish.protected).lower()}
  tags: {{{f"cost: {wish.tag}" if wish.tag else ""}}}
  nodePools:
"""
    for pool in wish.pools:
        labels = f", nodeLabels: {{tier: {pool.label}}}" if pool.label else ""
        kind = f"name: {pool.name}, mode: {pool.mode}, vmSize: {pool.size}"
        text += f"    - {{{kind}, count: {pool.count}{labels}}}\n"
    if wish.suspended:
        text += f'  suspend: {{owner: somebody, reason: an audit, until: "{wish.suspended}"}}\n'
    return text.encode()


@lru_cache(maxsize=64)
def _fleet(fleet: str, budget: int, wrong: bool) -> bytes:
    return f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Fleet
metadata: {{name: {fleet}}}
spec:
  guards: {{deleteBudget: {{count: {budget}, percent: 100}}}}
  {"defautls" if wrong else "defaults"}:
    subscriptionId: {SUBSCRIPTION}
    kubernetesVersion: "1.33"
    flux: {{repository: "https://github.com/example/{fleet}", path: ./platform}}
""".encode()


def _definition(group: str, kind: str) -> str:
    plural = {"GitRepository": "gitrepositories"}.get(kind, f"{kind.lower()}s")
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  names: {{kind: {kind}, listKind: {kind}List, plural: {plural}, singular: {kind.lower()}}}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
      subresources: {{status: {{}}}}
"""


def _controller(name: str) -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: flux-system}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: manager, image: "example/{name}:v1"}}]}}
"""


COMPONENTS = "---\n".join(
    (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n",
        _definition("source.toolkit.fluxcd.io", "GitRepository"),
        _definition("kustomize.toolkit.fluxcd.io", "Kustomization"),
        _controller("source-controller"),
        _controller("kustomize-controller"),
    )
).encode()
"""A Flux as small as it can be, for the clusters of the simulation."""
PLATFORM = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps, namespace: flux-system}\n"
