"""A cluster from its stored form: as a record has it, and as a plan compares it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from shared.language.cluster_systems import normalised_systems, read_system, systems_in
from shared.language.desired import AzureNames, Desired, Footprint, document_digest, dumped_spec
from shared.language.model.cluster.access import EXISTING
from shared.language.model.cluster.flux import ACTS_AS, EXTENSION, OPERATOR
from shared.language.model.cluster.spec import ClusterSpec, ExistingSpec
from shared.language.pin import Pin
from shared.process_memory import recently_read


@recently_read
def _read_spec(stored: Mapping[str, Any]) -> ClusterSpec:
    """Return a spec as the model of its provider reads it; raise pydantic's ValidationError."""
    model = ExistingSpec if stored.get("provider") == EXISTING else ClusterSpec
    return model.model_validate(dict(stored))


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
    lowered: Mapping[str, str] = _NONE

    def __init__(
        self,
        document: Mapping[str, Any],
        digest: str = "",
        removed_keys: Mapping[str, tuple[str, ...]] | None = None,
        left: Collection[str] = (),
        *,
        had_systems: bool = False,
        lowered: Mapping[str, str] | None = None,
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
        if removed_keys or left or had_systems or lowered:
            values.update(
                removed_keys=removed_keys or {},
                left=frozenset(left),
                had_systems=had_systems,
                lowered=lowered or {},
            )

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
            get("federatedCredentials") or get("identities") or self.flux_identity,
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
    def own_identities(self) -> tuple[tuple[str, str], ...]:
        """The entries of the identities that it alone has, each with the identity's id in lower case."""
        return self._identities_of("identities")

    @property
    def federated(self) -> tuple[tuple[str, str], ...]:
        """The entries of its federated credentials, each with the identity's id in lower case."""
        return self._identities_of("federatedCredentials")

    def _identities_of(self, field: str) -> tuple[tuple[str, str], ...]:
        entries = self._spec.get(field)
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
        """The identity that its Flux acts as, by client id or resource id in lower case; "" for none."""
        flux = self._spec["flux"]
        identity, extension = flux.get("workloadIdentity"), flux.get("extension")
        if extension:
            return str((extension.get("configurationSettings") or {}).get(ACTS_AS) or "").lower()
        return str(identity.get("identity") or identity.get("clientId") or "").lower() if identity else ""

    def document(self) -> dict[str, Any]:
        """Return the stored form."""
        return dict(self._document)

    def with_systems(self, systems: Sequence[Mapping[str, Any]]) -> Desired:
        """Return the cluster with these systems instead of its own."""
        if list(systems) == list(self.systems):
            return self
        rest = {key: value for key, value in self.document().items() if key != "systems"}
        changed = rest | ({"systems": list(systems)} if systems else {})
        return self._with(changed)

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
        return self._with(changed)

    def _with(self, document: Mapping[str, Any]) -> Desired:
        return StoredCluster(
            document,
            removed_keys=self.removed_keys,
            left=self.left,
            had_systems=self.had_systems,
            lowered=self.lowered,
        )

    @property
    def digest(self) -> str:
        """The digest it was stored with."""
        return self._digest or document_digest(self.document())


def _problem(error: Mapping[str, Any]) -> str:
    field = ".".join(("spec", *map(str, error["loc"])))
    return f"{field}: {error['msg'].removeprefix('Value error, ')}"


def normalised(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored form as it would be written now: a default that was added since is no change."""
    try:
        spec = {"spec": dumped_spec(StoredCluster(document).spec)}
    except ValidationError:
        return document
    systems = normalised_systems(systems_in(document))
    return {**document, **spec, **({"systems": systems} if systems else {})}
