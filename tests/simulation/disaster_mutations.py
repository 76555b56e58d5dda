"""Mutations that lost and restored tables reveal: what distinguishes two lives of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from shared.pipeline.worker.steps import delete
from tests.support.mutations import Mutation


def a_delete_begins_whatever_git_says_by_then(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delete, "not_removed", lambda _: None)


def a_tombstone_deletes_any_life(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delete, "of_later_life", lambda *_: None)


def _mutation(remove: Any, faults: str, *rules: str) -> Mutation:
    return Mutation(remove, faults, frozenset(rules))


DISASTER_MUTATIONS = (
    _mutation(a_delete_begins_whatever_git_says_by_then, "tables-restored", "unrequested delete"),
    _mutation(a_tombstone_deletes_any_life, "tables-restored", "later life"),
)
