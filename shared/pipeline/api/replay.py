"""Replays: an operator starts a failed job again. The record decides; compare-and-swap saves it."""

from __future__ import annotations

from shared.jobs.diagnosis import diagnose
from shared.jobs.errors import Stale
from shared.jobs.events import replayed_event
from shared.jobs.record import accept_retry
from shared.pipeline import outbox
from shared.pipeline.api.approval import MAX_ACTOR, Answer
from shared.pipeline.outbox import send_continuation
from shared.ports import Ports


def replay(name: str, actor: str, ports: Ports) -> Answer:
    """Start the failed job of a cluster again; a job that did not fail stays as it is, with an error."""
    by = actor[:MAX_ACTOR] or "operator"
    while True:
        record = ports.state.cluster(name)
        if record is None:
            return Answer(
                404, {"error": f"there is no cluster {name[:63]} in the fleet {ports.config.fleet}"}
            )
        if not record.failed:
            activity = diagnose(record, now=ports.clock(), retries=ports.config.retries).activity
            return Answer(409, {"error": f"{name} has not failed: it {activity}"})
        try:
            saved = ports.state.save(accept_retry(record, now=ports.clock()))
        except Stale:
            continue  # a plan or another replay won the race; its record decides
        break
    ports.state.append([replayed_event(saved, by)])
    send_continuation(saved, ports)
    outbox.request_report(ports)
    return Answer(202, {"cluster": name, "replayed": saved.job.recipe.value, "by": by})
