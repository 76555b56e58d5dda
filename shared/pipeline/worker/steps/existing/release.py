"""Release a cluster outside Azure: it is no longer marked as ours, and nothing else changes.

What Roadstead applied keeps running, Flux included: the cluster was there before, and somebody else may use
it next. Whoever wants it empty removes that by the manifests of git first.
"""

from __future__ import annotations

from shared.fleet.kubernetes.ownership.owner_map import OWNER_MAP, as_tagged
from shared.jobs.failures.errors import AnotherCluster, SecretMissing
from shared.jobs.outcomes import Done, Outcome
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.deletes.still_removed import not_removed


def release_cluster(context: StepContext) -> Outcome:
    """Remove what marks the cluster as ours; where it may not be ours any more, leave everything.

    Without its secret nobody enters the cluster: whoever deletes or disables that lets a cluster go that
    no longer answers.
    """
    restored = not_removed(context, {}, started=False)
    if restored:
        return restored
    try:
        api = context.kubernetes()
    except (SecretMissing, AnotherCluster) as error:
        return Done(f"left the cluster as it is: {error}", retained=True)
    live = api.get(OWNER_MAP)
    if live is None:
        return Done("nothing on the cluster says that it is this fleet's")
    existing, owner = as_tagged(live), context.owner
    if not owner.owns(existing) or owner.rivals(existing) or not owner.is_our_life(existing):
        return Done(f"left the cluster as it is: the {OWNER_MAP} is of somebody else", retained=True)
    api.delete(live)
    return Done(f"removed the {OWNER_MAP}; what runs on the cluster stays")
