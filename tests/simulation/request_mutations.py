"""Mutations of requests: people get more clusters than they may have, or nobody merges what they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.api.acts import request_limits, requests
from shared.app.proposals import own_pull
from simulation.actors.kinds import REQUESTS
from simulation.actors.requests import RULE
from tests.simulation.mutations import mutation


def nobody_counts_the_requests_of_a_person(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(requests, "check_others", lambda *_: "")


def a_request_is_not_counted_again_once_its_pull_request_is_open(patch: pytest.MonkeyPatch) -> None:
    check, counted = request_limits.check_others, set[str]()

    def once(found: Any, branch: str, *rest: Any) -> str:
        if branch in counted:
            return ""
        said = check(found, branch, *rest)
        counted.add(branch)
        return said

    patch.setattr(requests, "check_others", once)


def a_pull_request_of_a_request_changes_another_file(patch: pytest.MonkeyPatch) -> None:
    opened = own_pull.open_asked

    def more(branch: str, files: Any, *rest: Any) -> Any:
        return opened(branch, {**files, "README.md": "changed"}, *rest)

    patch.setattr(requests, "open_asked", more)


def no_request_is_listed_at_too_much(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(request_limits, "_check_price", lambda *_: "")


REQUEST_MUTATIONS = (
    mutation(no_request_is_listed_at_too_much, REQUESTS, RULE),
    mutation(nobody_counts_the_requests_of_a_person, REQUESTS, RULE),
    mutation(a_request_is_not_counted_again_once_its_pull_request_is_open, REQUESTS, RULE),
    mutation(a_pull_request_of_a_request_changes_another_file, REQUESTS, RULE),
)
