"""The oracle: what really exists, and how it differs from the desired state."""

from __future__ import annotations

from localcloud.azure.world.azure_world import AzureWorld
from localcloud.kubernetes.world.kubernetes_clusters import KubernetesClusters
from localcloud.kubernetes.world.object_store import Object
from shared.json_tree import Json
from shared.resource_ids import ClusterId
from simulation.desired_state import WINDOW, DesiredCluster

POOL_TAG = "roadstead-pool"
_SOURCES = "source.toolkit.fluxcd.io/v1"
FLUX = (
    ("source", ((_SOURCES, "GitRepository"), (_SOURCES, "OCIRepository"))),
    ("Kustomization", (("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),)),
)


class Oracle:
    """Reads Azure and the clusters directly, past every port and fault."""

    def __init__(self, azure: AzureWorld, kubernetes: KubernetesClusters) -> None:
        self._azure, self._kubernetes = azure, kubernetes
        self.keeps_labels: set[ClusterId] = set()
        """Clusters whose removed labels stay, because the tables that knew them are lost."""

    def live(self, cluster: ClusterId) -> Json | None:
        """Return a cluster as it is in Azure, or None."""
        return self._azure.peek(cluster)

    def belongs_to_others(self, cluster: ClusterId, fleet: str) -> bool:
        """Return whether a cluster exists and is not of this fleet."""
        live = self.live(cluster)
        return live is not None and live["tags"].get("roadstead-fleet") != fleet

    def has_no_fleet(self, cluster: ClusterId) -> bool:
        """Return whether a cluster exists that belongs to no fleet."""
        live = self.live(cluster)
        return live is not None and "roadstead-fleet" not in live["tags"]

    def differences(self, fleet: str, desired: DesiredCluster, key: ClusterId) -> str:
        """Return how the real cluster differs from the desired one, "" when it does not."""
        found = self.in_azure(fleet, desired, key)
        return found or self._flux_differences(self.live(key) or {})

    def in_azure(self, fleet: str, desired: DesiredCluster, key: ClusterId) -> str:
        """Return how the real cluster differs in Azure from the desired one, whatever Flux is able to do."""
        live = self.live(key)
        if live is None:
            return "it is not in Azure"
        keeps = key in self.keeps_labels
        found = _azure_differences(live, fleet, desired, keeps_labels=keeps)
        return found or self._window_differs(desired, key)

    def _window_differs(self, desired: DesiredCluster, key: ClusterId) -> str:
        window = self._azure.peek_maintenance(key).get(WINDOW)
        schedule = window["properties"]["maintenanceWindow"]["schedule"] if window else {}
        day = schedule.get("weekly", {}).get("dayOfWeek", "")
        return f"its maintenance window is {day or 'missing'}" if desired.window not in ("", day) else ""

    def _flux_differences(self, live: Json) -> str:
        world = self._kubernetes.world(_id_of(live))
        if world is None:
            return "its Kubernetes API does not exist"
        for name, kinds in FLUX:
            served = [kind for of in kinds if (kind := world.kind(*of))]
            objects = [found for kind in served for found in world.list(kind, "flux-system")[0]]
            if not objects or not all(map(_is_ready, objects)):
                return f"its {name} is not Ready"
        return ""


def _is_ready(found: Object) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any((condition["type"], condition["status"]) == ("Ready", "True") for condition in conditions)


def _azure_differences(live: Json, fleet: str, desired: DesiredCluster, *, keeps_labels: bool) -> str:
    tags, properties = live["tags"], live["properties"]
    if tags.get("roadstead-fleet") != fleet:
        return f"its tags are {tags}"
    if desired.tag and tags.get("cost") != desired.tag:
        return f"its tag cost is {tags.get('cost')}, not {desired.tag}"
    if _version(properties["currentKubernetesVersion"]) < _version(desired.version):
        return f"it runs {properties['currentKubernetesVersion']}, not {desired.version}"
    profiles = {serves(p): p for p in properties["agentPoolProfiles"]}
    wanted = {pool.name for pool in desired.pools}
    if len(profiles) != len(properties["agentPoolProfiles"]) or profiles.keys() != wanted:
        return f"its pools are {[p['name'] for p in properties['agentPoolProfiles']]}"
    for pool in desired.pools:
        profile = profiles[pool.name]
        labels = {"tier": pool.label} if pool.label else {}
        shown = dict(profile.get("nodeLabels") or {})
        if keeps_labels:
            shown = {name: value for name, value in shown.items() if name in labels}
        found = (profile["count"], profile["vmSize"], shown)
        if found != (pool.count, pool.size, labels):
            return f"the pool {pool.name} has {found}, not {(pool.count, pool.size, labels)}"
        if profile["nodeImageVersion"].rpartition("-")[2] < desired.image:
            return f"the pool {pool.name} has the image {profile['nodeImageVersion']}"
        if profile["provisioningState"] != "Succeeded":
            return f"the pool {pool.name} is {profile['provisioningState']}"
    if properties["provisioningState"] != "Succeeded":
        return f"it is {properties['provisioningState']}"
    return ""


def is_going(live: Json | None) -> bool:
    """Return whether a cluster does not exist, or is being deleted."""
    return live is None or live["properties"]["provisioningState"] == "Deleting"


def serves(profile: Json) -> str:
    """Return the name, in the manifest, of the pool that an agent pool of Azure serves."""
    tags = profile.get("tags") or {}
    return str(tags.get(POOL_TAG) or profile["name"])


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def _id_of(live: Json) -> ClusterId:
    parts = str(live["id"]).split("/")
    return ClusterId(parts[2], parts[4], parts[8])
