"""The pull request that gives an environment values: what came of it, and how it gets what is found."""

from __future__ import annotations

from shared.app.proposals.evaluation import Evaluation
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import KEPT, File, OwnBranch, SomebodyPushed, declined_after
from shared.frozen import dataclass, replace
from shared.ports import FleetRecord, Ports, Pull, PullText
from shared.ports.state import Promotion
from shared.promotions import HoldReason, Value

Branch = OwnBranch[Promotion]


@dataclass(frozen=True)
class GivenText:
    """What the pull request says, and the message of its commits."""

    commit: str
    pull: PullText


def held_by(promotion: Promotion, fleet: FleetRecord, value: Value) -> HoldReason | None:
    """Return what keeps automation from giving a value: the target gave it up, or somebody declined it."""
    had = next((values for values in fleet.rules.had if values.environment == promotion.target), None)
    lifted = {hold.value: hold.at for hold in promotion.lifted}
    if value in promotion.merged or (had is not None and had.withdrew(value, lifted.get(value))):
        return HoldReason.WITHDRAWN
    return HoldReason.DECLINED if value in promotion.declined else None


def seen(promotion: Promotion, ports: Ports) -> tuple[Promotion, Pull | None]:
    """Return a promotion with what became of its pull request, and that."""
    pull = ports.git_host.pull(promotion.number) if promotion.number else None
    if pull is None:
        return replace(promotion, values=()), None
    values = promotion.values
    after = replace(promotion, declined=declined_after(promotion.declined, values, pull))
    if pull.merged:
        merged = tuple(value for value in promotion.merged if value not in values)
        return replace(after, merged=(*merged, *values)[-KEPT:]), pull
    return after, pull


def give(
    promotion: Promotion, pull: Pull | None, found: Evaluation, text: GivenText, head: Head, branch: Branch
) -> Promotion:
    """Open the pull request with what was found, or bring it up to date; return what is saved.

    What else was merged into a file that it changes is in its branch, too: otherwise the two conflict.
    """
    values = tuple(proof.value for proof in found.proofs)
    same = pull is not None and pull.open and promotion.values == values
    if not (same and branch.has(found.files)):
        try:
            for path, content in sorted(found.files.items()):
                promotion = branch.commit(promotion, File(path, content, text.commit), head)
        except SomebodyPushed as error:
            return branch.save(replace(promotion, problem=str(error)))
        promotion = branch.show(promotion, pull, text.pull)
    return branch.save(replace(promotion, values=values, problem=""))


def end(promotion: Promotion, pull: Pull | None, comment: str, branch: Branch) -> Promotion:
    """Close the pull request of what is given no longer, and delete the branch if it is ours."""
    promotion = branch.close(promotion, pull, comment)
    declined = pull is not None and not (pull.open or pull.merged) and bool(promotion.values)
    return promotion if declined else branch.delete(promotion, branch.tip(promotion))


def is_over(pull: Pull | None) -> bool:
    """Return whether nothing is proposed now: the pull request was merged, closed, or is none."""
    return pull is None or not pull.open


def refreshed(promotion: Promotion, comment: str, branch: Branch, ports: Ports) -> None:
    """Note what became of a pull request, and delete the branch of one that was merged."""
    if not (promotion.values or promotion.commits):
        return
    after, pull = seen(promotion, ports)
    if pull is not None and pull.merged:
        after = replace(end(after, pull, comment, branch), values=())
    if after != promotion:
        branch.save(replace(after, digest=""))
