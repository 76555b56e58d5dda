"""What Azure refuses of an extension, and of a configuration of Flux."""

from __future__ import annotations

import re

from localcloud.azure.world.refusals.rule import Broken, RefusalRule, RequestedWrite

_SECTIONS = {
    "GitRepository": "gitRepository",
    "OCIRepository": "ociRepository",
    "Bucket": "bucket",
    "AzureBlob": "azureBlob",
}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_CLI = "validators.py of k8s-configuration in Azure/azure-cli-extensions"


def _fixed(path: str) -> Broken:
    return lambda asked: asked.before is not None and asked.now(path) != asked.was(path)


def _no_name(asked: RequestedWrite) -> bool:
    names = [str(asked.now("name")), *(asked.now("properties.kustomizations") or {})]
    return any(len(name) > 63 or not _NAME.fullmatch(name) for name in names)


def _unknown_needs(asked: RequestedWrite) -> bool:
    applied = asked.now("properties.kustomizations") or {}
    return any(
        name not in applied for document in applied.values() for name in document.get("dependsOn") or ()
    )


EXTENSIONS = (
    RefusalRule(
        "extension-without-type",
        "models ExtensionProperties.extension_type",
        "extensionType",
        "The extensionType must be one that is registered with Microsoft.KubernetesConfiguration.",
        lambda asked: str(asked.now("properties.extensionType") or "").lower() != "microsoft.flux",
        "ValidationFailed",
    ),
    RefusalRule(
        "version-with-auto-upgrade",
        "models ExtensionProperties.version",
        "version",
        "To use 'version', autoUpgradeMinorVersion must be 'false'.",
        lambda asked: (
            asked.now("properties.version") and asked.now("properties.autoUpgradeMinorVersion") is not False
        ),
        "ValidationFailed",
    ),
    RefusalRule(
        "train-without-auto-upgrade",
        "models ExtensionProperties.release_train",
        "releaseTrain",
        "The releaseTrain can only be set if autoUpgradeMinorVersion is 'true'.",
        lambda asked: (
            asked.says("properties.releaseTrain") and asked.now("properties.autoUpgradeMinorVersion") is False
        ),
        "ValidationFailed",
    ),
)
CONFIGURATIONS = (
    RefusalRule(
        "name-of-configuration", _CLI, "name", "The name is no name in Kubernetes.", _no_name, "BadRequest"
    ),
    RefusalRule(
        "source-of-another-kind",
        "REST specification fluxConfigurations 2025-04-01: parameters of the source kind",
        "sourceKind",
        "The parameters of the sourceKind must be given.",
        lambda asked: (
            not asked.now(f"properties.{_SECTIONS.get(str(asked.now('properties.sourceKind')), '-')}")
        ),
        "BadRequest",
    ),
    RefusalRule(
        "scope-of-configuration-is-fixed",
        "models FluxConfigurationProperties.scope: read and create",
        "scope",
        "The scope of a configuration cannot change.",
        _fixed("properties.scope"),
        "BadRequest",
    ),
    RefusalRule(
        "namespace-of-configuration-is-fixed",
        "models FluxConfigurationProperties.namespace: read and create",
        "namespace",
        "The namespace of a configuration cannot change.",
        _fixed("properties.namespace"),
        "BadRequest",
    ),
    RefusalRule(
        "needs-unknown-kustomization",
        "models KustomizationDefinition.depends_on: other Kustomizations of the configuration",
        "dependsOn",
        "A Kustomization depends on one that the configuration does not have.",
        _unknown_needs,
        "BadRequest",
    ),
)
