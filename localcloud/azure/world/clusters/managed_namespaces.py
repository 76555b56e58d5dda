"""Managed namespaces: resources of Azure, and what AKS makes of them in the cluster.

Shapes are the models of azure-mgmt-containerservice; the policies of adoption and of deletion do what its
enums AdoptionPolicy and DeletePolicy say. The label of AKS, the names and the specs of the quota and of the
network policy, and the answer of a GET are those that teknews.cloud shows ("Keep control of k8s namespaces
from the Azure plane", 2026). The default policy is that of
learn.microsoft.com/azure/aks/concepts-managed-namespaces. No published answer shows the refusal of an
adoption or of a system namespace: BadRequest is assumed, and so is that a stopped or busy cluster takes no
write.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import AksError, no_resource
from localcloud.azure.world.arm_resources import ArmCluster, ArmOperation, OperationFault, WriteAnswer
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.body_shapes import read_namespace
from localcloud.azure.world.completions import set_state
from localcloud.common.control_plane import InsideCluster
from localcloud.common.json_copy import copied
from shared.json_tree import Json
from shared.resource_ids import ClusterId

_BY_ARM = {"kubernetes.azure.com/managedByArm": "true"}
_NAME_LABEL = "kubernetes.io/metadata.name"
_QUOTA, _POLICY = "defaultresourcequota", "defaultnetworkpolicy"
_NETWORKING = "networking.k8s.io/v1"
_HARD = {
    "cpuRequest": "requests.cpu",
    "cpuLimit": "limits.cpu",
    "memoryRequest": "requests.memory",
    "memoryLimit": "limits.memory",
}
_SYSTEM = ("default", "app-routing-system", "istio-system", "gatekeeper-system")


class NamespaceRequests:
    """The requests about the managed namespaces of clusters."""

    engine: AzureEngine

    def list_managed_namespaces(self, cluster: ClusterId) -> list[Json]:
        """Return the managed namespaces of a cluster."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            return [copied(namespace) for namespace in self.engine.cluster(cluster).namespaces.values()]

    def get_managed_namespace(self, cluster: ClusterId, name: str) -> Json:
        """Return a managed namespace."""
        with self.engine.request(cluster.subscription, limits.ARM_READ, limits.ANY_OTHER):
            existing = self.engine.cluster(cluster)
            if name not in existing.namespaces:
                raise no_resource(_resource(existing, name))
            return copied(existing.namespaces[name])

    def put_managed_namespace(self, cluster: ClusterId, name: str, body: Json) -> WriteAnswer:
        """Start to create or replace a managed namespace."""
        with self.engine.request(cluster.subscription, limits.ARM_WRITE, limits.ANY_OTHER) as now:
            existing = self.engine.cluster(cluster)
            given, before = read_namespace(body), existing.namespaces.get(name)
            self.engine.require_ready(existing)
            _require_idle(before)
            _check_name(name)
            properties = _filled(given.get("properties") or {})
            if before is None:
                self._check_adoption(existing, name, properties)
            document = _document(existing, name, given, properties, self.engine.schedule.unique(), now)
            operation = self._begin_namespace("put-namespace", existing, name, now)
            operation.on_end = lambda ended: self._written(existing, name, ended)
            return self.engine.store("put-namespace", existing.namespaces, name, document, operation)

    def delete_managed_namespace(self, cluster: ClusterId, name: str) -> WriteAnswer:
        """Start to delete a managed namespace; its policy says whether the namespace itself goes."""
        with self.engine.request(cluster.subscription, limits.ARM_DELETE, limits.ANY_OTHER) as now:
            existing = self.engine.cluster(cluster)
            resource, document = _resource(existing, name), existing.namespaces.get(name)
            if document is None:
                return WriteAnswer("", resource, 204)
            self.engine.require_ready(existing)
            _require_idle(document)
            set_state(document["properties"], "Deleting")
            operation = self._begin_namespace("delete-namespace", existing, name, now)
            operation.on_end = lambda _: self._deleted(existing, name)
            return self.engine.accept(WriteAnswer("delete-namespace", resource, 202, operation=operation))

    def _begin_namespace(self, kind: str, existing: ArmCluster, name: str, now: datetime) -> ArmOperation:
        """Start an operation, with the failure that was set for the next one of the cluster.

        The other faults are left to the cluster's own operations.
        """
        engine, fault, cluster = self.engine, OperationFault(), existing.id.name.lower()
        coming = engine.next_faults.get(cluster)
        if coming is not None and coming.error is not None and kind.startswith("put"):
            fault = engine.next_faults.pop(cluster)
        due = now + timedelta(seconds=engine.timings.of(kind))
        resource, location = _resource(existing, name), existing.document["location"]
        operation = engine.schedule.start(kind, resource, location, now=now, due=due)
        operation.fault = fault
        return operation

    def _check_adoption(self, existing: ArmCluster, name: str, properties: Json) -> None:
        inside, policy = self.engine.plane.inside(existing.id), properties.get("adoptionPolicy") or "Never"
        live = _namespace(inside, name) if inside is not None else None
        if live is None or policy == "Always":
            return
        has = {key: live["metadata"].get(key) or {} for key in ("labels", "annotations")}
        has["labels"] = {key: value for key, value in has["labels"].items() if key != _NAME_LABEL}
        wanted = {key: properties.get(key) or {} for key in ("labels", "annotations")}
        if policy == "Never" or has != wanted:
            message = f"The namespace '{name}' already exists, and the adoption policy is '{policy}'."
            raise AksError(400, "BadRequest", message)

    def _written(self, existing: ArmCluster, name: str, ended: ArmOperation) -> None:
        document = existing.namespaces.get(name)
        if document is None:
            return
        set_state(document["properties"], ended.status)
        inside = self.engine.plane.inside(existing.id)
        if ended.status == "Succeeded" and inside is not None:
            for manifest in _objects(name, document["properties"]):
                inside.apply(manifest, by_aks=True)
            if not document["properties"].get("defaultResourceQuota"):
                inside.delete("v1", "ResourceQuota", _QUOTA, name, by_aks=True)

    def _deleted(self, existing: ArmCluster, name: str) -> None:
        document, inside = existing.namespaces.pop(name, None), self.engine.plane.inside(existing.id)
        if document is None or inside is None:
            return
        if document["properties"].get("deletePolicy") == "Delete":
            inside.delete("v1", "Namespace", name, "", by_aks=True)
        else:
            for manifest in _objects(name, document["properties"], by_arm=False):
                inside.apply(manifest, by_aks=True)


def _filled(properties: Json) -> dict[str, Any]:
    """Return the properties with what Azure fills in."""
    policy = {"ingress": "AllowSameNamespace", "egress": "AllowAll"}
    return {
        **{"labels": None, "annotations": None, "defaultResourceQuota": None},
        **properties,
        "defaultNetworkPolicy": {**policy, **(properties.get("defaultNetworkPolicy") or {})},
    }


def _document(
    existing: ArmCluster, name: str, given: Json, properties: dict[str, Any], etag: str, now: datetime
) -> dict[str, Any]:
    shown = {**properties, "labels": {_NAME_LABEL: name, **(properties["labels"] or {})}}
    return {
        "id": _resource(existing, name),
        "name": name,
        "type": "Microsoft.ContainerService/managedClusters/managedNamespaces",
        "location": given.get("location") or existing.document["location"],
        "tags": given.get("tags"),
        "eTag": etag,
        "properties": shown,
        "systemData": {"lastModifiedAt": now.astimezone(UTC).isoformat(timespec="microseconds")},
    }


def _objects(name: str, properties: Json, *, by_arm: bool = True) -> list[dict[str, Any]]:
    """Return what AKS has in the cluster for a managed namespace; without its label once it only stays."""
    mark = _BY_ARM if by_arm else {}
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {**{k: v for k, v in properties["labels"].items() if k != _NAME_LABEL}, **mark},
            "annotations": dict(properties["annotations"] or {}),
        },
    }
    metadata = {"namespace": name, "labels": mark}
    rules = properties["defaultNetworkPolicy"]
    found = [
        namespace,
        {
            "apiVersion": _NETWORKING,
            "kind": "NetworkPolicy",
            "metadata": {"name": _POLICY, **metadata},
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress", "Egress"],
                **_allowed("ingress", "from", rules["ingress"]),
                **_allowed("egress", "to", rules["egress"]),
            },
        },
    ]
    quota = properties.get("defaultResourceQuota")
    if quota:
        hard = {_HARD[key]: value for key, value in quota.items() if value}
        found.append(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": _QUOTA, **metadata},
                "spec": {"hard": hard},
            }
        )
    return found


def _allowed(direction: str, peers: str, rule: str) -> dict[str, Any]:
    """Return the rules of a direction: none allows nothing, an empty one everything."""
    if rule == "DenyAll":
        return {}
    return {direction: [{}] if rule == "AllowAll" else [{peers: [{"podSelector": {}}]}]}


def _namespace(inside: InsideCluster, name: str) -> Json | None:
    found = (document for document in inside.list("v1", "Namespace") if document["metadata"]["name"] == name)
    return next(found, None)


def _check_name(name: str) -> None:
    if name in _SYSTEM or name.startswith(("kube-", "aks-istio-")):
        raise AksError(400, "BadRequest", f"The system namespace '{name}' cannot be a managed namespace.")


def _require_idle(before: Json | None) -> None:
    """Refuse a write while the last one runs; its code is assumed."""
    if before is not None and before["properties"]["provisioningState"] in (
        *("Creating", "Updating", "Deleting"),
    ):
        raise AksError(409, "OperationNotAllowed", "Another operation on this namespace is in progress.")


def _resource(existing: ArmCluster, name: str) -> str:
    return f"{existing.id.resource}/managedNamespaces/{name}"
