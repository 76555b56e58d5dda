"""The desired state of a fleet as values, and the files of the repository that express it.

Few fields and few Flux objects, on purpose. How the desired state changes from one commit to the next is in
``operator_actions``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from simulation.granted import SUBSCRIPTION, as_grants
from simulation.staging import MISTYPED, OTHERS, SELECTED, StagedStage, Staging, as_yaml
from simulation.team_systems import COMPONENTS as OF_TENANTS
from simulation.team_systems import DesiredSystem
from simulation.vault_secrets import as_secrets

OFF, PATCH = "none, nodeOSUpgradeChannel: None", "patch, nodeOSUpgradeChannel: NodeImage"
"""The channels of automatic upgrades: without any, and with those of Azure's quick start."""
GROUPS = {"d": "rg-c"}
"""The cluster that shares the resource group of another one."""
WINDOW = "aksManagedAutoUpgradeSchedule"
TAGS = 40
"""As many as a manifest may have, with three left; each has a value of 250 characters."""
NEWEST_IMAGE = "202511.01.0"
"""The date of the newest node image of the local Azure."""


PROPOSED = ("a",)
"""The clusters whose policies propose drift."""
CORRECTED, EXEMPT, RECREATED = ("b", "c"), ("c",), ("b",)
"""The clusters whose policies correct drift, those of them whose tag cost is exempt from that, and those that
are created again when they are missing, and to which Flux is applied again when somebody changed it."""
_EXEMPTION = (
    "{name: cost, fields: [tags.cost], action: ignore, owner: a, reason: an audit, expires: 2999-12-31}"
)


@dataclass(frozen=True)
class Rollback:
    """The rollback of a node pool as a manifest asks for it: the image, and until when the pool ran it."""

    image: str
    last_used: str


@dataclass(frozen=True)
class Pool:
    """A node pool of a manifest; ``version`` is that of its nodes, "" for that of the cluster.

    ``rollback`` is what it asks to be rolled back, None for nothing.
    """

    name: str
    count: int = 1
    size: str = "Standard_D4s_v5"
    label: str = ""
    mode: str = "User"
    version: str = ""
    rollback: Rollback | None = None


SYSTEM = Pool("system", mode="System")


@dataclass(frozen=True)
class DesiredCluster:
    """The manifest of a cluster; ``invalid``: it has an error; ``suspended``: until when, as in git.

    ``large``: its manifest is valid, and its record would be larger than an entity; see ``large_records``.
    ``window`` is the day of its maintenance window, ``newest_image`` whether no older node image is accepted.
    ``grants`` are the names of its federated credentials, of its role assignments and of its policies,
    ``secrets`` those of its bootstrap secrets. ``rebuild`` is the number of the rebuild that its manifest
    asks for. ``replaces`` is the cluster that it replaces, "" for none. ``channel`` is what upgrades it by
    itself, ``OFF`` for nothing, "" where its manifest does not say it.
    """

    name: str
    pools: tuple[Pool, ...] = (SYSTEM,)
    version: str = "1.36"
    tag: str = ""
    protected: bool = False
    invalid: bool = False
    suspended: str = ""
    adopt: str = ""
    window: str = ""
    newest_image: bool = False
    large: bool = False
    grants: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    rebuild: int = 0
    replaces: str = ""
    channel: str = ""

    @property
    def asked(self) -> int:
        """The number of the rebuild that its manifest has; one that adopts a cluster has none."""
        return 0 if self.adopt else self.rebuild

    def with_pool(self, pool: Pool) -> DesiredCluster:
        """Return the cluster with a pool that replaces the one of its name, or is added."""
        others = tuple(p for p in self.pools if p.name != pool.name)
        if len(others) == len(self.pools):
            return replace(self, pools=(*self.pools, pool))
        return replace(self, pools=tuple(pool if p.name == pool.name else p for p in self.pools))

    def without_rollbacks(self, version: str) -> DesiredCluster:
        """Return the cluster with a version, and pools that follow it."""
        pools = tuple(replace(pool, version="", rollback=None) for pool in self.pools)
        return replace(self, pools=pools, version=version)


def group_of(name: str) -> str:
    """Return the resource group of the cluster of a name."""
    return GROUPS.get(name, f"rg-{name}")


def manual_cluster(name: str) -> dict[str, Any]:
    """Return a cluster that differs from one of Roadstead's in its tags only."""
    pool = {
        "name": "system",
        "mode": "System",
        "vmSize": SYSTEM.size,
        "count": 1,
        "type": "VirtualMachineScaleSets",
    }
    properties = {
        "dnsPrefix": name,
        "kubernetesVersion": "1.36",
        "networkProfile": {"networkPlugin": "azure"},
        "agentPoolProfiles": [pool],
    }
    tags, identity = {"owner": "somebody"}, {"type": "SystemAssigned"}
    return {"location": "eastus", "identity": identity, "tags": tags, "properties": properties}


def matches_manual_cluster(cluster: DesiredCluster) -> bool:
    """Return whether a cluster equals what operators create by hand; an older version is no difference."""
    same = cluster.pools == (SYSTEM,) and not cluster.tag and not cluster.window and not cluster.grants
    same = same and not cluster.channel
    return same and cluster.version <= "1.36"


USUAL_COMPONENTS = "flux/gotk-components.yaml"
"""The file of the Flux components of a cluster without an environment."""


@dataclass(frozen=True)
class Environment:
    """What some clusters share: the file of the Flux components that they have."""

    name: str
    clusters: tuple[str, ...]
    components: str = USUAL_COMPONENTS


@dataclass(frozen=True)
class DesiredFleet:
    """What a commit asks for; ``note`` changes the commit and nothing else.

    ``notified``: it has a route of notifications, which gets everything. ``selectable`` are the stages that
    the commit selects if ``trailer`` says so. ``final`` is the gate after the last stage of the others.
    ``soak`` are the seconds after which the last of the ``environments`` is proposed what is proven in the
    first one, None for no rule.
    """

    clusters: Mapping[str, DesiredCluster] = field(default_factory=dict)
    budget: int = 1
    invalid: bool = False
    note: int = 0
    notified: bool = False
    staging: Staging = None
    selectable: Staging = ()
    trailer: str = ""
    final: StagedStage | None = None
    systems: tuple[DesiredSystem, ...] = ()
    environments: tuple[Environment, ...] = ()
    soak: int | None = None

    def environment(self, name: str) -> Environment:
        """Return the environment of a name."""
        return next(each for each in self.environments if each.name == name)

    def with_components(self, name: str, components: str) -> DesiredFleet:
        """Return the fleet with other Flux components in an environment."""
        others = (replace(e, components=components) if e.name == name else e for e in self.environments)
        return replace(self, environments=tuple(others))

    def components_of(self, cluster: str) -> str:
        """Return the file of the Flux components of a cluster."""
        found = (each.components for each in self.environments if cluster in each.clusters)
        return next(found, USUAL_COMPONENTS)

    def with_cluster(self, cluster: DesiredCluster) -> DesiredFleet:
        """Return the fleet with a cluster added or changed."""
        return replace(self, clusters={**self.clusters, cluster.name: cluster})

    def without(self, *names: str) -> DesiredFleet:
        """Return the fleet without some clusters."""
        return replace(self, clusters={n: c for n, c in self.clusters.items() if n not in names})

    def keeps(self, name: str, created_for: int) -> bool:
        """Return whether it has a cluster, and asks for no other one in the place of that of a rebuild."""
        return name in self.clusters and self.clusters[name].asked <= created_for

    def successors(self, name: str) -> list[str]:
        """Return the clusters that replace one that it does not have."""
        return sorted(one.name for one in self.clusters.values() if one.replaces == name)

    @property
    def corrected(self) -> DesiredFleet:
        """The fleet with every manifest valid, and none too large."""
        clusters = {n: replace(cluster, invalid=False, large=False) for n, cluster in self.clusters.items()}
        systems = tuple(replace(system, invalid=False) for system in self.systems)
        trailer = "" if self.trailer == MISTYPED else self.trailer
        return replace(self, clusters=clusters, systems=systems, invalid=False, trailer=trailer)

    @property
    def in_force(self) -> Staging:
        """The stages that the commit has: without any in the file, its environments in their order."""
        if self.staging == () and not self._selects:
            return tuple(StagedStage(each.name, each.clusters, OTHERS.groups) for each in self.environments)
        return self.selectable if self._selects else self.staging

    @property
    def final_in_force(self) -> StagedStage | None:
        """The gate after the last stage that the commit has."""
        return None if self._selects or not self.staging else self.final

    @property
    def _selects(self) -> bool:
        return bool(self.selectable) and self.trailer == SELECTED

    @property
    def mistyped(self) -> bool:
        """Whether the commit names a strategy that the fleet does not have."""
        return bool(self.selectable) and self.trailer == MISTYPED

    @property
    def message(self) -> str:
        """The message of the commit."""
        return f"Change the fleet\n\nRollout: {self.trailer}\n" if self.trailer else "Change the fleet\n"

    def files(self, fleet: str) -> dict[str, bytes]:
        """Return the files of the repository."""
        files = {
            f"clusters/{name}/cluster.yaml": _cluster(one, self._environment_of(name))
            for name, one in self.clusters.items()
        }
        files["fleet.yaml"] = _fleet(
            fleet,
            self.budget,
            self.invalid,
            self.notified,
            as_yaml(self.staging, self.selectable, self.final) + self._of_environments,
        )
        for each in self.environments:
            files[f"environments/{each.name}.yaml"] = _environment(each)
            files[each.components] = COMPONENTS + f"# {each.components}\n".encode()
        files["README.md"] = str(self.note).encode()
        teams = [system.files(fleet, self.clusters) for system in self.systems]
        files |= {path: content for one in teams for path, content in one.items()}
        return files | {USUAL_COMPONENTS: COMPONENTS, "platform/apps.yaml": PLATFORM}

    def _environment_of(self, cluster: str) -> str:
        return next((each.name for each in self.environments if cluster in each.clusters), "")

    @property
    def _of_environments(self) -> str:
        """The environments in fleet.yaml, and the rule that promotes from the first to the last one."""
        names = [each.name for each in self.environments]
        if not names:
            return ""
        rule = f"from: {names[0]}, to: {names[-1]}, what: [components], soak: {self.soak}s"
        rules = f"  promotions: [{{{rule}}}]\n" if self.soak is not None else ""
        return f"  environments: [{', '.join(names)}]\n{rules}"


@lru_cache(maxsize=512)
def _cluster(cluster: DesiredCluster, environment: str) -> bytes:
    given = [f"adopt: {cluster.adopt}" if cluster.adopt else _rebuild(cluster.asked)]
    given.append(f"replaces: {cluster.replaces}" if cluster.replaces else "")
    written = ", ".join(f"roadstead.dev/{each}" for each in given if each)
    annotated = f", annotations: {{{written}}}" if written else ""
    text = f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Cluster
metadata: {{name: {cluster.name}{annotated}}}
spec:
  {"locaton" if cluster.invalid else "location"}: eastus
  resourceGroup: {group_of(cluster.name)}
  kubernetesVersion: "{cluster.version}"
  deletionProtection: {str(cluster.protected).lower()}
  tags: {{{_tags(cluster)}}}
  nodePools:
"""
    for pool in cluster.pools:
        labels = f", nodeLabels: {{tier: {pool.label}}}" if pool.label else ""
        kind = f"name: {pool.name}, mode: {pool.mode}, vmSize: {pool.size}"
        text += f"    - {{{kind}, count: {pool.count}{labels}{_versions(pool)}}}\n"
    if cluster.channel:
        text += f"  autoUpgradeProfile: {{upgradeChannel: {cluster.channel}}}\n"
    if cluster.window:
        text += f"  maintenanceWindows: [{{name: {WINDOW}, maintenanceWindow: {_window(cluster.window)}}}]\n"
    if cluster.newest_image:
        text += f'  minNodeImageVersion: "{NEWEST_IMAGE}"\n'
    if environment:
        text += f"  environment: {environment}\n"
    text += as_grants(cluster.name, cluster.grants) + as_secrets(cluster.secrets)
    if cluster.name in CORRECTED:
        more = f", rules: [{_EXEMPTION}]" if cluster.name in EXEMPT else ""
        more += ", missingCluster: recreate, fluxObjects: correct" if cluster.name in RECREATED else ""
        text += f"  drift: {{action: correct{more}}}\n"
    if cluster.name in PROPOSED:
        text += "  drift: {action: propose}\n"
    if cluster.suspended:
        text += f'  suspend: {{owner: somebody, reason: an audit, until: "{cluster.suspended}"}}\n'
    return text.encode()


def _environment(environment: Environment) -> bytes:
    return f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Environment
metadata: {{name: {environment.name}}}
spec:
  defaults:
    flux:
      components: {environment.components}
""".encode()


def _versions(pool: Pool) -> str:
    own = f", orchestratorVersion: {pool.version}" if pool.version else ""
    back = pool.rollback
    asked = f", rollback: {{nodeImageVersion: {back.image}, lastUsed: '{back.last_used}'}}" if back else ""
    return own + asked


def _rebuild(number: int) -> str:
    return f'rebuild: "2025-12-01T{number // 60:02}:{number % 60:02}:00Z"' if number else ""


def _tags(cluster: DesiredCluster) -> str:
    tags = {"cost": cluster.tag} if cluster.tag else {}
    if cluster.large:
        chance = random.Random(cluster.name)  # noqa: S311 - values that cannot be compressed
        tags |= {f"t{number}": f"v{chance.getrandbits(1000):x}" for number in range(TAGS)}
    return ", ".join(f"{name}: {value}" for name, value in tags.items())


def _window(day: str) -> str:
    weekly = f"schedule: {{weekly: {{intervalWeeks: 1, dayOfWeek: {day}}}}}"
    return f'{{{weekly}, durationHours: 4, startTime: "01:00", utcOffset: "+00:00"}}'


@lru_cache(maxsize=64)
def _fleet(fleet: str, budget: int, invalid: bool, notified: bool, rollout: str) -> bytes:
    routes = "  notifications: [{name: all, type: slack, address: ALL, severity: info}]\n" if notified else ""
    return f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Fleet
metadata: {{name: {fleet}}}
spec:
  guards: {{deleteBudget: {{count: {budget}, percent: 100}}, namespaceBudget: 1000}}
{routes}{rollout}\
  {"defautls" if invalid else "defaults"}:
    subscriptionId: {SUBSCRIPTION}
    kubernetesVersion: "1.36"
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


COMPONENTS = (
    "---\n".join(
        (
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n",
            _definition("source.toolkit.fluxcd.io", "GitRepository"),
            _definition("kustomize.toolkit.fluxcd.io", "Kustomization"),
            _controller("source-controller"),
            _controller("kustomize-controller"),
        )
    ).encode()
    + OF_TENANTS
)
"""The smallest set of Flux components that the local Flux accepts."""
PLATFORM = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps, namespace: flux-system}\n"
