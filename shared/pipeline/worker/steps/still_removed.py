"""Whether git still removes a cluster whose delete is about to begin.

A tombstone can be old when its delete begins: Azure may have been away, or the tables may have been restored
from an older moment. So the step reads the head of the branch once more, and deletes only if the cluster is
absent there. A head that has it again is believed once the planner has planned it, because GitHub may show a
branch as it was a moment ago; until then the delete waits.
"""

from __future__ import annotations

from shared.jobs.outcomes import Done, Outcome, Wait
from shared.pipeline.repository.branch_source import require_own
from shared.pipeline.repository.commit_reader import read_files
from shared.pipeline.worker.steps.context import StepContext

RECHECK_SECONDS = 15.0
"""The time between two reads of a head that has the cluster again and is not planned yet."""


def not_removed(context: StepContext) -> Outcome | None:
    """Return what happens instead of a delete that git no longer asks for, None when it may begin.

    Costs two calls to GitHub. The tree is read even where the record names the head as the commit that
    removed the cluster: whoever can write the record could have written that too.
    """
    record, ports = context.record, context.ports
    read, fleet = ports.repository.read_head(ports.config.branch), ports.state.fleet()
    require_own(read, fleet, ports)
    head = read.commit
    files = read_files(head, ports)
    if record.name not in files.folders and not files.unreadable:
        return None
    if fleet.planning or head != fleet.commit:  # the commit that removed it may be the one in planning
        return Wait(RECHECK_SECONDS, f"commit {head[:8]} has the cluster again, and is not planned yet")
    return Done(f"left the cluster {record.name}: commit {head[:8]} has it again", retained=True)
