"""A cluster as a commit requests it, or a record has it: its stored form, and the spec that this holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from shared.frozen import dataclass, field
from shared.json_tree import Json, digest_of
from shared.language.cluster_systems import Systems, normalised_systems, read_system, systems_in
from shared.language.model.cluster.access import EXISTING
from shared.language.model.cluster.flux import ACTS_AS, EXTENSION, OPERATOR
from shared.language.model.cluster.flux_source import FluxSource
from shared.language.model.cluster.spec import EMPTY, FIELDS, ClusterSpec, ExistingSpec
from shared.language.pin import DIGEST, PINNED_INTERVAL, Pin
from shared.process_memory import recently_read
from shared.resource_ids import ClusterId

Footprint = tuple[str, str, str, str | None, str | None, object, object, object, Json | None]
"""What a cluster has of what clusters share: its subscription, its resource group, its region, its DNS
prefix, the name of its node resource group; and, as something or nothing, what says that it exists outside
Azure, its bootstrap secrets, its federated credentials, and who reaches its API server. A plain tuple: a push
asks every cluster of the fleet for it."""

_NONE: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False)
class Desired:
    """A cluster by its stored form; thousands of these need little time and memory.

    ``stored`` is JSON with every default filled in and without empty values, and ``known_digest`` its digest,
    "" where nobody has it at hand. The other fields are no part of it. ``rebuild`` is the time of the
    annotation of that name, "" for none. ``removed_keys`` has, by node pool, the labels and taints to remove,
    ``left`` the differences that a job leaves as they are, by their paths, and ``lowered`` the versions that
    git had and has lowered since, by their paths. ``had_systems``: it may have had some before.

    The cluster's resource id is known even if its spec is invalid by the current rules, so that it can be
    deleted; ``spec`` then raises pydantic's ValidationError. Clusters with the same stored form are equal.
    """

    stored: Json
    known_digest: str = ""
    rebuild: str = ""
    removed_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left: Collection[str] = ()
    lowered: Mapping[str, str] = field(default_factory=dict)
    had_systems: bool = False

    @classmethod
    def of(cls, document: Json, spec: ClusterSpec, rebuild: str = "", given: Json = _NONE) -> Desired:
        """Return the cluster of a stored form with this spec, in which the fields that are given differ."""
        cluster = cls(document, rebuild=rebuild)
        cluster.__dict__["_valid"] = spec, given
        return cluster

    @cached_property
    def spec(self) -> ClusterSpec:
        """The spec as the model reads it."""
        valid, given = self.__dict__.get("_valid", (None, _NONE))
        return valid.model_copy(update=given) if valid is not None else _read_spec(self._spec)

    @property
    def _spec(self) -> Json:
        spec: Json = self.stored["spec"]
        return spec

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.stored["name"]  # type: ignore[no-any-return]

    @property
    def components(self) -> str:
        """The blob id of its Flux components file, "" for none."""
        return self.stored["components"]  # type: ignore[no-any-return]

    @property
    def environment(self) -> str:
        """Its environment, "" for none."""
        return self.stored.get("environment", "")  # type: ignore[no-any-return]

    @property
    def cluster_class(self) -> str:
        """Its class, "" for none."""
        return self.stored.get("class", "")  # type: ignore[no-any-return]

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of its metadata."""
        return self.stored.get("labels", _NONE)  # type: ignore[no-any-return]

    @property
    def adopt(self) -> str:
        """Its annotation of that name: "", "when-equal" or "with-differences"."""
        return self.stored.get("adopt", "")  # type: ignore[no-any-return]

    @property
    def replaces(self) -> str:
        """The name of the cluster that it is to replace, "" for none."""
        return self.stored.get("replaces", "")  # type: ignore[no-any-return]

    @property
    def systems(self) -> Systems:
        """The stored forms of the teams' systems on it."""
        return systems_in(self.stored)

    @property
    def pin(self) -> Pin | None:
        """The commit that its Flux pulls, None where that follows its source."""
        return Pin.of(self.stored)

    @property
    def problem(self) -> str:
        """What the current rules refuse in the stored spec, "" for nothing."""
        try:
            self.spec  # noqa: B018
            for system in self.systems:
                read_system(system)
        except ValidationError as error:
            return "; ".join(map(_problem, error.errors(include_url=False, include_input=False)))
        return ""

    @property
    def id(self) -> ClusterId:
        """Where the cluster lives in Azure."""
        return ClusterId(self._spec["subscriptionId"], self._spec["resourceGroup"], self.name)

    @property
    def footprint(self) -> Footprint:
        """What it has of what clusters share."""
        spec = self.stored["spec"]
        get = spec.get
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
    def place(self) -> tuple[str, str]:
        """Its subscription and its region, in lower case."""
        return self._spec["subscriptionId"].lower(), self._spec["location"].lower()

    @property
    def components_path(self) -> str:
        """Where its Flux components are in the repository."""
        return str(self._spec["flux"]["components"]).removeprefix("./")

    @property
    def vaults(self) -> Sequence[tuple[tuple[str, ...], str]]:
        """The vaults that it names, each with its place in the spec."""
        own = [(("existing", "kubeconfig", "vault"), self.kubeconfig[0])] if self.kubeconfig else []
        secrets = self._spec.get("bootstrapSecrets") or ()
        return [
            *own,
            *((("bootstrapSecrets", secret["name"], "vault"), secret["vault"]) for secret in secrets),
        ]

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

    def _identities_of(self, name: str) -> tuple[tuple[str, str], ...]:
        entries = self._spec.get(name)
        return tuple((entry["name"], entry["identity"].lower()) for entry in entries) if entries else ()

    @property
    def is_private(self) -> bool:
        """Whether its API server has a private address only."""
        return bool((self._spec.get("apiServerAccessProfile") or {}).get("enablePrivateCluster"))

    @property
    def flux_as_stored(self) -> Json:
        """Its ``spec.flux`` in the stored form."""
        return self._spec["flux"]  # type: ignore[no-any-return]

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

    def main_source(self, fleet: str) -> FluxSource:
        """Return the first source of its Flux, at the commit of its pin, which a branch of the fleet is."""
        main, pin = self.spec.flux.main, self.pin
        if pin is None:
            return main
        branch = pin.branch(fleet)
        ref = {"branch": branch} if branch else {"commit": pin.commit}
        if pin.commit.startswith(DIGEST):
            ref = {"digest": pin.commit}
        return main.model_copy(update={**ref, "interval": PINNED_INTERVAL})

    def document(self) -> dict[str, Any]:
        """Return the stored form."""
        return dict(self.stored)

    @cached_property
    def digest(self) -> str:
        """A hash of the stored form without the commit of its pin: equal ones describe the same cluster."""
        return self.known_digest or document_digest(self.stored)

    @property
    def pins(self) -> Mapping[str, Pin]:
        """The pins of the systems that have one, by their names, and that of the cluster, as ""."""
        own = {"": self.pin} if self.pin else {}
        return own | {system["name"]: pin for system in self.systems if (pin := Pin.of(system))}

    def with_systems(self, systems: Sequence[Json]) -> Desired:
        """Return the cluster with these systems instead of its own."""
        return self if list(systems) == list(self.systems) else self._with("systems", list(systems))

    def with_pin(self, pin: Pin | None) -> Desired:
        """Return the cluster with this pin instead of its own."""
        return self if pin == self.pin else self._with("pin", pin.stored() if pin else {})

    def with_pins(self, pins: Mapping[str, Pin]) -> Desired:
        """Return the cluster with these pins, by the names of systems and as "" its own, instead of those."""
        systems = [
            {**system, "pin": pins[system["name"]].stored()} if system["name"] in pins else system
            for system in self.systems
        ]
        return self.with_systems(systems).with_pin(pins.get("", self.pin))

    def _with(self, part: str, value: Any) -> Desired:
        """Return the cluster with another value of a part that is not its spec; an empty one is removed."""
        rest = {key: known for key, known in self.stored.items() if key != part}
        changed = Desired(
            rest | ({part: value} if value else {}),
            rebuild=self.rebuild,
            removed_keys=self.removed_keys,
            left=self.left,
            lowered=self.lowered,
            had_systems=self.had_systems,
        )
        if "_valid" in self.__dict__:
            changed.__dict__["_valid"] = self.__dict__["_valid"]
        return changed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Desired) and self.document() == other.document()

    def __hash__(self) -> int:
        return hash(self.digest)


@recently_read
def _read_spec(stored: Json) -> ClusterSpec:
    """Return a spec as the model of its provider reads it; raise pydantic's ValidationError."""
    model = ExistingSpec if stored.get("provider") == EXISTING else ClusterSpec
    return model.model_validate(dict(stored))


def stored_form(name: str, spec: ClusterSpec, components: str, **optional: Any) -> dict[str, Any]:
    """Return the stored form of a cluster with this spec; ``optional`` parts are left out where empty."""
    stored = {"name": name, "spec": dumped_spec(spec), "components": components}
    return stored | {key: value for key, value in optional.items() if value}


def is_attached(document: Json) -> bool:
    """Return whether a cluster in its stored form is outside Azure."""
    return bool(document["spec"].get("provider") == EXISTING)


def dumped_spec(spec: ClusterSpec) -> dict[str, Any]:
    """Return the stored form of a spec; of a cluster outside Azure without what only AKS has."""
    written = spec.model_dump(by_alias=True, mode="json", exclude_none=True)
    if isinstance(spec, ExistingSpec):
        return {key: value for key, value in written.items() if key in FIELDS or key in EMPTY}
    return written


def document_digest(document: Json) -> str:
    """Return the digest of a stored form: of its pin, what Flux pulls counts, and not the commit of that."""
    pin = document.get("pin")
    return digest_of({**document, "pin": pin["pulls"]} if pin else document)


def _problem(error: Mapping[str, Any]) -> str:
    path = ".".join(("spec", *map(str, error["loc"])))
    return f"{path}: {error['msg'].removeprefix('Value error, ')}"


def normalised(document: Json) -> Json:
    """Return a stored form as it would be written now: a default that was added since is no change."""
    try:
        spec = {"spec": dumped_spec(Desired(document).spec)}
    except ValidationError:
        return document
    systems = normalised_systems(systems_in(document))
    return {**document, **spec, **({"systems": systems} if systems else {})}
