"""Mutations of promotions: without a proof or a soak, over a hold, past its pull request, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.app.proposals import evaluation, promote
from shared.app.proposals.evaluation import give, held_by
from shared.app.proposals.head import Head
from shared.ports import FleetRecord
from shared.ports.state import Promotion
from shared.promotions import HoldReason, Proof, Value, What, proven, value_of
from simulation.actors.kinds import PROMOTIONS
from simulation.invariants.proposed_promotions import MAIN, RULE
from tests.simulation.mutations import mutation


def what_git_asks_for_counts_as_proven(patch: pytest.MonkeyPatch) -> None:
    def of_git(what: What, environment: str, desired: Any, records: Any) -> Any:
        found = proven(what, environment, desired, records)
        own = [document for document in desired.values() if document.environment == environment]
        value = value_of(what, own[0].document()["spec"]) if own else None
        return found if isinstance(found, Proof) or value is None else Proof(what, value, (), None)

    patch.setattr(evaluation, "proven", of_git)


def the_soak_of_a_promotion_is_over_at_once(patch: pytest.MonkeyPatch) -> None:
    original = promote._waits

    def waits(rule: Any, *args: Any) -> str | None:
        return original(replace(rule, soak=rule.soak * 0), *args)

    patch.setattr(promote, "_waits", waits)


def _unheld(patch: pytest.MonkeyPatch, reason: HoldReason) -> None:
    def held(promotion: Promotion, fleet: FleetRecord, value: Value) -> HoldReason | None:
        found = held_by(promotion, fleet, value)
        return None if found is reason else found

    patch.setattr(promote, "held_by", held)


def a_rule_gives_what_a_commit_took_back(patch: pytest.MonkeyPatch) -> None:
    _unheld(patch, HoldReason.WITHDRAWN)


def a_rule_gives_what_somebody_declined(patch: pytest.MonkeyPatch) -> None:
    _unheld(patch, HoldReason.DECLINED)


def a_promotion_needs_no_pull_request(patch: pytest.MonkeyPatch) -> None:
    def merge(promotion: Promotion, pull: Any, found: Any, text: Any, head: Head) -> Promotion:
        given, ports = give(promotion, pull, found, text, head), head.ports
        ports.git_host.move_branch(ports.config.branch, head.commit, given.commits[-1])
        return given

    patch.setattr(promote, "give", merge)


def a_pull_request_stays_at_what_was_proven_first(patch: pytest.MonkeyPatch) -> None:
    def once(promotion: Promotion, pull: Any, *args: Any) -> Promotion:
        return promotion if pull is not None and pull.open else give(promotion, pull, *args)

    patch.setattr(promote, "give", once)


def nobody_says_that_a_soak_is_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(promote, "send", lambda *_, **__: None)


PROMOTION_MUTATIONS = (
    mutation(what_git_asks_for_counts_as_proven, PROMOTIONS, RULE),
    mutation(the_soak_of_a_promotion_is_over_at_once, PROMOTIONS, RULE),
    mutation(a_rule_gives_what_a_commit_took_back, PROMOTIONS, RULE),
    mutation(a_rule_gives_what_somebody_declined, PROMOTIONS, RULE),
    mutation(a_promotion_needs_no_pull_request, PROMOTIONS, MAIN),
    mutation(a_pull_request_stays_at_what_was_proven_first, PROMOTIONS, RULE),
    mutation(nobody_says_that_a_soak_is_over, PROMOTIONS, RULE),
)
