"""Replays: a person lets a failed job begin anew. Decided by the row, saved by compare-and-swap."""

from __future__ import annotations

from shared.jobs.diagnosis import why
from shared.jobs.errors import Stale
from shared.jobs.events import replayed_event
from shared.jobs.record import accept_retry
from shared.pipeline import outbox
from shared.pipeline.api.approval import MAX_ACTOR, Answer
from shared.pipeline.outbox import send_continuation
from shared.ports import Ports


def replay(name: str, actor: str, ports: Ports) -> Answer:
    """Begin the failed job of a cluster anew; a job that did not fail is left alone, and told of."""
    by = actor[:MAX_ACTOR] or "operator"
    while True:
        record = ports.state.cluster(name)
        if record is None:
            words = f"there is no cluster {name[:63]} in the fleet {ports.config.fleet}"
            return Answer(404, {"error": words})
        if not record.failed:
            doing = why(record, now=ports.clock(), retries=ports.config.retries).doing
            return Answer(409, {"error": f"{name} has not failed: it {_as_verb(doing)}"})
        try:
            saved = ports.state.save(accept_retry(record, now=ports.clock()))
        except Stale:
            continue  # a plan or another replay was faster; its row decides
        break
    ports.state.append([replayed_event(saved, by)])
    send_continuation(saved, ports)
    outbox.request_report(ports)
    return Answer(202, {"cluster": name, "replayed": saved.job.recipe.value, "by": by})


def _as_verb(doing: str) -> str:
    return f"does {doing}" if doing.startswith("nothing") else doing
