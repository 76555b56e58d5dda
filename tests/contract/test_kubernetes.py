"""The Kubernetes port: one suite on the world in memory and on the adapter over a real TLS socket."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
from azure.identity import CredentialUnavailableError

from localcloud.servers.frontdoor import Fault
from localcloud.servers.kubernetes import KubernetesPlane
from localcloud.servers.tls import Authority
from localcloud.world.clock import ManualClock, system_clock
from localcloud.world.kubernetes import KubernetesWorld
from localcloud.world.kubernetes_fleet import KubernetesFleet
from localcloud.world.kubernetes_kinds import BUILT_IN, NAMESPACE, NODE, POD
from localcloud.world.kubernetes_requests import At, Write
from shared.adapters.kubernetes import AKS_SCOPE, KubernetesConnections
from shared.fleet.ids import ClusterId, ObjectRef
from shared.jobs.errors import (
    Blocked,
    Conflict,
    Dependency,
    InvalidManifest,
    Throttled,
    Unauthenticated,
    Unavailable,
)
from shared.ports import Json, Kubernetes, KubernetesApi

CLUSTER = ClusterId("00000000-0000-0000-0000-000000000001", "rg-fleet", "alpha")
NOWHERE = ClusterId("00000000-0000-0000-0000-000000000001", "rg-fleet", "nowhere")
CONFIG_MAP = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")


@dataclass(frozen=True)
class Setting:
    """One implementation: its port, the world behind it, and how time goes by."""

    port: Kubernetes
    world: KubernetesWorld
    wait: Callable[[], None]

    @property
    def api(self) -> KubernetesApi:
        return self.port.connect(CLUSTER)

    def until(self, happens: Callable[[], bool]) -> None:
        for _ in range(200):
            if happens():
                return
            self.wait()
        raise AssertionError("it did not happen")


@pytest.fixture(scope="module")
def plane() -> Iterator[KubernetesPlane]:
    with KubernetesPlane(
        Authority(), read_source=lambda _url, _branch: None, accepts_token=lambda token: token == "a-token"
    ) as running:
        yield running


def _in_memory() -> Setting:
    clock = ManualClock()
    fleet = KubernetesFleet(clock, lambda _url, _branch: None)
    fleet.start(CLUSTER, [])
    world = fleet.world(CLUSTER)
    assert world is not None
    return Setting(fleet, world, lambda: clock.advance(1))


@pytest.fixture(params=["world", "adapter"])
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    if request.param == "world":
        yield _in_memory()
        return
    plane: KubernetesPlane = request.getfixturevalue("plane")
    configs = {CLUSTER: plane.start(CLUSTER, []), NOWHERE: plane.start(NOWHERE, [])}
    plane.stop(NOWHERE)
    connections = KubernetesConnections(configs.__getitem__, aad_token=None, clock=system_clock)
    world = plane.fleet.world(CLUSTER)
    assert world is not None
    yield Setting(connections, world, lambda: time.sleep(0.05))
    connections.close()
    plane.stop(CLUSTER)


def config_map(data: dict[str, str], **metadata: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default", **metadata},
        "data": data,
    }


SETTINGS = ObjectRef("v1", "ConfigMap", "settings", "default")


def widgets(plural: str = "widgets", kind: str = "Widget") -> Json:
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


def test_a_cluster_that_runs_passes_the_check(setting: Setting) -> None:
    setting.api.check()


def test_a_cluster_that_does_not_answer_is_unavailable(setting: Setting) -> None:
    with pytest.raises(Unavailable, match="nowhere"):
        setting.port.connect(NOWHERE).check()


def test_what_is_not_there_is_none(setting: Setting) -> None:
    assert setting.api.get(SETTINGS) is None
    assert setting.api.get(ObjectRef("v1", "ConfigMap", "settings", "no-such-namespace")) is None


def test_an_object_of_an_unknown_kind_is_none_and_cannot_be_applied(setting: Setting) -> None:
    gadget = ObjectRef("example.org/v1", "Gadget", "one", "default")
    manifest = {"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": "one"}}
    assert setting.api.get(gadget) is None
    with pytest.raises(Dependency, match="does not know"):
        setting.api.apply(manifest)


def test_apply_creates_and_get_reads_it_back(setting: Setting) -> None:
    created = setting.api.apply(config_map({"colour": "blue"}))
    found = setting.api.get(SETTINGS)
    assert found == created
    assert created["data"] == {"colour": "blue"}
    assert created["metadata"]["uid"]


def test_an_apply_that_changes_nothing_keeps_the_version(setting: Setting) -> None:
    first = setting.api.apply(config_map({"colour": "blue"}))
    setting.wait()
    assert setting.api.apply(config_map({"colour": "blue"})) == first


def test_a_field_that_is_no_longer_applied_goes_and_fields_of_others_stay(setting: Setting) -> None:
    setting.api.apply(config_map({"mine": "1", "also-mine": "2"}))
    at = At(CONFIG_MAP, "settings", "default")
    setting.world.apply(at, {"data": {"theirs": "3"}}, Write(manager="someone"))
    after = setting.api.apply(config_map({"mine": "1"}))
    assert after["data"] == {"mine": "1", "theirs": "3"}


def test_an_apply_takes_over_a_field_of_another_manager(setting: Setting) -> None:
    at = At(CONFIG_MAP, "settings", "default")
    setting.world.apply(at, {"data": {"colour": "red"}}, Write(manager="someone"))
    assert setting.api.apply(config_map({"colour": "blue"}))["data"] == {"colour": "blue"}
    owners = [entry["manager"] for entry in setting.world.get(at)["metadata"]["managedFields"]]
    assert owners == ["roadstead"]


def test_an_apply_into_a_namespace_that_is_missing_waits_for_it(setting: Setting) -> None:
    with pytest.raises(Dependency, match="not found"):
        setting.api.apply(config_map({}, namespace="team"))
    setting.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    setting.api.apply(config_map({}, namespace="team"))


def test_an_apply_into_a_namespace_that_is_being_deleted_is_a_conflict(setting: Setting) -> None:
    setting.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    setting.api.apply(config_map({}, namespace="team", name="held", finalizers=["example.org/hold"]))
    setting.world.delete(At(NAMESPACE, "team"))
    with pytest.raises(Conflict, match="being terminated"):
        setting.api.apply(config_map({}, namespace="team"))


def test_a_kind_is_known_once_its_definition_is_established(setting: Setting) -> None:
    widget = {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"size": 1},
    }
    ref = ObjectRef("example.org/v1", "Widget", "one", "default")
    setting.api.apply(widgets())
    with pytest.raises(Dependency):
        setting.api.apply(widget)
    definition = ObjectRef("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.org")

    def established() -> bool:
        status = (setting.api.get(definition) or {}).get("status") or {}
        return any(item["type"] == "Established" for item in status.get("conditions", ()))

    setting.until(established)
    assert setting.api.apply(widget)["metadata"]["generation"] == 1
    assert setting.api.apply({**widget, "spec": {"size": 2}})["metadata"]["generation"] == 2
    found = setting.api.get(ref)
    assert found is not None
    assert found["spec"] == {"size": 2}


def test_an_object_that_the_cluster_refuses_is_an_invalid_manifest(setting: Setting) -> None:
    with pytest.raises(InvalidManifest, match=r"metadata\.name"):
        setting.api.apply(config_map({}, name="Not_A_Name"))


def test_a_refused_secret_shows_nothing_but_the_reason(setting: Setting) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "Not_hunter2", "namespace": "default"},
        "stringData": {"password": "hunter2"},
    }
    with pytest.raises(InvalidManifest) as refused:
        setting.api.apply(secret)
    assert str(refused.value) == "Secret Not_hunter2 in default: Invalid"


def test_a_deployment_becomes_available(setting: Setting) -> None:
    labels = {"app": "web"}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "example.org/web:1"}]},
        },
    }
    metadata = {"name": "web", "namespace": "default"}
    setting.api.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    web = ObjectRef("apps/v1", "Deployment", "web", "default")

    def available() -> bool:
        status = (setting.api.get(web) or {}).get("status") or {}
        return bool(status.get("availableReplicas") == 2 and status["observedGeneration"] == 1)

    setting.until(available)


def a_node(setting: Setting, name: str) -> str:
    setting.world.create(NODE, "", {"metadata": {"name": name, "labels": {"agentpool": "web"}}})
    return name


def a_pod(setting: Setting, name: str, node: str, *, ready: bool = True, **metadata: Any) -> str:
    """Create a pod of the app web on a node."""
    whole = {"name": name, "labels": {"app": "web"}, **metadata}
    setting.world.create(POD, "default", {"metadata": whole, "spec": {"nodeName": node}})
    if not ready:
        at = At(POD, name, "default")
        setting.world.set_status(at, {"phase": "Running", "conditions": []}, manager="kubelet")
    return name


def a_budget(setting: Setting, name: str = "web", **spec: Any) -> None:
    setting.api.apply(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        }
    )


def a_replica_set(setting: Setting, replicas: int) -> dict[str, Any]:
    """Create what the pods of the app web belong to; return the reference to it."""
    kind = next(kind for kind in BUILT_IN if kind.kind == "ReplicaSet")
    body = {"metadata": {"name": "web"}, "spec": {"replicas": replicas}}
    uid = setting.world.create(kind, "default", body)["metadata"]["uid"]
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": True}


def pods(setting: Setting, **selectors: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in setting.api.list("v1", "Pod", **selectors)]


def test_lists_show_all_namespaces_or_one_and_obey_selectors(setting: Setting) -> None:
    setting.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    setting.api.apply(config_map({}, name="blue", labels={"colour": "blue", "old": "yes"}))
    setting.api.apply(config_map({}, name="sky", labels={"colour": "blue"}))
    setting.api.apply(config_map({}, name="red", namespace="team", labels={"colour": "red"}))

    def names(**selectors: str) -> list[str]:
        return [found["metadata"]["name"] for found in setting.api.list("v1", "ConfigMap", **selectors)]

    assert names() == ["blue", "sky", "red"]
    assert names(namespace="team") == ["red"]
    assert names(namespace="nowhere") == []
    assert names(labels="colour=blue") == ["blue", "sky"]
    assert names(labels="colour in (blue, red),!old") == ["sky", "red"]
    assert names(fields="metadata.name=red") == ["red"]
    assert names(namespace="default", fields="metadata.name!=sky") == ["blue"]


def test_what_is_listed_is_what_is_read_one_by_one(setting: Setting) -> None:
    created = setting.api.apply(config_map({"colour": "blue"}))
    assert list(setting.api.list("v1", "ConfigMap")) == [created]


def test_a_selector_that_makes_no_sense_is_refused(setting: Setting) -> None:
    with pytest.raises(InvalidManifest, match="the list of v1 Pod: invalid field selector"):
        setting.api.list("v1", "Pod", fields="spec.nodeName")


def test_a_list_of_an_unknown_kind_waits_for_it(setting: Setting) -> None:
    with pytest.raises(Dependency, match="does not know"):
        setting.api.list("example.org/v1", "Gadget")


def test_a_long_list_is_read_to_its_end(setting: Setting) -> None:
    for number in range(1001):
        body = {"metadata": {"name": f"map-{number:04d}"}}
        setting.world.create(CONFIG_MAP, "default", body)
    found = setting.api.list("v1", "ConfigMap")
    assert [one["metadata"]["name"] for one in found] == [f"map-{number:04d}" for number in range(1001)]


def test_the_pods_of_a_node_are_found(setting: Setting) -> None:
    one, two = a_node(setting, "one"), a_node(setting, "two")
    a_pod(setting, "a", one)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    a_pod(setting, "daemon", two, ownerReferences=[owner])
    a_pod(setting, "mirror", two, annotations={"kubernetes.io/config.mirror": "hash"})
    assert pods(setting, fields=f"spec.nodeName={one}") == ["a"]
    assert pods(setting, fields="spec.nodeName=two", namespace="default") == ["daemon", "mirror"]
    daemon, mirror = setting.api.list("v1", "Pod", fields="spec.nodeName=two")
    assert daemon["metadata"]["ownerReferences"] == [owner]
    assert mirror["metadata"]["annotations"] == {"kubernetes.io/config.mirror": "hash"}
    assert daemon["status"]["phase"] == "Running"


def test_pods_go_with_their_node(setting: Setting) -> None:
    a_pod(setting, "a", a_node(setting, "one"))
    a_pod(setting, "b", a_node(setting, "two"))
    setting.world.delete(At(NODE, "one"))
    assert pods(setting) == ["b"]


def test_a_node_is_cordoned_and_taken_back_and_a_gone_one_is_fine(setting: Setting) -> None:
    def unschedulable() -> bool:
        (node,) = setting.api.list("v1", "Node", labels="agentpool=web")
        return bool((node.get("spec") or {}).get("unschedulable"))

    a_node(setting, "one")
    for _ in range(2):
        setting.api.cordon("one")
        assert unschedulable()
    setting.api.cordon("one", on=False)
    assert not unschedulable()
    setting.api.cordon("gone")


def test_a_pod_without_a_budget_is_evicted_and_a_gone_one_is_fine(setting: Setting) -> None:
    a_pod(setting, "a", a_node(setting, "one"))
    setting.api.evict("default", "a")
    assert pods(setting) == []
    setting.api.evict("default", "a")
    setting.api.evict("nowhere", "a")


def test_a_budget_holds_pods_until_there_are_enough(setting: Setting) -> None:
    one, two = a_node(setting, "one"), a_node(setting, "two")
    a_pod(setting, "a", one)
    a_pod(setting, "b", one)
    a_budget(setting, minAvailable=2)
    with pytest.raises(Blocked) as refused:
        setting.api.evict("default", "a")
    assert (refused.value.code, refused.value.retry_after) == ("TooManyRequests", None)
    told = "The disruption budget web needs 2 healthy pods and has 2 currently"
    assert told in str(refused.value)
    assert "pod a in default" in str(refused.value)
    a_pod(setting, "c", two, ready=False)
    with pytest.raises(Blocked):
        setting.api.evict("default", "a")
    a_pod(setting, "d", two)
    setting.api.evict("default", "a")
    with pytest.raises(Blocked):
        setting.api.evict("default", "b")
    assert pods(setting) == ["b", "c", "d"]


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "50%"}, 2),
        ({"maxUnavailable": 0}, 0),
        ({"minAvailable": "75%"}, 1),
        ({"minAvailable": "100%"}, 0),
    ],
)
def test_a_budget_counts_against_what_the_controller_wants(
    setting: Setting, spec: dict[str, Any], allowed: int
) -> None:
    owner, node = a_replica_set(setting, 4), a_node(setting, "one")
    for name in "abcd":
        a_pod(setting, name, node, ownerReferences=[owner])
    a_budget(setting, **spec)
    evicted = 0
    for name in "abcd":
        try:
            setting.api.evict("default", name)
        except Blocked:
            break
        evicted += 1
    assert evicted == allowed
    budget = setting.api.get(ObjectRef("policy/v1", "PodDisruptionBudget", "web", "default"))
    assert budget is not None
    assert (budget["status"]["disruptionsAllowed"], budget["status"]["expectedPods"]) == (0, 4)


def test_a_pod_that_is_not_ready_may_go_while_its_application_is_well(setting: Setting) -> None:
    node = a_node(setting, "one")
    a_pod(setting, "a", node)
    a_pod(setting, "sick", node, ready=False)
    a_budget(setting, minAvailable=2)
    with pytest.raises(Blocked):
        setting.api.evict("default", "sick")
    a_budget(setting, minAvailable=1)
    setting.api.evict("default", "sick")
    a_pod(setting, "sick", node, ready=False)
    a_budget(setting, minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow")
    setting.api.evict("default", "sick")
    assert pods(setting) == ["a"]


def test_two_budgets_on_one_pod_block_it_with_the_reason(setting: Setting) -> None:
    a_pod(setting, "a", a_node(setting, "one"))
    a_budget(setting, minAvailable=0)
    a_budget(setting, "other", minAvailable=0)
    with pytest.raises(Blocked, match="more than one PodDisruptionBudget"):
        setting.api.evict("default", "a")


# The adapter alone: credentials, connections and what the wire can do to it.


@dataclass
class Access:
    """Counts how often a kubeconfig and a token were fetched."""

    config: str
    token: str = "a-token"
    kubeconfigs: int = 0
    scopes: tuple[str, ...] = ()

    def kubeconfig(self, _cluster: ClusterId) -> str:
        self.kubeconfigs += 1
        return self.config

    def aad_token(self, scope: str) -> str:
        self.scopes = (*self.scopes, scope)
        return self.token


@pytest.fixture
def access(plane: KubernetesPlane) -> Iterator[Access]:
    yield Access(plane.start(CLUSTER, []))
    plane.stop(CLUSTER)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def connections(access: Access, clock: ManualClock) -> Iterator[KubernetesConnections]:
    made = KubernetesConnections(access.kubeconfig, aad_token=access.aad_token, clock=clock)
    yield made
    made.close()


def for_entra(config: str) -> str:
    """Return the kubeconfig that AKS gives when local accounts are disabled."""
    content = yaml.safe_load(config)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "kubelogin"}
    content["users"][0]["user"] = {"exec": plugin}
    return yaml.safe_dump(content)


def test_a_connection_is_kept_for_five_minutes(
    access: Access, connections: KubernetesConnections, clock: ManualClock
) -> None:
    first = connections.connect(CLUSTER)
    clock.advance(299)
    assert connections.connect(CLUSTER) is first
    clock.advance(1)
    connections.connect(CLUSTER).check()
    assert access.kubeconfigs == 2


def test_a_cluster_without_local_accounts_is_entered_with_an_entra_token(
    access: Access, connections: KubernetesConnections
) -> None:
    access.config = for_entra(access.config)
    connections.connect(CLUSTER).check()
    assert access.scopes == (AKS_SCOPE,)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (ClientAuthenticationError("AADSTS700016: no such application"), Unauthenticated),
        (CredentialUnavailableError("no managed identity endpoint"), Unauthenticated),
        (ServiceRequestError("connection refused"), Unavailable),
    ],
)
def test_an_entra_token_that_cannot_be_had_is_told_as_such(
    access: Access, clock: ManualClock, failure: Exception, kind: type[Exception]
) -> None:
    def refuse(_scope: str) -> str:
        raise failure

    config = for_entra(access.config)
    connections = KubernetesConnections(lambda _cluster: config, aad_token=refuse, clock=clock)
    with pytest.raises(kind, match=type(failure).__name__):
        connections.connect(CLUSTER)


def test_a_refused_credential_is_told_without_itself_and_fetched_anew(
    access: Access, connections: KubernetesConnections
) -> None:
    access.config, access.token = for_entra(access.config), "a-secret-token"
    with pytest.raises(Unauthenticated) as refused:
        connections.connect(CLUSTER).check()
    assert "a-secret-token" not in str(refused.value)
    access.token = "a-token"
    connections.connect(CLUSTER).check()
    assert access.kubeconfigs == 2


def test_a_credential_that_was_good_a_moment_ago_is_worth_another_try(
    plane: KubernetesPlane, access: Access, connections: KubernetesConnections
) -> None:
    connections.connect(CLUSTER).check()
    plane.door(CLUSTER).faults = [Fault("^GET /readyz", status=401)]
    with pytest.raises(Dependency, match="no longer accepted"):
        connections.connect(CLUSTER).check()
    connections.connect(CLUSTER).check()
    assert access.kubeconfigs == 2


@pytest.mark.parametrize("config", ["", "[1, 2]", "a: [", "kind: Config\ncontexts: []\ncurrent-context: x"])
def test_a_kubeconfig_that_makes_no_sense_is_no_credential(config: str, clock: ManualClock) -> None:
    broken = KubernetesConnections(lambda _cluster: config, aad_token=None, clock=clock)
    with pytest.raises(Unauthenticated, match="the kubeconfig of alpha is not usable"):
        broken.connect(CLUSTER)


def test_a_server_of_another_authority_is_not_believed(
    access: Access, connections: KubernetesConnections
) -> None:
    content = yaml.safe_load(access.config)
    other = base64.b64encode(Authority().pem).decode()
    content["clusters"][0]["cluster"]["certificate-authority-data"] = other
    access.config = yaml.safe_dump(content)
    with pytest.raises(Unavailable, match="SSL"):
        connections.connect(CLUSTER).check()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("", status=503, body={"message": "etcd is away"}, times=None), Unavailable),
        (Fault("", status=429, headers={"Retry-After": "7"}, times=None), Throttled),
        (Fault("", status=410, body={"reason": "Expired"}, times=None), Conflict),
    ],
)
def test_what_the_server_answers_becomes_the_error_that_says_what_to_do(
    plane: KubernetesPlane, connections: KubernetesConnections, fault: Fault, error: type[Exception]
) -> None:
    plane.door(CLUSTER).faults = [fault]
    api = connections.connect(CLUSTER)
    calls: list[Callable[[], object]] = [
        api.check,
        lambda: api.get(SETTINGS),
        lambda: api.apply(config_map({})),
        lambda: api.list("v1", "ConfigMap"),
        lambda: api.cordon("one"),
        lambda: api.evict("default", "a"),
    ]
    for call in calls:
        with pytest.raises(error) as raised:
            call()
        assert getattr(raised.value, "retry_after", None) == (7 if error is Throttled else None)
