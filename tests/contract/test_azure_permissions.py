"""The role of each app in a target subscription allows the calls of its functions, and no other change.

The tables below are from Microsoft's pages "Azure permissions for Containers" and "AKS service permissions".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import azure.functions as func
import pytest

from localcloud.azure.wire.authorization import action_of, allows
from localcloud.memory.memory_cloud import EVENTS, QUEUES
from localcloud.servicebus.world.broker_values import Draft
from shared.app.api.acts.sleep import OrderKind, order_sleep
from shared.app.api.acts.tries import begin_try
from shared.cluster.failures.errors import Unauthorized
from shared.cluster.queues.envelopes import job_message
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.platform.pins import roots_of
from shared.ports.azure import AzureCall, DeleteCluster, DeleteGroup
from shared.ports.pull_requests import Proposing
from shared.settings import App
from tests.support import fleet_files
from tests.support.azure_operations import OPERATIONS
from tests.support.checks import check
from tests.support.deployed_rights import (
    CloudWithRights,
    actions,
    permission_of,
    receiver,
    senders,
)
from tests.support.function_calls import ADMIN, call, functions
from tests.support.identity_access import (
    ACCESS,
    CREDENTIAL,
    ISSUER,
    OWN_IDENTITY,
    ROLE,
    SECOND_CREDENTIAL,
    SECOND_ROLE,
    SHOP,
    with_identity,
)
from tests.support.one_cluster import ONE, WINDOW, files, pool
from tests.support.pipeline_runs import phases, push
from tests.support.policies import ADDON, DENY, POLICIES
from tests.support.proposals import Repo
from tests.support.staged_fleets import NAMESPACE
from tests.support.sweeps import sweep, tag_by_hand
from tests.support.team_systems import DEPLOYMENT, system

ROOT = Path(__file__).parent.parent.parent
CONTAINERS = "Microsoft.ContainerService/managedClusters"
EXTENSIONS = "Microsoft.KubernetesConfiguration"
GROUPS = "Microsoft.Resources/subscriptions/resourceGroups"
IDENTITIES = "Microsoft.ManagedIdentity/userAssignedIdentities"
FEDERATION = f"{IDENTITIES}/federatedIdentityCredentials"
ASSIGNMENTS = "Microsoft.Authorization/roleAssignments"
POLICY_ASSIGNMENTS = "Microsoft.Authorization/policyAssignments"

CHANGES = frozenset(
    {
        *(f"{GROUPS}/{verb}" for verb in ("write", "delete")),
        *(f"{CONTAINERS}/{verb}" for verb in ("write", "delete", "listClusterUserCredential/action")),
        *(f"{CONTAINERS}/{verb}/action" for verb in ("start", "stop")),
        *(f"{CONTAINERS}/agentPools/{verb}" for verb in ("write", "delete")),
        f"{CONTAINERS}/agentPools/upgradeNodeImageVersion/action",
        *(f"{CONTAINERS}/maintenanceConfigurations/{verb}" for verb in ("write", "delete")),
        *(f"{CONTAINERS}/managedNamespaces/{verb}" for verb in ("write", "delete")),
        f"{EXTENSIONS}/extensions/write",
        *(f"{EXTENSIONS}/fluxConfigurations/{verb}" for verb in ("write", "delete")),
        *(f"{IDENTITIES}/{verb}" for verb in ("write", "delete")),
        *(f"{FEDERATION}/{verb}" for verb in ("write", "delete")),
        *(f"{ASSIGNMENTS}/{verb}" for verb in ("write", "delete")),
        *(f"{POLICY_ASSIGNMENTS}/{verb}" for verb in ("write", "delete")),
        "Microsoft.PolicyInsights/policyStates/queryResults/action",
        "Microsoft.CostManagement/query/action",
        "Microsoft.Resources/tags/write",
    }
)
"""The changes that an operation may make, and a read that is an action, by the names of the pages for
Containers, for Management and governance, and for Hybrid and multicloud."""

MORE_IDENTITY = OWN_IDENTITY.splitlines()[-1].replace("flux", "more") + "\n"
GRANTS = (
    ISSUER
    + OWN_IDENTITY
    + MORE_IDENTITY
    + CREDENTIAL
    + SECOND_CREDENTIAL
    + ROLE
    + SECOND_ROLE.replace("kubelet", SHOP.resource)
)
POLICY = "  drift: {action: propose, stoppedCluster: start}\n  sleep: {}\n"
NETWORK = "Microsoft.Network"
LINKED: Mapping[str, tuple[str, ...]] = {
    "a public address": (f"{NETWORK}/publicIPAddresses/join/action",),
    "a public address prefix": (f"{NETWORK}/publicIPPrefixes/join/action",),
    "a subnet": (f"{NETWORK}/virtualNetworks/subnets/join/action",),
    "an application gateway": (
        f"{NETWORK}/applicationGateways/read",
        f"{NETWORK}/applicationGateways/write",
        f"{NETWORK}/virtualNetworks/subnets/join/action",
    ),
    "a user-assigned identity": ("Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",),
    "a Log Analytics workspace": (
        "Microsoft.OperationalInsights/workspaces/read",
        "Microsoft.OperationalInsights/workspaces/sharedkeys/read",
        # Defender for Containers fetches the keys with a POST, in the name of whoever writes the cluster.
        "Microsoft.OperationalInsights/workspaces/sharedKeys/action",
        "Microsoft.OperationsManagement/solutions/read",
        "Microsoft.OperationsManagement/solutions/write",
    ),
    "a disk encryption set": ("Microsoft.Compute/diskEncryptionSets/read",),
    "a proximity placement group": ("Microsoft.Compute/proximityPlacementGroups/write",),
    "a load balancer whose backend pools have addresses": (
        f"{NETWORK}/virtualNetworks/joinLoadBalancer/action",
    ),
}
"""What whoever writes a cluster needs on the resources that it names, from "AKS service permissions"."""
BY_THE_CLUSTER = frozenset(
    {
        *("a private DNS zone", "a DNS zone", "a key vault", "a registry", "a node pool snapshot"),
        *("an application security group", "a dedicated host group", "a capacity reservation group"),
    }
)
"""What that page does not ask of whoever writes a cluster: the cluster's identities need roles on it."""


def test_the_names_follow_from_the_requests() -> None:
    cluster = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c"
    expected = {
        ("PUT", cluster): f"{CONTAINERS}/write",
        ("DELETE", f"{cluster}/agentPools/p"): f"{CONTAINERS}/agentPools/delete",
        ("POST", f"{cluster}/listClusterUserCredential"): f"{CONTAINERS}/listClusterUserCredential/action",
        ("DELETE", "/subscriptions/s/resourcegroups/g"): f"{GROUPS}/delete",
        ("GET", "/subscriptions/s/resourceGroups/g/resources"): f"{GROUPS}/resources/read",
    }
    assert {request: action_of(*request) for request in expected} == {
        request: name.lower() for request, name in expected.items()
    }


@pytest.mark.parametrize("kind", OPERATIONS)
def test_the_name_of_each_operation_is_one_of_microsofts_pages(kind: type[AzureCall[Any]]) -> None:
    name = permission_of(kind)
    assert name.endswith("/read") or name in {change.lower() for change in CHANGES}


def test_the_worker_may_use_whatever_azure_asks_for_a_resource_that_a_manifest_may_name() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text()
    named = {kind.strip() for kind in re.findall(r"the resource id of (an? [^(;|]+)", reference)}
    assert len(named) > 10
    assert named - set(LINKED) - BY_THE_CLUSTER == set(), "see Microsoft's page on AKS service permissions"
    assert "backendPoolType" in reference
    needed = {name for names in LINKED.values() for name in names}
    assert {name for name in needed if not allows(actions(App.WORKER), name)} == set()


def test_every_call_of_every_function_is_made_by_an_identity_whose_role_has_it_and_nothing_else() -> None:
    cloud = lived_through()
    assert cloud.refused == []
    assert set.union(*cloud.calls.values()) == set(OPERATIONS), "the life makes every call"
    linked = {name.lower() for names in LINKED.values() for name in names}
    for app in App:
        used = {permission_of(kind) for kind in cloud.calls[app]}
        extra = linked if app is App.WORKER else set()
        granted = {name.lower() for name in actions(app)}
        assert {name for name in granted - extra if name not in used} <= {"*/read"}, app
        assert all(allows(actions(app), name) for name in used), app


def test_only_the_deleter_may_delete_a_cluster_or_a_group_and_it_changes_nothing() -> None:
    deletes = {f"{CONTAINERS}/delete", f"{GROUPS}/delete"}
    grants = {f"{each}/delete" for each in (IDENTITIES, FEDERATION, ASSIGNMENTS, POLICY_ASSIGNMENTS)}
    changes = {app: {name for name in actions(app) if not name.endswith("/read")} for app in App}
    asks = {"Microsoft.CostManagement/query/action"}  # a read, whose question is a body
    assert changes[App.CONTROL] - asks == {"Microsoft.Resources/tags/write"}
    assert changes[App.DELETER] == deletes | grants
    assert not any("*" in name for names in changes.values() for name in names)
    for app in (App.CONTROL, App.WORKER):
        assert [name for name in deletes if allows(actions(app), name)] == [], app


def test_an_app_may_send_only_to_the_queues_to_which_its_functions_send() -> None:
    cloud = lived_through()
    assert {queue: receiver(queue) for queue in QUEUES} == {
        "plans": App.CONTROL,
        "previews": App.CONTROL,
        "jobs": App.WORKER,
        "changes": App.WORKER,
        "deletes": App.DELETER,
    }
    for queue in QUEUES:
        needed = {app for app in App if queue in cloud.sent[app]}
        assert senders(queue) == needed | {receiver(queue)}, queue


def test_only_the_app_of_the_sweeps_writes_to_the_fleet_repository() -> None:
    written = lived_through().written
    assert set(written) == {name for name in vars(Proposing) if not name.startswith("_")}
    assert set.union(*written.values()) == {App.CONTROL}


@pytest.mark.parametrize("app", [App.CONTROL, App.WORKER])
def test_an_app_that_is_taken_over_cannot_delete_a_cluster(app: App) -> None:
    cloud = lived_through(until_deleted=False)
    (cluster, *_) = cloud.azure.ids()
    attacker = cloud.acting_as(app, cloud.ports).azure
    for operation in (DeleteCluster(cluster, etag=None), DeleteGroup(cluster.group)):
        with pytest.raises(Unauthorized):
            attacker.call(operation)
    assert cluster in cloud.azure.ids()


@cache
def lived_through(*, until_deleted: bool = True) -> CloudWithRights:
    """Return a cloud after a fleet's life in which every function ran, each as the identity of its app."""
    cloud = CloudWithRights()
    with_identity(cloud)
    push(cloud, files(pool() + WINDOW + GRANTS + POLICIES + '  kubernetesVersion: "1.35"\n'))
    cloud.run()
    newer = (
        pool("Standard_D8s_v5") + WINDOW + ACCESS + OWN_IDENTITY + '  kubernetesVersion: "1.36"\n' + POLICY
    )
    newer += ADDON + "  policies:\n" + DENY
    push(cloud, files(newer))
    cloud.run()
    cloud.azure.interventions.set_node_image(ONE, "system", "AKSUbuntu-2204gen2containerd-202510.19.1")
    push(cloud, files(newer + '  minNodeImageVersion: "202511.01"\n'))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    check(cloud)
    sweep(cloud)
    for tags in ({"own": "x"}, {"own": "y"}):
        tag_by_hand(cloud, ONE, **tags)
        sweep(cloud)
    cloud.azure.patch_cluster(ONE, {"tags": _without(cloud.azure.get_cluster(ONE)["tags"], "own")})
    sweep(cloud)
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    end = cloud.clock() + timedelta(hours=1)
    assert order_sleep(OrderKind.SLEEP, "one", end, "ops", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    _with_namespace(cloud, newer)
    _with_extension(cloud, newer)
    _gate(cloud, newer)
    _contest(cloud, newer)
    _roll_back(cloud)
    group = ONE.resource.partition("/providers")[0]
    subnet = f"{group}/providers/Microsoft.Network/virtualNetworks/hub/subnets/aks"
    encrypted = "      enableEncryptionAtHost: true\n"
    zone = f"{group}/providers/Microsoft.Network/privateDnsZones/privatelink.eastus.azmk8s.io"
    private = (
        f"  identity: {{type: UserAssigned, userAssignedIdentity: {SHOP.resource}}}\n"
        f"  apiServerAccessProfile: {{enablePrivateCluster: true, privateDNSZone: {zone}}}\n"
    )
    networked = fleet_files.cluster("net", extra=f"      vnetSubnetID: {subnet}\n{encrypted}{private}")
    record = cloud.state.cluster("one")
    assert record is not None
    tried = f"{roots_of(record.desired.flux_as_stored)[0]}/tried.yaml"
    more = {"clusters/net/cluster.yaml": networked, tried: NAMESPACE}
    number = Repo(cloud).propose(files(pool()) | more)
    if until_deleted:
        found = begin_try("one", number, timedelta(hours=4), "ops", cloud.ports, "")
        assert found.status == 202, found.body
        cloud.run()
        _delete(cloud)
        _call_the_rest(cloud)
    return cloud


def _without(tags: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in tags.items() if key != name}


def _with_namespace(cloud: CloudWithRights, extra: str) -> None:
    """Let the cluster have a system with a namespace that Azure manages, and take it away again."""
    shop = system("shop", "one", extra="  managedNamespaces: {}\n")
    systems = {"systems/shop.yaml": shop, "apps/shop/web.yaml": DEPLOYMENT}
    files_of_fleet = files(extra)
    guard = b"  guards:\n    namespaceBudget: 1\n"
    files_of_fleet["fleet.yaml"] = files_of_fleet["fleet.yaml"].replace(b"  guards:\n", guard, 1)
    for more in (systems, {}):
        push(cloud, files_of_fleet | more)
        cloud.run()
        assert phases(cloud) == {"one": Phase.READY}


def _with_extension(cloud: CloudWithRights, extra: str) -> None:
    """Let the fleet have another cluster with the Flux extension, and take a source of that away again."""
    source = 'sources: [{name: team, url: "https://github.com/example/team"}]'
    for more in (f", {source}", ""):
        flux = f"  flux: {{install: extension{more}}}\n"
        push(cloud, files(extra) | {"clusters/two/cluster.yaml": fleet_files.cluster("two", extra=flux)})
        cloud.run()
        assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    push(cloud, files(extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def _gate(cloud: CloudWithRights, extra: str) -> None:
    """Let a change wait for a check of alerts."""
    scope = f"/subscriptions/{ONE.subscription}"
    gate = f"gate: {{owner: qa, reason: nothing fires, alertChecks: [{{name: quiet, scope: {scope}}}]}}"
    gated = files(extra + "  tags: {gated: yes}\n")
    stages = f"  rollout:\n    stages:\n      - {{name: all, {gate}}}\n".encode()
    gated["fleet.yaml"] += stages
    for wanted in (gated, files(extra)):
        push(cloud, wanted)
        cloud.run()
        assert phases(cloud) == {"one": Phase.READY}


def _call_the_rest(cloud: CloudWithRights) -> None:
    """Call each function of the API and each timer, and let each function of a queue receive a message."""
    commit = cloud.repository.head("main")
    route = {"name": "one", "cluster": "one", "pool": "apps", "commit": commit, "system": "deployer"}
    route["number"], resource = "1", {"resource": ONE.resource}
    headers = {**ADMIN, "content-type": "application/json", "x-roadstead-reason": "a test"}
    bodies = {"approve": b'{"clusters": []}', "dismiss": b'{"deadLetters": []}', "refresh": b'{"all": true}'}
    bodies["notify_test"] = b'{"route": "platform-team"}'
    for queue in QUEUES:
        cloud.broker.send(queue, Draft(b"not a message", session="another"))
    for subject in (b"one", b"two"):
        cloud.broker.send(EVENTS, Draft(subject))
    event = cloud.broker.receive(EVENTS)
    assert event is not None
    cloud.broker.dead_letter(EVENTS, event.lock_token)
    cloud.run()
    received = cloud.received | {f"{letter.queue}/$deadletterqueue" for letter in cloud.dead_letters}
    for name, function in functions(cloud.acting_as(App.CONTROL, cloud.ports)).items():
        trigger = function.get_trigger().get_dict_repr()
        if trigger["type"] == "serviceBusTrigger":
            assert trigger["queueName"] in received, name
        elif trigger["type"] == "timerTrigger":
            function.get_user_function()(None)
        else:
            request = func.HttpRequest(
                "GET",
                name,
                params=resource,
                route_params=route,
                headers=headers,
                body=bodies.get(name, b"{}"),
            )
            expected = {"github": 401, "flux": 401, "import": 200}.get(name, range(200, 410))
            status = function.get_user_function()(request).status_code
            assert status in (expected if isinstance(expected, range) else {expected}), (name, status)


def _roll_back(cloud: CloudWithRights) -> None:
    """Ask for the rollback of a pool, which Azure has replaced by a new one: it lists nothing for that."""
    status, body = call(cloud.acting_as(App.CONTROL, cloud.ports), "rollback", name="one", pool="apps")
    assert (status, "Azure lists no earlier version" in body["error"]) == (409, True), body


def _contest(cloud: CloudWithRights, extra: str) -> None:
    """Let the fleet meet its cluster with the tags of another installation, and take it over."""
    theirs = {**cloud.azure.get_cluster(ONE)["tags"], "roadstead-installation": "0a0b0c0d@other"}
    cloud.azure.patch_cluster(ONE, {"tags": theirs})
    push(cloud, files(extra + "  tags: {team: shop}\n"))
    cloud.run(seconds=600, until=lambda: False)
    ports = cloud.acting_as(App.CONTROL, cloud.ports)
    assert call(ports, "takeover", name="one")[0] == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def _delete(cloud: CloudWithRights) -> None:
    """Let the fleet delete its cluster; each app also gets messages that belong to another one."""
    push(cloud, fleet_files.fleet())
    while cloud.state.clusters()[0].job.step.name is not Step.DELETE_CLUSTER:
        cloud.step()
    _send_present_message(cloud, "jobs")
    cloud.run()
    assert cloud.state.clusters() == []
    for small_change, size in ((1, "Standard_D4s_v5"), (0, "Standard_D8s_v5")):
        config = replace(
            cloud.ports.config, limits=replace(cloud.ports.config.limits, small_change=small_change)
        )
        cloud.with_ports(lambda ports, config=config: replace(ports, config=config))  # type: ignore[misc]
        push(cloud, files(pool(size)))
        while not any(record.job.active for record in cloud.state.clusters()):
            cloud.step()
        _send_present_message(cloud, "deletes")
        cloud.broker.send("jobs", Draft(b"not a message", session="one"))
        cloud.run()
        assert phases(cloud) == {"one": Phase.READY}


def _send_present_message(cloud: CloudWithRights, queue: str) -> None:
    (record,) = cloud.state.clusters()
    cloud.broker.send(queue, Draft(job_message(record).model_dump_json().encode(), session="one"))
