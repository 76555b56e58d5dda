"""The contract suite is the same on each git host: what is left out on one is what it lacks."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import ModuleType
from typing import Any

from shared.ports.git_host import Capability
from tests.contract import (
    test_credential,
    test_issues,
    test_proposing,
    test_pull_requests,
    test_repository,
    test_reviews,
    test_statuses,
)
from tests.support.git_hosts import having

SUITE: dict[ModuleType, frozenset[Capability]] = {
    test_repository: frozenset(),
    test_statuses: frozenset({Capability.STATUSES}),
    test_issues: frozenset({Capability.ISSUES}),
    test_pull_requests: frozenset({Capability.PULLS, Capability.REVIEWS, Capability.PROPOSALS}),
    test_reviews: frozenset({Capability.PULLS, Capability.REVIEWS, Capability.PROPOSALS}),
    test_proposing: frozenset({Capability.PULLS, Capability.REVIEWS, Capability.PROPOSALS}),
    test_credential: frozenset({Capability.PULLS, Capability.REVIEWS, Capability.PROPOSALS}),
}
"""The modules of the suite, each with what a host needs to be in it."""
NARROWER = {
    "test_our_comment_on_an_issue_is_found_by_its_marker_and_nobody_elses": "issues",
    "test_what_people_have_opened_is_listed_with_whether_its_text_was_edited": "issue forms",
    "test_the_host_merges_by_itself_with_a_method_that_the_repository_allows": "auto-merge",
    "test_github_says_that_it_is_not_allowed_to_merge_or_has_nothing_to_wait_for": "auto-merge",
    "test_a_truncated_tree_is_an_error_and_never_a_short_list": "an answer that is cut short",
    "test_a_commit_holds_no_more_than_a_thousand_statuses_of_one_context": "a limit of statuses",
    "test_a_token_that_may_write_nothing_is_said_where_github_says_it": "whether a token may write",
    "test_a_read_says_when_the_token_ends_and_nothing_for_one_without_an_end": "the end of a token",
}
"""Tests that a host of their module is not in, with the line of the table in docs/git-hosts.md."""


def _own_hosts(function: Any) -> list[str] | None:
    """Return the hosts that a test names for itself, None where its module does."""
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize" and mark.args[0] == "case":
            return list(mark.args[1])
    return None


def _tests(module: ModuleType) -> dict[str, Any]:
    asks = {name: found for name, found in vars(module).items() if name.startswith("test_")}
    return {name: found for name, found in asks.items() if "case" in found.__code__.co_varnames}


def test_each_host_has_every_test_of_what_it_has() -> None:
    counted, lacking = defaultdict[str, Counter[str]](Counter), set[str]()
    for module, needs in SUITE.items():
        hosts = having(*needs, as_app=False)
        for name, function in _tests(module).items():
            own = _own_hosts(function)
            if own is not None and not {*hosts} <= {*own}:
                lacking.add(name)
                continue
            for host in hosts:
                counted[module.__name__][host] += 1
    assert lacking == NARROWER.keys()
    assert all(len({*found.values()}) == 1 for found in counted.values())


def test_what_is_left_out_on_a_host_is_a_line_of_the_table(pytestconfig: Any) -> None:
    page = (pytestconfig.rootpath / "docs" / "git-hosts.md").read_text()
    lines = {
        text.split("|")[1].strip(): text.split("|")[2:6] for text in page.splitlines() if text[:2] == "| "
    }
    for name, line in NARROWER.items():
        assert line in lines, f"{name}: {line}"
        assert any(cell.strip() != "yes" for cell in lines[line][1:])


def test_no_test_of_the_suite_is_skipped() -> None:
    for module in SUITE:
        marks = [mark.name for found in _tests(module).values() for mark in getattr(found, "pytestmark", ())]
        assert not {"skip", "skipif", "xfail"} & {*marks}
