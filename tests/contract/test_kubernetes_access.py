"""The Kubernetes adapter alone: credentials, connections and what the wire can do to it."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import yaml
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
from azure.identity import CredentialUnavailableError
from cryptography import x509

from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock
from localcloud.common.front_door import ScriptedFault
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from shared.adapters.kubernetes import AKS_SCOPE, KubernetesConnections
from shared.cluster.failures.errors import (
    Blocked,
    Conflict,
    Dependency,
    InvalidManifest,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
)
from shared.kubernetes.kubeconfig import AUTHORITY, SERVER
from shared.resource_ids import ClusterId
from tests.support.kubernetes_ports import CLUSTER, SETTINGS, Setting, config_map

pytestmark = pytest.mark.lives


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
    config = plane.start(CLUSTER, [])
    plane.set_entra(CLUSTER, on=True)
    yield Access(config)
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


def test_a_connection_is_reused_for_five_minutes(
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
def test_a_missing_entra_token_is_reported(
    access: Access, clock: ManualClock, failure: Exception, kind: type[Exception]
) -> None:
    def refuse(_scope: str) -> str:
        raise failure

    config = for_entra(access.config)
    connections = KubernetesConnections(lambda _cluster: config, aad_token=refuse, clock=clock)
    with pytest.raises(kind, match=type(failure).__name__):
        connections.connect(CLUSTER)


def test_a_refused_credential_is_not_shown_and_is_fetched_again(
    access: Access, connections: KubernetesConnections
) -> None:
    access.config, access.token = for_entra(access.config), "a-secret-token"
    with pytest.raises(Unauthenticated) as refused:
        connections.connect(CLUSTER).check()
    assert "a-secret-token" not in str(refused.value)
    access.token = "a-token"
    connections.connect(CLUSTER).check()
    assert access.kubeconfigs == 2


def test_a_credential_that_was_accepted_a_moment_ago_is_retried(
    plane: KubernetesPlane, access: Access, connections: KubernetesConnections
) -> None:
    connections.connect(CLUSTER).check()
    plane.door(CLUSTER).faults = [ScriptedFault("selfsubjectaccessreviews", status=401)]
    with pytest.raises(Dependency, match="no longer accepted"):
        connections.connect(CLUSTER).check()
    connections.connect(CLUSTER).check()
    assert access.kubeconfigs == 2


@pytest.mark.parametrize("config", ["", "[1, 2]", "a: [", "kind: Config\ncontexts: []\ncurrent-context: x"])
def test_an_invalid_kubeconfig_is_no_credential(config: str, clock: ManualClock) -> None:
    broken = KubernetesConnections(lambda _cluster: config, aad_token=None, clock=clock)
    with pytest.raises(Unauthenticated, match="the kubeconfig of alpha is invalid"):
        broken.connect(CLUSTER)


def test_a_server_of_another_authority_is_not_trusted(
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
        (ScriptedFault("", status=503, body={"message": "etcd is away"}, times=None), Unavailable),
        (ScriptedFault("", status=429, headers={"Retry-After": "7"}, times=None), Throttled),
        (ScriptedFault("", status=410, body={"reason": "Expired"}, times=None), Conflict),
    ],
)
def test_an_answer_of_the_server_becomes_the_error_of_its_class(
    plane: KubernetesPlane,
    connections: KubernetesConnections,
    clock: ManualClock,
    fault: ScriptedFault,
    error: type[Exception],
) -> None:
    plane.door(CLUSTER).faults = [fault]
    api = connections.connect(CLUSTER)
    calls: list[Callable[[], object]] = [
        api.check,
        lambda: api.get(SETTINGS),
        lambda: api.apply(config_map({})),
        lambda: api.list("v1", "ConfigMap"),
        lambda: api.cordon("one", clock()),
        lambda: api.uncordon("one"),
        lambda: api.evict("default", "a"),
    ]
    for call in calls:
        with pytest.raises(error) as raised:
            call()
        assert getattr(raised.value, "retry_after", None) == (7 if error is Throttled else None)


def test_a_credential_that_is_no_administrator_has_no_access(
    plane: KubernetesPlane, connections: KubernetesConnections
) -> None:
    denied = {"kind": "SelfSubjectAccessReview", "status": {"allowed": False}}
    plane.door(CLUSTER).faults = [ScriptedFault("^POST .*/selfsubjectaccessreviews", status=201, body=denied)]
    with pytest.raises(
        Unauthorized, match=r"may not patch customresourcedefinitions\.apiextensions\.k8s\.io"
    ):
        connections.connect(CLUSTER).check()


UNKNOWN_FIELD = (
    "failed to create typed patch object (default/settings; /v1, Kind=ConfigMap): "
    ".dta: field not declared in schema"
)
WRONG_TYPE = (
    "failed to convert new object (/web; apps/v1, Kind=Deployment) to proper version (apps/v1): "
    "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
)


@pytest.mark.parametrize("message", [UNKNOWN_FIELD, WRONG_TYPE])
def test_an_object_that_the_server_cannot_type_is_an_invalid_manifest_with_its_field(
    plane: KubernetesPlane, connections: KubernetesConnections, message: str
) -> None:
    body = {"kind": "Status", "status": "Failure", "message": message, "code": 500}
    plane.door(CLUSTER).faults = [ScriptedFault("^PATCH", status=500, body=body)]
    with pytest.raises(InvalidManifest) as refused:
        connections.connect(CLUSTER).apply(config_map({}))
    assert message in str(refused.value)


def test_a_secret_that_the_server_cannot_type_does_not_show_its_content(
    plane: KubernetesPlane, connections: KubernetesConnections
) -> None:
    message = 'failed to create typed patch object: .data.password: expected string, got "hunter2"'
    plane.door(CLUSTER).faults = [ScriptedFault("^PATCH", status=500, body={"message": message, "code": 500})]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default"}}
    with pytest.raises(InvalidManifest) as refused:
        connections.connect(CLUSTER).apply(secret)
    assert str(refused.value) == "Secret a in default: UnknownField"


def test_another_server_error_is_no_problem_of_the_manifest(
    plane: KubernetesPlane, connections: KubernetesConnections
) -> None:
    body = {"kind": "Status", "message": "etcdserver: request timed out", "code": 500}
    plane.door(CLUSTER).faults = [ScriptedFault("^PATCH", status=500, body=body)]
    with pytest.raises(Unavailable, match="etcdserver"):
        connections.connect(CLUSTER).apply(config_map({}))


POLICY = "ValidatingAdmissionPolicy 'no-evictions' with binding 'all' denied request: not during the sale"
WEBHOOK = 'admission webhook "evictions.example.org" denied the request: not during the sale'
AWAY = 'Internal error occurred: failed calling webhook "evictions.example.org": connect: connection refused'


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (422, "Invalid", f'pods "a" is forbidden: {POLICY}'),
        (403, "Forbidden", f'pods "a" is forbidden: {POLICY}'),
        (403, "Forbidden", WEBHOOK),
        (400, "BadRequest", WEBHOOK),
        (500, "InternalError", AWAY),
    ],
)
def test_an_eviction_that_an_admission_policy_refuses_is_blocked(
    plane: KubernetesPlane, connections: KubernetesConnections, status: int, reason: str, message: str
) -> None:
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": status}
    plane.door(CLUSTER).faults = [ScriptedFault("/eviction", status=status, body=body)]
    with pytest.raises(Blocked) as refused:
        connections.connect(CLUSTER).evict("default", "a")
    assert message in str(refused.value)


def test_an_eviction_without_the_right_to_evict_is_unauthorized(
    plane: KubernetesPlane, connections: KubernetesConnections
) -> None:
    message = 'pods "a" is forbidden: User "x" cannot create resource "pods/eviction" in API group ""'
    body = {"kind": "Status", "reason": "Forbidden", "message": message, "code": 403}
    plane.door(CLUSTER).faults = [ScriptedFault("/eviction", status=403, body=body)]
    with pytest.raises(Unauthorized, match="cannot create resource"):
        connections.connect(CLUSTER).evict("default", "a")


def test_a_stopped_cluster_does_not_answer_and_retains_its_objects(setting: Setting) -> None:
    setting.api.apply(config_map({"a": "b"}))
    setting.power(False)
    with pytest.raises(Unavailable):
        setting.api.check()
    setting.power(True)
    setting.api.check()
    found = setting.api.get(SETTINGS)
    assert found is not None
    assert found["data"] == {"a": "b"}


def test_a_connection_has_seen_the_certificates_of_the_server_and_of_its_authority(
    access: Access, connections: KubernetesConnections
) -> None:
    cluster = yaml.safe_load(access.config)["clusters"][0]["cluster"]
    address = urlsplit(cluster["server"])
    assert address.hostname
    assert address.port
    shown = ssl.get_server_certificate((address.hostname, address.port)).encode()
    authority = base64.b64decode(cluster["certificate-authority-data"])
    api = connections.connect(CLUSTER)
    assert [certificate.of for certificate in api.certificates()] == [AUTHORITY], "there was no handshake yet"
    api.check()
    assert {certificate.of: certificate.ends for certificate in api.certificates()} == {
        AUTHORITY: x509.load_pem_x509_certificate(authority).not_valid_after_utc,
        SERVER: x509.load_pem_x509_certificate(shown).not_valid_after_utc,
    }
