"""What the sweeps of a fleet have found that no cluster's record shows."""

from __future__ import annotations

from shared.pipeline.api import schema
from shared.pipeline.api.views.parts import iso
from shared.ports.state import SweepRecord

SHOWN = 20


def sweep_view(record: SweepRecord) -> schema.Sweep:
    """Return when the fleet was swept, which lists concluded nothing, and the orphans."""
    problems = [each for each in record.listings if each.problems]
    orphans = [orphan for each in record.listings for orphan in each.orphans]
    return {
        "startedAt": iso(record.started),
        "finishedAt": iso(record.finished),
        "problems": [
            {"subscription": each.subscription, "problem": each.problems, "listedAt": iso(each.at)}
            for each in problems[:SHOWN]
        ],
        "problemCount": len(problems),
        "orphans": [
            {
                "resource": orphan.resource,
                "cluster": orphan.cluster,
                "installation": orphan.installation,
                "since": iso(orphan.since),
            }
            for orphan in orphans[:SHOWN]
        ],
        "orphanCount": len(orphans),
        "paths": {
            "covered": record.paths.covered,
            "commit": record.paths.commit,
            "plannedAt": iso(record.paths.since),
            "after": record.paths.after,
            "problem": record.paths.problem,
        },
    }
