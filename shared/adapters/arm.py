"""Resource groups and AKS clusters through the Azure management libraries.

Documents go in and come out as plain ARM JSON. The pipeline of the libraries is our own: it authenticates
and nothing else, so no call retries, sleeps, registers a provider or writes a log line by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from azure.core import MatchConditions
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError, DecodeError, HttpResponseError
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

from shared.fleet.ids import ClusterId
from shared.jobs.errors import Dependency, ReconcileError, Unauthenticated, Unavailable, from_http
from shared.ports import Json

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

    def put(self, subscription: str, name: str, body: Json) -> None:
        """Create or update the group."""
        with _translated():
            self._clients.of(subscription).resource_groups.create_or_update(name, dict(body))

    def delete(self, subscription: str, name: str) -> None:
        """Start to delete the group; a group that is gone is success."""
        with _translated(missing_is_fine=True):
            self._clients.of(subscription).resource_groups.begin_delete(name, polling=False)

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

    def put(self, cluster: ClusterId, body: Json, *, etag: str | None) -> None:
        """Start to create or update the cluster."""
        sent: Any = dict(body)
        with _translated():
            self._clients.of(cluster.subscription).managed_clusters.begin_create_or_update(
                cluster.resource_group, cluster.name, sent, polling=False, **_only_over(etag)
            )

    def delete(self, cluster: ClusterId) -> None:
        """Start to delete the cluster; one that is gone is success."""
        with _translated(missing_is_fine=True):
            self._clients.of(cluster.subscription).managed_clusters.begin_delete(
                cluster.resource_group, cluster.name, polling=False
            )

    def put_pool(self, cluster: ClusterId, pool: str, body: Json, *, etag: str | None) -> None:
        """Start to create or update one agent pool."""
        sent: Any = dict(body)
        with _translated():
            self._clients.of(cluster.subscription).agent_pools.begin_create_or_update(
                cluster.resource_group, cluster.name, pool, sent, polling=False, **_only_over(etag)
            )

    def delete_pool(self, cluster: ClusterId, pool: str) -> None:
        """Start to delete one agent pool; one that is gone is success."""
        with _translated(missing_is_fine=True):
            self._clients.of(cluster.subscription).agent_pools.begin_delete(
                cluster.resource_group, cluster.name, pool, polling=False
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
    if etag is None:
        return {"match_condition": MatchConditions.IfMissing}
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


@contextmanager
def _translated(*, missing_is_fine: bool = False) -> Iterator[None]:
    """Turn an error of the Azure libraries into one of ours; let a 404 pass where that is fine."""
    try:
        yield
    except HttpResponseError as error:
        if missing_is_fine and error.status_code == 404:
            return
        raise _from_answer(error) from error
    except AzureError as error:
        raise Unavailable(f"Azure Resource Manager did not answer: {type(error).__name__}") from error


def _from_answer(error: HttpResponseError) -> ReconcileError:
    response: Any = error.response
    if response is None or isinstance(error, DecodeError):
        if isinstance(error, ClientAuthenticationError):
            return Unauthenticated("There is no credential for Azure: " + error.message.partition("\n")[0])
        return Unavailable("Azure Resource Manager gave an answer that cannot be read")
    code = message = ""
    if error.error is not None:
        code, message = error.error.code or "", error.error.message or ""
    retry_after = response.headers.get("Retry-After", "")
    return from_http(
        response.status_code,
        code,
        message or str(response.reason),
        retry_after=float(retry_after) if retry_after.isdigit() else None,
        request_id=response.headers.get("x-ms-correlation-request-id", ""),
    )
