"""The next action for the node pools of a cluster, whatever a crash, a revert or an operator left there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shared.azure.node_pools.body import (
    autoscaler_off_write,
    fixed_leaves,
    new_pool_write,
    ownership_write,
    pool_difference,
    pool_write,
)
from shared.azure.node_pools.replacement import (
    WINDOWS_NAME,
    Create,
    Keep,
    Replace,
    Retire,
    Stage,
    serving,
    stage_of,
)
from shared.azure.ownership import POOL_TAG, OwnerTags
from shared.json_tree import Json
from shared.language.desired import Desired, stored_form
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from tests.support.sample import examples

OWNER = OwnerTags("example", "example/fleet", "one")
SMALL, MIDDLE, LARGE = "Standard_D2s_v5", "Standard_D4s_v5", "Standard_D8s_v5"


def desired(*pools: Mapping[str, Any]) -> Desired:
    """Return a cluster with these pools; the first one is its System pool."""
    first = {"mode": "System"} if all("mode" not in pool for pool in pools) else {}
    given = [{"vmSize": MIDDLE, "count": 1, **(first if n == 0 else {}), **p} for n, p in enumerate(pools)]
    spec = {
        "subscriptionId": "00000000-0000-0000-0000-000000000001",
        "resourceGroup": "rg-one",
        "location": "eastus",
        "kubernetesVersion": "1.36",
        "nodePools": given,
        "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
    }
    return Desired(stored_form("one", ClusterSpec.model_validate(spec), "blob"))


def live(name: str, serves: str = "", *, ours: bool = True, **fields: Any) -> dict[str, Any]:
    """Return a pool as Azure shows it; ``serves`` is the manifest's pool, that of its name by default."""
    shown = {"mode": "User", "vmSize": MIDDLE, "count": 1, "enableAutoScaling": False}
    state = {"provisioningState": "Succeeded", "currentOrchestratorVersion": "1.36.2"}
    tags = OWNER.pool_tags(serves or name, name) if ours else {}
    return {"name": name, **shown, **state, "tags": tags, **fields}


def stage(cluster: Desired, name: str, *profiles: Json) -> Stage:
    """Return the next action for a pool of the manifest."""
    pool = next(pool for pool in cluster.spec.node_pools if pool.name == name)
    taken = {str(profile["name"]) for profile in profiles}
    taken |= {other.name for other in cluster.spec.node_pools if other.name != name}
    return stage_of(pool, cluster, OWNER, serving(profiles, OWNER).get(name, ()), taken)


APPS = desired({"name": "system"}, {"name": "apps"})


@pytest.mark.parametrize(
    "shown",
    [
        {"scaleSetPriority": None, "workloadRuntime": None, "podIPAllocationMode": None},
        {"scaleSetPriority": "regular", "gpuProfile": None},
        {"vmSize": "standard_d4S_V5"},
    ],
)
def test_a_default_that_azure_does_not_show_replaces_no_pool(shown: dict[str, Any]) -> None:
    written = {
        "scaleSetPriority": "Regular",
        "workloadRuntime": "OCIContainer",
        "podIPAllocationMode": "DynamicIndividual",
        "gpuProfile": {"driver": "Install"},
    }
    fields = {key: value for key, value in written.items() if key in shown}
    cluster = desired({"name": "system"}, {"name": "apps", **fields})
    assert isinstance(stage(cluster, "apps", live("apps", **shown)), Keep)


def test_what_azure_sets_on_a_spot_pool_is_no_difference_and_stays_in_a_write() -> None:
    mark = "kubernetes.azure.com/scalesetpriority"
    spot: dict[str, Any] = {
        "scaleSetPriority": "Spot",
        "scaleSetEvictionPolicy": "Delete",
        "spotMaxPrice": -1.0,
    }
    shown: dict[str, Any] = {
        **spot,
        "nodeLabels": {mark: "spot", "mine": "1"},
        "nodeTaints": [f"{mark}=spot:NoSchedule"],
    }
    cluster = desired({"name": "system"}, {"name": "apps", **spot, "nodeLabels": {"mine": "1"}})
    pool = cluster.spec.node_pools[1]
    assert pool_difference(pool, cluster, OWNER, live("apps", **shown)) == ()
    write = pool_write(pool, cluster, OWNER, live("apps", **shown | {"nodeLabels": {mark: "spot"}}))
    assert write is not None
    assert write.body["properties"]["nodeLabels"] == {mark: "spot", "mine": "1"}
    assert write.body["properties"]["nodeTaints"] == [f"{mark}=spot:NoSchedule"]


def test_a_foreign_pool_with_the_name_of_one_of_ours_does_not_serve_it() -> None:
    ours, theirs = live("appsb", "apps"), live("apps", ours=False, vmSize=LARGE)
    assert stage(APPS, "apps", theirs, ours) == Keep(ours)


def test_of_two_pools_that_do_not_fit_the_one_that_azure_could_not_create_is_removed() -> None:
    works, broken = (
        live("appsb", "apps", vmSize=SMALL),
        live("apps", vmSize=LARGE, provisioningState="Failed"),
    )
    found = stage(APPS, "apps", works, broken)
    assert isinstance(found, Retire)
    assert (found.old, found.remaining) == (broken, works)
    assert found.misfit == f"vmSize from {SMALL} to {MIDDLE}"


def test_a_replacement_names_its_reason_even_where_azure_has_no_value() -> None:
    cluster = desired({"name": "system"}, {"name": "apps", "maxPods": 50})
    found = stage(cluster, "apps", live("apps"))
    assert isinstance(found, Replace)
    assert found.reason == "maxPods from nothing to 50"


def test_the_name_of_a_replacement_fits_and_is_free() -> None:
    cluster = desired(
        {"name": "system"}, {"name": "winpol", "osType": "Windows", "vmSize": LARGE}, {"name": "winpob"}
    )
    found = stage(cluster, "winpol", live("winpol", osType="Windows"))
    assert isinstance(found, Replace)
    assert found.name == "winpoc"
    assert len(found.name) <= WINDOWS_NAME


def test_a_new_pool_that_has_the_name_of_a_replacement_gets_another_one() -> None:
    cluster = desired({"name": "system"}, {"name": "apps"}, {"name": "appsb"})
    assert stage(cluster, "appsb", live("appsb", "apps")) == Create("appsbb")
    assert isinstance(stage(cluster, "apps", live("appsb", "apps")), Keep)


@pytest.mark.parametrize(("plane", "begins"), [("1.35.7", "1.35"), ("1.36.2", "1.36"), ("", "1.36")])
def test_a_new_pool_is_never_newer_than_a_control_plane_in_an_upgrade(plane: str, begins: str) -> None:
    pool = desired({"name": "system"}, {"name": "apps", "orchestratorVersion": "1.36"}).spec.node_pools[1]
    write = new_pool_write(pool, OWNER, "apps", control_plane=plane)
    assert write.body["properties"]["orchestratorVersion"] == begins


def test_a_replacement_begins_with_the_node_count_of_the_autoscaled_old_pool() -> None:
    pool = NodePool.model_validate({"name": "apps", "vmSize": LARGE, "minCount": 0, "maxCount": 9})
    for count, wanted in ((0, 0), (5, 5), (20, 9)):
        write = new_pool_write(pool, OWNER, "appsb", like=live("apps", count=count))
        assert write.body["properties"]["count"] == wanted


def test_a_pool_that_is_drained_keeps_its_nodes_and_loses_its_autoscaler() -> None:
    write = autoscaler_off_write(live("apps", enableAutoScaling=True, minCount=1, maxCount=9, count=4))
    assert write is not None
    properties = write.body["properties"]
    assert (properties["enableAutoScaling"], properties["count"]) == (False, 4)
    assert not {"minCount", "maxCount"} & properties.keys()
    assert autoscaler_off_write(live("apps")) is None


# Any pools, any manifest


class Refused(Exception):
    """An operator has to change the manifest first."""


class Pools:
    """A cluster's pools in Azure, and the rules that AKS has for them."""

    def __init__(self, profiles: list[dict[str, Any]]) -> None:
        self.live = {str(profile["name"]): profile for profile in profiles}
        self.taken_over: set[str] = set()

    def act(self, cluster: Desired) -> bool:
        """Carry out the next action, in the order of the step; return whether there was one."""
        pools = serving(self.live.values(), OWNER)
        stages = [(pool, stage(cluster, pool.name, *self.live.values())) for pool in cluster.spec.node_pools]
        for pool, found in sorted(
            stages, key=lambda one: (type(one[1]) is not Create, one[0].mode != "System")
        ):
            if self._do(pool, found, cluster):
                return True
        serve = [profile for pool in cluster.spec.node_pools for profile in pools.get(pool.name, ())]
        for name, profile in self.live.items():
            if profile not in serve and OWNER.owns(profile):
                self._remove(name)
                return True
        return False

    def _do(self, pool: NodePool, found: Stage, cluster: Desired) -> bool:
        match found:
            case Create(name):
                self._put(name, new_pool_write(pool, OWNER, name).body, new=True)
            case Keep(profile) | Replace(profile) if not OWNER.owns(profile):
                if set(pool_difference(pool, cluster, OWNER, profile)) - {
                    f"tags.{tag}" for tag in OWNER.tags
                }:
                    raise Refused
                self._put(profile["name"], ownership_write(pool, OWNER, profile).body)
                self.taken_over.add(str(profile["name"]))
            case Keep(profile):
                return self._keep(pool, profile, cluster)
            case Replace(old, name):
                self._put(name, new_pool_write(pool, OWNER, name, like=old).body, new=True)
            case Retire(old, remaining, misfit):
                if misfit or not self._keep(pool, remaining, cluster):
                    assert OWNER.pool_of(remaining) == OWNER.pool_of(old) == pool.name
                    assert OWNER.owns(remaining)
                    assert misfit or not fixed_leaves(pool, cluster, OWNER, remaining)
                    self._remove(old["name"])
        return True

    def _keep(self, pool: NodePool, profile: Json, cluster: Desired) -> bool:
        write = pool_write(pool, cluster, OWNER, profile)
        if write:
            self._put(profile["name"], write.body)
        return write is not None

    def _put(self, name: str, body: Json, *, new: bool = False) -> None:
        assert new == (name not in self.live)
        given = {key: value for key, value in body["properties"].items() if key != "type"}
        self.live[name] = live(name) | self.live.get(name, {}) | given | {"provisioningState": "Succeeded"}
        self._check()

    def _remove(self, name: str) -> None:
        assert OWNER.owns(self.live[name])
        del self.live[name]
        self._check()

    def _check(self) -> None:
        assert any(profile["mode"] == "System" for profile in self.live.values())


NAMES = ("system", "apps", "appsb", "appsbb", "x")
SIZES = st.sampled_from([SMALL, MIDDLE, LARGE])
MODES = st.sampled_from(["System", "User"])


@st.composite
def clusters(draw: st.DrawFn) -> Desired:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    pools = [{"name": name, "mode": draw(MODES), "vmSize": draw(SIZES)} for name in names]
    assume(any(pool["mode"] == "System" for pool in pools))
    return desired(*pools)


@st.composite
def left_over(draw: st.DrawFn) -> list[dict[str, Any]]:
    modes = {name: draw(MODES) for name in NAMES}
    found = []
    for name in draw(st.lists(st.sampled_from((*NAMES, "systemb")), min_size=1, max_size=6, unique=True)):
        serves = draw(st.sampled_from(NAMES))
        state = draw(st.sampled_from(["Succeeded", "Succeeded", "Failed", "Canceled"]))
        ours = draw(st.booleans()) or draw(st.booleans())
        fields = {"mode": modes[serves], "vmSize": draw(SIZES), "provisioningState": state}
        found.append(live(name, serves, ours=ours, **fields))
    assume(any(profile["mode"] == "System" for profile in found))
    return found


@pytest.mark.lives
@settings(max_examples=examples(200))
@given(profiles=left_over(), plans=st.lists(clusters(), min_size=1, max_size=3), data=st.data())
def test_any_pools_become_one_fitting_pool_for_each_of_the_manifest(
    profiles: list[dict[str, Any]], plans: list[Desired], data: st.DataObject
) -> None:
    pools = Pools(profiles)
    foreign = {name: dict(found) for name, found in pools.live.items() if not OWNER.owns(found)}
    try:
        for cluster in plans[:-1]:  # the next one interrupts each of them
            for _ in range(data.draw(st.integers(0, 6))):
                pools.act(cluster)
        actions = 0
        while pools.act(plans[-1]):
            actions += 1
            assert actions < 60, "no end"
    except Refused:
        pass
    else:
        served = serving(pools.live.values(), OWNER)
        for pool in plans[-1].spec.node_pools:
            (one,) = served[pool.name]
            assert pool_difference(pool, plans[-1], OWNER, one) == ()
        wanted = {pool.name for pool in plans[-1].spec.node_pools}
        assert {OWNER.pool_of(found) for found in pools.live.values() if OWNER.owns(found)} <= wanted
    for name, before in foreign.items():  # a pool that equals the manifest is adopted
        assert name in pools.taken_over or pools.live[name] == before


@pytest.mark.lives
@settings(max_examples=examples(200))
@given(old=SIZES, new=SIZES, newest=SIZES, actions=st.integers(0, 4))
def test_a_second_change_in_the_middle_never_leaves_more_than_two_pools(
    old: str, new: str, newest: str, actions: int
) -> None:
    pools = Pools([live("system", mode="System"), live("apps", vmSize=old)])
    for size, times in ((new, actions), (newest, 20)):
        cluster = desired({"name": "system"}, {"name": "apps", "vmSize": size})
        for _ in range(times):
            pools.act(cluster)
            mine = [found for found in pools.live.values() if OWNER.pool_of(found) == "apps"]
            assert 1 <= len(mine) <= 2
    assert [found["vmSize"] for found in mine] == [newest]
    assert all(POOL_TAG in found["tags"] for found in mine if found["name"] != "apps")
