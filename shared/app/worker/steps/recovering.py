"""A record that is recovering: the tables were lost, or are older than Azure, so its job writes nothing.

As long as nothing differs from git, there is nothing to write. Where something does, nobody knows whether git
or the cluster is right: the job says what it would write, and waits for an operator (docs/decisions/0031).
"""

from __future__ import annotations

from shared.app.access.context import StepContext
from shared.app.worker.steps.companions import differing_windows
from shared.azure.differences import differences_of
from shared.azure.ownership import LIFE_TAG, created_for, tag
from shared.cluster.job import Contest, ContestKind
from shared.cluster.outcomes import Wait
from shared.json_tree import Json
from shared.sentences import some_of

SHOWN = 8
"""How many differences are named one by one."""
CONFIRM = "Change the manifest to what exists, or have git's values written with `roadstead takeover NAME`."
_VERIFY = "Verify that the cluster may be deleted, then run `roadstead takeover NAME`; or restore its folder."


def held(context: StepContext, live: Json | None, would: str) -> Wait:
    """Return the wait of a cluster whose job would write, with what differs."""
    if context.record.deleting:
        return _wait(context, live, f"the job would {would}", _VERIFY)
    if live is None and not context.desired.is_attached:
        return _wait(context, live, f"it does not exist in Azure, where the job would {would}", CONFIRM)
    differences = differing_fields(context, live) if live else []
    differs = f"it differs from git in {some_of(differences, SHOWN)}" if differences else ""
    return _wait(context, live, differs or f"the job would {would}", CONFIRM)


def differing_fields(context: StepContext, live: Json) -> list[str]:
    """Return what of a cluster, its pools and its maintenance windows differs from git."""
    differences = map(str, differences_of(context.desired, context.owner, live))
    return [*differences, *differing_windows(context)]


def missed_rebuild(context: StepContext, live: Json) -> Wait | None:
    """Return the wait of a cluster that was not rebuilt before the tables were lost, None for any other.

    Whoever takes the cluster over keeps it: a rebuild then takes a later time in the manifest.
    """
    asked, life = context.record.rebuilt_for, tag(live, LIFE_TAG) or ""
    if not context.record.recovering or not asked or created_for(life) >= asked:
        return None
    return _wait(context, live, f"it was not rebuilt for {asked}, as git asks", CONFIRM)


def _wait(context: StepContext, live: Json | None, why: str, action: str) -> Wait:
    life = (tag(live, LIFE_TAG) or "") if live else context.record.azure.life
    what = f"the cluster {context.record.name} is not written to"
    reason = f"{what}: the tables do not know what was written to it last, and {why}"
    contest = Contest(ContestKind.RECOVERY, life=life)
    return Wait.for_person(reason, action, contest=contest)
