"""Change windows and freezes in the pipeline: what waits starts by itself, without a commit."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from shared.app.api.acts.rollout import act_on_rollout
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.rollouts.calendar import SPREAD
from shared.rollouts.rollout import RolloutState
from shared.rollouts.rollout_acts import ActKind
from tests.support.function_calls import call
from tests.support.pipeline_runs import phases, push, status
from tests.support.staged_fleets import DEV, FREEZE, PROD, act, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

ALL = (*DEV, *PROD)
WINDOW = """\
  rollout:
    stages: [{{name: all, groups: [{{maxConcurrency: "100%"}}]}}]
    changeWindows:
      - name: later
        select: {{environments: [production]}}
        timeZone: Europe/Berlin
        recurrence: FREQ=DAILY
        start: "{start}"
        duration: 2h
"""


def frozen(now: datetime, hours: int = 3) -> str:
    """Return a strategy that freezes production from now on."""
    return FREEZE.format(starts=now.isoformat(), ends=(now + timedelta(hours=hours)).isoformat())


def windowed(opens: datetime) -> str:
    """Return a strategy whose window of production opens at a time of this day, in winter."""
    return WINDOW.format(start=f"{opens + timedelta(hours=1):%H:%M}")


def test_a_freeze_holds_its_clusters_and_what_waits_starts_when_it_ends() -> None:
    cloud = ready_fleet()
    files = staged(frozen(cloud.clock()), tags("one"))
    commit = push(cloud, files)
    cloud.run(seconds=2 * 3600)
    assert changed(cloud, "one") == {*DEV}
    state, description = status(cloud, commit)
    assert (state, "rollout waiting for a freeze to end" in description) == ("pending", True)
    assert "wait until 2026-01-01 03:00" in description
    why = why_view("b1", cloud.ports)
    assert why is not None
    assert why["rollout"] is not None
    assert (why["rollout"]["reason"], why["rollout"]["stage"]) == ("freeze", "production")
    assert "roadstead rollout override" in why["suggestedAction"]
    cloud.run(seconds=2 * 3600)
    assert changed(cloud, "one") == {*ALL}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_an_override_starts_what_a_freeze_holds_and_needs_a_reason() -> None:
    cloud = ready_fleet()
    commit = push(cloud, staged(frozen(cloud.clock(), hours=48), tags("one")))
    cloud.run(seconds=3600)
    assert call(cloud.ports, "rollout_override", commit=commit)[0] == 400
    act(cloud, commit, "override")
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {*ALL}
    assert rollout_of(cloud, commit).people.overridden is not None


def test_a_commit_that_takes_a_freeze_out_of_the_file_ends_it() -> None:
    cloud = ready_fleet()
    push(cloud, staged(frozen(cloud.clock(), hours=48), tags("one")))
    cloud.run(seconds=3600)
    push(cloud, staged(extra=tags("one")))
    cloud.run()
    assert changed(cloud, "one") == {*ALL}


def test_a_cluster_outside_its_window_catches_up_when_it_opens_without_a_commit() -> None:
    cloud = ready_fleet()
    opens = (cloud.clock() + timedelta(hours=5)).replace(minute=0, second=0, microsecond=0)
    commit = push(cloud, staged(windowed(opens), tags("one")))
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {*DEV}
    cloud.run(seconds=(opens - cloud.clock()).total_seconds())
    assert changed(cloud, "one") == {*DEV}
    cloud.run(seconds=SPREAD.total_seconds() + 60)
    assert changed(cloud, "one") == {*ALL}
    cloud.run()
    assert phases(cloud) == dict.fromkeys(ALL, Phase.READY)
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_an_override_has_no_meaning_without_windows_and_freezes() -> None:
    cloud = ready_fleet()
    commit = push(cloud, staged(extra=tags("one")))
    cloud.run(seconds=3)
    refused = act_on_rollout(commit, ActKind.OVERRIDE, "", "ops", cloud.ports, reason="now")
    assert refused.status == 409
