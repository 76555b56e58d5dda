"""Microsoft.KubernetesConfiguration: extensions of a cluster, and the configurations of Flux.

Source of the documents: the models of azure-mgmt-kubernetesconfiguration-extensions (2025-03-01) and
-fluxconfigurations (2025-04-01), and the examples of azure-rest-api-specs. Protected settings are stored and
never shown. A configuration on a cluster without the extension installs it
(learn.microsoft.com/azure/azure-arc/kubernetes/conceptual-gitops-flux2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import AksError, ArmError, no_resource
from localcloud.azure.world.arm_resources import ArmCluster, ArmOperation, OperationFault, WriteAnswer
from localcloud.azure.world.azure_engine import NEVER, AzureEngine
from localcloud.azure.world.body_shapes import read_configuration, read_extension
from localcloud.azure.world.catalog import FLUX_EXTENSIONS, REGIONS, region
from localcloud.azure.world.completions import set_state
from localcloud.azure.world.flux import flux_agents
from localcloud.azure.world.refusals import extension_rules
from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite, check
from localcloud.common.json_copy import copied
from shared.json_tree import Json
from shared.resource_ids import ClusterId

_PROVIDER = "providers/Microsoft.KubernetesConfiguration"
_VERSION = "1.19.5"
"""The version that the extension has where no other is asked for."""
_PROTECTED = "configurationProtectedSettings"
_SOURCE_DEFAULTS = {"syncIntervalInSeconds": 600, "timeoutInSeconds": 600, "localAuthRef": None}
_KUSTOMIZATION_DEFAULTS: Json = {
    **{"path": "", "dependsOn": None, "timeoutInSeconds": 600, "syncIntervalInSeconds": 600},
    **{"retryIntervalInSeconds": None, "prune": False, "force": False, "wait": False, "postBuild": None},
}


class KubernetesConfiguration:
    """The requests about extensions and configurations."""

    engine: AzureEngine
    withheld: set[str]

    def list_extension_versions(self, subscription: str, location: str) -> list[Json]:
        """Return the versions of microsoft.flux that a region has.

        Shape: ListExtensionTypeVersionsByLocation.json of 2024-11-01-preview in azure-rest-api-specs.
        """
        with self.engine.request(subscription, limits.ARM_READ):
            if region(location) not in REGIONS:
                message = f"The provided location '{location}' is not available."
                raise ArmError(400, "LocationNotAvailableForResourceType", message)
            place = f"/subscriptions/{subscription}/{_PROVIDER}/locations/{location}"
            return [
                {
                    "id": f"{place}/extensionTypes/microsoft.flux/versions/{version}",
                    "name": version,
                    "type": "Microsoft.KubernetesConfiguration/locations/extensionTypes/versions",
                    "properties": {
                        "version": version,
                        "supportedClusterTypes": ["connectedClusters", "managedClusters"],
                        "unsupportedKubernetesVersions": {"managedCluster": []},
                    },
                }
                for version in FLUX_EXTENSIONS
                if version not in self.withheld
            ]

    def get_extension(self, cluster: ClusterId, name: str) -> Json:
        """Return an extension."""
        with self.engine.request(cluster.subscription, limits.ARM_READ):
            existing = self.engine.cluster(cluster)
            if name not in existing.extensions:
                raise no_resource(f"{existing.id.resource}/{_PROVIDER}/extensions/{name}")
            return _shown(existing.extensions[name])

    def put_extension(self, cluster: ClusterId, name: str, body: Json) -> WriteAnswer:
        """Start to install an extension, or to change it."""
        with self.engine.request(cluster.subscription, limits.ARM_WRITE) as now:
            existing = self.engine.cluster(cluster)
            given, before = read_extension(body), existing.extensions.get(name)
            _check(extension_rules.EXTENSIONS, RequestedWrite(given, given, before))
            _require_idle(before)
            return self._install(existing, name, given, now)

    def list_flux_configurations(self, cluster: ClusterId) -> list[Json]:
        """Return all configurations of a cluster, each with what its agents report."""
        with self.engine.request(cluster.subscription, limits.ARM_READ) as now:
            existing = self.engine.cluster(cluster)
            return [self._reported(existing, name, now) for name in existing.configurations]

    def get_flux_configuration(self, cluster: ClusterId, name: str) -> Json:
        """Return a configuration, with what its agents report."""
        with self.engine.request(cluster.subscription, limits.ARM_READ) as now:
            existing = self.engine.cluster(cluster)
            if name not in existing.configurations:
                raise no_resource(_configuration_id(existing.id, name))
            return self._reported(existing, name, now)

    def put_flux_configuration(self, cluster: ClusterId, name: str, body: Json) -> WriteAnswer:
        """Start to create or replace a configuration."""
        with self.engine.request(cluster.subscription, limits.ARM_WRITE) as now:
            existing = self.engine.cluster(cluster)
            given, before = read_configuration(body), existing.configurations.get(name)
            _check(extension_rules.CONFIGURATIONS, RequestedWrite(given, {**given, "name": name}, before))
            _require_idle(before)
            if not existing.extensions:
                by_itself = {
                    "properties": {"extensionType": "microsoft.flux", "autoUpgradeMinorVersion": True}
                }
                self._install(existing, "flux", by_itself, now)
            document = _configuration(existing.id, name, given, before, now)
            operation = self._start("put-configuration", document["id"], existing, now)
            operation.on_end = lambda ended: self._end_configuration(existing, name, ended)
            held = existing.configurations
            answer = self.engine.store("put-configuration", held, name, document, operation)
            return replace(answer, document=_shown(document))

    def delete_flux_configuration(self, cluster: ClusterId, name: str) -> WriteAnswer:
        """Start to delete a configuration, and what it applied as its ``prune`` says."""
        with self.engine.request(cluster.subscription, limits.ARM_DELETE) as now:
            existing = self.engine.cluster(cluster)
            resource = _configuration_id(existing.id, name)
            document = existing.configurations.get(name)
            if document is None:
                return WriteAnswer("", resource, 204)
            set_state(document["properties"], "Deleting")
            operation = self._start("delete-configuration", resource, existing, now)
            operation.on_end = lambda _: self._end_delete(existing, name)
            return self.engine.accept(WriteAnswer("delete-configuration", resource, 202, operation=operation))

    def _install(self, existing: ArmCluster, name: str, given: Json, now: datetime) -> WriteAnswer:
        document = _extension(existing.id, name, given, existing.extensions.get(name), now)
        operation = self._start("put-extension", document["id"], existing, now)
        operation.on_end = lambda ended: self._end_extension(existing, name, ended)
        answer = self.engine.store("put-extension", existing.extensions, name, document, operation)
        return replace(answer, document=_shown(document))

    def _start(self, kind: str, resource: str, existing: ArmCluster, now: datetime) -> ArmOperation:
        """Start an operation, with the fault that was set for the next one of the cluster."""
        engine, fault = self.engine, OperationFault()
        if not kind.startswith("delete"):
            fault = engine.next_faults.pop(existing.id.name.lower(), fault)
        due = NEVER if fault.sticks else now + timedelta(seconds=engine.timings.of(kind))
        operation = engine.schedule.start(kind, resource, existing.document["location"], now=now, due=due)
        operation.fault = fault
        return operation

    def _end_extension(self, existing: ArmCluster, name: str, ended: ArmOperation) -> None:
        document = existing.extensions.get(name)
        if document is None:
            return
        properties = document["properties"]
        set_state(properties, ended.status)
        properties.pop("errorInfo", None)
        inside = self.engine.plane.inside(existing.id)
        if ended.error:
            properties["errorInfo"] = {"code": ended.error[0], "message": ended.error[1]}
        elif inside is not None:
            properties["currentVersion"] = properties.get("version") or _VERSION
            flux_agents.install(inside)

    def _end_configuration(self, existing: ArmCluster, name: str, ended: ArmOperation) -> None:
        document = existing.configurations.get(name)
        if document is None:
            return
        set_state(document["properties"], ended.status)
        document["properties"]["errorMessage"] = ended.error[1] if ended.error else ""
        if not ended.error:
            self._apply(existing, document)

    def _end_delete(self, existing: ArmCluster, name: str) -> None:
        document, inside = existing.configurations.pop(name, None), self.engine.plane.inside(existing.id)
        if document is not None and inside is not None:
            flux_agents.remove(inside, name, document["properties"])

    def _apply(self, existing: ArmCluster, document: Json) -> None:
        inside = self.engine.plane.inside(existing.id)
        if inside is not None:
            properties = document["properties"]
            flux_agents.apply(inside, document["name"], properties, properties.get(_PROTECTED) or {})

    def _reported(self, existing: ArmCluster, name: str, now: datetime) -> Json:
        """Return a configuration with the newest report, which the agents send while the cluster runs."""
        document = existing.configurations[name]
        inside = self.engine.plane.inside(existing.id)
        if inside is not None and document["properties"]["provisioningState"] == "Succeeded":
            self._apply(existing, document)
            document["properties"] |= flux_agents.report(inside, name, document["properties"])
            document["properties"]["statusUpdatedAt"] = _stamp(now)
        return _shown(document)


def _check(rules: Iterable[RefusalRule], asked: RequestedWrite) -> None:
    """Raise the refusal of the first rule that a write breaks, in the envelope of Azure Resource Manager."""
    try:
        check(rules, asked)
    except AksError as refused:
        error = ArmError(refused.status, refused.code, refused.message, target=refused.target)
        raise error from refused


def _require_idle(before: Json | None) -> None:
    """Refuse a write while the last one runs. Its code is assumed: nothing published has it."""
    if before is not None and before["properties"]["provisioningState"] in (
        "Creating",
        "Updating",
        "Deleting",
    ):
        raise ArmError(409, "Conflict", "Another operation on this resource is in progress.")


def _configuration_id(cluster: ClusterId, name: str) -> str:
    return f"{cluster.resource}/{_PROVIDER}/fluxConfigurations/{name}"


def _extension(
    cluster: ClusterId, name: str, given: Json, before: Json | None, now: datetime
) -> dict[str, Any]:
    defaults = {"autoUpgradeMinorVersion": True, "releaseTrain": "Stable", "version": None}
    properties = {**defaults, "configurationSettings": {}, "statuses": [], **(given.get("properties") or {})}
    return {
        "id": f"{cluster.resource}/{_PROVIDER}/extensions/{name}",
        "name": name,
        "type": "Microsoft.KubernetesConfiguration/extensions",
        "identity": given.get("identity") or {"type": "SystemAssigned"},
        "properties": properties,
        "systemData": _modified(before, now),
    }


def _configuration(
    cluster: ClusterId, name: str, given: Json, before: Json | None, now: datetime
) -> dict[str, Any]:
    properties = {"suspend": False, "statuses": [], "complianceState": "Pending", **given["properties"]}
    for section in ("gitRepository", "ociRepository", "bucket", "azureBlob"):
        if properties.get(section):
            properties[section] = {**_SOURCE_DEFAULTS, **properties[section]}
    applied = properties.get("kustomizations") or {}
    properties["kustomizations"] = {
        key: {**_KUSTOMIZATION_DEFAULTS, "name": key, **document} for key, document in applied.items()
    }
    if before is not None:  # the last report stays until the agents send another one
        shown = ("statuses", "complianceState", "sourceSyncedCommitId", "sourceUpdatedAt", "statusUpdatedAt")
        properties |= {key: before["properties"][key] for key in shown if key in before["properties"]}
    return {
        "id": _configuration_id(cluster, name),
        "name": name,
        "type": "Microsoft.KubernetesConfiguration/fluxConfigurations",
        "properties": properties,
        "systemData": _modified(before, now),
    }


def _modified(before: Json | None, now: datetime) -> dict[str, str]:
    created = before["systemData"]["createdAt"] if before else _stamp(now)
    return {"createdAt": created, "lastModifiedAt": _stamp(now)}


def _stamp(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="microseconds")


def _shown(document: Json) -> dict[str, Any]:
    """Return a resource as a GET shows it: without its secrets."""
    shown = copied(document)
    if _PROTECTED in shown["properties"]:
        shown["properties"][_PROTECTED] = {}
    return dict(shown)
