"""Mutations of lifetimes: an end that comes too early, or never."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.proposals import ends
from shared.cluster import lifetime
from shared.frozen import replace
from simulation.actors.kinds import LIFETIMES
from simulation.invariants.early_ends import RULE
from tests.simulation.mutations import mutation


def an_extension_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    original = lifetime.lifetime_of

    def without(record: Any, spec: Any = None) -> Any:
        found = original(record, spec)
        return found and replace(found, ends=found.in_git)

    patch.setattr(ends, "lifetime_of", without)


def a_protected_cluster_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ends, "spared", lambda *_: "")


def an_end_comes_before_its_time(patch: pytest.MonkeyPatch) -> None:
    original = lifetime.end_in_git

    def early(spec: Any, first: Any) -> Any:
        found = original(spec, first)
        return found and found - (found - first) / 2

    patch.setattr(lifetime, "end_in_git", early)


def an_end_is_never_proposed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ends, "_asks", lambda *_: False)


def an_end_comes_in_a_freeze(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ends, "held_start", lambda *_: None)


LIFETIME_MUTATIONS = (
    mutation(an_end_comes_in_a_freeze, LIFETIMES, RULE),
    mutation(an_extension_counts_for_nothing, LIFETIMES, RULE),
    mutation(a_protected_cluster_ends, LIFETIMES, RULE),
    mutation(an_end_comes_before_its_time, LIFETIMES, RULE),
    mutation(an_end_is_never_proposed, LIFETIMES, RULE),
)
