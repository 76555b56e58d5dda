"""What an environment withdrew, as the planner notes it: over all histories, no rule gives a value back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.promotions import EnvironmentValues, Value, planned
from tests.support.sample import examples

NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
VALUES = [Value("flux.tag", name) for name in ("v1", "v2", "v3")]


def test_a_first_plan_notes_what_there_is_and_gives_nothing_up() -> None:
    had = planned(None, "production", [VALUES[0]], VALUES[:2], NOW)
    assert had == EnvironmentValues("production", (VALUES[0],), tuple(VALUES[:2]))
    assert planned(had, "production", [VALUES[0]], VALUES[:2], NOW) == had


def test_what_one_cluster_keeps_in_its_own_file_is_withdrawn_with_the_file_of_the_environment() -> None:
    before = planned(None, "production", [VALUES[1]], [VALUES[1]], NOW)
    after = planned(before, "production", [], [VALUES[0], VALUES[1]], NOW)
    assert after.withdrew(VALUES[1], None)


def test_a_value_that_one_cluster_tries_alone_is_not_withdrawn() -> None:
    before = planned(None, "production", [VALUES[0]], [VALUES[0], VALUES[1]], NOW)
    assert not before.withdrew(VALUES[1], None)
    assert planned(before, "production", [VALUES[1]], [VALUES[1]], NOW).withdrawn[0].value == VALUES[0]


@dataclass
class World:
    """An environment whose commits come from people and from merged promotions of a rule."""

    had: EnvironmentValues
    now: datetime = NOW
    taken_back: set[Value] = field(default_factory=set)
    """What a commit took away, and neither a commit nor a person has given back since."""
    lifted: dict[Value, datetime] = field(default_factory=dict)

    @property
    def value(self) -> Value:
        return self.had.file[0]

    def commit(self, value: Value) -> None:
        """Give the environment a value, and plan that."""
        self.now += timedelta(seconds=1)
        if value != self.value:
            self.taken_back.add(self.value)
        self.taken_back.discard(value)
        self.had = planned(self.had, "production", [value], [value], self.now)

    def rule(self, proven: Value) -> None:
        """Let a rule propose what is proven, and somebody merge that."""
        if proven != self.value and not self.had.withdrew(proven, self.lifted.get(proven)):
            assert proven not in self.taken_back
            self.commit(proven)

    def lift(self, value: Value) -> None:
        """Let a person promote a value by hand, whose pull request may never be merged."""
        self.now += timedelta(seconds=1)
        self.lifted[value] = self.now
        self.taken_back.discard(value)


ACTS = st.lists(st.tuples(st.sampled_from(["commit", "rule", "lift"]), st.sampled_from(VALUES)), max_size=30)


@given(ACTS)
@settings(max_examples=examples(500), deadline=None)
def test_no_rule_gives_back_what_a_commit_took_until_a_commit_or_a_person_lifts_that(
    acts: list[tuple[str, Value]],
) -> None:
    world = World(planned(None, "production", [VALUES[0]], [VALUES[0]], NOW))
    for act, value in acts:
        getattr(world, act)(value)
        held = {value for value in VALUES if world.had.withdrew(value, world.lifted.get(value))}
        assert held == world.taken_back
