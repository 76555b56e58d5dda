"""Changes of a fleet whose second stage has a gate, and what that gate says."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.schema import RolloutCheck
from shared.app.api.views.rollouts import rollout_view
from shared.app.api.views.why import why_view
from tests.support.pipeline_runs import push
from tests.support.staged_fleets import staged, tags

ERRORS = "sum(rate(errors_total[5m]))"
"""A query of a gate."""


def gated(checks: str) -> str:
    """Return two stages, of which the second has a gate with these checks."""
    return f"""\
  rollout:
    stages:
      - {{name: first, select: {{environments: [development]}}, groups: [{{maxConcurrency: "100%"}}]}}
      - name: second
        groups: [{{maxConcurrency: "100%"}}]
        gate: {{owner: qa, reason: the shop answers, {checks}}}
"""


def change(cloud: MemoryCloud, rollout: str, tag: str = "one", seconds: float = 600) -> str:
    """Push a change of every cluster, and run for a while."""
    commit = push(cloud, staged(rollout, tags(tag)))
    cloud.run(seconds=seconds)
    return commit


def check_of(cloud: MemoryCloud, commit: str, name: str) -> RolloutCheck:
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    gate = view["stages"][1]["gate"]
    assert gate is not None
    return next(check for check in gate["checks"] if check["name"] == name)


def waits(cloud: MemoryCloud) -> tuple[str, str]:
    """Return why a cluster of the second stage waits, and what can be done."""
    why = why_view("b1", cloud.ports)
    assert why is not None
    assert why["rollout"] is not None
    return why["rollout"]["waits"], why["rollout"]["suggestedAction"]
