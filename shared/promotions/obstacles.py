"""Why something is not promoted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from shared.some_of import some_of

NAMED = 5


class Reason(StrEnum):
    """Why something is not promoted."""

    EMPTY = "empty"
    """The environment has no cluster."""
    NOT_READY = "not ready"
    PENDING = "pending"
    """The newest commit asks for another value than its clusters have."""
    DIFFERENT = "different"
    """Its clusters have different values."""
    NO_VALUE = "no value"
    """Its clusters name no value that another environment could get."""
    NEWER = "newer"
    """A cluster runs another version than git asks for."""
    DRIFTED = "drifted"
    SAME = "same"
    """The target has the value already."""
    OWN = "own"
    """Every cluster of the target that has another value sets that in its own file."""
    LOWER = "lower"
    """AKS lowers no version."""
    INVALID = "invalid"
    """The files are invalid with it, or it cannot be written."""
    SOAK = "soak"
    WITHDRAWN = "withdrawn"
    """The target had the value, and a commit took it away: automation does not bring it back."""
    DECLINED = "declined"
    """Somebody closed the pull request with the value."""


NOTHING_TO_DO = frozenset({Reason.SAME, Reason.NO_VALUE, Reason.OWN})
"""The reasons that are no obstacle for another value."""
HOLDS = frozenset({Reason.WITHDRAWN, Reason.DECLINED})
"""The reasons that stop automation alone: a person can promote nevertheless."""


@dataclass(frozen=True)
class Obstacle:
    """Why something is not promoted: the clusters that it is about, and values or what is wrong."""

    reason: Reason
    environment: str
    clusters: tuple[str, ...] = ()
    detail: str = ""


_TEXTS: Mapping[Reason, str] = {
    Reason.EMPTY: "{environment} has no cluster",
    Reason.NOT_READY: "not every cluster of {environment} is Ready: {names}",
    Reason.PENDING: "the newest commit gives {names} of {environment} another value, which is not Ready yet",
    Reason.DIFFERENT: "the clusters of {environment} have different values: {detail}",
    Reason.NO_VALUE: "{names} of {environment} names no value: {detail}",
    Reason.NEWER: "{names} of {environment} runs another version than git asks for: {detail}",
    Reason.DRIFTED: "in Azure, {names} of {environment} has another value than in git",
    Reason.SAME: "{environment} has {detail} already",
    Reason.OWN: "no cluster of {environment} would get it: {names} sets a value in its own file",
    Reason.LOWER: "AKS lowers no version, and {names} of {environment} has a newer one than {detail}",
    Reason.INVALID: "the files are invalid, or would be with it: {detail}",
    Reason.SOAK: "{environment} is watched until {detail}",
    Reason.WITHDRAWN: "{environment} had {detail}, and a commit took it back: no rule gives it again",
    Reason.DECLINED: "the pull request with {detail} was closed without a merge: no rule opens another",
}


def describe(what: str, obstacle: Obstacle) -> str:
    """Return why something is not promoted, as a sentence."""
    names = some_of(obstacle.clusters, NAMED)
    text = _TEXTS[obstacle.reason]
    return f"{what}: {text.format(environment=obstacle.environment, names=names, detail=obstacle.detail)}"
