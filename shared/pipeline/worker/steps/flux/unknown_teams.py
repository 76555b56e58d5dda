"""Teams on a cluster whose record has never had a system, as tables that were restored say it.

The teams' objects are still there, and without the lock-down of Flux they would have all rights: it is not
taken away while a namespace of a system exists.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.desired import Desired
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import is_applied, ref_of
from shared.fleet.kubernetes.flux.instance_objects import INSTANCE
from shared.fleet.kubernetes.flux.lockdown import is_locked_down
from shared.fleet.kubernetes.system_objects import SYSTEM
from shared.pipeline.worker.steps.flux.live_objects import LiveObjects
from shared.ports import KubernetesApi

_RUNS = ("Deployment", INSTANCE.kind)
"""The kinds that the lock-down changes."""


def has_unknown_teams(
    desired: Desired, manifests: Sequence[Json], live: LiveObjects, api: KubernetesApi, *, rolls_out: bool
) -> bool:
    """Return whether namespaces of systems are on a cluster that is not locked down by its record.

    That costs a call only where a write could take the lock-down away: the cluster runs another Flux than the
    one of these components, or lacks a part of what runs. ``rolls_out``: these components were applied.
    """
    if is_locked_down(desired) or not desired.spec.flux.lockdown:
        return False
    if (not rolls_out and _is_new(manifests, live)) or _runs(manifests, live):
        return False
    return bool(api.list("v1", "Namespace", labels=SYSTEM))


def _is_new(manifests: Sequence[Json], live: LiveObjects) -> bool:
    """Return whether a cluster lacks every definition of the components, and so has no object of Flux."""
    definitions = [one for one in manifests if one["kind"] == "CustomResourceDefinition"]
    return bool(definitions) and all(_listed(one, live) is None for one in definitions)


def _runs(manifests: Sequence[Json], live: LiveObjects) -> bool:
    """Return whether what runs of Flux is as these components have it: not locked down, then."""
    return all(is_applied(one, _listed(one, live)) for one in manifests if one["kind"] in _RUNS)


def _listed(manifest: Json, live: LiveObjects) -> Json | None:
    """Return an object as the cluster has it, from a list that the step needs later."""
    live.kin(ref_of(manifest))
    return live.get(ref_of(manifest))
