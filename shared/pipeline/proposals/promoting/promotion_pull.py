"""The pull request of one promotion: its branch moves forward only, and its commits are saved before it does.

See docs/decisions/0028-a-proposal-is-a-branch-that-only-moves-forward.md.
"""

from __future__ import annotations

from dataclasses import replace

from shared.jobs.drift import PROMOTIONS
from shared.pipeline.proposals.head import Head, parents_of
from shared.pipeline.proposals.promoting.evaluation import Evaluation
from shared.pipeline.proposals.promoting.promotion_texts import (
    OVER,
    commit_text,
    promotion_over_text,
    promotion_text,
)
from shared.ports import NewCommit, Ports, Pull
from shared.ports.state import Promotion

COMMITS = 5
KEPT = 100
SOMEBODY_PUSHED = "somebody else has pushed to the branch {}: it is left as it is, and so is its pull request"


def branch_to(target: str, ports: Ports) -> str:
    """Return the branch of the promotion to an environment; two fleets may have one repository."""
    return f"{PROMOTIONS}{ports.config.fleet}/{target}"


def seen_on_github(promotion: Promotion, ports: Ports) -> tuple[Promotion, Pull | None]:
    """Return a promotion with what became of its pull request, and that.

    Somebody who closes it declines its values, and somebody who reopens it takes that back.
    """
    pull = ports.pulls.pull(promotion.number) if promotion.number else None
    if pull is None:
        return replace(promotion, values=()), None
    values = promotion.values
    others = tuple(each for each in promotion.declined if each not in values)
    if pull.merged:
        merged = tuple(each for each in promotion.merged if each not in values)
        return replace(promotion, merged=(*merged, *values)[-KEPT:], declined=others), pull
    if pull.open:
        return replace(promotion, declined=others), pull
    return replace(promotion, declined=(*others, *values)[-KEPT:]), pull


def give(promotion: Promotion, pull: Pull | None, found: Evaluation, head: Head, ports: Ports) -> Promotion:
    """Open the pull request with what was found, or bring it up to date; return what is saved."""
    branch, opened = branch_to(promotion.target, ports), pull is not None and pull.open
    values = tuple(each.value for each in found.proofs)
    if opened and promotion.values == values:
        return ports.state.save_promotion(replace(promotion, problem=""))
    tip = ports.proposing.tip(branch)
    if tip is not None and tip not in promotion.commits:
        return ports.state.save_promotion(replace(promotion, problem=SOMEBODY_PUSHED.format(branch)))
    message = commit_text(promotion, found)
    parents = parents_of(tip, head.commit, ports)
    commit = ports.proposing.add_commit(NewCommit(found.path, found.content.encode(), message, parents))
    commits = (*promotion.commits, commit)[-COMMITS:]
    promotion = ports.state.save_promotion(replace(promotion, commits=commits))
    if tip is None:
        ports.proposing.create_branch(branch, commit)
    else:
        ports.proposing.advance_branch(branch, commit)
    text = promotion_text(promotion, found, head.commit)
    if pull is not None and opened:
        ports.proposing.edit_pull(pull.number, text)
    else:
        pull = ports.proposing.open_pull(branch, ports.config.branch, text)
    shown = replace(promotion, number=pull.number, url=pull.url, values=values, problem="")
    return ports.state.save_promotion(shown)


def end(promotion: Promotion, pull: Pull | None, why: str, ports: Ports) -> Promotion:
    """Close the pull request of what is promoted no longer, and delete the branch if it is ours."""
    branch = branch_to(promotion.target, ports)
    if pull is not None and pull.open:
        again = not promotion.values
        # Before it is closed: what nobody declined is not declined.
        promotion = ports.state.save_promotion(replace(promotion, values=()))
        if not (again and ports.pulls.comment(pull.number, OVER)):
            ports.pulls.write_comment(pull.number, promotion_over_text(why), over=None)
        ports.proposing.close_pull(pull.number)
    declined = pull is not None and not (pull.open or pull.merged) and bool(promotion.values)
    tip = ports.proposing.tip(branch) if promotion.commits and not declined else None
    if tip is not None and tip in promotion.commits:
        ports.proposing.delete_branch(branch)
        promotion = replace(promotion, commits=())
    return promotion


def is_over(pull: Pull | None) -> bool:
    """Return whether nothing is proposed now: the pull request was merged, closed, or is none."""
    return pull is None or not pull.open
