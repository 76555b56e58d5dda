"""What Flux as Microsoft's extension cannot do, and where it is the only way.

What a configuration of it can carry is in the models of azure-mgmt-kubernetesconfiguration-fluxconfigurations
(2025-04-01). On AKS Automatic, the policy aks-managed-protect-system-namespaces lets nobody write to
flux-system but the extension's own agents (github.com/Azure/AKS/issues/5645).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shared.language.model.cluster.flux import Flux
from shared.language.model.cluster.flux_source import BUCKET, GIT, MAIN, FluxSource, seconds_of
from shared.language.model.cluster.kustomization import Kustomization
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.resolve.problems import Path

_INSTEAD = "remove it, or write install: components"
_LONGEST_NAME = 63
"""Flux labels what a Kustomization applies with its name, and a label has so many characters."""
_NOT_CARRIED = (
    *("deletionPolicy", "targetNamespace", "serviceAccountName", "healthChecks", "patches", "decryption"),
)
"""The fields of a Kustomization for which ``KustomizationDefinition`` has nothing."""


def impossible_ways(spec: ClusterSpec) -> Iterator[tuple[Path, str]]:
    """Yield what the way in which Flux comes to the cluster cannot do."""
    if not spec.flux.is_extension:
        if spec.sku.automatic:
            automatic = "AKS Automatic lets only its own extension write to flux-system"
            yield ("flux", "install"), f"{automatic} (Azure/AKS#5645); write install: extension"
        return
    yield from _of_cluster(spec)
    yield from _of_sources(spec.flux)
    for one in spec.flux.kustomizations:
        yield from _of_kustomization(one, spec.flux)


def _of_cluster(spec: ClusterSpec) -> Iterator[tuple[Path, str]]:
    nobody = "with install: extension, Roadstead applies nothing in the cluster itself"
    for secret in spec.bootstrap_secrets:
        yield ("bootstrapSecrets", secret.name), f"{nobody}, and so no Secret; {_INSTEAD}"
    if spec.flux.workload_identity is not None:
        settings = (
            "workloadIdentity.enable and workloadIdentity.azureClientId of extension.configurationSettings"
        )
        yield ("flux", "workloadIdentity"), f"the extension has settings of its own for it: write {settings}"
    if spec.flux.events is not None:
        yield ("flux", "events"), f"{nobody}, and so no Provider and Alert; {_INSTEAD}"


def _of_sources(flux: Flux) -> Iterator[tuple[Path, str]]:
    for field, message in _of_source(flux.main):
        yield ("flux", field), message
    for source in flux.sources:
        place: Path = ("flux", "sources", source.name)
        for field, message in _of_source(source):
            yield (*place, field), message
        yield from _whole_seconds(source, ("interval",), place)


def _of_source(source: FluxSource) -> Iterator[tuple[str, str]]:
    if source.ignore is not None:
        yield "ignore", _lacks("a source", "ignore")
    if source.kind == GIT and source.service_account_name is not None:
        yield "serviceAccountName", _lacks("a git repository", "serviceAccountName")
    if source.kind != BUCKET:
        return
    if source.prefix is not None:
        yield "prefix", _lacks("a container", "prefix")
    if source.service_account_name is not None:
        yield "serviceAccountName", _lacks("a container", "serviceAccountName")
    if source.provider == "azure" and source.secret_ref is None:
        yield "provider", _lacks("a container", "workload identity", "name a Secret with secretRef")


def _of_kustomization(one: Kustomization, flux: Flux) -> Iterator[tuple[Path, str]]:
    place: Path = ("flux", "kustomizations", one.name)
    given = one.model_dump(by_alias=True, exclude_none=True)
    for field in _NOT_CARRIED:
        if given.get(field):
            yield (*place, field), _lacks("a Kustomization", field)
    yield from _whole_seconds(one, ("interval", "retry_interval", "timeout"), place)
    own = one.source or MAIN
    sources: Mapping[str, str] = {MAIN: MAIN} | {
        each.name: each.source or MAIN for each in flux.kustomizations
    }
    for needed in one.depends_on:
        other = sources[needed.name]
        if other != own:
            message = (
                f"{needed.name} applies the source {other}, and Azure lets a Kustomization wait only for"
            )
            yield (*place, "dependsOn"), f"{message} those of its own source, {own}; {_INSTEAD}"
    called = f"{own}-{one.name}"
    if len(called) > _LONGEST_NAME:
        message = f"it is called {called} on the cluster, which has more than {_LONGEST_NAME} characters"
        yield (*place, "name"), f"{message}; choose a shorter name for it or for its source"


def _lacks(what: str, field: str, instead: str = _INSTEAD) -> str:
    return f"Azure's configuration of {what} has no {field}; {instead}"


def _whole_seconds(model: Any, fields: tuple[str, ...], place: Path) -> Iterator[tuple[Path, str]]:
    for field in fields:
        duration = getattr(model, field)
        seconds = seconds_of(duration) if duration is not None else None
        if seconds is not None and (seconds < 1 or seconds.denominator != 1):
            name = "retryInterval" if field == "retry_interval" else field
            yield (*place, name), f"Azure's configuration takes whole seconds, got {duration}"
