"""Mutations of previews: one saves, delays pushes, is lost, or says more than is so."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.pull_requests import pull_requests
from shared.app.pull_requests.comment import PullPlan
from shared.cluster.queues.messages import PreviewRequest
from shared.ports import PlanRecord, Ports
from tests.simulation.mutations import Mutation


def a_preview_saves_its_plan(patch: pytest.MonkeyPatch) -> None:
    original = pull_requests._planned

    def planned(view: PullPlan, *others: Any) -> PullPlan:
        *_, ports = others
        assert isinstance(ports, Ports)
        after = original(view, *others)
        if after.plan is not None:
            ports.state.save_plan(PlanRecord(after.plan, ports.clock()))
        return after

    patch.setattr(pull_requests, "_planned", planned)


def previews_wait_with_the_pushes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PreviewRequest, "QUEUE", "plans")
    patch.setattr(PreviewRequest, "SESSION", "{fleet}")


def a_preview_that_fails_is_not_tried_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pull_requests, "send_unlike", lambda *_, **__: None)


def a_valid_fork_passes(patch: pytest.MonkeyPatch) -> None:
    found = vars(PullPlan)["conclusion"].fget
    patch.setattr(PullPlan, "conclusion", property(lambda self: found(self).replace("neutral", "success")))


def mistakes_of_a_pull_request_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PullPlan, "conclusion", "neutral")


def _mutation(remove: Any, more: str = "") -> Mutation:
    return Mutation(remove, f"pull-requests {more}", frozenset({"pull request"}))


PULL_REQUEST_MUTATIONS = (
    _mutation(a_preview_saves_its_plan),
    _mutation(previews_wait_with_the_pushes),
    _mutation(a_preview_that_fails_is_not_tried_again, "refused"),
    _mutation(a_valid_fork_passes),
    _mutation(mistakes_of_a_pull_request_pass),
)
