"""The facts of a cluster on the cluster: a check applies those that a sweep has found since."""

from __future__ import annotations

import logging

from shared.fleet.kubernetes.flux.sync_objects import facts_object
from shared.pipeline.checks.readings import Reading
from shared.pipeline.checks.secrets import may_apply
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.applied import apply_over

log = logging.getLogger(__name__)

RENEWED = "FactsRenewed"
"""The reason of the event."""


def renewed_facts(context: StepContext, reading: Reading) -> dict[str, str]:
    """Apply the facts in the record where the cluster has others; return that by the reason of its event.

    A ConfigMap that somebody deleted or changed is left to a job.
    """
    facts, live = context.record.facts or {}, reading.facts
    if live is None or live.get("data") == dict(facts) or not may_apply(context.record, context.ports):
        return {}
    apply_over(live, facts_object(facts), context.kubernetes())
    changed = sorted({name for name, _ in facts.items() ^ (live.get("data") or {}).items()})
    note = f"applied other facts of the cluster: {', '.join(changed)}"
    log.info("%s: %s", context.record.name, note)
    return {RENEWED: note}
