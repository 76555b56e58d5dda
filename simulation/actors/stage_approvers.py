"""People and an external system that approve stages, also those who may not, and when nobody may.

What each said is in the history of the fleet, and the rules say whether it counts.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from shared.app.api.acts.rollout import act_on_rollout
from shared.app.api.acts.system_approval import receive_approval
from shared.app.http_result import HttpResult
from shared.ports import Ports
from shared.rollouts.rollout import Rollout
from shared.rollouts.rollout_acts import ActKind
from simulation.event_loop import EventLoop
from simulation.history import StageApproval
from simulation.operators import Operators
from simulation.staging import SYSTEM, ApprovalRule, Hours, StagedStage, Staging, stage_named

RULED, BOTH = 0.8, 0.3
"""How many stages that ask for approvals say who gives one, or when, and how many of these say both."""
OFTEN, ASKS = 0.6, 0.8
"""In how many seeds stages often ask for approvals, and how many of them do so then."""
LOOK, AT_LEAST, ACTS = 30.0, 900.0, 0.3
"""In these seeds they look every so many seconds, so long at least, and approve so many."""
EXPIRE = (2, 4, 15)
OPENS, OPEN_MINUTES = (5, 60), 20 * 60
"""In how many minutes the hours begin in which stages can be approved, and how long they are."""
BY_AUTHOR, BY_SYSTEM, UNPROVEN = 0.3, 0.6, 0.4
KEYS = {SYSTEM: "whsec_" + base64.b64encode(b"k" * 32).decode()}
ACCEPTED = 202
ANOTHER_KEY = b"x" * 32


@dataclass(frozen=True)
class StageApprover:
    """Somebody who may approve stages; ``author``: the one of every commit."""

    name: str
    admin: bool = False
    author: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that Entra gives."""
        return ("Approver", "Admin") if self.admin else ("Approver",)

    @property
    def address(self) -> str:
        """The address that Entra says, which git has of an author."""
        return "operator@example.invalid" if self.author else f"{self.name.replace(' ', '-')}@example.com"


PEOPLE = (
    StageApprover("somebody"),
    StageApprover("another one", admin=True),
    StageApprover("a third one", admin=True),
)
LIKELY = ("somebody", "somebody", "another one")
AUTHOR = StageApprover("the author", admin=True, author=True)


class StageApprovers:
    """They act where a stage waits for them, with a random stream of their own."""

    def __init__(self, seed: int, loop: EventLoop) -> None:
        self._chance, self._loop = random.Random(f"{seed} who approves"), loop  # noqa: S311
        self._often = self._chance.random() < OFTEN
        self.acts = 0

    def ruled(self, staging: Staging) -> Staging:
        """Return stages of which those that ask for approvals say who gives them, and when."""
        return staging and tuple(map(self._ruled, staging))

    def _ruled(self, stage: StagedStage) -> StagedStage:
        if self._often and self._chance.random() < ASKS:
            stage = replace(stage, approvers=max(stage.approvers, self._chance.choice((1, 1, 2))))
        ruled = bool(stage.approvers) and self._chance.random() < RULED
        return replace(stage, rule=self._rule()) if ruled else stage

    def schedule(self, seconds: float, everybody: Sequence[Operators]) -> None:
        """Let them look for stages that wait for them."""
        seconds = max(seconds, AT_LEAST) if self._often else 0.0
        for number in range(1, int(seconds // LOOK) + 1):
            self._loop.schedule(number * LOOK, partial(self._look, everybody))

    def _look(self, everybody: Sequence[Operators]) -> None:
        for operators in everybody:
            commit = operators.cloud.state.fleet().rollout
            rollout = operators.cloud.state.rollout(commit) if commit else None
            for place, stage in enumerate(rollout.stages if rollout else ()):
                waits = rollout is not None and rollout.missing_approvals(place, self._loop.clock())
                if rollout is not None and waits and self._chance.random() < ACTS:
                    self.acts += 1
                    self.approve(operators, rollout, stage.name, self._chance.choice(LIKELY))

    def _rule(self) -> ApprovalRule:
        chance, now = self._chance, self._loop.clock().replace(second=0, microsecond=0)
        opens = now + timedelta(minutes=chance.randint(*OPENS))
        who = chance.choice((ApprovalRule(admin=True), ApprovalRule(others=True), ApprovalRule(system=True)))
        hours, expires = Hours(opens, OPEN_MINUTES), chance.choice(EXPIRE)
        when = chance.choice((replace(who, hours=hours), replace(who, expires=expires)))
        if chance.random() < BOTH:
            return when
        return chance.choice((who, who, ApprovalRule(hours=when.hours, expires=when.expires)))

    def approve(self, operators: Operators, rollout: Rollout, stage: str, name: str) -> None:
        """Let a person of a name, or the author, approve a stage, and the system."""
        person = next(person for person in PEOPLE if person.name == name)
        person = AUTHOR if self._chance.random() < BY_AUTHOR else person
        self._approve(operators, rollout, stage, person)
        if _rule_of(operators, rollout, stage).system and self._chance.random() < BY_SYSTEM:
            self._state(operators, rollout, stage)

    def approve_all(self, operators: Operators, rollout: Rollout, stage: str) -> None:
        """Let everybody approve a stage, once that is possible."""
        hours, now = _rule_of(operators, rollout, stage).hours, self._loop.clock()
        left = timedelta(0)
        while hours is not None and not hours.cover(now + left):
            left += timedelta(minutes=1)
        for person in PEOPLE:
            later = partial(self._approve, operators, rollout, stage, person)
            self._loop.schedule((left + timedelta(minutes=bool(left))).total_seconds(), later)

    def _approve(self, operators: Operators, rollout: Rollout, stage: str, person: StageApprover) -> None:
        self._loop.log("%s: %s: rollout approve %s", operators.fleet, person.name, stage)
        given = StageApproval(
            rollout.commit, stage, person.name, self._loop.clock(), person.admin, person.author
        )
        act = partial(
            act_on_rollout,
            rollout.commit,
            ActKind.APPROVE,
            stage,
            person.name,
            addresses=frozenset({person.address}),
            roles=person.roles,
        )
        self._noted(operators, given, act)

    def _state(self, operators: Operators, rollout: Rollout, stage: str) -> None:
        """Let the system, or whoever does not have its key, state that it approves a stage."""
        proven, at = self._chance.random() >= UNPROVEN, self._loop.clock()
        self._loop.log("%s: %s approves %s, signed: %s", operators.fleet, SYSTEM, stage, proven)
        stated = {"fleet": operators.fleet, "commit": rollout.commit, "stage": stage}
        body, seconds = json.dumps(stated).encode(), str(int(at.timestamp()))
        headers = {"webhook-id": f"approval-{seconds}", "webhook-timestamp": seconds}
        key = base64.b64decode(KEYS[SYSTEM].removeprefix("whsec_")) if proven else ANOTHER_KEY
        signed = f"approval-{seconds}.{seconds}.".encode() + body
        signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        headers["webhook-signature"] = f"v1,{signature}"
        given = StageApproval(rollout.commit, stage, SYSTEM, at, system=True, proven=proven)
        act = partial(receive_approval, SYSTEM, headers, body, KEYS, address="192.0.2.1")
        self._noted(operators, given, act)

    def _noted(self, operators: Operators, given: StageApproval, act: Callable[[Ports], HttpResult]) -> None:
        """Carry it out, and note what was not refused."""

        def noted(ports: Ports) -> None:
            operators.history.approvals.append(given)
            if act(ports).status != ACCEPTED:
                operators.history.approvals.remove(given)

        self._loop.run_function(operators.cloud, noted)


def _rule_of(operators: Operators, rollout: Rollout, stage: str) -> ApprovalRule:
    """Return the rule of a stage; one of clusters that no pause holds has that of its stage."""
    written = stage_named(operators.history.desired(rollout.commit).in_force, stage)
    return written.rule if written else ApprovalRule()
