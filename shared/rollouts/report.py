"""A rollout in sentences: why a cluster waits, and how far all of it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from shared.language.model.rollout import UPGRADE_READINESS
from shared.language.pin import short_commit
from shared.plan.holds import HoldKind
from shared.rollouts.decide import Decision
from shared.rollouts.rollout import (
    CheckState,
    GateCheckResult,
    Rollout,
    RolloutState,
    StageDecision,
)
from shared.rollouts.strategy import FINAL, GateCheck, RefusedStrategy
from shared.rollouts.waits import MemberStanding, StartWait, WaitReason
from shared.sentences import many, some_of

NAMED = 3
_PAUSED = {
    WaitReason.BUDGET: "Paused: failure budget spent",
    WaitReason.STRATEGY: "Paused: the commit names another strategy",
    WaitReason.FLEET_FILE: "Waiting for a valid fleet.yaml",
}
_STUCK = {
    MemberStanding.FAILED: ", in which clusters have failed",
    MemberStanding.ASIDE: ", of which too few clusters can take part",
}

_GUARDS: Mapping[HoldKind | None, str] = {
    HoldKind.PLATFORM_REMOVAL: "what Flux would remove needs an approval",
    HoldKind.PLATFORM_REFUSED: "what Flux would apply is invalid",
    HoldKind.INVALID_MANIFEST: "their manifests are invalid",
    HoldKind.IMMUTABLE_FIELD: "their manifests change what cannot change",
}
_APPROVED = (HoldKind.PLATFORM_REMOVAL,)


def describe_wait(wait: StartWait, commit: str, *, answers: bool = True) -> str:
    """Return why a cluster waits, as a sentence's predicate.

    With ``answers`` it has what addresses answered, which is another text after each question.
    """
    group = f"group {wait.group + 1} of stage {wait.stage}"
    match wait.reason:
        case WaitReason.STAGE if wait.pin:
            why = ", and have failed" if wait.stuck else ""
            gets = f"{short_commit(wait.pin)} of the platform with other changes, or after these"
            return f"waits for clusters of stage {wait.stage} that get {gets}{why}: {_some(wait.clusters)}"
        case WaitReason.GUARD:
            count, commit = many(len(wait.clusters), "cluster"), short_commit(wait.pin)
            why = _GUARDS.get(wait.guard, "their plan says why")
            return (
                f"waits for stage {wait.stage}, in which {commit} reaches none of {count}, because {why}:"
                f" {_some(wait.clusters)}"
            )
        case WaitReason.STAGE:
            why = _STUCK[wait.stuck] if wait.stuck else ""
            return f"waits for {group}{why}: {_some(wait.clusters)}"
        case WaitReason.SOAK:
            return f"waits until {_time(wait.until)}, while {group} is watched"
        case WaitReason.APPROVAL:
            what = f"{wait.missing} more approvals" if wait.missing > 1 else "an approval"
            return f"waits for {what} of stage {wait.stage}{_answers(wait.by)}"
        case WaitReason.TIME:
            begins = "the rollout may end" if wait.stage == FINAL else f"stage {wait.stage} may begin"
            return f"waits until {_time(wait.until)}, when {begins}{_answers(wait.by)}"
        case WaitReason.CHECK:
            checks = ", ".join(_check(wait, check, answers=answers) for check in wait.checks)
            place = "after the last stage" if wait.stage == FINAL else f"of stage {wait.stage}"
            return f"waits for checks {place}: {checks}{_answers(wait.by)}"
        case WaitReason.CONCURRENCY:
            others = _some(wait.clusters)
            return f"waits in {group}, in which as many clusters change, or start now, as may: {others}"
        case WaitReason.BUDGET:
            return f"waits, because the failure budget of {group} is spent: {_some(wait.clusters)}"
        case WaitReason.STRATEGY:
            return f"waits, because {_refusal(wait.refused)}"
        case WaitReason.PAUSED:
            return f"waits, because {_who(wait.by)} paused the rollout"
        case WaitReason.ABORTED:
            return f"is left as it is, because {_who(wait.by)} aborted the rollout of {commit[:8]}"
        case WaitReason.BACK if wait.pin:
            back = f"goes back to {short_commit(wait.pin)}"
            return f"{back}, because {_who(wait.by)} aborted the rollout of {commit[:8]}"
        case WaitReason.BACK:
            return f"cannot go back from {commit[:8]}: the commit that Flux pulled before is not known"
        case WaitReason.ASIDE:
            why = "it is suspended, asleep, stopped, missing or contested, or tries a pull request"
            return f"is set aside, because {why}; it catches up later"
        case WaitReason.WINDOW:
            return f"waits until {_time(wait.until)}, when its change window {wait.window} lets it start"
        case WaitReason.FREEZE:
            name = wait.by.subject if wait.by else ""
            return f"waits until {_time(wait.until)}, because of the freeze {name} of {_who(wait.by)}"
        case WaitReason.SKIPPED:
            return f"is left as it is, because {_who(wait.by)} took it out of the rollout of {commit[:8]}"
        case WaitReason.FLEET_FILE:
            return "waits, because the fleet.yaml of a newer commit is invalid"
        case WaitReason.NEXT:
            return f"starts in {group} with the next message of the planner"


def remedy(wait: StartWait) -> str:
    """Return what an operator can do about a wait, "" for nothing."""
    match wait.reason:
        case WaitReason.APPROVAL:
            return _approval(wait)
        case WaitReason.STAGE if wait.stuck is MemberStanding.ASIDE and wait.clusters:
            out = f"`roadstead rollout skip {wait.clusters[0]}`"
            return f"It goes on once enough of them can take part; {out} takes one out."
        case WaitReason.STAGE if wait.stuck is None:
            return ""
        case WaitReason.GUARD:
            first = wait.clusters[0] if wait.clusters else "CLUSTER"
            ends = "`roadstead approve` releases it" if wait.guard in _APPROVED else "Push a correction"
            return (
                f"{ends}, or revert the commit; `roadstead why {first}` says why. `roadstead rollout"
                " skip` takes a cluster out, and once all are out, nothing waits for them."
            )
        case WaitReason.BUDGET | WaitReason.STAGE:
            failed = wait.clusters[0] if wait.clusters else "CLUSTER"
            again, out = f"`roadstead replay {failed}`", f"`roadstead rollout skip {failed}`"
            return f"Push a fix, or start a failed cluster again with {again}, or take it out with {out}."
        case WaitReason.PAUSED:
            return "`roadstead rollout resume` continues."
        case WaitReason.FLEET_FILE:
            return "Correct fleet.yaml and push."
        case WaitReason.STRATEGY:
            resume = "`roadstead rollout resume` continues with the strategy of its changes."
            return f"Push a commit that selects another one, or none. {resume}"
        case WaitReason.CHECK if wait.spent:
            names = ", ".join(wait.spent)
            return (
                f"Nobody asks {names} again for this commit; the rollout of a newer commit does. In an "
                "emergency, `roadstead rollout override --reason TEXT` lets the stage start."
            )
        case WaitReason.CHECK if any(check.check == UPGRADE_READINESS for check in wait.checks):
            return (
                "`roadstead ready` says what blocks the upgrades, and who can act; the stage begins once "
                "nothing does. In an emergency, `roadstead rollout override --reason TEXT` lets it start."
            )
        case WaitReason.CHECK if wait.asked:
            return (
                "The stage begins once its checks have passed. In an emergency, "
                "`roadstead rollout override --reason TEXT` lets it start."
            )
        case WaitReason.CHECK:
            return (
                "The stage begins once the check run of the commit has succeeded. In an emergency, "
                "`roadstead rollout override --reason TEXT` lets it start."
            )
        case WaitReason.WINDOW | WaitReason.FREEZE | WaitReason.TIME:
            return "In an emergency, `roadstead rollout override --reason TEXT` lets it start."
        case WaitReason.BACK if not wait.pin:
            return "Revert the commit, or move the pin yourself (docs/how-to/move-a-pin.md)."
        case WaitReason.ABORTED | WaitReason.SKIPPED | WaitReason.BACK:
            return "The next commit that is planned takes the cluster along."
        case _:
            return ""


def _approval(wait: StartWait) -> str:
    """Return who lets a stage begin, and when."""
    role = f" with the role {wait.gate.role}" if wait.gate.role else ""
    who = (
        f" by {wait.missing} more people{role}" if wait.missing > 1 else f" by somebody{role}" if role else ""
    )
    hours = wait.gate.hours_text
    when = f"; it counts in the hours of the stage alone, {hours}" if hours else ""
    return f"`roadstead rollout approve {wait.stage}`{who} lets the stage begin{when}."


def state_of(rollout: Rollout, decision: Decision) -> str:
    """Return the state of a rollout in a few words."""
    match rollout.state:
        case RolloutState.COMPLETED:
            failed = len(rollout.failures)
            return f"Completed with {failed} failure{'s' * (failed > 1)}" if failed else "Completed"
        case RolloutState.ABORTED:
            return "Aborted"
        case RolloutState.SUPERSEDED:
            return f"Superseded by {rollout.superseded_by[:8]}"
        case RolloutState.ACTIVE:
            pass
    if decision.block is not None:
        return _PAUSED.get(decision.block.reason, "Paused")
    flying = (MemberStanding.IN_FLIGHT, MemberStanding.BUSY, MemberStanding.UNKNOWN)
    if decision.start or any(standing in flying for standing in decision.standings.values()):
        return "Progressing"
    found = [*decision.waits.values(), *filter(None, [decision.final])]
    if any(wait.spent for wait in found):
        return "Stopped: a check failed too often"
    reasons = {wait.reason for wait in found}
    texts = {
        WaitReason.APPROVAL: "Waiting for approval",
        WaitReason.GUARD: "Waiting for a stage that gets nothing of the commit",
        WaitReason.TIME: "Waiting for the time of a stage",
        WaitReason.CHECK: "Waiting for a check",
        WaitReason.FREEZE: "Waiting for a freeze to end",
        WaitReason.WINDOW: "Waiting for a change window",
    }
    return next((text for reason, text in texts.items() if reason in reasons), "Waiting")


def describe(rollout: Rollout, decision: Decision) -> str:
    """Return how far a rollout is, in a line."""
    total = len(decision.standings) - sum(
        standing is MemberStanding.OUT for standing in decision.standings.values()
    )
    ready = sum(standing is MemberStanding.VERIFIED for standing in decision.standings.values())
    text = f"rollout {state_of(rollout, decision).lower()}, {ready} of {total} clusters ready"
    if rollout.people.back is not None:
        return f"{text}; {_back(decision, rollout.commit)}"
    alone = None if decision.held else decision.final or decision.block
    if alone is not None:
        return f"{text}; it {describe_wait(alone, rollout.commit, answers=False)}"
    if not decision.waits:
        return text
    first, number = _main_wait(decision)
    return f"{text}; {_with_number(number, describe_wait(first, rollout.commit, answers=False))}"


def _back(decision: Decision, commit: str) -> str:
    """Return how many pins go back, after who cannot."""
    found = {name: wait for name, wait in decision.waits.items() if wait.reason is WaitReason.BACK}
    stuck = [name for name, wait in found.items() if not wait.pin]
    number = len(found) - len(stuck)
    text = f"{number} {'pin goes' if number == 1 else 'pins go'} back from {commit[:8]}"
    if not stuck:
        return text
    return f"{_some(stuck)} cannot go back, because what Flux pulled before is not known; {text}"


def _main_wait(decision: Decision) -> tuple[StartWait, int]:
    """Return the wait to name of those of clusters, and how many have it.

    It is what blocks the rollout; otherwise the one of most clusters, of which one for other clusters comes
    last when none of these changes.
    """
    waits = [*(decision.held or decision.waits).values()]
    if decision.block:
        return decision.block, len(waits)
    keys = {(wait.reason, wait.stage, wait.group): wait for wait in waits}
    counts = Counter((wait.reason, wait.stage, wait.group) for wait in waits)
    moves = decision.start or MemberStanding.IN_FLIGHT in decision.standings.values()
    ranked = sorted(
        counts.items(), key=lambda entry: (not moves and entry[0][0] is WaitReason.STAGE, -entry[1])
    )
    key, number = ranked[0]
    return keys[key], number


def _with_number(number: int, predicate: str) -> str:
    return f"{number} {predicate if number == 1 else _plural(predicate)}"


def _plural(predicate: str) -> str:
    verb, _, rest = predicate.partition(" ")
    return f"{ {'waits': 'wait', 'waits,': 'wait,', 'is': 'are'}.get(verb, verb) } {rest}"


def _refusal(refused: RefusedStrategy | None) -> str:
    """Return why a commit may not select what it names."""
    if refused is None:
        return "the commit names a strategy that it may not select"
    names, allowed = ", ".join(refused.named), ", ".join(refused.allowed)
    if len(refused.named) > 1:
        return f"the commit names several strategies: {names}"
    return f"the commit names the strategy {names}; it may select {allowed}"


def _some(names: Sequence[str]) -> str:
    return some_of(names, NAMED) or "its clusters"


def _check(wait: StartWait, said: GateCheckResult, *, answers: bool) -> str:
    """Return what a check said, and why it is not known."""
    if said.check == UPGRADE_READINESS:
        return f"readiness for upgrades{f' of {said.detail}' if said.detail else ''}"
    asked = next((check for check in wait.asked if check.name == said.check), None)
    often = " too often" if said.check in wait.spent else ""
    if asked is None:
        detail = f" ({said.detail})" if said.detail else ""
    else:
        detail = f" ({_answer(asked, said)})" if answers and said.detail else ""
    return f"{said.check} {said.state}{often}{detail}"


def _answer(asked: GateCheck, said: GateCheckResult) -> str:
    """Return what an address answered, when, and what is still waited for."""
    text = f"{said.detail} at {said.at:%H:%M:%S} UTC"
    if said.state is CheckState.UNKNOWN:
        return text
    text += f", a success is {asked.expected}"
    if asked.successes > 1:
        text += f"; {said.successes} of {asked.successes} consecutive successes"
    failures = f"{said.failures} failure{'s' * (said.failures > 1)}"
    return f"{text}; {failures}, {asked.failures} allowed" if said.failures else text


def _answers(by: StageDecision | None) -> str:
    """Return who answers for a gate, and why it is there."""
    return f" ({by.by}: {by.reason})" if by else ""


def _who(by: StageDecision | None) -> str:
    if by is None:
        return "somebody"
    return f"{by.by} ({by.reason})" if by.reason else by.by


def _time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "later"
