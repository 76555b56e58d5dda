"""A message that begins inside a cluster reads whose cluster it is, before its first write there.

The steps before have read that, but in an earlier message: another installation may have marked it since. A
step that writes nothing costs no read.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.app.access.contests import NotWritten, read_ours
from shared.app.access.context import StepContext
from shared.app.access.lease_guard import GuardedKubernetes
from shared.app.worker.steps import attached
from shared.cluster.recipes import IN_THE_CLUSTER, Recipe, Step
from shared.frozen import replace
from shared.ports import Ports

_READ = {
    Recipe.PROVISION: (Step.RESOURCE_GROUP, Step.CLUSTER, Step.NODE_POOLS),
    Recipe.ATTACH: (Step.ACCESS,),
    Recipe.SLEEP: (Step.SLEEP, Step.WAKE),
}
"""Where a message begins that reads whose cluster it is before it is inside: the last of them always does."""


def begins_inside(recipe: Recipe, step: Step) -> bool:
    """Return whether a message that begins with this step has to read whose cluster it writes to."""
    return step not in _READ.get(recipe, (step,))


def knowing_whose(context: StepContext) -> Ports:
    """Return the ports with that read before the first write to the cluster."""
    step, known = context.job.step.name, False

    def require(*_: object) -> None:
        nonlocal known
        if not known:
            found = attached.still_ours(context) if context.desired.is_attached else read_ours(context)
            if not isinstance(found, Mapping):
                raise NotWritten(found)
            known = True

    if step not in IN_THE_CLUSTER or step in _READ[context.job.recipe]:
        return context.ports
    return replace(context.ports, kubernetes=GuardedKubernetes(context.ports.kubernetes, require))
