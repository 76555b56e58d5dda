"""ARM bodies: the smallest write, and none when nothing differs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.azure.changes.writes import ImmutableChange, is_final
from shared.azure.cluster_body import cluster_leaves, cluster_write, newer_than_requested
from shared.azure.differences import differences_of
from shared.azure.node_pools.body import pool_difference
from shared.kubernetes_versions import needs_upgrade, runs_newer
from tests.support.arm_bodies import OWNER, bodies, cluster_body, created, desired, pool, pool_body


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"nodePools": [pool(count=None, minCount=1, maxCount=3)]},
        {
            "nodePools": [
                pool(nodeLabels={"a": "b"}, nodeTaints=["k=v:PreferNoSchedule"], availabilityZones=["2", "1"])
            ]
        },
        {"nodePools": [pool(), pool(name="apps", mode="User", maxPods=50, osDiskSizeGB=64)]},
        {
            "networkProfile": {
                "networkPluginMode": "overlay",
                "networkPolicy": "cilium",
                "networkDataplane": "cilium",
            }
        },
        {"tags": {"a": "b"}, "sku": {"tier": "Free"}, "dnsPrefix": "Other"},
    ],
)
def test_what_azure_shows_after_a_creation_needs_no_write(fields: dict[str, Any]) -> None:
    cluster = desired(**fields)
    assert bodies(cluster, created(cluster)) == []


def test_tags_and_tier_are_changed_in_place_and_foreign_tags_stay() -> None:
    live = created(desired())
    live["tags"] = {**live["tags"], "policy": "set by Azure"}
    body = cluster_body(desired(tags={"a": "b"}, sku={"tier": "Premium"}), OWNER, live)
    assert body is not None
    assert body["tags"] == {"a": "b", "policy": "set by Azure", **OWNER.tags}
    assert body["sku"]["tier"] == "Premium"
    assert "provisioningState" not in body["properties"]


def test_the_live_count_of_an_autoscaled_pool_belongs_to_the_autoscaler() -> None:
    cluster = desired(nodePools=[pool(count=None, minCount=1, maxCount=5)])
    profile = dict(created(cluster)["properties"]["agentPoolProfiles"][0]) | {"count": 4}
    assert pool_body(cluster.spec.node_pools[0], cluster, OWNER, profile) is None
    wider = desired(nodePools=[pool(count=None, minCount=2, maxCount=5)])
    body = pool_body(wider.spec.node_pools[0], wider, OWNER, profile)
    assert body is not None
    assert (body["properties"]["count"], body["properties"]["minCount"]) == (4, 2)


@pytest.mark.parametrize(
    ("git", "by_hand", "sizes"),
    [
        (
            {"count": None, "minCount": 1, "maxCount": 5},
            {"enableAutoScaling": False, "count": 10},
            {"enableAutoScaling": False, "count": 10},
        ),
        (
            {"count": 3},
            {"enableAutoScaling": True, "minCount": 2, "maxCount": 9, "count": 7},
            {"enableAutoScaling": True, "minCount": 2, "maxCount": 9, "count": 7},
        ),
    ],
)
def test_a_job_that_leaves_the_autoscaler_as_it_is_leaves_the_sizes_that_go_with_it(
    git: dict[str, Any], by_hand: dict[str, Any], sizes: dict[str, Any]
) -> None:
    cluster = desired(nodePools=[pool(**git, nodeLabels={"a": "b"})])
    live = created(cluster)
    shown = {key: value for key, value in _only_profile(live).items() if key not in ("minCount", "maxCount")}
    profile = shown | by_hand | {"nodeLabels": {}}
    live["properties"]["agentPoolProfiles"] = [profile]
    paths = {difference.path for difference in differences_of(cluster, OWNER, live)}
    assert {"nodePools[system].nodeLabels.a", "nodePools[system].enableAutoScaling"} <= paths
    leaving = replace(cluster, left=paths - {"nodePools[system].nodeLabels.a"})
    body = pool_body(cluster.spec.node_pools[0], leaving, OWNER, profile)
    assert body is not None
    names = ("enableAutoScaling", "minCount", "maxCount", "count")
    assert {key: body["properties"][key] for key in names if key in body["properties"]} == sizes
    after = profile | body["properties"]
    assert pool_body(cluster.spec.node_pools[0], leaving, OWNER, after) is None


def test_an_autoscaler_that_is_turned_on_again_has_a_range_also_where_the_job_leaves_that() -> None:
    cluster = desired(nodePools=[pool(count=None, minCount=1, maxCount=5)])
    profile = _only_profile(created(cluster)) | {"enableAutoScaling": False, "count": 4}
    profile |= {"minCount": None, "maxCount": None}
    left = frozenset({"nodePools[system].minCount", "nodePools[system].maxCount"})
    body = pool_body(cluster.spec.node_pools[0], replace(cluster, left=left), OWNER, profile)
    assert body is not None
    sizes = [body["properties"][key] for key in ("enableAutoScaling", "minCount", "maxCount", "count")]
    assert sizes == [True, 1, 5, 4]


def _only_profile(live: dict[str, Any]) -> dict[str, Any]:
    return dict(live["properties"]["agentPoolProfiles"][0])


APPS = {"name": "apps", "mode": "User", "count": None, "minCount": 1, "maxCount": 5}


@pytest.mark.parametrize(
    ("state", "power", "wanted", "written"),
    [
        ("Succeeded", "Stopped", {"code": "Running"}, (0, {"code": "Running"})),
        ("Succeeded", "Running", {"code": "Stopped"}, (1, {"code": "Stopped"})),
        ("Failed", "Running", {"code": "Stopped"}, (1, None)),
        ("Failed", "Stopped", {"code": "Stopped"}, (0, {"code": "Stopped"})),
        ("Failed", "Stopped", None, (0, {"code": "Stopped"})),
        ("Succeeded", "Stopped", None, None),
    ],
)
def test_a_pool_is_stopped_after_a_write_that_succeeded_and_keeps_the_count_that_azure_shows_of_it(
    state: str, power: str, wanted: dict[str, str] | None, written: tuple[int, dict[str, str] | None] | None
) -> None:
    cluster = desired(nodePools=[pool(), pool(**APPS, powerState=wanted)])
    live = created(desired(nodePools=[pool(), pool(**APPS)]))
    profile = {**live["properties"]["agentPoolProfiles"][1], "provisioningState": state}
    profile |= {"powerState": {"code": power}, "count": 0 if power == "Stopped" else 1}
    body = pool_body(cluster.spec.node_pools[1], cluster, OWNER, profile)
    found = body and (body["properties"]["count"], body["properties"].get("powerState"))
    assert found == written


def test_labels_and_taints_that_git_no_longer_has_are_removed_and_others_stay() -> None:
    labels, taints = {"a": "b", "policy": "x"}, ["k=v:PreferNoSchedule", "policy=x:PreferNoSchedule"]
    cluster = desired(nodePools=[pool(nodeLabels=labels, nodeTaints=taints)])
    profile = created(cluster)["properties"]["agentPoolProfiles"][0]
    plain = desired()
    assert pool_body(plain.spec.node_pools[0], plain, OWNER, profile) is None
    after = replace(plain, removed_keys={"system": ("a", "k=v:PreferNoSchedule")})
    body = pool_body(after.spec.node_pools[0], after, OWNER, profile)
    assert body is not None
    assert body["properties"]["nodeLabels"] == {"policy": "x"}
    assert body["properties"]["nodeTaints"] == ["policy=x:PreferNoSchedule"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"networkProfile": {"podCidr": "10.1.0.0/16"}}, "networkProfile.podCidr cannot be changed"),
        ({"dnsPrefix": "else"}, "dnsPrefix cannot be changed from one to else"),
    ],
)
def test_a_change_of_a_fixed_field_is_refused_with_alternatives(fields: dict[str, Any], message: str) -> None:
    live = created(desired(networkProfile={"networkPluginMode": "overlay", "podCidr": "10.9.0.0/16"}))
    with pytest.raises(ImmutableChange, match=message):
        cluster_body(desired(**fields), OWNER, live)


def test_the_vm_size_of_a_pool_is_never_changed() -> None:
    profile = created(desired())["properties"]["agentPoolProfiles"][0]
    bigger = desired(nodePools=[pool(vmSize="Standard_D8s_v5")])
    with pytest.raises(ImmutableChange, match="node pool system: vmSize cannot be changed"):
        pool_body(bigger.spec.node_pools[0], bigger, OWNER, profile)


@pytest.mark.parametrize("state", ["Failed", "Canceled"])
def test_a_failed_or_cancelled_resource_gets_a_write_without_a_difference(state: str) -> None:
    live = created(desired())
    live["properties"]["provisioningState"] = state
    write = cluster_write(desired(), OWNER, live)
    assert write is not None
    assert write.paths == ()
    profile = live["properties"]["agentPoolProfiles"][0] | {"provisioningState": state}
    assert pool_body(desired().spec.node_pools[0], desired(), OWNER, profile) is not None


@pytest.mark.parametrize(
    ("state", "ended"),
    [
        *(("Succeeded", True), ("Failed", True), ("Canceled", True)),
        *(("Creating", False), ("Starting", False), ("Stopping", False), ("Migrating", False)),
        *(("ReconcilingClusterETCDCertificates", False), ("SomethingNew", False)),
    ],
)
def test_every_state_but_three_means_that_azure_is_at_work(state: str, ended: bool) -> None:
    assert is_final(state) is ended


@pytest.mark.parametrize(
    ("wanted", "current", "rises", "newer"),
    [
        ("1.36", "1.36.2", False, False),
        ("1.36", "1.3.3", True, False),
        ("1.36.2", "1.36.2", False, False),
        ("1.36.2", "1.36.3", False, True),
        ("1.36.10", "1.36.9", True, False),
        ("1.37", "1.36.2", True, False),
        ("1.36", "1.38.1", False, True),
        ("1.36", "", True, False),
        ("1.36.2", "1.36", False, False),
    ],
)
def test_a_version_rises_or_stays(wanted: str, current: str, rises: bool, newer: bool) -> None:
    assert (needs_upgrade(wanted, current), runs_newer(wanted, current)) == (rises, newer)


@pytest.mark.parametrize("current", ["1.36.3", "1.38.1"])
def test_a_newer_running_version_is_never_downgraded_and_is_reported(current: str) -> None:
    cluster = desired(kubernetesVersion="1.36.2")
    live = created(cluster)
    properties = live["properties"]
    properties |= {"kubernetesVersion": current, "currentKubernetesVersion": current}
    profile = properties["agentPoolProfiles"][0]
    profile |= {"orchestratorVersion": current, "currentOrchestratorVersion": current}
    assert cluster_body(cluster, OWNER, live) is None
    assert pool_body(cluster.spec.node_pools[0], cluster, OWNER, profile) is None
    sentences = newer_than_requested(cluster, OWNER, live)
    assert [sentence.partition(",")[0] for sentence in sentences] == [
        f"the control plane runs {current}",
        f"node pool system runs {current}",
    ]
    properties["provisioningState"] = "Failed"
    body = cluster_body(cluster, OWNER, live)
    assert body is not None
    assert body["properties"]["kubernetesVersion"] == current


def test_a_new_pool_starts_at_the_version_of_the_control_plane() -> None:
    body = pool_body(desired().spec.node_pools[0], desired(), OWNER, None)
    assert body is not None
    assert "orchestratorVersion" not in body["properties"]


def test_a_creation_switches_kubernetes_rbac_on() -> None:
    body = cluster_body(desired(), OWNER, None)
    assert body is not None
    assert body["properties"]["enableRBAC"] is True


def test_the_spelling_that_azure_returns_is_no_difference() -> None:
    pools = [pool(nodeTaints=["a=b:PreferNoSchedule", "c=d:PreferNoSchedule"], availabilityZones=["1", "2"])]
    cluster = desired(tags={"Cost": "X"}, nodePools=pools)
    live = created(cluster)
    live["tags"] = {key.upper(): value for key, value in live["tags"].items()}
    live["properties"]["networkProfile"]["networkPlugin"] = "Azure"
    assert cluster_body(cluster, OWNER, live) is None
    profile = live["properties"]["agentPoolProfiles"][0]
    profile["tags"] = {key.title(): value for key, value in profile["tags"].items()}
    profile["nodeTaints"].reverse()
    profile["availabilityZones"].reverse()
    profile["mode"] = "system"
    assert pool_body(cluster.spec.node_pools[0], cluster, OWNER, profile) is None


def _metrics_of(keys: str) -> dict[str, Any]:
    metrics = {"enabled": True, "kubeStateMetrics": {"metricLabelsAllowlist": keys}}
    return {"azureMonitorProfile": {"metrics": metrics}}


def _opened_with(key: str) -> dict[str, Any]:
    return {"linuxProfile": {"adminUsername": "azureuser", "ssh": {"publicKeys": [{"keyData": key}]}}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_metrics_of("pods=[App]"), _metrics_of("pods=[app]")),
        (_opened_with("ssh-rsa AAAAB3"), _opened_with("ssh-rsa AAAAb3")),
    ],
)
def test_labels_of_kubernetes_and_public_keys_are_case_sensitive(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    live = created(desired(**one))
    assert bodies(desired(**one), live) == []
    (body,) = bodies(desired(**other), live)
    (profile,) = other
    assert body["properties"][profile] == live["properties"][profile] | other[profile]


def test_labels_and_tag_values_are_case_sensitive() -> None:
    cluster = desired(tags={"cost": "X"}, nodePools=[pool(nodeLabels={"a": "B"})])
    live = created(cluster)
    profile = live["properties"]["agentPoolProfiles"][0]
    other = desired(tags={"cost": "x"}, nodePools=[pool(nodeLabels={"a": "b"})])
    assert [*map(str, cluster_leaves(other, OWNER, live))] == ["tags.cost"]
    assert pool_difference(other.spec.node_pools[0], other, OWNER, profile) == ("nodeLabels",)


def test_a_fleet_of_the_same_name_in_another_repository_is_another_fleet() -> None:
    renamed = replace(OWNER, repository="Example/New", previous="Example/Fleet")
    assert renamed.owns({"tags": OWNER.tags})
    assert renamed.created_group({"tags": OWNER.tags})
    other = replace(OWNER, repository="example/other")
    assert not other.owns({"tags": OWNER.tags})
    assert not other.created_group({"tags": OWNER.tags})
    assert other.is_others({"tags": OWNER.tags})
    assert other.describe_tags({"tags": OWNER.tags}).endswith(
        "found roadstead-fleet=example and roadstead-cluster=one and roadstead-repository=example/fleet; "
        "set REPOSITORY_PREVIOUS after a rename of the repository"
    )


def test_only_a_resource_with_the_tags_of_fleet_and_cluster_is_ours() -> None:
    assert OWNER.owns({"tags": {**OWNER.tags, "more": "x"}})
    assert OWNER.owns({"tags": {key.upper(): value for key, value in OWNER.tags.items()}})
    assert not OWNER.owns({"tags": {**OWNER.tags, "roadstead-fleet": "other"}})
    assert not OWNER.owns({})
    assert OWNER.describe_tags({"tags": {"Roadstead-Fleet": "other"}}) == (
        "expected the tags roadstead-fleet=example and roadstead-cluster=one, "
        "found roadstead-fleet=other and no roadstead-cluster"
    )


def test_the_write_of_an_existing_cluster_has_no_node_pools() -> None:
    live = created(desired(nodePools=[pool(count=3)]))
    body = cluster_body(desired(tags={"a": "b"}, nodePools=[pool(count=3)]), OWNER, live)
    assert body is not None
    assert "agentPoolProfiles" not in body["properties"]


SECURE = {"securityProfile": {"enableSecureBoot": True}}
STREAMING = {"artifactStreamingProfile": {"enabled": True}}


@pytest.mark.parametrize(
    ("pools", "first"),
    [
        ([pool(), pool(name="apps", mode="User")], ["system", "apps"]),
        ([pool(), pool(name="apps", mode="User", **SECURE)], ["system"]),
        ([pool(**SECURE), pool(name="apps", mode="User")], ["system", "apps"]),
        ([pool(**STREAMING), pool(name="second")], ["second"]),
        ([pool(name="apps", mode="User", **STREAMING), pool(**SECURE)], ["system"]),
    ],
)
def test_a_new_cluster_begins_with_the_pools_that_aks_takes_there(
    pools: list[dict[str, Any]], first: list[str]
) -> None:
    body = cluster_body(desired(nodePools=pools), OWNER, None)
    assert body is not None
    profiles = body["properties"]["agentPoolProfiles"]
    assert [profile["name"] for profile in profiles] == first
    assert not any(key in profile for profile in profiles for key in (*SECURE, *STREAMING))


def test_a_pool_of_a_new_cluster_gets_afterwards_what_could_not_come_with_it() -> None:
    cluster = desired(nodePools=[pool(**SECURE, **STREAMING)])
    profile = created(cluster, only_first=True)["properties"]["agentPoolProfiles"][0]
    body = pool_body(cluster.spec.node_pools[0], cluster, OWNER, profile)
    assert body is not None
    assert {key: body["properties"][key] for key in (*SECURE, *STREAMING)} == {**SECURE, **STREAMING}
