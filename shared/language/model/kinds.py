"""The kinds of a fleet repository, each with apiVersion, kind, metadata and spec."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, StrictStr, model_validator

from shared.language.model.arm_types import UtcMoment
from shared.language.model.base import (
    OWN_PREFIX,
    ClusterName,
    LabelKey,
    LabelValue,
    Manifest,
    ObjectName,
    Version,
)
from shared.language.model.cluster.flux import PatchVersion
from shared.language.model.cluster.spec import ClusterSpec, ExistingSpec, ImageVersion
from shared.language.model.fleet_rules import (
    ClusterQuota,
    Guards,
    PromotionRule,
    RouteSpec,
    SelfServiceRule,
    check_rules,
    differ,
)
from shared.language.model.rollout import RolloutSpec
from shared.language.model.system import SystemSpec

API_VERSION = "roadstead.dev/v1alpha1"
ApiVersion = Literal["roadstead.dev/v1alpha1"]

Defaults = dict[StrictStr, Any]


ADOPT, REBUILD, REPLACES = (f"{OWN_PREFIX}{name}" for name in ("adopt", "rebuild", "replaces"))


def _own_label(key: str) -> str:
    if key.startswith(OWN_PREFIX):
        raise ValueError(f"labels that begin with {OWN_PREFIX} are set by Roadstead; remove it")
    return key


def _not_ours(key: str) -> str:
    if not key.startswith(OWN_PREFIX):
        return key
    if key in (ADOPT, REBUILD, REPLACES):
        raise ValueError("is for a Cluster's metadata; remove it here")
    known = f"{ADOPT}, {REBUILD} or {REPLACES}"
    raise ValueError(f"there is no such annotation; did you mean {known}, on a Cluster?")


def _no_two_quotas(quotas: tuple[ClusterQuota, ...]) -> tuple[ClusterQuota, ...]:
    differ(quotas)
    return quotas


class Annotations(Manifest):
    """Annotations as in Kubernetes; those that begin with ``roadstead.dev/`` are read by Roadstead."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Annotated[StrictStr, AfterValidator(_not_ours)], StrictStr] = Field(init=False)


class ClusterAnnotations(Annotations):
    """Annotations as in Kubernetes; those that begin with ``roadstead.dev/`` are Roadstead's own."""

    adopt: Annotated[Literal["when-equal", "with-differences"] | None, Field(alias=ADOPT)] = None
    """Adopt a cluster that exists in Azure and has no owner: only when it equals the manifest, or also
    when it differs.
    """
    rebuild: Annotated[UtcMoment | None, Field(alias=REBUILD)] = None
    """Rebuild the cluster: delete it and create it again from the manifest, unless it was created for this
    time or a later one. The delete has the guards of any delete.
    """
    replaces: Annotated[ClusterName | None, Field(alias=REPLACES)] = None
    """The name of the cluster that this one replaces: once that one's folder is removed, its delete waits
    until this cluster is Ready. The delete has the guards of any delete.
    """

    @model_validator(mode="after")
    def _adopts_or_rebuilds(self) -> Self:
        if self.adopt and self.rebuild:
            raise ValueError(f"{ADOPT} and {REBUILD} exclude each other: a rebuild creates; remove {ADOPT}")
        return self


class Metadata(Manifest):
    """The name of an object, with labels and annotations as in Kubernetes."""

    name: ClusterName
    """The object's name, as its file or folder is called."""
    labels: dict[Annotated[LabelKey, AfterValidator(_own_label)], LabelValue] = Field(default_factory=dict)
    """Labels as in Kubernetes; systems select clusters by them."""
    annotations: Annotations = Annotations.model_construct()


class ClusterMetadata(Metadata):
    """The name of a cluster, with its labels and annotations."""

    annotations: ClusterAnnotations = ClusterAnnotations.model_construct()


class FleetSpec(Manifest):
    """What all clusters share: defaults, the order of the environments, guards, and notifications."""

    defaults: Defaults = Field(default_factory=dict)
    """Any part of a cluster's spec: the values of every cluster unless its class, environment or own file
    sets others."""
    environments: tuple[ObjectName, ...] = ()
    """Every environment, once, in the order in which a rollout changes their clusters."""
    guards: Guards = Guards.model_construct()
    notifications: tuple[RouteSpec, ...] = ()
    """Who is notified of what."""
    cluster_quotas: Annotated[
        tuple[ClusterQuota, ...], Field(max_length=1000), AfterValidator(_no_two_quotas)
    ] = ()
    """How much some clusters may have together, of Azure or by a budget; what a commit adds beyond that is
    refused before anything is created."""
    self_service: Annotated[tuple[SelfServiceRule, ...], Field(max_length=100)] = ()
    """Who may have clusters by request; by default nobody."""
    rollout: RolloutSpec = RolloutSpec.model_construct()
    """In which order the clusters that a commit changes are changed; by default environment by environment,
    and in each of them one cluster first."""
    promotions: tuple[PromotionRule, ...] = ()
    """Pull requests that Roadstead opens by itself, to give an environment what is proven in another one."""

    @model_validator(mode="after")
    def _promotes_forward(self) -> Self:
        check_rules(self.promotions, self.environments)
        return self


class Fleet(Manifest):
    """``fleet.yaml``."""

    api_version: ApiVersion
    kind: Literal["Fleet"]
    metadata: Metadata
    spec: FleetSpec = FleetSpec.model_construct()


Channel = Literal["rapid", "stable", "patch", "lts"]


class KubernetesChannel(Manifest):
    """Which version of Kubernetes an environment follows, as the channels of AKS' automatic upgrades do."""

    channel: Channel
    """``rapid`` is the newest patch of the newest minor that AKS offers, ``stable`` that of the minor before.
    ``patch`` is the newest patch of the same minor, until its support ends; ``lts`` likewise, with
    long-term support. Source: learn.microsoft.com/azure/aks/auto-upgrade-cluster."""


class NodeImageChannel(Manifest):
    """Which node images an environment follows, as the channel of AKS' automatic upgrades does by itself."""

    channel: Literal["NodeImage"]
    """``NodeImage`` is the newest image that every region has: of the environment, and of those to which
    promotions carry it. AKS lists no images of ``SecurityPatch``. Source:
    learn.microsoft.com/azure/aks/auto-upgrade-node-os-image."""


class FluxChannel(Manifest):
    """Which versions an environment follows of Microsoft's extension, or of what the operator installs."""

    channel: Literal["rapid", "stable", "patch"]
    """As those of Kubernetes, of what Azure lists of the extension in the regions of the environment. The
    operator has ``patch`` alone: a newer minor of Flux may need a newer operator."""


class EnvironmentSpec(Manifest):
    """What the clusters of an environment share; in production they are protected from deletion."""

    kubernetes: KubernetesChannel | None = None
    """Which versions the app proposes. The version itself is in ``environments/<name>.versions.yaml``."""
    node_images: NodeImageChannel | None = None
    """Which node images the app proposes. The oldest that counts is ``minNodeImageVersion`` in that file."""
    flux: FluxChannel | None = None
    """Which versions of Flux the app proposes; that file has the present one, below ``flux``."""
    production: StrictBool = False
    """Its clusters are protected from deletion unless they set deletionProtection to false."""
    defaults: Defaults = Field(default_factory=dict)
    """Any part of a cluster's spec: the values of every cluster of the environment unless its own file sets
    others."""


class Environment(Manifest):
    """``environments/<name>.yaml``."""

    api_version: ApiVersion
    kind: Literal["Environment"]
    metadata: Metadata
    spec: EnvironmentSpec = EnvironmentSpec.model_construct()


class PinnedVersion(Manifest):
    """A version of Microsoft's extension, or of the Flux that the Flux Operator installs."""

    version: PatchVersion
    """The one version."""


class InstanceVersion(Manifest):
    """The part of a FluxInstance with its version."""

    distribution: PinnedVersion


class FluxVersion(Manifest):
    """The version of Flux, at the place where a cluster has it; only one of both."""

    extension: PinnedVersion | None = None
    instance: InstanceVersion | None = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.extension is None) == (self.instance is None):
            raise ValueError("needs extension.version or instance.distribution.version, and only one of both")
        return self


class VersionsSpec(Manifest):
    """The versions that the clusters of an environment have."""

    kubernetes_version: Version | None = None
    """The version of Kubernetes: the ``kubernetesVersion`` of every cluster that sets none itself."""
    min_node_image_version: ImageVersion | None = None
    """The oldest node image: the ``minNodeImageVersion`` of every cluster that sets none itself."""
    flux: FluxVersion | None = None
    """The version of Flux of every cluster that sets none itself."""


class Versions(Manifest):
    """``environments/<name>.versions.yaml``: the versions that an environment with a channel has now.

    The app changes it by pull requests, and a plan reads nothing else of a channel.
    """

    api_version: ApiVersion
    kind: Literal["Versions"]
    metadata: Metadata
    spec: VersionsSpec


class ClusterClass(Manifest):
    """``classes/<name>.yaml``: any part of a cluster's spec; ``class`` in it names its base class."""

    api_version: ApiVersion
    kind: Literal["ClusterClass"]
    metadata: Metadata
    spec: Defaults = Field(default_factory=dict)


class Cluster(Manifest):
    """``clusters/<name>/cluster.yaml``, with its spec merged over the fleet, class and environment.

    In the file, spec also has ``class`` and ``environment``; resolving removes both.
    """

    api_version: ApiVersion
    kind: Literal["Cluster"]
    metadata: ClusterMetadata
    spec: ClusterSpec


class AttachedCluster(Cluster):
    """The same file with ``provider: existing`` in its merged spec."""

    spec: ExistingSpec


class System(Manifest):
    """``systems/<name>.yaml``: a team's tenant."""

    api_version: ApiVersion
    kind: Literal["System"]
    metadata: Metadata
    spec: SystemSpec
