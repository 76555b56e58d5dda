"""What a sweep does for a cluster that is not in Azure: it lists and compares nothing of it there.

Checks read it from inside. Where the policy has what Roadstead applied of Flux applied again, a check asks
for a sweep of the cluster, which starts that job as for any other cluster.
"""

from __future__ import annotations

import logging

from shared.jobs.failures.errors import Stale
from shared.jobs.findings.flux_correction import CORRECTED, applies_again
from shared.jobs.record import ClusterRecord
from shared.jobs.reporting.events import correction_event
from shared.jobs.transitions.apply_comparison import start_correction
from shared.logs import about_record
from shared.pipeline.facts import store_fact
from shared.pipeline.outbox import send_continuation
from shared.pipeline.sweep.held_corrections import unless_held
from shared.ports import Ports
from shared.rollouts.calendar import Start

log = logging.getLogger(__name__)


def apply_again(record: ClusterRecord, ports: Ports) -> bool:
    """Start the job that applies again what Roadstead applied of Flux; return whether there is one."""
    now = ports.clock()
    if record.job.active:
        return False
    started = start_correction(record, [CORRECTED], now=now)[0] if applies_again(record, now) else record
    after = unless_held(record, started, Start.CORRECTION, ports)
    if after == record:
        return False
    with about_record(record):
        if after.job.active:
            event = correction_event(after, "a job applies again what Roadstead applied of Flux")
            ports.state.append([event])
            store_fact(record, after, ports)
        try:
            saved = ports.state.save(after)
        except Stale:
            log.info("%s: its record was written meanwhile", record.name)
            return False
        if saved.job.active:
            send_continuation(saved, ports)
    return saved.job.active
