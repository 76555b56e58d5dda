"""What a proposal says on GitHub. Pure; text from manifests, Azure and its log has no effect there."""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.resolve.repository_layout import cluster_path
from shared.jobs.drift import DriftedField
from shared.pipeline.proposals.own_pull import pull_text
from shared.pipeline.pull_requests.markdown import code, prose, table
from shared.ports import PullText
from shared.ports.state import LeftOut

OVER = "<!-- roadstead:proposal over -->"
"""The first characters of the comment with which a proposal ends."""


def commit_message(name: str, fields: Sequence[DriftedField]) -> str:
    """Return the message of the commit: one line, and the fields below."""
    lines = "\n".join(f"- {each.path}" for each in fields)
    return f"{_title(name)}\n\nThe values are those that Azure has:\n\n{lines}\n"


def proposal_text(name: str, fields: Sequence[DriftedField], left_out: Sequence[LeftOut]) -> PullText:
    """Return what the pull request says."""
    manifest = code(cluster_path(name))
    rows = [
        (code(e.path), code(e.git) or "no value", code(e.live) or "no value", code(e.source), prose(e.change))
        for e in fields
    ]
    parts = [
        f"Somebody changed {code(name)} in Azure, and its drift policy proposes to keep that.",
        table(("field", "git", "Azure", "git sets it in", "who"), rows),
        f"- **Merge** this to take the values of Azure into {manifest}. Nothing is written to Azure.\n"
        "- **Close** it to decline these values. They are not proposed again; reopen this pull request to "
        "change your mind.\n"
        f"- To have the values of git written instead, run {code(f'roadstead replay {name}')}.",
        "A sweep brings this up to date when the drift changes, and closes it when the drift is over. It "
        "leaves the branch alone once somebody else has pushed to it.",
    ]
    if left_out:
        reasons = [(code(each.path), prose(each.reason)) for each in left_out]
        parts.append("Also different, and not part of this:\n\n" + table(("field", "why"), reasons))
    return pull_text(_title(name), parts)


def over_text(*, kept: bool) -> str:
    """Return the comment with which a proposal ends."""
    branch = " The branch stays, because somebody else has pushed to it." if kept else ""
    return f"{OVER}\nClosed: what this proposes is no longer drift that its policy has proposed.{branch}"


def _title(name: str) -> str:
    return f"Take what Azure has of {name} into its manifest"
