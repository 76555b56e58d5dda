"""The policy assignments of a manifest, compared with those of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from shared.fleet.desired import Desired
from shared.fleet.drift.differences import Difference
from shared.fleet.json_tree import Json
from shared.fleet.manifests.cluster.policies import PolicyAssignment
from shared.fleet.policies.policy_documents import differing_fields, live_fields, policy_body, wanted_fields
from shared.fleet.policies.policy_names import by_name

POLICY = "policies["
"""How the path of a difference of an assignment begins."""


def policy_bodies(desired: Desired, live: Mapping[str, Json]) -> dict[str, Json]:
    """Return the bodies of the assignments to write, by name; ``live`` are those that exist, by name.

    A difference that the job leaves keeps the value that Azure has.
    """
    bodies: dict[str, Json] = {}
    for name, entry in by_name(desired.id, desired.spec.policies).items():
        wanted = wanted_fields(desired.id, entry)
        if name not in live:
            if _path(entry) not in desired.left:
                bodies[name] = policy_body(desired.id, entry, wanted)
            continue
        has = live_fields(live[name])
        written = [each for each in differing_fields(has, wanted) if _path(entry, each) not in desired.left]
        if written:
            fields = {**has, **{each: wanted.get(each) for each in written}}
            bodies[name] = policy_body(desired.id, entry, fields)
    return bodies


def policy_differences(desired: Desired, live: Mapping[str, Json]) -> tuple[Difference, ...]:
    """Return the fields in which the assignments of the manifest differ, whatever a job leaves."""
    found: list[Difference] = []
    for name, entry in by_name(desired.id, desired.spec.policies).items():
        if name not in live:
            found.append(Difference(_path(entry), {"definition": entry.definition}, None))
            continue
        wanted, has = wanted_fields(desired.id, entry), live_fields(live[name])
        found += [
            Difference(_path(entry, each), wanted.get(each), has.get(each))
            for each in differing_fields(has, wanted)
        ]
    return tuple(found)


def _path(entry: PolicyAssignment, field: str = "") -> str:
    return ".".join(filter(None, (f"{POLICY}{entry.name}]", field)))
