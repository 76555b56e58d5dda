"""Mutations that the faults of services and of instances find, each by the fault that it is for."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app import repository as commit_reader
from shared.app.access.rate_limiter import RateLimiter
from shared.app.planner import planner, reporter
from shared.app.repository import ResolvedCommit, files_in
from shared.cluster.failures.errors import Unauthenticated
from shared.language.model.fleet_rules import Guards
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.platform.source.tree import Tree
from shared.ports.process import KnownTime
from tests.simulation.mutations import mutation, two_planners_may_plan_at_once


def an_instance_with_a_wrong_clock_handles_what_comes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KnownTime, "ahead", lambda *_: 0.0)


def a_refusal_empties_no_bucket(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RateLimiter, "_correct", lambda *_: None)


def a_repository_that_may_not_be_read_counts_as_empty(patch: pytest.MonkeyPatch) -> None:
    def read_resolved(*args: Any, **rest: Any) -> ResolvedCommit:
        try:
            return commit_reader.read_resolved(*args, **rest)
        except Unauthenticated:
            return ResolvedCommit(DesiredFleet({}, {}, (), Guards()), Tree(files_in(())))

    patch.setattr(planner, "read_resolved", read_resolved)


def links_of_statuses_have_no_scheme(patch: pytest.MonkeyPatch) -> None:
    link = reporter._link
    patch.setattr(reporter, "_link", lambda *args: link(*args).removeprefix("https://"))


FAULT_MUTATIONS = (
    mutation(
        an_instance_with_a_wrong_clock_handles_what_comes, "clock-jump", "lost work", "orphan", "open status"
    ),
    mutation(a_refusal_empties_no_bucket, "limit-used-up", "rate limit"),
    mutation(links_of_statuses_have_no_scheme, "other-settings", "open status"),
    mutation(
        two_planners_may_plan_at_once,
        "list-in-pages",
        *("unrequested delete", "unrequested change", "untrue", "lost record", "lost work", "open status"),
        often="add remove",
    ),
    mutation(
        a_repository_that_may_not_be_read_counts_as_empty,
        "wrong-settings",
        *("unrequested delete", "untrue"),
        often="add-note",
    ),
)
