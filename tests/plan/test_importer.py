"""An existing cluster as a manifest: planned against that cluster, it writes nothing but our tags."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, reject

from cli.commands.write.imported_file import InferredClass, inferred_classes, minimal_spec
from shared.azure.differences import differences_of
from shared.azure.importer import ImportedManifest, NotImportable, document, imported
from shared.azure.ownership import OwnerTags
from shared.cluster.failures.errors import InvalidManifest
from shared.language.desired import Desired, stored_form
from shared.language.model.kinds import Cluster
from shared.language.resolve.manifest_file import unmatched_removals
from shared.language.resolve.rules.cross_field_rules import findings
from shared.language.yaml.nodes import Node, merge, without_nulls
from shared.language.yaml.parser import parse
from shared.resource_ids import ClusterId
from tests.support.arm_bodies import created, desired
from tests.support.cluster_specs import SPECS
from tests.support.hypothesis_settings import GENERATED

pytestmark = pytest.mark.lives

OWNER = OwnerTags("fleet", "example/fleet", "one")
ID = ClusterId("00000000-0000-0000-0000-000000000001", "rg-one", "one")
JsonObject = dict[str, Any]
FLUX = {"flux": {"repository": "https://github.com/example/fleet", "path": "./platform"}}


def unowned(live: dict[str, Any]) -> dict[str, Any]:
    """Return a cluster without the tags of a fleet."""
    properties = live["properties"]
    pools = [untagged(pool) for pool in properties["agentPoolProfiles"]]
    return untagged({**live, "properties": {**properties, "agentPoolProfiles": pools}})


def existing(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a cluster without an owner, created from a spec; reject specs that a plan or Azure refuses."""
    cluster = desired(**spec)
    if any(findings(cluster.spec)):
        reject()
    try:
        return unowned(created(cluster))
    except InvalidManifest:
        reject()


def untagged(resource: dict[str, Any]) -> dict[str, Any]:
    tags = {key: value for key, value in resource["tags"].items() if not key.startswith("roadstead-")}
    return {**resource, "tags": tags}


def as_desired(name: str, spec: Any) -> Desired:
    manifest = Cluster.model_validate(document(name, {**spec, **FLUX}))
    assert manifest.metadata.annotations.adopt == "when-equal"
    return Desired.of(stored_form(name, manifest.spec, "blob", adopt="when-equal"), manifest.spec)


@GENERATED
@given(SPECS)
def test_an_imported_manifest_equals_what_azure_has(spec: dict[str, Any]) -> None:
    live = existing(spec)
    found = imported(ID, OWNER, live, {})
    for manifest in (found.spec, found.short):
        assert differences_of(as_desired(found.name, manifest), OWNER, live) == []
    assert found.differences == ()
    pools = live["properties"]["agentPoolProfiles"]
    fixed = [pool for pool in pools if not pool.get("enableAutoScaling")]
    stopped = [pool["name"] for pool in fixed if pool.get("powerState") == {"code": "Stopped"}]
    assert [left.split(": ")[0] for left in found.left] == [f"nodePools[{name}].count" for name in stopped]


def test_a_windows_pool_inherits_nothing_from_a_layer_that_requests_nothing() -> None:
    system = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}
    apps = {"name": "apps", "mode": "User", "vmSize": "Standard_D4s_v5", "count": 1}
    place = {"subscriptionId": ID.subscription, "resourceGroup": "rg-one", "location": "eastus"}
    pools = [system, {**apps, "osType": "Windows"}]
    live = existing({**place, **FLUX, "kubernetesVersion": "1.36", "tags": {}, "nodePools": pools})
    layer = {"nodePools": [system, {**apps, "kubeletConfig": {}, "linuxOSConfig": {"sysctls": {}}}]}
    found = imported(ID, OWNER, live, {})
    own = minimal_spec(found.spec, found.short, layer)
    merged = without_nulls(merge(node_of(layer), node_of(own))).plain()
    assert differences_of(as_desired(found.name, merged), OWNER, live) == []


def test_an_empty_profile_of_a_layer_is_removed_with_the_value_that_it_goes_with() -> None:
    found = imported(ID, OWNER, unowned(created(desired())), {})
    layer = {"networkProfile": {"outboundType": "managedNATGateway", "natGatewayProfile": {}}}
    own = minimal_spec(found.spec, found.short, layer)
    network = own["networkProfile"]
    assert (network["outboundType"], network["natGatewayProfile"]) == ("loadBalancer", None)


@GENERATED
@given(SPECS, SPECS)
def test_over_any_layers_the_minimal_manifest_equals_what_azure_has(
    spec: dict[str, Any], other: dict[str, Any]
) -> None:
    live = existing(spec)
    found = imported(ID, OWNER, live, {})
    base = {key: value for key, value in other.items() if key not in ("azure", "subscriptionId")}
    own = minimal_spec(found.spec, found.short, base)
    merged = without_nulls(merge(node_of(base), node_of(own))).plain()
    assert differences_of(as_desired(found.name, merged), OWNER, live) == []
    below = [node_of(base)]
    assert not unmatched_removals(node_of(own), below, ("spec",), node_of({"spec": own}))


def node_of(value: Any) -> Node:
    """Return a value as if it were read from a file."""
    return parse(json.dumps(value).encode(), "file.yaml")


def shown(
    *, outer: dict[str, Any] | None = None, pool: dict[str, Any] | None = None, **more: Any
) -> JsonObject:
    """Return a cluster without an owner as Azure shows it; ``outer`` are fields outside its properties."""
    live = unowned(created(desired()))
    profile = {**live["properties"]["agentPoolProfiles"][0], **(pool or {})}
    properties = {**live["properties"], "agentPoolProfiles": [profile], **more}
    return {**live, "properties": properties, **(outer or {})}


def taken(live: JsonObject, name: str = "one") -> ImportedManifest:
    found = imported(replace(ID, name=name), replace(OWNER, cluster=name.lower()), live, {})
    as_desired(found.name, found.short)
    return found


IDENTITY = "/subscriptions/s/resourceGroups/{}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{}"
OURS = IDENTITY.format("rg-one", "cluster")
USER = {"identity": {"type": "UserAssigned", "userAssignedIdentities": {OURS: {"clientId": "c"}}}}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (shown(autoUpgradeProfile={"upgradeChannel": "patch"}), {"kubernetesVersion": "1.36"}),
        (
            shown(kubernetesVersion="1.36.1"),
            {"kubernetesVersion": "1.36.3"},
        ),
        (shown(kubernetesVersion="1.36"), {"kubernetesVersion": "1.36"}),
        (shown(nodeResourceGroup="rg-nodes"), {"nodeResourceGroup": "rg-nodes"}),
        (shown(networkProfile={"networkPlugin": "Azure"}), {"networkProfile": {"networkPlugin": "azure"}}),
        (
            shown(outer={"kind": "Base", "extendedLocation": {"name": "losangeles", "type": "EdgeZone"}}),
            {"kind": "Base", "extendedLocation": {"name": "losangeles", "type": "EdgeZone"}},
        ),
        (shown(enableRBAC=False), {"enableRBAC": False, "azure": None}),
        (
            shown(outer={"sku": {"name": "Automatic", "tier": "Standard"}}),
            {"sku": {"name": "Automatic", "tier": "Standard"}},
        ),
        (
            shown(
                securityProfile={"azureKeyVaultKms": {"enabled": False, "keyVaultNetworkAccess": "Public"}}
            ),
            {"securityProfile": None},
        ),
        (
            shown(oidcIssuerProfile={"enabled": True, "issuerURL": "https://x", "newPart": {"on": True}}),
            {
                "oidcIssuerProfile": {"enabled": True},
                "azure": {"properties": {"oidcIssuerProfile": {"newPart": {"on": True}}}},
            },
        ),
        (
            shown(outer={**USER, "location": "East US", "sku": {"name": "Base", "tier": "Premium"}}),
            {
                "identity": {"type": "UserAssigned", "userAssignedIdentity": OURS},
                "location": "eastus",
                "sku": {"tier": "Premium"},
            },
        ),
        (
            shown(
                outer=USER,
                identityProfile={"kubeletidentity": {"resourceId": IDENTITY.format("rg", "kubelet")}},
            ),
            {"identityProfile": {"kubeletidentity": {"resourceId": IDENTITY.format("rg", "kubelet")}}},
        ),
    ],
)
def test_each_property_has_its_place_in_the_manifest(live: JsonObject, expected: dict[str, Any]) -> None:
    found = taken(live)
    assert {key: found.short.get(key) for key in expected} == expected
    assert (found.left, found.differences) == ((), ())


def test_names_that_azure_chose_itself_are_left_out() -> None:
    found = taken(shown(outer=USER))
    without_defaults = {
        "identityProfile",
        "nodeResourceGroup",
        "azure",
        "supportPlan",
        "storageProfile",
        "fqdn",
    }
    assert not without_defaults & found.short.keys()


MACHINES = {"scale": {"manual": [{"size": "Standard_D4s_v5", "count": 3}]}}


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (
            {"enableAutoScaling": True, "minCount": 2, "maxCount": 9, "count": 4},
            {"minCount": 2, "maxCount": 9},
        ),
        ({"count": 4, "maxPods": 30}, {"count": 4, "maxPods": 30}),
        ({"currentOrchestratorVersion": "1.35.7"}, {"orchestratorVersion": "1.35.7"}),
        (
            {
                "type": "VirtualMachines",
                "virtualMachinesProfile": MACHINES,
                "count": 3,
                "enableAutoScaling": None,
            },
            {"type": "VirtualMachines", "virtualMachinesProfile": MACHINES, "count": None, "vmSize": None},
        ),
        ({"nodeLabels": {"a": "", "b": "c"}}, {"nodeLabels": {"a": "", "b": "c"}}),
        (
            {"mode": "User", "scaleSetPriority": "spot", "spotMaxPrice": -1},
            {"scaleSetPriority": "Spot", "spotMaxPrice": -1},
        ),
    ],
)
def test_an_imported_pool_has_its_size_and_what_differs_from_the_defaults(
    pool: dict[str, Any], expected: dict[str, Any]
) -> None:
    live = shown(pool={"name": "apps", **pool})
    live["properties"]["agentPoolProfiles"].append(shown()["properties"]["agentPoolProfiles"][0])
    found = taken(live)
    (apps, _) = found.short["nodePools"]
    assert {key: apps.get(key) for key in expected} == expected
    assert ["count" in apps, "maxCount" in apps, "virtualMachinesProfile" in apps].count(True) == 1
    assert found.differences == ()


@pytest.mark.parametrize(
    ("live", "message"),
    [
        (shown(outer={"tags": {"azure-policy": "x", "team": "a"}}), "tags.azure-policy: "),
        (shown(adminPassword="x"), "adminPassword: it looks like a secret"),
        (shown(networkProfile={"networkPlugin": "flat"}), "networkProfile.networkPlugin: "),
        (shown(pool={"type": "AvailabilitySet"}), "nodePools[system].type: "),
        (shown(dnsPrefix="{name}"), "dnsPrefix: a manifest would fill in the braces"),
        (shown(outer={"tags": {"roadstead-fleet": "theirs"}}), "tags: the cluster has an owner already"),
        (
            shown(pool={"nodeLabels": {"kubernetes.azure.com/x": "y", "mine": "z"}}),
            "nodePools[system].nodeLabels.kubernetes.azure.com/x: ",
        ),
    ],
)
def test_what_a_manifest_cannot_express_is_listed_and_nothing_else_is_lost(
    live: JsonObject, message: str
) -> None:
    found = taken(live)
    assert [message in sentence for sentence in found.left] == [True]
    tags = {key: value for key, value in live["tags"].items() if key == "team"}
    assert found.short.get("tags", {}) == tags


@pytest.mark.parametrize("autoscaled", [False, True])
def test_a_stopped_pool_is_imported_as_stopped_and_its_count_is_asked_for(autoscaled: bool) -> None:
    bounds = {"enableAutoScaling": True, "minCount": 2, "maxCount": 9} if autoscaled else {}
    live = shown(
        pool={"name": "apps", "mode": "User", "count": 0, "powerState": {"code": "Stopped"}, **bounds}
    )
    live["properties"]["agentPoolProfiles"].append(shown()["properties"]["agentPoolProfiles"][0])
    found = taken(live)
    assert found.short["nodePools"][0]["powerState"] == {"code": "Stopped"}
    assert "powerState" not in found.short["nodePools"][1]
    asked = [sentence.partition(": ")[0] for sentence in found.left]
    assert asked == ([] if autoscaled else ["nodePools[apps].count"])
    assert found.differences == ()


@pytest.mark.parametrize(
    ("live", "name", "message"),
    [
        (shown(powerState={"code": "Stopped"}), "one", "is stopped, .* start it first"),
        (shown(agentPoolProfiles=[]), "one", "needs at least one pool with mode: System"),
        (shown(), "under_score", "metadata.name must be"),
        (shown(pool={"count": 0}), "one", "a System pool needs at least one node"),
    ],
)
def test_a_cluster_that_no_manifest_can_describe_is_refused_with_the_reason(
    live: JsonObject, name: str, message: str
) -> None:
    with pytest.raises(NotImportable, match=message):
        taken(live, name)


def test_capitals_in_a_name_are_the_same_to_azure() -> None:
    assert taken(shown(), "One").name == "one"


def test_a_pool_that_replaced_another_has_the_name_of_the_manifest() -> None:
    live = created(desired())
    profile = live["properties"]["agentPoolProfiles"][0]
    profile.update(name="systemb", tags={**profile["tags"], "roadstead-pool": "system"})
    found = imported(ID, OwnerTags("example", "example/fleet", "one"), live, {})
    assert [pool["name"] for pool in found.short["nodePools"]] == ["system"]
    assert found.differences == ()


@GENERATED
@given(SPECS, SPECS, SPECS)
def test_over_the_class_of_any_clusters_each_manifest_equals_what_azure_has(
    spec: dict[str, Any], like: dict[str, Any], other: dict[str, Any]
) -> None:
    lives = {
        "a": existing(spec),
        "b": existing({**like, "nodePools": spec["nodePools"]}),
        "c": existing(other),
    }
    found = {name: imported(ID, OWNER, live, {}) for name, live in lives.items()}
    own = {name: minimal_spec(entry.spec, entry.short, {}) for name, entry in found.items()}
    for kind in inferred_classes(own):
        for name in kind.clusters:
            mine = minimal_spec(found[name].spec, found[name].short, kind.spec)
            merged = without_nulls(merge(node_of(kind.spec), node_of(mine))).plain()
            assert differences_of(as_desired(found[name].name, merged), OWNER, lives[name]) == []


def test_a_class_has_what_most_share_and_clusters_unlike_all_others_have_none() -> None:
    shape = {
        "sku": {"tier": "Standard"},
        "tags": {"team": "web"},
        "nodePools": [{"name": "apps", "count": 3}],
    }
    specs: dict[str, JsonObject] = {
        "a": {**shape, "location": "eastus"},
        "b": {
            **shape,
            "tags": {"team": "shop"},
            "nodePools": [{"name": "apps", "count": 3}, {"name": "gpu"}],
        },
        "c": shape,
        "d": {"networkProfile": {"networkPlugin": "none"}, "sku": {"tier": "Free"}},
        "e": {"location": "eastus"},
        "f": {"location": "eastus"},
    }
    assert inferred_classes(specs) == [InferredClass(shape, ("a", "b", "c"))]
    assert inferred_classes({}) == []
