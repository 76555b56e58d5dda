"""The life of a fleet in which every function of the apps runs, each as the identity of its app."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache

import azure.functions as func

from localcloud.memory.memory_cloud import EVENTS, QUEUES
from localcloud.servicebus.world.broker_values import Draft
from shared.app.api.access import Principal, Role
from shared.app.api.acts.request_limits import ClusterRequest
from shared.app.api.acts.requests import request_cluster
from shared.app.api.acts.times import OrderKind, order_sleep
from shared.app.api.acts.tries import begin_try
from shared.cluster.queues.envelopes import job_message
from shared.cluster.recipes import Step
from shared.configuration.settings import App
from shared.platform.pins import roots_of
from tests.support import fleet_files
from tests.support.checks import check
from tests.support.deployed_rights import (
    CloudWithRights,
)
from tests.support.flux_channels import environment, extension
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
from tests.support.pipeline_runs import push, record_of, require_ready
from tests.support.policies import ADDON, DENY, POLICIES
from tests.support.proposals import Repo
from tests.support.staged_fleets import NAMESPACE
from tests.support.sweeps import sweep, tag_by_hand
from tests.support.team_systems import DEPLOYMENT, system

MORE_IDENTITY = OWN_IDENTITY.splitlines()[-1].replace("flux", "more") + "\n"


FOLLOWED = {
    "environments/development.yaml": environment("development", "    kubernetesVersion: '1.36'\n"),
    "environments/development.versions.yaml": extension("development"),
}
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
    require_ready(cloud, "one")
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
    require_ready(cloud, "one")
    _with_namespace(cloud, newer)
    _with_extension(cloud, newer)
    _gate(cloud, newer)
    _contest(cloud, newer)
    _roll_back(cloud)
    _request(cloud, newer)
    group = ONE.resource.partition("/providers")[0]
    subnet = f"{group}/providers/Microsoft.Network/virtualNetworks/hub/subnets/aks"
    encrypted = "      enableEncryptionAtHost: true\n"
    zone = f"{group}/providers/Microsoft.Network/privateDnsZones/privatelink.eastus.azmk8s.io"
    private = (
        f"  identity: {{type: UserAssigned, userAssignedIdentity: {SHOP.resource}}}\n"
        f"  apiServerAccessProfile: {{enablePrivateCluster: true, privateDNSZone: {zone}}}\n"
    )
    networked = fleet_files.cluster("net", extra=f"      vnetSubnetID: {subnet}\n{encrypted}{private}")
    record = record_of(cloud, "one")
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
        require_ready(cloud, "one")


def _with_extension(cloud: CloudWithRights, extra: str) -> None:
    """Let the fleet have another cluster with the Flux extension, and take a source of that away again.

    Its environment follows a channel of that.
    """
    source = 'sources: [{name: team, url: "https://github.com/example/team"}]'
    for more in (f", {source}", ""):
        flux = f"  environment: development\n  flux: {{install: extension{more}}}\n"
        of_two = {"clusters/two/cluster.yaml": fleet_files.cluster("two", extra=flux)}
        push(cloud, files(extra) | FOLLOWED | of_two)
        cloud.run()
        require_ready(cloud, "one", "two")
    push(cloud, files(extra))
    cloud.run()
    require_ready(cloud, "one")


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
        require_ready(cloud, "one")


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
    cloud.run()  # each app examines itself


def _roll_back(cloud: CloudWithRights) -> None:
    """Ask for the rollback of a pool, which Azure has replaced by a new one: it lists nothing for that."""
    status, body = call(cloud.acting_as(App.CONTROL, cloud.ports), "rollback", name="one", pool="apps")
    assert (status, "Azure lists no earlier version" in body["error"]) == (409, True), body


def _request(cloud: CloudWithRights, extra: str) -> None:
    """Let somebody ask for a cluster, which needs no other person."""
    where = "classes: [small], environments: [development], locations: [eastus]"
    rule = f"{{roles: [Operator], {where}, atOnce: 1, merge: auto}}"
    allowed = files(extra)
    allowed["fleet.yaml"] = allowed["fleet.yaml"].replace(
        b"spec:\n", f"spec:\n  selfService:\n    - {rule}\n".encode(), 1
    )
    push(cloud, allowed)
    cloud.run()
    somebody = Principal("7", "dana@example.com", frozenset({Role.OPERATOR}))
    asked = ClusterRequest("load-aks", "small", "8h", "", "eastus", "a load test")
    answer = request_cluster(asked, somebody, cloud.acting_as(App.CONTROL, cloud.ports))
    assert answer.status == 201, answer.body


def _contest(cloud: CloudWithRights, extra: str) -> None:
    """Let the fleet meet its cluster with the tags of another installation, and take it over."""
    theirs = {**cloud.azure.get_cluster(ONE)["tags"], "roadstead-installation": "0a0b0c0d@other"}
    cloud.azure.patch_cluster(ONE, {"tags": theirs})
    push(cloud, files(extra + "  tags: {team: shop}\n"))
    cloud.run(seconds=600, until=lambda: False)
    ports = cloud.acting_as(App.CONTROL, cloud.ports)
    assert call(ports, "takeover", name="one")[0] == 202
    cloud.run()
    require_ready(cloud, "one")


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
        require_ready(cloud, "one")


def _send_present_message(cloud: CloudWithRights, queue: str) -> None:
    (record,) = cloud.state.clusters()
    cloud.broker.send(queue, Draft(job_message(record).model_dump_json().encode(), session="one"))
