"""Apply objects to a cluster where it has others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import is_applied, ref_of
from shared.fleet.kubernetes.ownership.applied_fields import is_held
from shared.fleet.kubernetes.ownership.field_ownership import lost_fields, same, transferred
from shared.pipeline.worker.steps.flux.live_objects import LiveObjects
from shared.ports import KubernetesApi
from shared.some_of import some_of

SHOWN = 3


@dataclass(frozen=True)
class Applied:
    """How many objects were written, and the fields that they took from other managers."""

    count: int = 0
    taken: tuple[str, ...] = ()

    def __add__(self, other: Applied) -> Applied:
        return Applied(self.count + other.count, self.taken + other.taken)

    def note(self, what: str, of: str = "") -> str:
        """Describe what was written, such as each ``what`` of something, "" for nothing."""
        if not self.count:
            return ""
        took = f"; took over {some_of(self.taken, SHOWN, between='; ')}" if self.taken else ""
        return f"applied {self.count} {what}{'s' * (self.count > 1)}{of}{took}"


def apply_differing(
    manifests: Sequence[Json],
    live: LiveObjects,
    api: KubernetesApi,
    *,
    entirely: bool = False,
    resumes: bool = False,
) -> Applied:
    """Apply the objects that the cluster does not have as an apply would leave them.

    ``entirely``: the objects are ours alone. ``resumes``: they are also not left suspended.
    """
    found = [(manifest, live.get(ref_of(manifest))) for manifest in manifests]
    return sum(
        (apply_over(one, manifest, api, entirely=entirely, resumes=resumes) for manifest, one in found),
        Applied(),
    )


def apply_over(
    live: Json | None, manifest: Json, api: KubernetesApi, *, entirely: bool = False, resumes: bool = False
) -> Applied:
    """Apply an object over what the cluster has, unless that would change nothing.

    What the object does not show by itself costs an apply as a dry run.
    """
    if live is None:
        api.apply(manifest)
        return Applied(1)
    ours = transferred(live, entirely=entirely, resumes=resumes)
    if ours is not None:
        api.replace(ours)
    elif is_as_applied(live, manifest, api):
        return Applied()
    after = api.apply(manifest)
    return Applied(1, tuple(f"{ref_of(manifest)}: {fields}" for fields in lost_fields(live, after)))


def is_as_applied(live: Json, manifest: Json, api: KubernetesApi) -> bool:
    """Return whether an apply would change nothing: a dry run shows what the object itself does not."""
    if not is_applied(manifest, live):
        return False
    return is_held(manifest, live) or same(live, api.apply(manifest, dry_run=True))
