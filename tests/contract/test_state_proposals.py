"""What is stored of pull requests about drift, each over the version that was read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shared.cluster.failures.errors import Stale
from shared.ports import State
from shared.ports.state import LeftOut, Proposal, SweepRecord

NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
WHOLE = Proposal(
    "one",
    digest="d",
    number=7,
    url="https://github.example/pull/7",
    opened=NOW,
    values=("v",),
    commits=("a", "b"),
    declined=("w",),
    left_out=(LeftOut("tags.own", "why"),),
    problem="ü",
    commit="c" * 40,
)


def test_a_proposal_is_read_as_it_was_saved(state: State) -> None:
    assert (state.proposal("one"), list(state.proposals())) == (None, [])
    saved = state.save_proposal(WHOLE)
    assert state.proposal("one") == WHOLE
    assert saved.etag
    state.save_proposal(Proposal("a"))
    assert [each.cluster for each in state.proposals()] == ["a", "one"]


def test_a_proposal_is_written_over_the_version_that_was_read(state: State) -> None:
    first = state.save_proposal(WHOLE)
    with pytest.raises(Stale):
        state.save_proposal(WHOLE)
    second = state.save_proposal(replace(first, number=8))
    with pytest.raises(Stale):
        state.save_proposal(replace(first, number=9))
    with pytest.raises(Stale):
        state.remove_proposal(first)
    assert state.proposal("one") == replace(WHOLE, number=8)
    state.remove_proposal(second)
    assert state.proposal("one") is None


def test_why_no_pull_request_is_opened_is_stored_with_the_sweeps(state: State) -> None:
    state.save_sweep(SweepRecord(proposals="GitHub refuses"))
    assert state.sweep().proposals == "GitHub refuses"
