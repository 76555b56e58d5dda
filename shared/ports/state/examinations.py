"""What each app of a fleet last found of itself, a record for each app."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shared.cluster.forms import RecordList
from shared.frozen import dataclass, field
from shared.ports.state.clusters import FLEETS
from shared.ports.state.reading import TableRepository, TextKind


@dataclass(frozen=True)
class Finding:
    """What is wrong with ``what``, since when, and the command or the act that mends it."""

    what: str
    problem: str
    remedy: str
    since: datetime


@dataclass(frozen=True)
class Examination:
    """What an app found of itself at a time; ``settings`` has of a secret a few bits of its hash."""

    app: str
    at: datetime
    version: str
    settings: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


class Examinations(TableRepository):
    """The last examination of each app."""

    def examinations(self) -> RecordList[Examination]:
        """Return the last examination of each app that ever had one."""
        return self._listed(EXAMINATION)

    def save_examination(self, examination: Examination) -> None:
        """Write an examination over the one before."""
        self._put(EXAMINATION, examination.app, examination, at=examination.at)


EXAMINATION = TextKind[Examination]("examination", FLEETS, Examination, "examinations|{}", version=1)
"""Its form stays, and gets fields at most: while an upgrade lasts, apps of two versions read it."""
