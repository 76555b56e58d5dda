"""The steps of a sleep: the cluster, or its User pools, stop, sleep as long as they are to, and start again.

Each compares: should the cluster be awake now, and is it? So a message that comes late loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.app.access.azure_state import MISSING, busy, recheck
from shared.app.access.contests import read_ours
from shared.app.access.context import StepContext
from shared.app.worker.steps.writable import (
    SLOW_POLLS,
    next_attempt,
    sleeps,
    start_again,
    start_pool,
    switch_pool,
    wait_for,
)
from shared.azure.changes.writes import is_stopped, last_write_failed, pool_is_stopped
from shared.azure.node_pools.replacement import sleepers
from shared.cluster.failures.errors import ClusterMissing, Interrupted, Terminal, Unauthorized
from shared.cluster.job import AcceptedWrite, WriteKind
from shared.cluster.outcomes import Done, Fail, GoToStep, Outcome, Restart, Wait
from shared.cluster.recipes import Step
from shared.cluster.sleep import SleepDecision
from shared.frozen import replace
from shared.json_tree import Json
from shared.ports.azure import StopCluster

TRIED_AGAIN = 3600.0
"""Seconds until a stop is sent again that Azure has refused: a person has to put that right."""
_ACTION = (
    "Put right what the message names: a webhook with wildcards refuses the stop, and so does node "
    "auto-provisioning. docs/how-to/sleep-at-night.md has more."
)


def ensure_asleep(context: StepContext) -> Outcome:
    """Stop the cluster, and wait as long as it is to sleep; a stop that Azure refuses leaves it awake."""
    decision = context.record.sleep_at(context.ports.clock())
    if decision is None or decision.awake:
        return Done("its sleep is over")
    live = _read(context)
    if not isinstance(live, Mapping):
        return live
    operation = busy(live["properties"])
    if operation:
        return Wait(context.poll_seconds, operation)
    if is_stopped(live):
        return sleeps(context, decision)
    try:
        if context.desired.spec.sleep is not None and context.desired.spec.sleep.of_pools:
            return _pools_asleep(context, decision, live)
        stop = next_attempt(context, AcceptedWrite(WriteKind.STOP))
        if stop is None:
            return _stays_awake(context, decision, "Azure accepted the stop twice, and the cluster runs")
        written = context.azure(StopCluster(context.cluster))
    except (Terminal, Interrupted, Unauthorized) as error:
        return _stays_awake(context, decision, f"{error.kind}: {error}")
    stopping = wait_for(context, "Azure is stopping the cluster", stop, written)
    return replace(stopping, seconds=SLOW_POLLS * stopping.seconds)


def _pools_asleep(context: StepContext, decision: SleepDecision, live: Json) -> Outcome:
    """Stop one pool after the other. Azure stops one only if its last write succeeded."""
    for pool, profile in sleepers(context.desired, context.owner, live):
        if pool_is_stopped(profile) and not last_write_failed(profile):
            continue
        name = str(profile["name"])
        stop = next_attempt(context, AcceptedWrite(WriteKind.STOP, name))
        if stop is None:
            return _stays_awake(context, decision, f"Azure accepted the stop of {name} twice, and it runs")
        return switch_pool(context, pool, profile, stop)
    return sleeps(context, decision)


def ensure_awake(context: StepContext) -> Outcome:
    """Start the cluster, and wait until it runs."""
    decision = context.record.sleep_at(context.ports.clock())
    if decision is not None and not decision.awake:
        return GoToStep(Step.SLEEP, "the cluster is to sleep again")
    live = _read(context)
    if not isinstance(live, Mapping):
        return live
    operation = busy(live["properties"])
    if operation:
        return Wait(context.poll_seconds, operation)
    if is_stopped(live):
        return start_again(context, live)
    pools = sleepers(context.desired, context.owner, live) if context.record.sleeps_in_pools else ()
    for pool, profile in pools:
        if pool_is_stopped(profile) or last_write_failed(profile):
            return start_pool(context, pool, profile)
    return Done("Azure runs the cluster")


def _read(context: StepContext) -> Json | Outcome:
    found = read_ours(context)
    if not isinstance(found, Restart):
        return found
    return Fail(ClusterMissing(MISSING)) if context.job.step.rechecking else recheck(context, "the cluster")


def _stays_awake(context: StepContext, decision: SleepDecision, why: str) -> Wait:
    asleep = sleeps(context, decision)
    reason = f"the cluster is to sleep, and stays awake: {why}"
    return Wait(min(asleep.seconds, TRIED_AGAIN), reason, action_required=_ACTION, open_ended=True)
