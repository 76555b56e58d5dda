"""``spec.flux``: what Flux pulls and applies, and the three ways of installing it.

Names and rules are those of Flux's API (fluxcd.io/flux/components).
"""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from shared.language.model.arm_types import Guid
from shared.language.model.base import FolderPath, IdentityId, Manifest, RepositoryPath, rule, twice
from shared.language.model.cluster.flux_source import (
    MAIN,
    FirstSource,
    FluxName,
    FluxSource,
    Follow,
    SecretReference,
    Text,
    moves_along,
)
from shared.language.model.cluster.kustomization import Kustomization, Patch

# Flux as Microsoft's extension: the names and rules of ``Microsoft.KubernetesConfiguration/extensions``.
#
# See learn.microsoft.com/azure/azure-arc/kubernetes/conceptual-gitops-flux2.

EXTENSION = "extension"
"""The way in which Flux comes to a cluster where it is the extension."""


ACTS_AS = "workloadIdentity.azureClientId"
"""The setting of the extension with the client id of the identity that Flux acts as."""


PatchVersion = Annotated[StrictStr, rule(r"[0-9]+\.[0-9]+\.[0-9]+", 'a version in quotes, such as "1.19.5"')]


class FluxExtension(Manifest):
    """The version and the settings of the extension; without a version, Azure upgrades it."""

    version: PatchVersion | None = None
    """The version of the extension that stays; it also decides which Flux runs."""
    release_train: Text | None = None
    """The releases that Azure upgrades to, such as Stable or Preview; not with version."""
    configuration_settings: Annotated[dict[Text, StrictStr], Field(max_length=50)] = Field(
        default_factory=dict
    )
    """Settings of the extension, such as multiTenancy.enforce; none is a secret. A setting that git no longer
    names keeps its value."""

    @model_validator(mode="after")
    def _follows_or_stays(self) -> Self:
        if self.version and self.release_train:
            raise ValueError(
                "releaseTrain: Azure upgrades along it, and version prevents that; keep one of the two"
            )
        return self


# Flux as the Flux Operator installs it: the names and rules of ``fluxcd.controlplane.io/v1``, FluxInstance.
#
# See fluxcd.control-plane.io/operator/fluxinstance. What Flux pulls is not here: that is the rest of
# ``flux``.

OPERATOR = "operator"
"""The way in which Flux comes to a cluster where the operator installs it."""
Controller = Literal[
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "notification-controller",
    "image-reflector-controller",
    "image-automation-controller",
    "source-watcher",
]
_NEEDED: tuple[Controller, ...] = ("source-controller", "kustomize-controller")
_USUAL: tuple[Controller, ...] = (*_NEEDED, "helm-controller", "notification-controller")


class Distribution(Manifest):
    """Which Flux the operator installs, and from where."""

    version: Annotated[
        StrictStr,
        rule(r"[0-9xX*.<>=~^, v+A-Za-z-]{1,100}", 'a version or a range of versions such as "2.8.x"'),
    ]
    """The version of Flux, 2.6 or later, or a range of which the operator takes the newest that it knows."""
    registry: Text = "ghcr.io/fluxcd"
    """Where the images of the controllers are."""
    variant: (
        Literal["upstream-alpine", "enterprise-alpine", "enterprise-distroless", "enterprise-distroless-fips"]
        | None
    ) = None
    """The images of a registry that mirrors others."""
    image_pull_secret: FluxName | None = None
    """The Secret in flux-system for the images, of the type kubernetes.io/dockerconfigjson."""
    artifact: Annotated[StrictStr, rule(r"oci://\S{1,500}", "an address such as oci://HOST/NAME")] | None = (
        None
    )
    """Where the operator takes manifests newer than its own from; without it, it has those of its image."""
    artifact_pull_secret: FluxName | None = None
    """The Secret in flux-system for the artifact, of the type kubernetes.io/dockerconfigjson."""


class InstanceCluster(Manifest):
    """How the operator configures the controllers for the cluster."""

    size: Literal["small", "medium", "large"] | None = None
    """How many objects the controllers reconcile at a time, and their limits."""
    domain: Text | None = None
    """The domain of the services of the cluster; cluster.local by default."""
    network_policy: StrictBool | None = None
    """Whether only the namespace flux-system reaches the controllers; true by default."""
    object_level_workload_identity: StrictBool | None = None
    """Whether sources may have a serviceAccountName of their own, with provider: azure."""


class InstanceStorage(Manifest):
    """A volume in which source-controller keeps what it fetched."""

    storage_class: Annotated[Text, Field(alias="class")]
    """The class of the volume."""
    size: Annotated[StrictStr, rule(r"[1-9][0-9]*(Mi|Gi|Ti)", "a size such as 10Gi")]
    """Its size."""


class InstanceKustomize(Manifest):
    """Changes to the manifests of Flux."""

    patches: Annotated[tuple[Patch, ...], Field(max_length=50)] = ()
    """Strategic merge patches and JSON patches."""


class FluxInstance(Manifest):
    """The Flux that the Flux Operator installs: the spec of its FluxInstance, without what Flux pulls."""

    instead: ClassVar[Mapping[str, str]] = {
        "sync": "what Flux pulls is the rest of flux: repository, sources and kustomizations"
    }

    distribution: Distribution
    components: tuple[Controller, ...] = _USUAL
    """The controllers of Flux."""
    cluster: InstanceCluster | None = None
    storage: InstanceStorage | None = None
    kustomize: InstanceKustomize | None = None

    @model_validator(mode="after")
    def _has_what_roadstead_needs(self) -> Self:
        lacking = [name for name in _NEEDED if name not in self.components]
        if lacking:
            raise ValueError(f"components: Roadstead needs {' and '.join(lacking)}; add it")
        if twice(self.components) is not None:
            raise ValueError("components has an entry twice; names must differ")
        return self


EVENT_KEY = "token"
"""The key of a Secret with which a Provider of the type generic-hmac signs."""


class FluxEvents(Manifest):
    """How Flux reports what it does: its notification-controller posts signed events to the app."""

    secret_ref: SecretReference
    """The Secret in flux-system whose key ``token`` signs the events, for this cluster alone: an entry of
    bootstrapSecrets, so that the app reads the same key in the vault."""


class WorkloadIdentity(Manifest):
    """The identity of Azure as which Flux pulls, and opens Azure Key Vault, where it has provider: azure."""

    identity: IdentityId | None = None
    """The identity, by its resource id, whose client id the worker reads: an identity for each cluster has
    {name} in it. federatedCredentials let source-controller, and kustomize-controller, in the namespace
    flux-system act as it."""
    client_id: Guid | None = None
    """The client id of the identity, in place of identity; 20 clusters can have the same one."""
    tenant_id: Guid | None = None
    """The tenant of the identity, where systems are on the cluster; by default that of the cluster."""

    @property
    def named(self) -> str:
        """The identity as the manifest names it, in lower case."""
        return (self.identity or self.client_id or "").lower()

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.identity is None) == (self.client_id is None):
            raise ValueError("needs identity or clientId, and only one of both")
        return self


class Flux(FirstSource):
    """What Flux pulls, and the Flux to install: ``components`` is a file of this repository."""

    secret_ref: SecretReference | None = None
    service_account_name: FluxName | None = None
    """The ServiceAccount in flux-system whose workload identity signs Flux in, with provider: azure."""
    workload_identity: WorkloadIdentity | None = None
    path: FolderPath
    """The folder in it that Flux applies to the cluster."""
    components: RepositoryPath = "flux/gotk-components.yaml"
    """The file of this repository with the Flux to install: write it with flux install --export. With
    install: operator, it has the Flux Operator."""
    follow: Follow | None = None
    """What moves what Flux pulls of the first source. With rollout, a cluster pulls a commit, or the digest
    of a tag, that Roadstead gives it in stages; with branch, Flux pulls each one at once. By default rollout,
    where repository and branch are those of the fleet, and branch elsewhere. With rollout, the app has to be
    able to read it."""
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
            (kustomization for kustomization in self.kustomizations if kustomization.name == MAIN),
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
    def _has_what_rollout_moves(self) -> Self:
        moves_along(self.follow, self)
        return self

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        sources = [source.name for source in self.sources]
        _differ("sources", sources)
        if MAIN in sources:
            raise ValueError(f"sources: {MAIN} is the source of spec.flux.repository; choose another name")
        names = [kustomization.name for kustomization in self.kustomizations]
        _differ("kustomizations", names)
        for kustomization in self.kustomizations:
            if kustomization.source is not None and kustomization.source not in (MAIN, *sources):
                raise ValueError(
                    f"kustomizations[{kustomization.name}].source: there is no source "
                    f"{kustomization.source}; {_known([MAIN, *sources])}"
                )
            for needed in kustomization.depends_on:
                if needed.name not in (MAIN, *names):
                    raise ValueError(
                        f"kustomizations[{kustomization.name}].dependsOn: there is no Kustomization "
                        f"{needed.name}; {_known([MAIN, *names])}"
                    )
        circle = _circle(
            {
                kustomization.name: [dependency.name for dependency in kustomization.depends_on]
                for kustomization in self.kustomizations
            }
        )
        if circle:
            raise ValueError(f"kustomizations: {' needs '.join(circle)}; remove one dependsOn")
        return self


def _differ(field: str, names: Sequence[str]) -> None:
    name = twice(names)
    if name is not None:
        raise ValueError(f"{field} has two entries named {name}; names must differ")


def _known(names: Iterable[str]) -> str:
    return f"there are {', '.join(sorted(set(names)))}"


def _circle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return names each of which needs the next, with the first one again at the end; [] without a circle."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:  # its second argument: each name is needed by the next
        return list(reversed(error.args[1]))
    return []
