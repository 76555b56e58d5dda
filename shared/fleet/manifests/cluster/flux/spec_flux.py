"""What Flux is on a cluster: what it pulls, what it applies, and whether it reports what it does.

Names and rules are those of Flux's API (fluxcd.io/flux/components).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, model_validator

from shared.fleet.manifests.arm_types import Guid
from shared.fleet.manifests.base import Manifest, RepositoryPath
from shared.fleet.manifests.cluster.flux.extension import EXTENSION, FluxExtension
from shared.fleet.manifests.cluster.flux.first_source import FirstSource
from shared.fleet.manifests.cluster.flux.instance import OPERATOR, FluxInstance
from shared.fleet.manifests.cluster.flux.kustomization import Kustomization
from shared.fleet.manifests.cluster.flux.source import MAIN, FluxName, FluxSource, SecretReference

EVENT_KEY = "token"
"""The key of a Secret with which a Provider of the type generic-hmac signs."""


class FluxEvents(Manifest):
    """How Flux reports what it does: its notification-controller posts signed events to the app."""

    secret_ref: SecretReference
    """The Secret in flux-system whose key ``token`` signs the events, for this cluster alone: an entry of
    bootstrapSecrets, so that the app reads the same key in the vault."""


class WorkloadIdentity(Manifest):
    """The identity of Azure as which Flux pulls, and opens Azure Key Vault, where it has provider: azure."""

    client_id: Guid
    """The client id of a user-assigned identity. federatedCredentials let source-controller, and
    kustomize-controller, in the namespace flux-system act as it."""
    tenant_id: Guid | None = None
    """The tenant of the identity, where systems are on the cluster; by default that of the cluster."""


class Flux(FirstSource):
    """What Flux pulls, and the Flux to install: ``components`` is a file of this repository."""

    secret_ref: SecretReference | None = None
    service_account_name: FluxName | None = None
    """The ServiceAccount in flux-system whose workload identity signs Flux in, with provider: azure."""
    workload_identity: WorkloadIdentity | None = None
    path: RepositoryPath
    """The folder in it that Flux applies to the cluster."""
    components: RepositoryPath = "flux/gotk-components.yaml"
    """The file of this repository with the Flux to install: write it with flux install --export. With
    install: operator, it has the Flux Operator."""
    sources: Annotated[tuple[FluxSource, ...], Field(max_length=50)] = ()
    """More sources, by name."""
    kustomizations: Annotated[tuple[Kustomization, ...], Field(max_length=100)] = ()
    """More folders that Flux applies, by name."""
    lockdown: StrictBool = True
    """Whether Flux is locked down for several tenants on a cluster that has systems."""
    events: FluxEvents | None = None
    """Whether Flux reports to Roadstead what it does; by default Roadstead only reads it."""
    install: Literal["components", "extension", "operator"] = "components"
    """What brings Flux to the cluster: the components of this repository, the Flux Operator, or Microsoft's
    extension, which needs no way to the API server. It is fixed once the cluster exists."""
    extension: FluxExtension | None = None
    instance: FluxInstance | None = None

    @property
    def is_extension(self) -> bool:
        """Whether Flux is Microsoft's extension, and everything about it goes through Azure."""
        return self.install == EXTENSION

    @property
    def is_operator(self) -> bool:
        """Whether the Flux Operator installs Flux."""
        return self.install == OPERATOR

    @property
    def first(self) -> Kustomization:
        """The Kustomization of ``path``, with what an entry of its name changes."""
        return next(
            (one for one in self.kustomizations if one.name == MAIN),
            Kustomization.model_validate({"name": MAIN}),
        ).model_copy(update={"path": self.path})

    @model_validator(mode="after")
    def _extension_is_chosen(self) -> Self:
        if self.extension is not None and not self.is_extension:
            raise ValueError("extension: only install: extension has this; add that, or remove it")
        if self.instance is not None and not self.is_operator:
            raise ValueError("instance: only install: operator has this; add that, or remove it")
        if self.is_operator and self.instance is None:
            raise ValueError(
                "install: operator needs instance.distribution.version, the Flux to install; add it"
            )
        if self.events and self.instance and "notification-controller" not in self.instance.components:
            raise ValueError("events: instance.components has no notification-controller; add it")
        return self

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        sources = [source.name for source in self.sources]
        _differ("sources", sources)
        if MAIN in sources:
            raise ValueError(f"sources: {MAIN} is the source of spec.flux.repository; choose another name")
        names = [one.name for one in self.kustomizations]
        _differ("kustomizations", names)
        for one in self.kustomizations:
            if one.source is not None and one.source not in (MAIN, *sources):
                raise ValueError(
                    f"kustomizations[{one.name}].source: there is no source {one.source}; "
                    f"{_known([MAIN, *sources])}"
                )
            for needed in one.depends_on:
                if needed.name not in (MAIN, *names):
                    raise ValueError(
                        f"kustomizations[{one.name}].dependsOn: there is no Kustomization {needed.name}; "
                        f"{_known([MAIN, *names])}"
                    )
        circle = _circle({one.name: [each.name for each in one.depends_on] for one in self.kustomizations})
        if circle:
            raise ValueError(f"kustomizations: {' needs '.join(circle)}; remove one dependsOn")
        return self


def _differ(field: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = min(name for name in names if names.count(name) > 1)
        raise ValueError(f"{field} has two entries named {twice}; names must differ")


def _known(names: Iterable[str]) -> str:
    return f"there are {', '.join(sorted(set(names)))}"


def _circle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return names each of which needs the next, with the first one again at the end; [] without a circle."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:  # its second argument: each name is needed by the next
        return list(reversed(error.args[1]))
    return []
