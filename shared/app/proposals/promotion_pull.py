"""The pull request of one promotion: what came of it, and how it is brought to what is proven."""

from __future__ import annotations

from dataclasses import replace

from shared.app.proposals.evaluation import Evaluation
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import KEPT, File, OwnBranch, SomebodyPushed, declined_after
from shared.app.proposals.texts import commit_text, promotion_over_text, promotion_text
from shared.cluster.drift import PROMOTIONS
from shared.ports import Ports, Pull
from shared.ports.state import Promotion


def branch_to(target: str, ports: Ports) -> OwnBranch[Promotion]:
    """Return the branch of the promotion to an environment; two fleets may have one repository."""
    return OwnBranch(f"{PROMOTIONS}{ports.config.fleet}/{target}", ports, ports.state.save_promotion)


def seen_on_github(promotion: Promotion, ports: Ports) -> tuple[Promotion, Pull | None]:
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


def give(promotion: Promotion, pull: Pull | None, found: Evaluation, head: Head, ports: Ports) -> Promotion:
    """Open the pull request with what was found, or bring it up to date; return what is saved."""
    branch, values = branch_to(promotion.target, ports), tuple(proof.value for proof in found.proofs)
    if not (pull is not None and pull.open and promotion.values == values):
        file = File(found.path, found.content, commit_text(promotion, found))
        try:
            promotion = branch.commit(promotion, file, head)
        except SomebodyPushed as error:
            return branch.save(replace(promotion, problem=str(error)))
        promotion = branch.show(promotion, pull, promotion_text(promotion, found, head.commit))
    return branch.save(replace(promotion, values=values, problem=""))


def end(promotion: Promotion, pull: Pull | None, why: str, ports: Ports) -> Promotion:
    """Close the pull request of what is promoted no longer, and delete the branch if it is ours."""
    branch = branch_to(promotion.target, ports)
    promotion = branch.close(promotion, pull, promotion_over_text(why))
    declined = pull is not None and not (pull.open or pull.merged) and bool(promotion.values)
    return promotion if declined else branch.delete(promotion, branch.tip(promotion))


def is_over(pull: Pull | None) -> bool:
    """Return whether nothing is proposed now: the pull request was merged, closed, or is none."""
    return pull is None or not pull.open
