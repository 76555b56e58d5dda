"""Of which kinds the changes of a commit are, as strategies name them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from shared.fleet.manifests.rollout import Strategy
from shared.fleet.planning.differences import Change
from shared.fleet.planning.plan import Item

ANY = "any"
ROADSTEADS_OWN = ("spec.suspend", "spec.deletionProtection", "spec.drift")
"""The fields of which Azure sees nothing: a change of them alone waits for nobody."""
_KINDS = (
    (
        "versions",
        r"spec\.(kubernetesVersion|minNodeImageVersion"
        r"|nodePools\[[^\]]*\]\.(orchestratorVersion|nodeImageVersion|rollback))(\..*)?",
    ),
    ("nodePools", r"spec\.nodePools.*"),
    ("platform", r"(systems|spec\.flux|spec\.bootstrapSecrets)(\W.*)?"),
)
"""The kinds with the paths of their fields; the first that matches counts."""


def kind_of(change: Change) -> str:
    """Return the kind of a change, ``any`` for one that is of no other."""
    found = (kind for kind, path in _KINDS if re.fullmatch(path, change.path, re.DOTALL))
    return next(found, ANY)


def strategy_name(strategies: Sequence[Strategy], updates: Iterable[Item]) -> str:
    """Return the strategy of a commit: the first that names a kind of change; "" where there is none.

    Kinds that no strategy names are ``any``, and so is a commit without a change that Azure sees.
    """
    named = {kind for each in strategies for kind in each.changes}
    found = {kind if kind in named else ANY for kind in _kinds(updates)} or {ANY}
    return next((each.name for each in strategies if not found.isdisjoint(each.changes)), "")


def slowest_kind(updates: Iterable[Item]) -> str:
    """Return the kind of the changes of a commit that takes longest, "" without one that Azure sees."""
    found = _kinds(updates)
    return next((kind for kind in ("versions", "nodePools", ANY, "platform") if kind in found), "")


def _kinds(updates: Iterable[Item]) -> Collection[str]:
    changes = (change for item in updates for change in item.changes)
    return {kind_of(change) for change in changes if not change.path.startswith(ROADSTEADS_OWN)}
