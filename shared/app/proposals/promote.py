"""Carries out promotions: those that a person asked for, and those of rules of fleet.yaml.

A rule reads summaries first, and git only when all clusters of its source have been Ready for its soak and
something is new since. It never gives what the target withdrew, and what somebody declined: see
``shared.promotions``. All messages are of the session of proposals.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from shared.app.outbox import seconds_until_again, send
from shared.app.pause import AGAIN_SECONDS, pause_now
from shared.app.proposals.channels import follow_channels
from shared.app.proposals.evaluation import (
    Evaluation,
    GivenText,
    end,
    evaluate,
    give,
    held_by,
    is_over,
    note,
    refreshed,
    seen,
    stored,
)
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import KEPT
from shared.app.proposals.texts import commit_text, promotion_over_text, promotion_text
from shared.cluster.failures.errors import ReconcileError, Terminal, Unreadable
from shared.cluster.queues.message_parts import PromotionOrder
from shared.cluster.queues.messages import PromoteRequest, PromotionRequest
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import replace
from shared.json_tree import digest_of
from shared.ports import Ports, Pull
from shared.ports.state import LiftedHold, Promotion
from shared.promotions import HoldReason, Obstacle, Promotable, PromotionPath, describe, is_ready

log = logging.getLogger(__name__)


def handle(request: PromoteRequest | PromotionRequest, ports: Ports) -> None:
    """Bring the pull requests of promotions up to date; postpone that while a service does not answer."""
    if isinstance(request, PromoteRequest) and pause_now(ports):
        send(request, ports, after=AGAIN_SECONDS)
        return
    asked = request.promotion if isinstance(request, PromotionRequest) else None
    try:
        if isinstance(request, PromotionRequest):
            _by_hand(request.promotion, ports)
        else:
            _by_rules(request.pull, ports)
    except ReconcileError as error:
        seconds = seconds_until_again(error, request, ports)
        log.warning("promotions are not up to date: %s: %s", error.kind, error)
        if seconds is None:
            _note_failure(asked, error, ports)
        else:
            send(request.next_attempt(), ports, after=seconds)


def _by_hand(asked: PromotionOrder, ports: Ports) -> None:
    """Open the pull request that a person asked for; that lifts what holds its values."""
    promotion, pull = seen(stored(asked.target, ports), ports)
    what, head = tuple(map(Promotable, asked.what)) or tuple(Promotable), Head(ports.state.fleet(), ports)
    found = evaluate(asked.source, asked.target, what, head)
    problem = refusal(found, named=bool(asked.what))
    if problem:
        ports.state.save_promotion(replace(promotion, problem=problem))
        return
    values = tuple(proof.value for proof in found.proofs)
    lifted = tuple(hold for hold in promotion.lifted if hold.value not in values)
    promotion = replace(
        promotion,
        source=asked.source,
        by=asked.by,
        asked=asked.at,
        lifted=(*lifted, *(LiftedHold(value, asked.at) for value in values))[-KEPT:],
        merged=tuple(value for value in promotion.merged if value not in values),
        declined=tuple(value for value in promotion.declined if value not in values),
        digest="",
    )
    _give(promotion, pull, found, head)


def refusal(found: Evaluation, *, named: bool) -> str:
    """Return why a promotion by hand is refused, "" if it is not; ``named``: a person chose what."""
    if found.proofs and not (found.blocked or (named and found.obstacles)):
        return ""
    return "; ".join(describe(what, obstacle) for what, obstacle in found.obstacles.items())


def _by_rules(number: int, ports: Ports) -> None:
    """Carry the rules out; ``number`` is a pull request that somebody closed or reopened, 0 for none."""
    fleet, summaries = ports.state.fleet(), ports.state.summaries()
    rules = {rule.target: rule for rule in fleet.rules.promotions}
    for promotion in ports.state.promotions():
        if promotion.what is None and (promotion.target not in rules or promotion.number == number):
            refreshed(promotion, promotion_over_text(""), ports)
    head = Head(fleet, ports)
    follow_channels(number, summaries, head, ports)
    for rule in fleet.rules.promotions:
        try:
            _carry_out(rule, summaries, head, ports)
        except Terminal as error:  # of this target alone
            log.warning("nothing is promoted to %s: %s: %s", rule.target, error.kind, error)
            _note(stored(rule.target, ports), f"{error.kind}: {error}", ports)
        except Unreadable as error:
            log.warning("nothing is promoted to %s: %s", rule.target, error)


def _carry_out(rule: PromotionPath, summaries: Sequence[ClusterSummary], head: Head, ports: Ports) -> None:
    """Carry out a rule; all rules share what was read for ``head``."""
    fleet = head.fleet
    known, own = stored(rule.target, ports), [s for s in summaries if s.place.environment == rule.source]
    waits = _waits(rule, own, ports)
    if waits is not None:
        _note(replace(known, source=known.source or rule.source), waits, ports)
        return
    states = [[s.name, s.uid, s.generation, repr(s.divergence)] for s in own]
    digest = digest_of([repr(rule), fleet.commit, states])
    if known.digest == digest:
        return
    promotion, pull = seen(known, ports)
    if promotion.by and not is_over(pull):  # that of a person stays as it is
        _note(replace(promotion, digest=digest), "", ports)
        return
    if head.commit != fleet.commit:  # what the target withdrew with it is not noted before its plan
        return
    found = evaluate(rule.source, rule.target, rule.what, head, partial(held_by, promotion, fleet))
    problem = "; ".join(
        describe(what, obstacle) for what, obstacle in found.obstacles.items() if _matters(obstacle)
    )
    if found.blocked or not found.proofs:
        if not found.blocked or found.took_back(promotion.values) or is_over(pull):
            everything = "; ".join(describe(what, obstacle) for what, obstacle in found.obstacles.items())
            over = promotion_over_text(problem and everything)
            promotion = end(promotion, pull, over, ports)
        _note(replace(promotion, digest=digest), problem, ports)
        return
    promotion = replace(promotion, source=rule.source, by="", asked=ports.clock())
    promotion = _give(promotion, pull, found, head)
    _note(replace(promotion, digest=digest), promotion.problem or problem, ports)


def _matters(obstacle: Obstacle) -> bool:
    return obstacle.reason is not HoldReason.SAME


def _waits(rule: PromotionPath, own: Sequence[ClusterSummary], ports: Ports) -> str | None:
    """Return what a rule waits for, by the summaries of its source alone, None for nothing."""
    unready = tuple(summary.name for summary in own if not is_ready(summary))
    if unready or not own:
        reason = HoldReason.NOT_READY if unready else HoldReason.EMPTY
        return describe("promotion", Obstacle(reason, rule.source, unready))
    ends = max(summary.times.ready_since for summary in own if summary.times.ready_since) + rule.soak
    if ends <= ports.clock():
        return None
    send(PromoteRequest(), ports, at=ends)
    return describe("promotion", Obstacle(HoldReason.SOAK, rule.source, (), f"{ends:%Y-%m-%d %H:%M} UTC"))


def _note(promotion: Promotion, problem: str, ports: Ports) -> None:
    note(replace(promotion, problem=problem), ports)


def _note_failure(asked: PromotionOrder | None, error: ReconcileError, ports: Ports) -> None:
    targets = [asked.target] if asked else [rule.target for rule in ports.state.fleet().rules.promotions]
    for target in targets:
        _note(stored(target, ports), f"{error.kind}: {error}", ports)


def _give(promotion: Promotion, pull: Pull | None, found: Evaluation, head: Head) -> Promotion:
    text = GivenText(commit_text(promotion, found), promotion_text(promotion, found, head.commit))
    return give(promotion, pull, found, text, head)
