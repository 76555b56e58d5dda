"""Flux as Microsoft's extension in Azure, in both implementations."""

from __future__ import annotations

from typing import Any

import pytest

from shared.cluster.failures.errors import Conflict, InvalidManifest
from shared.ports.azure import (
    DeleteCluster,
    DeleteFluxConfiguration,
    GetExtension,
    ListFluxConfigurations,
    PutExtension,
    PutFluxConfiguration,
)
from tests.support.azure_ports import CLUSTER, Azure

EXTENSION: dict[str, Any] = {
    "identity": {"type": "SystemAssigned"},
    "properties": {
        "extensionType": "microsoft.flux",
        "configurationSettings": {"multiTenancy.enforce": "true"},
    },
}
APPLIED: dict[str, Any] = {
    **{"scope": "cluster", "namespace": "flux-system", "sourceKind": "GitRepository"},
    "gitRepository": {
        **{"url": "https://github.com/example/fleet", "repositoryRef": {"branch": "main"}},
        "httpsUser": "roadstead",
    },
    "kustomizations": {"apps": {"path": "./apps", "prune": True}},
    "configurationProtectedSettings": {"httpsKey": "YS1zZWNyZXQ="},
}


def test_an_extension_is_absent_then_installed_then_as_it_was_written(azure: Azure) -> None:
    azure.with_cluster()
    assert azure.call(GetExtension(CLUSTER, "flux")) is None
    written = azure.call(PutExtension(CLUSTER, "flux", EXTENSION))
    assert (bool(written.request_id), written.created) == (True, True)
    shown = azure.call(GetExtension(CLUSTER, "flux"))
    assert shown is not None
    assert shown["properties"]["provisioningState"] == "Creating"
    azure.clock.advance(4)
    shown = azure.call(GetExtension(CLUSTER, "flux"))
    assert shown is not None
    assert shown["properties"]["provisioningState"] == "Succeeded"
    assert shown["properties"]["configurationSettings"] == {"multiTenancy.enforce": "true"}
    assert shown["properties"]["autoUpgradeMinorVersion"] is True


def test_an_extension_that_fails_shows_azures_code_and_message(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.interventions.fail_next(CLUSTER.name, "ExtensionOperationFailed", "no node is ready")
    azure.call(PutExtension(CLUSTER, "flux", EXTENSION))
    azure.clock.advance(4)
    shown = azure.call(GetExtension(CLUSTER, "flux"))
    assert shown is not None
    assert shown["properties"]["provisioningState"] == "Failed"
    error = {"code": "ExtensionOperationFailed", "message": "no node is ready"}
    assert shown["properties"]["errorInfo"] == error


def test_configurations_are_listed_by_name_without_their_secrets_and_deleted_once(azure: Azure) -> None:
    azure.with_cluster()
    assert azure.call(ListFluxConfigurations(CLUSTER)) == {}
    assert azure.call(PutFluxConfiguration(CLUSTER, "flux-system", {"properties": APPLIED})).created
    azure.clock.advance(4)
    shown = azure.call(ListFluxConfigurations(CLUSTER))["flux-system"]
    assert shown["properties"]["configurationProtectedSettings"] == {}
    assert shown["properties"]["gitRepository"]["httpsUser"] == "roadstead"
    assert shown["properties"]["kustomizations"]["apps"]["prune"] is True
    assert shown["systemData"]["lastModifiedAt"]
    assert azure.call(DeleteFluxConfiguration(CLUSTER, "flux-system")).request_id
    azure.clock.advance(4)
    assert azure.call(ListFluxConfigurations(CLUSTER)) == {}
    azure.call(DeleteFluxConfiguration(CLUSTER, "flux-system"))


def test_a_write_while_the_last_one_runs_and_a_body_of_another_shape_are_refused(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutFluxConfiguration(CLUSTER, "flux-system", {"properties": APPLIED}))
    with pytest.raises(Conflict):
        azure.call(PutFluxConfiguration(CLUSTER, "flux-system", {"properties": APPLIED}))
    with pytest.raises(InvalidManifest):
        azure.call(PutFluxConfiguration(CLUSTER, "other", {"properties": APPLIED | {"healthChecks": []}}))


def test_extensions_and_configurations_end_with_their_cluster(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutExtension(CLUSTER, "flux", EXTENSION))
    azure.call(DeleteCluster(CLUSTER, etag=None))
    azure.clock.advance(10)
    assert azure.call(GetExtension(CLUSTER, "flux")) is None
