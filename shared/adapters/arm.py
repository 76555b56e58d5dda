"""Resource groups and AKS clusters through the Azure management libraries.

Documents go in and come out as plain ARM JSON. The pipeline of the libraries is our own: it authenticates
and nothing else, so no call retries, sleeps, registers a provider or writes a log line by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, Generic, Protocol, TypeVar

from azure.core import MatchConditions
from azure.core.credentials import TokenCredential
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    ResourceNotModifiedError,
)
from azure.core.pipeline.policies import (
    ContentDecodePolicy,
    HeadersPolicy,
    ProxyPolicy,
    RequestIdPolicy,
    UserAgentPolicy,
)
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy
from azure.mgmt.resource.resources import ResourceManagementClient

from shared.fleet.resource_ids import ClusterId
from shared.jobs.errors import Dependency, ReconcileError, Unauthenticated, Unavailable, from_http
from shared.jobs.retry import retry_after
from shared.ports import GroupWrite, Json

PUBLIC_CLOUD = "https://management.azure.com"
_CONNECT_SECONDS, _READ_SECONDS = 5, 20


class _Closes(Protocol):
    def close(self) -> None: ...


Client = TypeVar("Client", bound=_Closes)


class _Clients(Generic[Client]):
    """One client per subscription, made at its first use; safe between threads."""

    def __init__(self, make: Callable[..., Client], credential: TokenCredential, base_url: str) -> None:
        self._make, self._credential, self._base_url = make, credential, base_url.rstrip("/")
        self._lock = threading.Lock()
        self._clients: dict[str, Client] = {}

    def of(self, subscription: str) -> Client:
        """Return the client of a subscription."""
        with self._lock:
            if subscription not in self._clients:
                self._clients[subscription] = self._connect(subscription)
            return self._clients[subscription]

    def close(self) -> None:
        """Close the connections of all clients."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _connect(self, subscription: str) -> Client:
        scope = f"{self._base_url}/.default"
        policies = [
            RequestIdPolicy(),
            HeadersPolicy(),
            UserAgentPolicy("roadstead"),
            ProxyPolicy(),
            ContentDecodePolicy(),
            ARMChallengeAuthenticationPolicy(self._credential, scope),
        ]
        return self._make(
            self._credential,
            subscription,
            base_url=self._base_url,
            policies=policies,
            connection_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
        )


class ArmResourceGroups:
    """The port ``ResourceGroups``; ``base_url`` is the cloud's Azure Resource Manager."""

    def __init__(self, credential: TokenCredential, *, base_url: str = PUBLIC_CLOUD) -> None:
        self._clients = _Clients(ResourceManagementClient, credential, base_url)

    def get(self, subscription: str, name: str) -> Json | None:
        """Return the group, or None."""
        with _translated(missing_is_fine=True):
            return _plain(self._clients.of(subscription).resource_groups.get(name))
        return None

    def put(self, subscription: str, name: str, body: Json) -> GroupWrite:
        """Create or overwrite the group; ARM answers 201 where it is new."""
        groups: Any = self._clients.of(subscription).resource_groups
        with _translated():
            written: GroupWrite = groups.create_or_update(name, dict(body), cls=_group_write)
        return written

    def delete(self, subscription: str, name: str) -> str:
        """Start to delete the group; a group that is gone is success."""
        with _translated(missing_is_fine=True):
            groups = self._clients.of(subscription).resource_groups
            return _begun(groups.begin_delete(name, **_BEGIN))
        return ""

    def resources(self, subscription: str, name: str) -> Sequence[str]:
        """Return the resource ids inside the group; empty when the group is gone."""
        with _translated(missing_is_fine=True):
            found = self._clients.of(subscription).resources.list_by_resource_group(name)
            return [str(resource.id) for resource in found]
        return []

    def close(self) -> None:
        """Close the connections."""
        self._clients.close()


class ArmManagedClusters:
    """The port ``ManagedClusters``; ``base_url`` is the cloud's Azure Resource Manager."""

    def __init__(self, credential: TokenCredential, *, base_url: str = PUBLIC_CLOUD) -> None:
        self._clients = _Clients(ContainerServiceClient, credential, base_url)

    def get(self, cluster: ClusterId) -> Json | None:
        """Return the cluster with its agent pools, or None."""
        with _translated(missing_is_fine=True):
            clusters = self._clients.of(cluster.subscription).managed_clusters
            return _plain(clusters.get(cluster.resource_group, cluster.name))
        return None

    def put(self, cluster: ClusterId, body: Json, *, etag: str | None) -> str:
        """Start to create or update the cluster."""
        sent: Any = dict(body)
        with _translated():
            clusters = self._clients.of(cluster.subscription).managed_clusters
            return _begun(
                clusters.begin_create_or_update(
                    cluster.resource_group, cluster.name, sent, **_only_over(etag), **_BEGIN
                )
            )

    def delete(self, cluster: ClusterId, *, etag: str | None) -> str:
        """Start to delete the cluster; one that is gone is success."""
        with _translated(missing_is_fine=True):
            clusters = self._clients.of(cluster.subscription).managed_clusters
            return _begun(
                clusters.begin_delete(cluster.resource_group, cluster.name, **_only_this(etag), **_BEGIN)
            )
        return ""

    def put_pool(self, cluster: ClusterId, pool: str, body: Json, *, etag: str | None) -> str:
        """Start to create or update one agent pool."""
        sent: Any = dict(body)
        with _translated():
            pools = self._clients.of(cluster.subscription).agent_pools
            return _begun(
                pools.begin_create_or_update(
                    cluster.resource_group, cluster.name, pool, sent, **_only_over(etag), **_BEGIN
                )
            )

    def delete_pool(self, cluster: ClusterId, pool: str, *, etag: str | None) -> str:
        """Start to delete one agent pool; one that is gone is success."""
        with _translated(missing_is_fine=True):
            pools = self._clients.of(cluster.subscription).agent_pools
            return _begun(
                pools.begin_delete(cluster.resource_group, cluster.name, pool, **_only_this(etag), **_BEGIN)
            )
        return ""

    def upgrade_node_image(self, cluster: ClusterId, pool: str) -> str:
        """Start to bring one agent pool to the newest node image; nothing to do when it has it already."""
        with _translated(), suppress(ResourceNotModifiedError):
            pools = self._clients.of(cluster.subscription).agent_pools
            return _begun(
                pools.begin_upgrade_node_image_version(cluster.resource_group, cluster.name, pool, **_BEGIN)
            )
        return ""

    def upgrade_profile(self, cluster: ClusterId) -> Json:
        """Return what the cluster may be upgraded to."""
        with _translated():
            clusters = self._clients.of(cluster.subscription).managed_clusters
            return _plain(clusters.get_upgrade_profile(cluster.resource_group, cluster.name))

    def versions(self, subscription: str, location: str) -> Json:
        """Return the Kubernetes versions that a region offers."""
        with _translated():
            return _plain(self._clients.of(subscription).managed_clusters.list_kubernetes_versions(location))

    def maintenance(self, cluster: ClusterId) -> Mapping[str, Json]:
        """Return the cluster's maintenance configurations by name."""
        with _translated():
            configurations = self._clients.of(cluster.subscription).maintenance_configurations
            found = configurations.list_by_managed_cluster(cluster.resource_group, cluster.name)
            return {str(one.name): _plain(one) for one in found}

    def put_maintenance(self, cluster: ClusterId, name: str, body: Json) -> str:
        """Create or replace a maintenance configuration."""
        configurations: Any = self._clients.of(cluster.subscription).maintenance_configurations
        with _translated():
            return str(
                configurations.create_or_update(
                    cluster.resource_group, cluster.name, name, dict(body), cls=_request_id
                )
            )

    def kubeconfig(self, cluster: ClusterId) -> str:
        """Return a kubeconfig for the cluster. A secret."""
        with _translated():
            answer = self._clients.of(cluster.subscription).managed_clusters.list_cluster_user_credentials(
                cluster.resource_group, cluster.name
            )
        for found in answer.kubeconfigs or ():
            if found.value:
                return bytes(found.value).decode()
        raise Dependency("Azure has no credentials for the cluster yet")

    def close(self) -> None:
        """Close the connections."""
        self._clients.close()


def _plain(model: Any) -> Json:
    document: Json = model.as_dict()
    return document


def _only_over(etag: str | None) -> dict[str, Any]:
    """Return the options of a conditional write: over that version, or (None) only where nothing is."""
    return {"match_condition": MatchConditions.IfMissing} if etag is None else _only_this(etag)


def _only_this(etag: str | None) -> dict[str, Any]:
    """Return the options of a conditional delete: that version, or (None) whatever is there."""
    return {} if etag is None else {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def _request_id(reply: Any, *_: object) -> str:
    """Return Azure's id of the request: what the libraries let a ``cls`` make of an answer."""
    return _id_of(reply.http_response.headers)


def _group_write(reply: Any, *_: object) -> GroupWrite:
    return GroupWrite(_request_id(reply), created=reply.http_response.status_code == HTTPStatus.CREATED)


def _id_of(headers: Mapping[str, str]) -> str:
    return str(headers.get("x-ms-correlation-request-id") or headers.get("x-ms-request-id") or "")


_ABSENT = ("notfound", "resourcenotfound", "resourcegroupnotfound", "parentresourcenotfound")
"""ARM's codes, and that of AKS, for a resource that does not exist."""
_BEGIN: dict[str, Any] = {"polling": False, "cls": _request_id}


def _begun(poller: Any) -> str:
    """Return the id of the request that began an operation."""
    return str(poller.result())


@contextmanager
def _translated(*, missing_is_fine: bool = False) -> Iterator[None]:
    """Turn an error of the Azure libraries into one of ours; let a 404 pass where that is fine."""
    try:
        yield
    except HttpResponseError as error:
        if missing_is_fine and _is_absent(error):
            return
        raise _from_answer(error) from error
    except AzureError as error:
        raise Unavailable(f"Azure Resource Manager did not answer: {type(error).__name__}") from error


def _is_absent(error: HttpResponseError) -> bool:
    """Tell whether an answer says that the resource is not there; a 404 can also be of its subscription."""
    code = error.error.code if error.error is not None else ""
    return error.status_code == 404 and (code or "").lower() in _ABSENT


def _from_answer(error: HttpResponseError) -> ReconcileError:
    response: Any = error.response
    if response is None or isinstance(error, DecodeError):
        if isinstance(error, ClientAuthenticationError):
            return Unauthenticated("There is no credential for Azure: " + error.message.partition("\n")[0])
        return Unavailable("Azure Resource Manager gave an answer that cannot be read")
    code = message = ""
    if error.error is not None:
        code, message = error.error.code or "", error.error.message or ""
    return from_http(
        response.status_code,
        code,
        message or str(response.reason),
        retry_after=retry_after(response.headers),
        request_id=_id_of(response.headers),
    )
