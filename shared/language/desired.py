"""A cluster as a commit requests it, with its spec fully resolved, and its stored form."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from shared.frozen import dataclass, field, replace
from shared.json_tree import digest_of
from shared.language.model.cluster.access import EXISTING
from shared.language.model.cluster.flux import ACTS_AS
from shared.language.model.cluster.flux_source import FluxSource
from shared.language.model.cluster.spec import EMPTY, FIELDS, ClusterSpec, ExistingSpec
from shared.language.pin import DIGEST, PINNED_INTERVAL, Pin
from shared.resource_ids import ClusterId


class AzureNames(NamedTuple):
    """The names in Azure that only one cluster can have."""

    subscription_id: str
    resource_group: str
    dns_prefix: str | None
    node_resource_group: str | None


Footprint = tuple[str, str, str, str | None, str | None, object, object, object, object]
"""What a cluster has of what clusters share: its subscription, its resource group, its region, its DNS
prefix, the name of its node resource group; and, as something or nothing, what says that it exists outside
Azure, its bootstrap secrets, its federated credentials, and who reaches its API server. A plain tuple: a push
asks every cluster of the fleet for it."""


@dataclass(frozen=True, eq=False)
class Desired:
    """A cluster as a commit requests it; ``components`` is the blob id of its components file, "" for none.

    ``environment`` and ``cluster_class`` are "" where it has none; ``labels`` are those of its metadata.
    ``adopt`` is its annotation of that name: "", "when-equal" or "with-differences", and ``rebuild`` the time
    of its annotation of that name, "" for none, which is no part of the stored form. ``replaces`` is the name
    of the cluster that it is to replace, "" for none. ``removed_keys`` has, by
    node pool, the labels and taints to remove, and ``left`` the differences that a job leaves as they are, by
    their paths; neither is part of the stored form. ``lowered`` has the versions that git had and has lowered
    since, by their paths, which is no part of it either. ``systems`` are the stored forms of the teams'
    systems on it; ``had_systems``: it may have had some before, which is no part of the stored form either.
    ``pin`` is the commit that its Flux pulls, None where that follows its source. Clusters with the same
    stored form are equal.
    """

    name: str
    spec: ClusterSpec
    components: str
    environment: str = ""
    cluster_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    adopt: str = ""
    rebuild: str = ""
    removed_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left: Collection[str] = ()
    lowered: Mapping[str, str] = field(default_factory=dict)
    systems: Sequence[Mapping[str, Any]] = ()
    had_systems: bool = False
    replaces: str = ""
    pin: Pin | None = None

    @property
    def id(self) -> ClusterId:
        """Where the cluster lives in Azure."""
        return ClusterId(self.azure_names.subscription_id, self.azure_names.resource_group, self.name)

    @property
    def azure_names(self) -> AzureNames:
        """The names in Azure that no other cluster can have."""
        spec = self.spec
        return AzureNames(
            spec.subscription_id, spec.resource_group, spec.dns_prefix, spec.node_resource_group
        )

    @property
    def footprint(self) -> Footprint:
        """What it has of what clusters share."""
        spec = self.spec
        return (
            spec.subscription_id,
            spec.resource_group,
            spec.location,
            spec.dns_prefix,
            spec.node_resource_group,
            spec.existing,
            spec.bootstrap_secrets,
            spec.federated_credentials or spec.identities or self.flux_identity,
            spec.api_server_access_profile,
        )

    @property
    def components_path(self) -> str:
        """Where its Flux components are in the repository."""
        return self.spec.flux.components.removeprefix("./")

    @property
    def vaults(self) -> tuple[tuple[str, str], ...]:
        """The vault of each bootstrap secret, by the name of its entry."""
        return tuple(
            (bootstrap_secret.name, bootstrap_secret.vault)
            for bootstrap_secret in self.spec.bootstrap_secrets
        )

    @property
    def kubeconfig(self) -> tuple[str, str] | None:
        """The vault and the secret that have its kubeconfig, None for an AKS cluster."""
        existing = self.spec.existing
        return (existing.kubeconfig.vault, existing.kubeconfig.secret) if existing else None

    @property
    def is_attached(self) -> bool:
        """Whether it exists outside Roadstead, so that nothing of it is in Azure."""
        return self.spec.existing is not None

    @property
    def own_identities(self) -> tuple[tuple[str, str], ...]:
        """The entries of the identities that it alone has, each with the identity's id in lower case."""
        return tuple((identity.name, identity.identity.lower()) for identity in self.spec.identities)

    @property
    def federated(self) -> tuple[tuple[str, str], ...]:
        """The entries of its federated credentials, each with the identity's id in lower case."""
        return tuple(
            (federated_credential.name, federated_credential.identity.lower())
            for federated_credential in self.spec.federated_credentials
        )

    @property
    def place(self) -> tuple[str, str]:
        """Its subscription and its region, in lower case."""
        return self.spec.subscription_id.lower(), self.spec.location.lower()

    @property
    def is_private(self) -> bool:
        """Whether its API server has a private address only."""
        access = self.spec.api_server_access_profile
        return bool(access and access.enable_private_cluster)

    @property
    def has_extension(self) -> bool:
        """Whether its Flux is Microsoft's extension."""
        return self.spec.flux.is_extension

    @property
    def has_operator(self) -> bool:
        """Whether the Flux Operator installs its Flux."""
        return self.spec.flux.is_operator

    @property
    def flux_identity(self) -> str:
        """The identity that its Flux acts as, by client id or resource id in lower case; "" for none."""
        flux = self.spec.flux
        if flux.extension is not None:
            return flux.extension.configuration_settings.get(ACTS_AS, "").lower()
        return flux.workload_identity.named if flux.workload_identity else ""

    @property
    def main_source(self) -> FluxSource:
        """The first source of its Flux, at the commit of its pin."""
        main, pin = self.spec.flux.main, self.pin
        if pin is None:
            return main
        ref = {"branch": pin.branch} if pin.branch else {"commit": pin.commit}
        if pin.commit.startswith(DIGEST):
            ref = {"digest": pin.commit}
        return main.model_copy(update={**ref, "interval": PINNED_INTERVAL})

    @property
    def problem(self) -> str:
        """What the current rules refuse in the spec, "" for nothing."""
        return ""

    def document(self) -> dict[str, Any]:
        """Return the stored form: JSON with every default filled in and without empty values."""
        optional = {
            "environment": self.environment,
            "class": self.cluster_class,
            "labels": dict(self.labels),
            "adopt": self.adopt,
            "replaces": self.replaces,
            "systems": list(self.systems),
            "pin": self.pin.stored() if self.pin else {},
        }
        stored = {"name": self.name, "spec": dumped_spec(self.spec), "components": self.components}
        return stored | {key: value for key, value in optional.items() if value}

    def with_systems(self, systems: Sequence[Mapping[str, Any]]) -> Desired:
        """Return the cluster with these systems instead of its own."""
        return self if list(systems) == list(self.systems) else replace(self, systems=tuple(systems))

    @property
    def flux_as_stored(self) -> Mapping[str, Any]:
        """Its ``spec.flux`` in the stored form."""
        return self.spec.flux.model_dump(by_alias=True, mode="json", exclude_none=True)

    def with_pin(self, pin: Pin | None) -> Desired:
        """Return the cluster with this pin instead of its own."""
        return self if pin == self.pin else replace(self, pin=pin)

    @property
    def pins(self) -> Mapping[str, Pin]:
        """The pins of the systems that have one, by their names, and that of the cluster, as ""."""
        own = {"": self.pin} if self.pin else {}
        return own | {system["name"]: pin for system in self.systems if (pin := Pin.of(system))}

    def with_pins(self, pins: Mapping[str, Pin]) -> Desired:
        """Return the cluster with these pins, by the names of systems and as "" its own, instead of those."""
        systems = [
            {**system, "pin": pins[system["name"]].stored()} if system["name"] in pins else system
            for system in self.systems
        ]
        return self.with_systems(systems).with_pin(pins.get("", self.pin))

    @property
    def digest(self) -> str:
        """A hash of the stored form without the commit of its pin: equal ones describe the same cluster."""
        return document_digest(self.document())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Desired) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash(self.digest)


def is_attached(document: Mapping[str, Any]) -> bool:
    """Return whether a cluster in its stored form is outside Azure."""
    return bool(document["spec"].get("provider") == EXISTING)


def dumped_spec(spec: ClusterSpec) -> dict[str, Any]:
    """Return the stored form of a spec; of a cluster outside Azure without what only AKS has."""
    written = spec.model_dump(by_alias=True, mode="json", exclude_none=True)
    if isinstance(spec, ExistingSpec):
        return {key: value for key, value in written.items() if key in FIELDS or key in EMPTY}
    return written


def document_digest(document: Mapping[str, Any]) -> str:
    """Return the digest of a stored form: of its pin, what Flux pulls counts, and not the commit of that."""
    pin = document.get("pin")
    return digest_of({**document, "pin": pin["pulls"]} if pin else document)
