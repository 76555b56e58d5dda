"""What a promotion says on GitHub. Pure; text from manifests has no effect there."""

from __future__ import annotations

from collections.abc import Sequence

from shared.pipeline.proposals.own_pull import pull_text
from shared.pipeline.proposals.promoting.evaluation import Evaluation
from shared.pipeline.pull_requests.markdown import code, prose, table
from shared.ports import PullText
from shared.ports.state import Promotion
from shared.some_of import some_of

NAMED = 50
OVER = "<!-- roadstead:promotion over -->"
"""The first characters of the comment with which a promotion ends that was not merged."""


def commit_text(promotion: Promotion, found: Evaluation) -> str:
    """Return the message of the commit."""
    lines = "\n".join(f"- {each.value.path}: {each.value.value}" for each in found.proofs)
    return f"{_title(promotion)}\n\nEvery cluster of {promotion.source} is Ready with:\n\n{lines}\n"


def promotion_text(promotion: Promotion, found: Evaluation, head: str) -> PullText:
    """Return what the pull request says."""
    source, target = code(promotion.source), code(promotion.target)
    rows = [(code(each.value.path), code(each.value.value)) for each in found.proofs]
    proven_by = found.proofs[0].clusters if found.proofs else ()
    who = (
        f"{prose(promotion.by)} asked for this." if promotion.by else "A rule of `fleet.yaml` asks for this."
    )
    parts = [
        f"Every cluster of {source} is Ready with these values, and {target} has others. {who}",
        table(("field", "value"), rows),
        f"As of commit {code(head[:8])}, {_clusters(proven_by)} of {source} had them. "
        f"A merge changes {_clusters(found.takers)} of {target}, in the stages of the fleet.",
        f"- **Merge** this to write the values into {code(found.path)}.\n"
        "- **Close** it to decline them: no rule proposes them again. Reopen it to change your mind.\n"
        "- A revert after the merge holds: no rule proposes the values again until a commit gives them, or "
        f"somebody runs {code(f'roadstead promote {promotion.source} {promotion.target}')}.",
    ]
    if found.keepers:
        parts.append(f"These set a value of their own and keep it: {_names(found.keepers)}.")
    return pull_text(_title(promotion), parts)


def promotion_over_text(why: str) -> str:
    """Return the comment with which a promotion ends that was not merged; ``why`` is "" for no obstacle."""
    reason = prose(why) or "the environment has these values without this pull request"
    return f"{OVER}\nClosed: {reason}."


def _clusters(names: Sequence[str]) -> str:
    return f"{len(names)} cluster{'' if len(names) == 1 else 's'} ({_names(names)})"


def _names(names: Sequence[str]) -> str:
    return some_of([*map(code, names)], NAMED)


def _title(promotion: Promotion) -> str:
    return f"Promote {promotion.source} to {promotion.target}"
