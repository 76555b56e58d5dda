"""The end of a cluster: nothing ends early, whatever people ask for and whenever somebody looks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.lifetime import Lifetime, due_at, end_in_git, lifetime_of, ready_at, spared, with_lifetime
from shared.cluster.record_parts import EndPull, LifetimeState
from shared.frozen import replace
from shared.plan.plan import Postponement
from tests.support.cluster_records import record

READY = datetime(2026, 3, 1, 12, tzinfo=UTC)
moments = st.integers(0, 400).map(lambda hours: READY + timedelta(hours=hours))
postponements = st.none() | moments.map(lambda until: Postponement(until, "ops", "a test", READY))


def of(spec: dict[str, object], **state: object) -> Lifetime | None:
    """Return the lifetime of a cluster that was Ready first at ``READY``."""
    base = record()
    own = replace(base, document={**base.document, "spec": {**base.document["spec"], **spec}})
    return lifetime_of(with_lifetime(own, first_ready=READY, **state))


@given(st.integers(1, 300), postponements, postponements)
def test_nothing_ends_before_what_git_and_people_say(
    hours: int, extension: Postponement | None, hold: Postponement | None
) -> None:
    life = of({"lifetime": f"{hours}h"}, extension=extension, hold=hold)
    assert life is not None
    said = [READY + timedelta(hours=hours), *(asked.until for asked in (extension, hold) if asked)]
    assert life.over == max(said)
    assert all(READY <= moment < life.ends for moment in life.warnings)


@given(st.integers(2, 300), moments, moments)
def test_a_warning_that_was_given_is_not_due_again(hours: int, first: datetime, second: datetime) -> None:
    life = of({"lifetime": f"{hours}h"})
    assert life is not None
    moment = life.due_warning(min(first, second))
    if moment is not None:
        warned = replace(life, state=LifetimeState(READY, warned=(life.ends, moment)))
        assert moment not in warned.warnings
        assert warned.due_warning(min(first, second)) is None


def test_another_end_is_warned_of_again() -> None:
    life = of({"lifetime": "8h"})
    assert life is not None
    (moment,) = life.warnings
    later = of({"lifetime": "9h"}, warned=(life.ends, moment))
    assert later is not None
    assert len(later.warnings) == 1


def test_a_cluster_that_was_never_ready_has_no_end_but_a_last_day() -> None:
    assert end_in_git({"lifetime": "8h"}, None) is None
    assert end_in_git({"expires": "2026-03-31"}, None) == datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC)
    assert end_in_git({}, READY) is None


def test_the_first_ready_counts() -> None:
    later = READY + timedelta(days=1)
    assert ready_at(ready_at(LifetimeState(), READY), later).first_ready == READY


def test_nothing_is_due_of_a_cluster_whose_end_is_proposed_until_it_has_another() -> None:
    base = record()
    own = replace(base, document={**base.document, "spec": {**base.document["spec"], "lifetime": "8h"}})
    pull = EndPull(7, "https://example.com/7", "c" * 40, READY + timedelta(hours=8))
    proposed = with_lifetime(own, first_ready=READY, pull=pull)
    assert due_at(proposed) is None
    extended = with_lifetime(
        proposed, extension=Postponement(READY + timedelta(hours=9), "ops", "a", pull.end)
    )
    assert due_at(extended) == own.created
    assert due_at(with_lifetime(base, pull=pull)) == own.created


def test_a_cluster_whose_tables_were_restored_is_spared() -> None:
    base = record()
    restored = replace(base, ownership=replace(base.ownership, recovering=True))
    assert spared(restored, READY).startswith("the tables were restored")
