"""A cluster as a commit requests it, with its spec fully resolved, and its stored form."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import ValidationError

from shared.frozen import dataclass, field, replace
from shared.json_tree import digest_of
from shared.language.cluster_systems import normalised_systems, read_system, systems_in
from shared.language.model.cluster.access import EXISTING
from shared.language.model.cluster.flux import EXTENSION, OPERATOR
from shared.language.model.cluster.flux_source import FluxSource
from shared.language.model.cluster.spec import EMPTY, FIELDS, ClusterSpec, ExistingSpec
from shared.language.pin import PINNED_INTERVAL, Pin
from shared.process_memory import recently_read
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
    their paths; neither is part of the stored form. ``systems`` are the stored forms of the teams'
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
            spec.federated_credentials,
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
        """The client id of the identity of Azure that its Flux acts as, "" for none."""
        identity = self.spec.flux.workload_identity
        return identity.client_id.lower() if identity else ""

    @property
    def main_source(self) -> FluxSource:
        """The first source of its Flux, at the commit of its pin."""
        main, pin = self.spec.flux.main, self.pin
        if pin is None:
            return main
        ref = {"commit": pin.commit} if pin.direct else {"branch": pin.branch}
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
        stored = {"name": self.name, "spec": _dumped_spec(self.spec), "components": self.components}
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

    @classmethod
    def from_document(
        cls,
        document: Mapping[str, Any],
        removed_keys: Mapping[str, tuple[str, ...]] | None = None,
        left: Collection[str] = (),
        *,
        had_systems: bool = False,
    ) -> Desired:
        """Read the stored form; ``spec`` is validated by the current rules only when it is read."""
        return StoredCluster(document, removed_keys=removed_keys, left=left, had_systems=had_systems)

    @property
    def digest(self) -> str:
        """A hash of the stored form without the commit of its pin: equal ones describe the same cluster."""
        return _digest_of(self.document())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Desired) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash(self.digest)


def is_attached(document: Mapping[str, Any]) -> bool:
    """Return whether a cluster in its stored form is outside Azure."""
    return bool(document["spec"].get("provider") == EXISTING)


@recently_read
def _read_spec(stored: Mapping[str, Any]) -> ClusterSpec:
    """Return a spec as the model of its provider reads it; raise pydantic's ValidationError."""
    model = ExistingSpec if stored.get("provider") == EXISTING else ClusterSpec
    return model.model_validate(dict(stored))


def _dumped_spec(spec: ClusterSpec) -> dict[str, Any]:
    """Return the stored form of a spec; of a cluster outside Azure without what only AKS has."""
    written = spec.model_dump(by_alias=True, mode="json", exclude_none=True)
    if isinstance(spec, ExistingSpec):
        return {key: value for key, value in written.items() if key in FIELDS or key in EMPTY}
    return written


def _digest_of(document: Mapping[str, Any]) -> str:
    """Return the digest of a stored form: of its pin, what Flux pulls counts, and not the commit of that."""
    pin = document.get("pin")
    return digest_of({**document, "pin": pin["pulls"]} if pin else document)


_NONE: Mapping[str, Any] = {}
_STORED = {
    "name": "name",
    "spec": "_spec",
    "components": "components",
    "environment": "environment",
    "class": "cluster_class",
    "labels": "labels",
    "adopt": "adopt",
    "replaces": "replaces",
    "systems": "systems",
}
"""The parts of a stored form, each with its field."""


class StoredCluster(Desired):
    """A cluster from its stored form, which is written again unchanged.

    Thousands of these need little time and memory. The cluster's resource id is known even if its spec is
    invalid by the current rules, so that it can be deleted; ``spec`` then raises pydantic's ValidationError.
    """

    _document: Mapping[str, Any]
    _spec: Mapping[str, Any]
    _digest: str
    labels: Mapping[str, str] = _NONE
    removed_keys: Mapping[str, tuple[str, ...]] = _NONE

    def __init__(
        self,
        document: Mapping[str, Any],
        digest: str = "",
        removed_keys: Mapping[str, tuple[str, ...]] | None = None,
        left: Collection[str] = (),
        *,
        had_systems: bool = False,
    ) -> None:
        # Not through the fields of the class: it is frozen, and the spec is validated later. A push creates
        # one for each cluster of the fleet, so what few clusters have is set where they have it.
        values = self.__dict__
        for stored, value in document.items():
            if stored in _STORED:
                values[_STORED[stored]] = value
        values["_document"] = document
        values["_digest"] = digest
        if "pin" in document:
            values["pin"] = Pin.of(document)
        if removed_keys or left or had_systems:
            values.update(removed_keys=removed_keys or {}, left=frozenset(left), had_systems=had_systems)

    @cached_property
    def spec(self) -> ClusterSpec:
        """The spec as the model reads it."""
        return _read_spec(self._spec)

    @property
    def problem(self) -> str:
        """What the current rules refuse in the stored spec."""
        try:
            self.spec  # noqa: B018
            for system in self.systems:
                read_system(system)
        except ValidationError as error:
            return "; ".join(map(_problem, error.errors(include_url=False, include_input=False)))
        return ""

    @property
    def azure_names(self) -> AzureNames:
        """The names in Azure that no other cluster can have."""
        spec = self._spec
        place = spec["subscriptionId"], spec["resourceGroup"]
        return AzureNames(*place, spec.get("dnsPrefix"), spec.get("nodeResourceGroup"))

    @property
    def footprint(self) -> Footprint:
        """What it has of what clusters share."""
        spec, get = self._spec, self._spec.get
        return (
            spec["subscriptionId"],
            spec["resourceGroup"],
            spec["location"],
            get("dnsPrefix"),
            get("nodeResourceGroup"),
            get("existing"),
            get("bootstrapSecrets"),
            get("federatedCredentials"),
            get("apiServerAccessProfile"),
        )

    @property
    def components_path(self) -> str:
        """Where its Flux components are in the repository."""
        return str(self._spec["flux"]["components"]).removeprefix("./")

    @property
    def vaults(self) -> tuple[tuple[str, str], ...]:
        """The vault of each bootstrap secret, by the name of its entry."""
        return tuple(
            (bootstrap_secret["name"], bootstrap_secret["vault"])
            for bootstrap_secret in self._spec.get("bootstrapSecrets") or ()
        )

    @property
    def kubeconfig(self) -> tuple[str, str] | None:
        """The vault and the secret that have its kubeconfig, None for an AKS cluster."""
        existing = self._spec.get("existing")
        found = existing.get("kubeconfig") if existing else None
        return (found["vault"], found["secret"]) if found else None

    @property
    def is_attached(self) -> bool:
        """Whether it exists outside Roadstead, so that nothing of it is in Azure."""
        return self.kubeconfig is not None

    @property
    def federated(self) -> tuple[tuple[str, str], ...]:
        """The entries of its federated credentials, each with the identity's id in lower case."""
        entries = self._spec.get("federatedCredentials")
        return tuple((entry["name"], entry["identity"].lower()) for entry in entries) if entries else ()

    @property
    def place(self) -> tuple[str, str]:
        """Its subscription and its region, in lower case."""
        return self._spec["subscriptionId"].lower(), self._spec["location"].lower()

    @property
    def is_private(self) -> bool:
        """Whether its API server has a private address only."""
        return bool((self._spec.get("apiServerAccessProfile") or {}).get("enablePrivateCluster"))

    @property
    def has_extension(self) -> bool:
        """Whether its Flux is Microsoft's extension."""
        return bool(self._spec["flux"].get("install") == EXTENSION)

    @property
    def has_operator(self) -> bool:
        """Whether the Flux Operator installs its Flux."""
        return bool(self._spec["flux"].get("install") == OPERATOR)

    @property
    def flux_identity(self) -> str:
        """The client id of the identity of Azure that its Flux acts as, "" for none."""
        return str((self._spec["flux"].get("workloadIdentity") or {}).get("clientId") or "").lower()

    def document(self) -> dict[str, Any]:
        """Return the stored form."""
        return dict(self._document)

    def with_systems(self, systems: Sequence[Mapping[str, Any]]) -> Desired:
        """Return the cluster with these systems instead of its own."""
        if list(systems) == list(self.systems):
            return self
        rest = {key: value for key, value in self.document().items() if key != "systems"}
        changed = rest | ({"systems": list(systems)} if systems else {})
        return StoredCluster(
            changed, removed_keys=self.removed_keys, left=self.left, had_systems=self.had_systems
        )

    @property
    def flux_as_stored(self) -> Mapping[str, Any]:
        """Its ``spec.flux`` in the stored form."""
        return self._spec["flux"]  # type: ignore[no-any-return]

    def with_pin(self, pin: Pin | None) -> Desired:
        """Return the cluster with this pin instead of its own."""
        if pin == self.pin:
            return self
        rest = {key: value for key, value in self._document.items() if key != "pin"}
        changed = rest | ({"pin": pin.stored()} if pin else {})
        return StoredCluster(
            changed, removed_keys=self.removed_keys, left=self.left, had_systems=self.had_systems
        )

    @property
    def digest(self) -> str:
        """The digest it was stored with."""
        return self._digest or _digest_of(self.document())


def _problem(error: Mapping[str, Any]) -> str:
    field = ".".join(("spec", *map(str, error["loc"])))
    return f"{field}: {error['msg'].removeprefix('Value error, ')}"


def normalised(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored form as it would be written now: a default that was added since is no change.

    A form that is invalid by the current rules is returned unchanged.
    """
    try:
        spec = {"spec": _dumped_spec(StoredCluster(document).spec)}
    except ValidationError:
        return document
    systems = normalised_systems(systems_in(document))
    return {**document, **spec, **({"systems": systems} if systems else {})}
