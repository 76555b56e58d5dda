"""The Flux to install: the components that the repository pins, as the manifest of the cluster has them.

They are locked down where a cluster has systems, and act as an identity of Azure where it names one.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import components
from shared.fleet.kubernetes.flux.lockdown import is_locked_down, locked_down
from shared.fleet.kubernetes.flux.workload_identity import with_identity
from shared.pipeline.worker.steps.context import StepContext


def pinned_components(context: StepContext) -> Sequence[Json]:
    """Return the components of a cluster; raise ComponentsError for a file that has none."""
    pinned = components(context.ports.repository.blob(context.desired.components))
    identity = context.desired.spec.flux.workload_identity
    if identity is not None:
        pinned = with_identity(pinned, identity.client_id)
    return locked_down(pinned) if is_locked_down(context.desired) else pinned
