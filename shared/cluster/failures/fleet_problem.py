"""Why the newest commit of a fleet could not be planned, and what an operator can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from shared.cluster.failures import errors
from shared.cluster.failures.remedies import suggested_action
from shared.frozen import dataclass

_NEXT_TRY = "The timer plans again at the latest; until then no newer commit is carried out."
_LOGS = "If the problem stays, find the error in the logs of the functions."


class FailedPart(StrEnum):
    """What failed, as stored."""

    READ = "read"
    FIRST = "first"
    """The first read: the branch may have no commit yet."""
    PLAN = "plan"
    REQUEST = "request"


_WHAT: Mapping[FailedPart, str] = {
    FailedPart.READ: "the repository could not be read: ",
    FailedPart.FIRST: "no commit was planned yet, and none was found: ",
    FailedPart.PLAN: "the newest commit could not be planned: ",
    FailedPart.REQUEST: "a plan request failed",
}

_FIRST_PUSH = (
    "Push the first commit to the branch. If it has one, set the repository and its branch to what exists"
    " (docs/settings.md). A host answers the same when the credential may not see the repository."
)

_REPOSITORY: Mapping[type[errors.ReconcileError], str] = {
    errors.Unauthenticated: "The git host refuses the credential: whoever deploys the app renews the token or"
    " the key with which it reads the repository (docs/settings.md), and deploys it.",
    errors.Unauthorized: "An owner of the repository lets the credential of the app read its contents; an"
    " organisation may also ask that a token is authorised for single sign-on.",
    errors.Dependency: "Restore the branch, or set the repository and its branch to what exists"
    " (docs/settings.md). A host answers the same when the credential may not see the repository.",
    errors.Withheld: "Whoever deploys the app sets the present name of the repository (docs/settings.md); an"
    " owner of a blocked repository asks the git host.",
    errors.Throttled: "No action needed. If it persists, find out what else uses the same token.",
    errors.Unavailable: "The status page of the git host shows whether it has a problem; otherwise check its"
    " address in the settings, and the network of the app.",
}
"""Who does what when the repository cannot be read."""


@dataclass(frozen=True)
class FleetProblem:
    """What prevents the planner from planning the newest commit.

    ``kind`` is the class of the error, "" when the queue dead-lettered the plan request. ``approve_again`` is
    the commit whose approval was lost with the request, "" for none.
    """

    message: str
    failed: FailedPart
    kind: str = ""
    approve_again: str = ""

    @classmethod
    def of_read(cls, error: errors.ReconcileError, planned: str, approve_again: str = "") -> FleetProblem:
        """Return that of a failed read of the repository; ``planned`` is the last commit, "" for none yet."""
        absent = isinstance(error, errors.Dependency) and not planned
        part = FailedPart.FIRST if absent else FailedPart.READ
        return cls(str(error), part, error.kind, approve_again)

    def __str__(self) -> str:
        approve = f"; approve {self.approve_again[:8]} again" if self.approve_again else ""
        return f"{_WHAT[self.failed]}{self.kind}: {self.message}{approve}"

    @property
    def suggested_action(self) -> str:
        """Who can do what about it."""
        if self.failed is FailedPart.FIRST:
            return _FIRST_PUSH
        action = suggested_action(self.kind, failed=False)
        if self.failed is FailedPart.READ:
            named = (action for kind, action in _REPOSITORY.items() if kind.__name__ == self.kind)
            action = next(named, action)
        return f"{_NEXT_TRY} {action or _LOGS}"
