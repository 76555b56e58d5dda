"""What is stored of the readings of clusters before an upgrade, apart from their records: few ask for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from shared.azure.availability.upgrade_room import UpgradeRoom
from shared.cluster.forms import RecordList
from shared.frozen import dataclass, field
from shared.kubernetes.readiness.observation import ObjectCount, Observation
from shared.ports.state.clusters import FLEETS
from shared.ports.state.reading import TableRepository, TextKind

_ALONE = 20
"""Up to so many are read one by one, and not with those of the whole fleet."""


@dataclass(frozen=True)
class ReadinessRecord:
    """The last reading of a cluster, ``seen`` None for none; ``uid`` is that of its record then.

    ``room`` is what Azure had for its upgrade at the time of ``seen``, None for an attached cluster.
    ``counted`` has how many objects there were of kinds, by the names of their definitions. ``etag`` is the
    version that was read, "" for one not saved yet.
    """

    cluster: str
    uid: str = ""
    seen: Observation | None = None
    room: UpgradeRoom | None = None
    counted: Mapping[str, ObjectCount] = field(default_factory=dict)
    etag: str = field(default="", compare=False)

    def of(self, uid: str) -> ReadinessRecord:
        """Return it for a life of the cluster: without what was read in another one."""
        return self if self.uid == uid else ReadinessRecord(self.cluster, uid, etag=self.etag)


class Readinesses(TableRepository):
    """The readings of clusters before an upgrade."""

    def readiness_of(self, cluster: str) -> ReadinessRecord:
        """Return the last reading of a cluster; an empty one when there is none, or it cannot be read."""
        entity = self._entity(READINESS, cluster)
        if entity is None:
            return ReadinessRecord(cluster)
        return self._reader.or_else(ReadinessRecord(cluster, etag=entity.etag), READINESS, entity)

    def readiness(self, clusters: Collection[str]) -> Mapping[str, ReadinessRecord]:
        """Return the last readings of some clusters, by their names."""
        if len(clusters) <= _ALONE:
            return {name: self.readiness_of(name) for name in clusters}
        found: RecordList[ReadinessRecord] = self._listed(READINESS)
        known = {record.cluster: record for record in found}
        return {name: known.get(name) or ReadinessRecord(name) for name in clusters}

    def save_readiness(self, record: ReadinessRecord) -> None:
        """Write a reading over the version that was read; raise Stale."""
        times = [*([record.seen.at] if record.seen else ()), *(known.at for known in record.counted.values())]
        self._write(READINESS, record.cluster, record, at=max(times, default=None))


READINESS = TextKind[ReadinessRecord]("readiness", FLEETS, ReadinessRecord, "readiness|{}")


# What each app of a fleet last found of itself, a record for each app.


@dataclass(frozen=True)
class ExaminationFinding:
    """What is wrong with ``what``, since when, and the command or the act that mends it."""

    what: str
    problem: str
    remedy: str
    since: datetime


@dataclass(frozen=True)
class Examination:
    """What an app found of itself at a time; ``settings`` has of a secret a few bits of its hash.

    ``functions`` are the names of those that it has.
    """

    app: str
    at: datetime
    version: str
    settings: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[ExaminationFinding, ...] = ()
    functions: tuple[str, ...] = ()


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
