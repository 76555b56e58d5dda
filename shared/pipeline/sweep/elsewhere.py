"""What a sweep does for a cluster that is not in Azure: it lists and compares nothing of it there.

Checks read it from inside. Where the policy has what Roadstead applied of Flux applied again, a check asks
for a sweep of the cluster, which starts that job as for any other cluster.
"""

from __future__ import annotations

from functools import partial

from shared.jobs.findings.flux_correction import CORRECTED, applies_again
from shared.jobs.record import ClusterRecord
from shared.jobs.reporting.events import correction_event
from shared.jobs.transitions.apply_comparison import start_correction
from shared.logs import about_record
from shared.pipeline.facts import notices_of
from shared.pipeline.outbox import send_continuation
from shared.pipeline.records import Transition, change
from shared.pipeline.sweep.held_corrections import unless_held
from shared.ports import Ports
from shared.rollouts.calendar import Start


def apply_again(record: ClusterRecord, ports: Ports) -> bool:
    """Start the job that applies again what Roadstead applied of Flux; return whether there is one."""
    with about_record(record):
        saved = change(record.name, partial(_again, ports=ports), ports, known=(record,))
    return saved is not None and saved.job.active


def _again(record: ClusterRecord | None, *, ports: Ports) -> Transition | None:
    now = ports.clock()
    if record is None or record.job.active:
        return None
    started = start_correction(record, [CORRECTED], now=now)[0] if applies_again(record, now) else record
    after = unless_held(record, started, Start.CORRECTION, ports)
    if after == record:
        return None
    what = "a job applies again what Roadstead applied of Flux"
    events = [correction_event(after, what)] if after.job.active else []
    return Transition(after, events, notices_of(record, after, ports), [send_continuation])
