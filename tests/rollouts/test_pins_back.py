"""Which clusters go back to their earlier pins after an aborted rollout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.language.pin import Pin
from shared.rollouts.begin import begin
from shared.rollouts.rollout import RolloutState, StageDecision
from shared.rollouts.rollout_acts import pins_back
from tests.support.rollout_fleets import NOW, candidate, stage, summary

EARLIER = Pin("c0ffee", "files")


@pytest.mark.parametrize("gone", [False, True])
def test_a_cluster_goes_back_once_also_where_a_guard_keeps_its_pin_afterwards(*, gone: bool) -> None:
    """A plan after that gives it no newer generation: its member has the one with which it went back."""
    made = candidate("one", "dev")
    member = replace(made.member, earlier=EARLIER, back=gone, stays=gone)
    rollout = begin("head", (stage("dev"),), [replace(made, member=member)], None, NOW)
    people = replace(rollout.people, back=StageDecision("ann", NOW))
    aborted = replace(rollout, state=RolloutState.ABORTED, people=people)
    expected = {} if gone else {"one": (EARLIER,)}
    assert pins_back(aborted, {"one": summary("one", generation=2)}) == expected
