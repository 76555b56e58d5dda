"""Mutations that lost and restored tables reveal: what distinguishes two lives of a cluster."""

from __future__ import annotations

import pytest

from shared.pipeline.worker.steps import delete
from tests.simulation.mutations import mutation


def a_delete_begins_whatever_git_says_by_then(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delete, "not_removed", lambda _, **__: None)


def a_tombstone_deletes_any_life(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delete, "of_later_life", lambda *_: None)


DISASTER_MUTATIONS = (
    mutation(a_delete_begins_whatever_git_says_by_then, "tables-restored", "unrequested delete"),
    # Where Azure had accepted the delete of the former life, the tombstone waits for its end.
    mutation(a_tombstone_deletes_any_life, "tables-restored", "later life", "lost work"),
)
