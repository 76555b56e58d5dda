"""The planner's record of the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shared.cluster.failures.fleet_problem import FleetProblem
from shared.cluster.history import Gaps
from shared.frozen import dataclass, field
from shared.notifications.routes import Route
from shared.platform.followed import Followed
from shared.ports.git_host import BranchHead
from shared.ports.state.clusters import FLEETS
from shared.ports.state.reading import TableRepository, TextKind
from shared.promotions import ChannelRule, EnvironmentValues, Rule
from shared.rollouts.shut import NOTHING, Calendar
from shared.sentences import moment


@dataclass(frozen=True)
class BranchRead:
    """A read of the branch, and when it started by our clock; ``head`` is None where it failed."""

    head: BranchHead | None
    started: datetime


@dataclass(frozen=True)
class Source:
    """Where a fleet is planned from: GitHub's id of the repository, and the branch."""

    repository: int
    branch: str


@dataclass(frozen=True)
class Handover:
    """How far the planner has come with ``planning``: of ``total`` jobs, ``done`` were handed over.

    ``in_flight`` are the clusters whose records it saves, and whose messages it sends, since ``at``. It saves
    no other ones before it has written this again, and none between two invocations. ``since`` is when
    the attempt began that handed the first ones over.
    """

    at: datetime
    since: datetime
    done: int = 0
    total: int = 0
    in_flight: tuple[str, ...] = ()


@dataclass(frozen=True)
class Override:
    """Who lets a commit start in freezes and outside change windows, when, and why."""

    commit: str
    by: str
    at: datetime
    reason: str


@dataclass(frozen=True)
class Pause:
    """Who stopped what the app starts by itself, when, why, and until when; None for until a resume."""

    by: str
    at: datetime
    reason: str
    until: datetime | None = None

    def __str__(self) -> str:
        until = f"until {moment(self.until)}" if self.until else "until somebody resumes it"
        return f"paused by {self.by} since {moment(self.at)}, {until}: {self.reason}"


@dataclass(frozen=True)
class AppIdentity:
    """Who this app is on the tags of its clusters, as long as these tables live."""

    installation: str = ""
    """The id by which two apps of one fleet differ: that of the settings, otherwise one of this state; ""
    before the first plan."""
    former: tuple[str, ...] = ()
    """The ids that this state had before: clusters may still carry them."""
    pins_directly: bool = False
    """Whether Flux names the commit of a pin itself, because the git host lets the app write no branches."""


@dataclass(frozen=True)
class Recovery:
    """The tables were lost, or restored: since when each record only compares, and the epoch of the tables
    once that holds for every record.
    """

    since: datetime
    epoch: int


@dataclass(frozen=True)
class HeadReads:
    """The reads of the branch, which requests share."""

    last: BranchRead | None = None
    """The last one, by any request; None for none."""
    full_at: datetime | None = None
    """When as many successive reads are allowed again as after a pause."""
    planned_at: datetime | None = None
    """When the head was read for ``planning``, otherwise for ``commit``, by GitHub's clock."""


@dataclass(frozen=True)
class Expectations:
    """What the last plan left for another one."""

    deletion: tuple[str, ...] = ()
    """The clusters that are created again once their deletion has finished."""
    ready: Mapping[str, int] = field(default_factory=dict)
    """The clusters whose being Ready has deletes begin, each with the generation."""
    replacing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By cluster that the last plan removed, the clusters that are to replace it, or were."""
    unreadable: tuple[str, ...] = ()
    """The clusters for which the last plan has nothing, because their records could not be read."""


@dataclass(frozen=True)
class FleetRules:
    """What fleet.yaml and shared files said, as of the last plan with a valid fleet.yaml."""

    routes: tuple[Route, ...] = ()
    """Who is notified."""
    subscriptions: tuple[str, ...] = ()
    """The subscriptions that shared files name: sweeps list them too."""
    promotions: tuple[Rule, ...] = ()
    """What is promoted without anybody asking."""
    channels: tuple[ChannelRule, ...] = ()
    """The environments that get their version of Kubernetes from a channel."""
    had: tuple[EnvironmentValues, ...] = ()
    """What the targets of promotions, and the environments with a channel, had."""
    calendar: Calendar = NOTHING
    """The change windows and freezes."""
    asks_by_issue: bool = False
    """Whether somebody may ask for a cluster by an issue."""

    @property
    def proposes(self) -> bool:
        """Whether the app opens pull requests for versions by itself."""
        return bool(self.promotions or self.channels)


@dataclass(frozen=True)
class TablesAge:
    """How old the tables are, by what stands outside them."""

    epoch: int = 0
    """How often a hand-over began that these tables know; the same number stands outside them."""
    recovery: Recovery | None = None
    """The recovery that has records left to compare, None for none."""


@dataclass(frozen=True)
class FleetOrigin:
    """The repository of the fleet, and what else it is planned from."""

    source: Source | None = None
    """Where the fleet is planned from; None before the first plan."""
    other_source: Source | None = None
    """What was read instead at last, which a takeover accepts; None when it was ``source``."""
    followed: tuple[Followed, ...] = ()
    """The sources besides the repository that clusters follow by rollout, as in the last plan."""


@dataclass(frozen=True)
class ClosedTimes:
    """What freezes, windows and suspensions keep from starting."""

    opens: datetime | None = None
    """When the first such item may start, None for none, or for never."""
    override: Override | None = None
    """The last override of freezes and windows, None for none; it is of one commit."""

    def lets_start(self, now: datetime) -> bool:
        """Return whether such an item may start."""
        return self.opens is not None and self.opens <= now


@dataclass(frozen=True)
class FleetRecord:
    """The state of the planner: what it planned last, what it plans now, and what prevents the next plan."""

    commit: str = ""
    """The commit that was planned last, "" for none."""
    at: datetime | None = None
    """When that plan was created, as in its record; another time there is that of a superseded planner."""
    problem: FleetProblem | None = None
    """What prevents the newest commit from being planned, None for no problem."""
    waiting: str = ""
    """Why a new head is not planned yet, as a sentence; "" when none waits."""
    planning: str = ""
    """The commit whose jobs are being handed over, "" for none."""
    handover: Handover | None = None
    """How far that is; None for no ``planning``."""
    app: AppIdentity = AppIdentity()
    """The ids of this app, and the first generation of its clusters."""
    tables: TablesAge = TablesAge()
    """Whether the tables may be older than what began."""
    reads: HeadReads = HeadReads()
    """When the branch was read."""
    expects: Expectations = Expectations()
    """What the last plan left for another one."""
    rules: FleetRules = FleetRules()
    """What fleet.yaml says to those who read no git."""
    origin: FleetOrigin = FleetOrigin()
    """Where the fleet is planned from."""
    gaps: Gaps = field(default_factory=Gaps)
    """The heads that somebody found before a webhook had them planned."""
    rollout: str = ""
    """The commit whose rollout has clusters that did not start or end yet, "" for none."""
    last_valid: str = ""
    """The commit that was planned last with a valid fleet.yaml, "" while that is the newest."""
    durations: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The seconds that changes of clusters took in completed rollouts, by kind; the newest of each."""
    closed: ClosedTimes = ClosedTimes()
    """What freezes, windows and suspensions keep from starting."""
    pause: Pause | None = None
    """The last pause that nobody ended, None for none; ``paused`` says whether it lasts."""
    etag: str = field(default="", compare=False)
    """The version that was read, "" for a record not saved yet."""

    @property
    def is_behind(self) -> bool:
        """Whether a recovery began, and not every record is known to be a part of it."""
        return self.tables.recovery is not None and self.tables.epoch < self.tables.recovery.epoch

    @property
    def stands_still(self) -> bool:
        """Whether the rollout starts nothing before another commit: the last fleet.yaml is invalid.

        A plan with a valid one leaves no rollout but its own.
        """
        return not self.planning and self.rollout not in ("", self.commit)

    def paused(self, now: datetime) -> Pause | None:
        """Return the pause that lasts at a time, None for none."""
        pause = self.pause
        return None if pause is None or (pause.until is not None and pause.until <= now) else pause

    @property
    def handed_over(self) -> str:
        """How far ``planning`` is, "" while nothing was handed over."""
        known = self.handover
        return f"{known.done:,} of {known.total:,} clusters handed over" if known and known.done else ""


class FleetRecords(TableRepository):
    """The fleet's record."""

    def fleet(self) -> FleetRecord:
        """Return the fleet's record; a new one when none was saved; raise Unreadable."""
        return self._value(FLEET, self._fleet) or FleetRecord()

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's record over the version that was read, and return it as saved; raise Stale."""
        return self._write(FLEET, self._fleet, record, commit=record.commit)


FLEET = TextKind[FleetRecord]("fleet", FLEETS, FleetRecord, "fleet")
