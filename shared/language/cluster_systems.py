"""The systems on one cluster, in their stored form: part of the cluster's document, sorted by name.

The stored form has what the system is on this cluster, with the source of the cluster's environment, and not
its selector. So a change of the selector changes only the clusters that it adds or removes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import StrictStr, ValidationError

from shared.json_tree import Json
from shared.language.model.base import Manifest, ObjectName
from shared.language.model.cluster.flux_source import Commit, Digest, FluxSource
from shared.language.model.system import SystemSpec, Tenancy
from shared.language.pin import DIGEST, PINNED_INTERVAL
from shared.process_memory import recently_read

Systems = Sequence[Json]
"""The stored forms of the systems on a cluster."""


class SystemPin(Manifest):
    """The commit that a system follows, as ``pin.Pin`` stores it."""

    commit: Commit | Digest
    pulls: StrictStr
    before: StrictStr | None = None
    source: StrictStr | None = None


class ClusterSystem(Tenancy):
    """A system as it is on one cluster; ``pin`` is the commit that it follows, None where Flux moves it."""

    name: ObjectName
    pin: SystemPin | None = None

    @property
    def main_source(self) -> FluxSource:
        """What Flux pulls, at the commit of its pin."""
        main, pin = self.source.main, self.pin
        if pin is None:
            return main
        field = "digest" if pin.commit.startswith(DIGEST) else "commit"
        return main.model_copy(update={field: pin.commit, "interval": PINNED_INTERVAL})

    @property
    def home(self) -> str:
        """The namespace with its source, Kustomization and service account."""
        return self.namespaces[0]


def stored_system(name: str, spec: SystemSpec, environment: str) -> Json:
    """Return the stored form of a system on the clusters of an environment."""
    shared = spec.model_dump(exclude={"clusters", "source"}, by_alias=True, exclude_none=True)
    return _dumped(
        ClusterSystem.model_validate({**shared, "name": name, "source": spec.source.of(environment)})
    )


def systems_in(document: Json) -> Systems:
    """Return the stored systems of a cluster's document."""
    systems: Systems = document.get("systems") or ()
    return systems


@recently_read
def read_system(stored: Json) -> ClusterSystem:
    """Return a system from its stored form."""
    return ClusterSystem.model_validate(stored)


def normalised_systems(systems: Systems) -> list[Json]:
    """Return stored systems as they would be written now; one that is invalid now is returned unchanged."""
    return [_normalised(system) for system in systems]


def _normalised(stored: Json) -> Json:
    try:
        return _dumped(read_system(stored))
    except ValidationError:
        return stored


def _dumped(system: ClusterSystem) -> Json:
    dumped: Json = system.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dumped


def joined(wanted: Iterable[Json], retained: Mapping[str, Json], before: Mapping[str, Json]) -> list[Json]:
    """Return the systems of a cluster of which some are ``retained`` as they were.

    No other system gets a namespace of a retained one: that one stays as it was ``before``, or away.
    """
    result, taken = (
        dict(retained),
        {name for document in retained.values() for name in document["namespaces"]},
    )
    for document in wanted:
        name = document["name"]
        if name in retained:
            continue
        if not taken & {*document["namespaces"]}:
            result[name] = document
        elif name in before and not taken & {*before[name]["namespaces"]}:
            result[name] = before[name]
    return [result[name] for name in sorted(result)]


def system_with(systems: Systems, namespace: str) -> Json | None:
    """Return the system that has a namespace, None for a namespace of no system."""
    return next((system for system in systems if namespace in system["namespaces"]), None)


def by_name(systems: Systems) -> dict[str, Json]:
    """Return stored systems by their names."""
    return {str(system["name"]): system for system in systems}


def without_invalid(wanted: Systems, recorded: Systems, invalid: Collection[str] | None) -> list[Json]:
    """Return the systems of a cluster, with those whose manifests are ``invalid`` as they are recorded."""
    before = by_name(recorded)
    retained = {name: document for name, document in before.items() if invalid is None or name in invalid}
    return joined(wanted, retained, before)
