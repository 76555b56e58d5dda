"""Mutations of what an app does with the forms of a newer version, while both run."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app import door
from shared.cluster.failures.errors import Unreadable
from shared.cluster.forms import StoredText
from shared.ports.state.reading import RecordReader
from simulation.actors.kinds import SWEEPS, VERSIONS
from simulation.newer_forms import known
from tests.simulation.mutations import mutation, overdue_messages_are_not_sent_again


def a_newer_form_is_read_as_if_it_were_the_present_one(patch: pytest.MonkeyPatch) -> None:
    present = StoredText._present
    patch.setattr(StoredText, "_present", lambda self, text: present(self, known(text)))


def a_message_of_a_newer_form_is_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(door, "send_again", lambda *_: None)
    overdue_messages_are_not_sent_again(patch)


def a_default_replaces_a_newer_form(patch: pytest.MonkeyPatch) -> None:
    def or_else(self: RecordReader, default: Any, *place: Any) -> Any:
        try:
            return self.value(*place)
        except Unreadable:
            return default

    patch.setattr(RecordReader, "or_else", or_else)


VERSION_MUTATIONS = (
    mutation(a_newer_form_is_read_as_if_it_were_the_present_one, VERSIONS, "former form"),
    mutation(a_message_of_a_newer_form_is_dropped, VERSIONS, "orphan", "lost work", "open status"),
    mutation(a_default_replaces_a_newer_form, f"{SWEEPS} {VERSIONS}", "former form"),
)
