"""The desired state of a fleet as values.

Few fields, on purpose. How the desired state changes from one commit to the next is in
``operator_actions``, and the files that express it are in ``desired_files``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from simulation.platforms import USUAL as USUAL_PLATFORM
from simulation.platforms import corrected as corrected_platform
from simulation.staging import MISTYPED, OTHERS, SELECTED, StagedStage, Staging
from simulation.team_systems import DesiredSystem

OFF, PATCH = "none, nodeOSUpgradeChannel: None", "patch, nodeOSUpgradeChannel: NodeImage"
"""The channels of automatic upgrades: without any, and with those of Azure's quick start."""
VERSIONS = ("1.35", "1.36", "1.37")
GROUPS = {"d": "rg-c"}
"""The cluster that shares the resource group of another one."""
WINDOW = "aksManagedAutoUpgradeSchedule"
OLDER_IMAGE, NEWEST_IMAGE = "202510.19.1", "202511.01.0"
"""The node images of the local Azure, by their dates."""


PROPOSED = ("a",)
"""The clusters whose policies propose drift."""
CORRECTED, EXEMPT, RECREATED = ("b", "c"), ("c",), ("b",)
"""The clusters whose policies correct drift, those of them whose tag cost is exempt from that, and those that
are created again when they are missing, and to which Flux is applied again when somebody changed it."""


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


ASKED_CLASS, ASKED_PLACE, ASKED_FOR = "small", "asked", "8h"
ASKED_MINUTES, ASKED_PRICE = 480, 400
"""The class and environment of a cluster that somebody asks for, how long it lasts, and its list price."""


@dataclass(frozen=True)
class DesiredCluster:
    """The manifest of a cluster; ``invalid``: it has an error; ``suspended``: until when, as in git.

    ``window`` is the day of its maintenance window, ``image`` the oldest node image that is accepted.
    Where its environment follows channels, ``version`` and ``image`` are what it has from there, unless its
    own file has others.
    ``grants`` are the names of its federated credentials, of its role assignments and of its policies,
    ``secrets`` those of its bootstrap secrets. ``rebuild`` is the number of the rebuild that its manifest
    asks for. ``replaces`` is the cluster that it replaces, "" for none. ``channel`` is what upgrades it by
    itself, ``OFF`` for nothing, "" where its manifest does not say it. ``sleeps`` is its sleep
    as YAML, "" for none. ``lifetime`` is how many minutes it lasts, 0 for no end, and ``ends_by_host``
    whether the host merges what removes it then. ``request`` is the manifest that Roadstead wrote where
    somebody has asked for it, "" for any other cluster.
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
    image: str = ""
    grants: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    rebuild: int = 0
    replaces: str = ""
    channel: str = ""
    sleeps: str = ""
    lifetime: int = 0
    ends_by_host: bool = False
    request: str = ""

    @property
    def lasts(self) -> int:
        """How many minutes it lasts: one by request as long as it was asked for."""
        return ASKED_MINUTES if self.is_as_asked else self.lifetime

    @property
    def is_as_asked(self) -> bool:
        """Whether its manifest is the one that somebody asked for, and nobody has changed it since."""
        return bool(self.request) and self == DesiredCluster(self.name, request=self.request)

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
    return same and cluster.version[: len("1.36")] <= "1.36"


VERSION, IMAGE, COMPONENTS = "kubernetesVersion", "minNodeImageVersion", "flux.components"
"""The fields below ``spec`` that promotions and channels give an environment."""
IMAGES_ALONE, USUAL_VERSION = "NodeImage", "1.36"
"""The channel of an environment without one of Kubernetes, and the version of its clusters."""
USUAL_COMPONENTS = "flux/gotk-components.yaml"
"""The file of the Flux components of a cluster without an environment."""


@dataclass(frozen=True)
class SharedEnvironment:
    """What some clusters share: the file of the Flux components that they have.

    One that follows a ``channel`` has a resolved ``version``, and an ``image`` if it follows those, too; with
    ``IMAGES_ALONE`` it has no version.
    """

    name: str
    clusters: tuple[str, ...]
    components: str = USUAL_COMPONENTS
    channel: str = ""
    version: str = ""
    image: str = ""

    @property
    def values(self) -> Mapping[str, str]:
        """What promotions and channels give it, by the fields below ``spec``."""
        found = {VERSION: self.version, IMAGE: self.image, COMPONENTS: self.components}
        return {field: value for field, value in found.items() if value}

    def given(self, cluster: DesiredCluster, before: SharedEnvironment | None = None) -> DesiredCluster:
        """Return a cluster with what it has from here, where it had that from ``before``, or has nothing."""
        had = before or SharedEnvironment(self.name, ())
        own = self.version or USUAL_VERSION
        version = own if cluster.version in ("", had.version) else cluster.version
        return replace(
            cluster, version=version, image=self.image if cluster.image == had.image else cluster.image
        )


NOWHERE = SharedEnvironment("", ())
"""Of a cluster without an environment."""


@dataclass(frozen=True)
class RequestedFleet:
    """What a commit asks for; ``note`` changes the commit and nothing else.

    ``notified``: it has a route of notifications, which gets everything. ``selectable`` are the stages that
    the commit selects if ``trailer`` says so. ``final`` is the gate after the last stage of the others.
    ``soak`` are the seconds after which the last of the ``environments`` is proposed what is proven in the
    first one, None for no rule. ``platform`` is the name of what Flux applies.
    ``sources`` are what clusters pull that do so from elsewhere, by their names. ``asked_at_once`` is how
    many clusters a person may ask for, 0 for none, ``asked_limit`` the most that one may be listed at.
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
    environments: tuple[SharedEnvironment, ...] = ()
    soak: int | None = None
    platform: str = USUAL_PLATFORM
    sources: Mapping[str, str] = field(default_factory=dict)
    asked_at_once: int = 0
    asked_limit: int = ASKED_PRICE

    def environment(self, name: str) -> SharedEnvironment:
        """Return the environment of a name."""
        return next(environment for environment in self.environments if environment.name == name)

    def with_components(self, name: str, components: str) -> RequestedFleet:
        """Return the fleet with other Flux components in an environment."""
        others = (replace(e, components=components) if e.name == name else e for e in self.environments)
        return replace(self, environments=tuple(others))

    def with_channel(self, name: str, version: str, image: str) -> RequestedFleet:
        """Return the fleet with what channels give an environment, and its clusters with that."""
        before = self.environment(name)
        after = replace(before, version=version, image=image)
        own = {
            cluster: after.given(desired, before) if cluster in after.clusters else desired
            for cluster, desired in self.clusters.items()
        }
        others = (after if environment.name == name else environment for environment in self.environments)
        return replace(self, environments=tuple(others), clusters=own)

    def environment_of(self, cluster: str) -> SharedEnvironment:
        """Return the environment of a cluster, ``NOWHERE`` for none."""
        return next((found for found in self.environments if cluster in found.clusters), NOWHERE)

    def components_of(self, cluster: str) -> str:
        """Return the file of the Flux components of a cluster."""
        return self.environment_of(cluster).components

    def with_cluster(self, cluster: DesiredCluster) -> RequestedFleet:
        """Return the fleet with a cluster added or changed."""
        environment = self.environment_of(cluster.name)
        cluster = environment.given(cluster) if environment.channel else cluster
        return replace(self, clusters={**self.clusters, cluster.name: cluster})

    def without(self, *names: str) -> RequestedFleet:
        """Return the fleet without some clusters."""
        return replace(self, clusters={n: c for n, c in self.clusters.items() if n not in names})

    def keeps(self, name: str, created_for: int) -> bool:
        """Return whether it has a cluster, and asks for no other one in the place of that of a rebuild."""
        return name in self.clusters and self.clusters[name].asked <= created_for

    def successors(self, name: str) -> list[str]:
        """Return the clusters that replace one that it does not have."""
        return sorted(cluster.name for cluster in self.clusters.values() if cluster.replaces == name)

    @property
    def corrected(self) -> RequestedFleet:
        """The fleet with every manifest valid."""
        clusters = {n: replace(cluster, invalid=False) for n, cluster in self.clusters.items()}
        systems = tuple(replace(system, invalid=False) for system in self.systems)
        trailer = "" if self.trailer == MISTYPED else self.trailer
        platform = corrected_platform(self.platform)
        fleet = replace(self, clusters=clusters, systems=systems, invalid=False, trailer=trailer)
        return replace(fleet, platform=platform)

    @property
    def in_force(self) -> Staging:
        """The stages that the commit has: without any in the file, its environments in their order."""
        if self.staging == () and not self._selects:
            return tuple(
                StagedStage(environment.name, environment.clusters, OTHERS.groups)
                for environment in self.environments
            )
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
