"""The strategy that a commit selects, and the trailers of its message as git itself reads them."""

from __future__ import annotations

import random
import subprocess

import pytest

from shared.language.model.rollout import Strategy
from shared.plan.differences import FieldChange
from shared.plan.plan import Action, Item
from shared.rollouts.candidates import CommitRequest, choose, named_in
from shared.rollouts.strategy import StrategyChoice

STRATEGIES = (
    Strategy(name="ordinary", changes=("any",)),
    Strategy(name="emergency", selectable=True),
    Strategy(name="hotfix", pullRequestLabel="fix now"),  # type: ignore[call-arg]
)
UPDATES = (Item("one", Action.UPDATE, changes=(FieldChange("spec.tags.a", "", "b"),)),)
PIECES = (
    *("Rollout: a", "rollout : b", "Rollout:c", "a b: c", "key:", ": x", "https://x.y/z", "text"),
    *("Signed-off-by: x <y>", "(cherry picked from commit 12)", "", " "),
)


@pytest.mark.parametrize(
    ("asked", "name", "refused"),
    [
        (CommitRequest(), "ordinary", ()),
        (CommitRequest(labels=frozenset({"docs"})), "ordinary", ()),
        (CommitRequest(("emergency",)), "emergency", ()),
        (CommitRequest(("emergency", "emergency")), "emergency", ()),
        (CommitRequest(labels=frozenset({"fix now", "docs"})), "hotfix", ()),
        (CommitRequest(("hotfix",), frozenset({"fix now"})), "hotfix", ()),
        (CommitRequest(("emergancy",)), "ordinary", ("emergancy",)),
        (CommitRequest(("Emergency",)), "ordinary", ("Emergency",)),
        (CommitRequest(("ordinary",)), "ordinary", ("ordinary",)),
        (CommitRequest(("hotfix",)), "ordinary", ("hotfix",)),
        (CommitRequest(("",)), "ordinary", ("",)),
        (CommitRequest(("emergency",), frozenset({"fix now"})), "ordinary", ("emergency", "hotfix")),
    ],
)
def test_a_commit_has_the_strategy_that_it_may_select_and_otherwise_that_of_its_changes(
    asked: CommitRequest, name: str, refused: tuple[str, ...]
) -> None:
    chosen = StrategyChoice(name, selected=name != "ordinary", kind="any")
    assert choose(STRATEGIES, asked, UPDATES) == (chosen, refused)


def test_a_trailer_means_nothing_to_a_fleet_without_a_strategy_to_select() -> None:
    ordinary = StrategyChoice("ordinary", kind="any")
    assert choose((STRATEGIES[0],), CommitRequest(("emergency",)), UPDATES) == (ordinary, ())


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ("Subject\n\nRollout: emergency\n", ["emergency"]),
        ("Subject\n\nText.\n\nROLLOUT:  emergency \nReviewed-by: somebody\n", ["emergency"]),
        ("Subject\n\nText.\n\nRollout: one\nRollout: two\n", ["one", "two"]),
        ("Subject\r\n\r\nText.\r\n\r\nRollout: emergency\r\n", ["emergency"]),
        ("Rollout: emergency\n", []),
        ("Subject\nRollout: emergency\n", []),
        ("Subject\n\nRollout: emergency\n\nText.\n", []),
        ("Subject\n\nText\nRollout: emergency\n", ["emergency"]),
        ("Subject\n\n    Rollout: emergency\n", []),
        ("", []),
    ],
)
def test_a_trailer_is_in_the_last_paragraph_below_the_subject(message: str, values: list[str]) -> None:
    assert named_in(message) == values


def test_what_git_reads_as_a_trailer_counts() -> None:
    chance, read = random.Random(1), 0
    for _ in range(60):
        lines = ["Subject", ""] if chance.random() < 0.9 else []
        lines += [chance.choice(PIECES) for _ in range(chance.randint(1, 7))]
        message = "\n".join(lines) + "\n"
        done = subprocess.run(
            ["git", "interpret-trailers", "--parse"], input=message.encode(), capture_output=True, check=True
        )
        trailers = [line.partition(":") for line in done.stdout.decode().splitlines()]
        theirs = [value.strip() for key, _, value in trailers if key.strip().lower() == "rollout"]
        assert not theirs or named_in(message) == theirs, message
        read += bool(theirs)
    assert read > 10
