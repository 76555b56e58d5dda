"""The small records of a cluster's record: each has what belongs together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from shared.azure.companions.compliance import Compliance
from shared.azure.differences import Difference
from shared.azure.drift.activity import FieldAuthor
from shared.azure.running_versions import RunningVersions
from shared.cluster.divergence.drift import Correction, Drift
from shared.cluster.divergence.trial import Trial
from shared.cluster.divergence.verification import Verification
from shared.cluster.sleep import SleepOrder
from shared.frozen import dataclass, field
from shared.kubernetes.inside import InsideReading
from shared.kubernetes.kubeconfig import ApiServer
from shared.plan.holds import Closure
from shared.plan.plan import Postponement


class Phase(StrEnum):
    """The state of a cluster in one word."""

    PROVISIONING = "Provisioning"
    UPDATING = "Updating"
    DELETING = "Deleting"
    READY = "Ready"
    STALLED = "Stalled"
    SUSPENDED = "Suspended"
    SLEEPING = "Sleeping"
    """Azure showed it stopped, as it is to be: until then, and once it starts, it is Updating. It is neither
    drift nor a failure."""
    FAILED = "Failed"
    EXEMPT = "Exempt"
    """What is shown, and never stored, of a Failed cluster that an exemption has be missing or stopped."""
    RELEASING = "Releasing"
    """Likewise, of a Deleting cluster outside Azure: nothing that runs there is deleted."""


STUCK = frozenset({Phase.FAILED, Phase.STALLED})
"""The phases in which a cluster makes no progress, and may make none before a person acts."""


class ConditionReason(StrEnum):
    """Why a condition has its status, where that is not the class of an error."""

    DONE = "Done"
    RETAINED = "Retained"
    WAITING = "Waiting"
    STALLED = "Stalled"
    SUSPENDED = "Suspended"
    SLEEPING = "Sleeping"
    RESTARTED = "Restarted"
    DRIFTED = "Drifted"
    TRIED = "Tried"
    NOT_COMPARED = "NotCompared"


@dataclass(frozen=True)
class Condition:
    """As in Kubernetes: a ``status`` of None is "Unknown", and ``since`` is when it last changed.

    ``observed_generation`` is the generation that it is about, ``verified`` when it was found so at last.
    """

    type: str
    status: bool | None
    reason: str
    message: str
    since: datetime
    observed_generation: int
    verified: datetime


@dataclass(frozen=True)
class Absence:
    """What a sweep found of a cluster that is missing or stopped: the class of the error, and since when.

    ``act`` is who deleted or stopped it, and when, by Azure's activity log; None as long as that does not say
    it. ``exemption`` is the rule of its policy by which that is ignored, "" for none, and ``expires`` the
    rule's last day.
    """

    kind: str
    since: datetime
    act: FieldAuthor | None = None
    exemption: str = ""
    expires: str = ""


@dataclass(frozen=True)
class Removals:
    """What accepted specs had of a cluster, and is still to be removed.

    ``keys`` are the labels and taints of each node pool, ``systems`` the namespaces of each system,
    ``configurations`` those of Flux as Microsoft's extension, and ``companions`` the resource ids of
    companions, in lower case.
    """

    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    systems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    configurations: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompanionState:
    """The fields in which companions differed when a check could read all of them last.

    ``compliance`` is what it read of Azure Policy, None before that.
    """

    differences: tuple[Difference, ...] = ()
    compliance: Compliance | None = None


NOTHING_REMOVED, UNREAD_COMPANIONS = Removals(), CompanionState()


@dataclass(frozen=True)
class EndPull:
    """The pull request that removes a cluster whose lifetime has ended: its ``commit`` is ours.

    ``end`` is the end for which it was opened. ``declined``: somebody closed it without a merge.
    """

    number: int
    url: str
    commit: str
    end: datetime
    declined: bool = False


@dataclass(frozen=True)
class LifetimeState:
    """What is known of the lifetime of a cluster.

    ``first_ready`` is when this life of it was verified Ready first, None before that. ``extension`` and
    ``hold`` are what people asked for. ``warned`` is the end of which it was warned last, and the moment that
    was due; None for none. ``pull`` is the pull request that removes the cluster, ``problem`` why there is
    none although the lifetime has ended, "" for nothing. ``unsure``: the tables were lost, or are older than
    the cluster, so that nobody knows who had put the end off; until somebody does so again.
    """

    first_ready: datetime | None = None
    extension: Postponement | None = None
    hold: Postponement | None = None
    warned: tuple[datetime, datetime] | None = None
    pull: EndPull | None = None
    problem: str = ""
    unsure: bool = False


@dataclass(frozen=True)
class AzureLife:
    """One life of the cluster in Azure, from its creation to its delete.

    ``group_requested``: Azure was asked to create the resource group, or may have been, and
    ``creation_requested``: the cluster. ``was_tagged``: the cluster has had our tags, because Azure accepted
    a write of it or it matched the manifest. ``had_systems``: an accepted spec had systems, so that
    teams' objects may be on the cluster. None of these becomes false again.

    ``delete_accepted``: Azure accepted the delete of this life, so that parts of it may be gone, and
    ``deleted`` is its ``resourceUID``, "" where that is unknown. ``life`` is the id of this life where that
    is not the record's ``uid``. ``recreating``: somebody asked that the missing cluster is created again;
    until it is verified. ``rebuilt_for`` is the time of the rebuild that this life was created for, "" for
    none. ``lifetime`` is how long it lasts. ``slept`` is since when a job of ours has it stopped, or its node
    pools where ``pools_slept``, None once it is verified.
    """

    group_requested: bool = False
    creation_requested: bool = False
    was_tagged: bool = False
    had_systems: bool = False
    delete_accepted: bool = False
    deleted: str = ""
    life: str = ""
    recreating: bool = False
    rebuilt_for: str = ""
    lifetime: LifetimeState = LifetimeState()
    slept: datetime | None = None
    pools_slept: bool = False


@dataclass(frozen=True)
class Ownership:
    """Who manages the cluster.

    ``installation`` is the id of the app's state. A takeover overrules the installations in ``overruled``
    until our tags are on the cluster; ``predecessors`` are all that one ever overruled. ``has_rival``:
    another installation managed the cluster too, or had marked it, when it was read last.

    ``recovering``: the record may not know what was written to the cluster last, so that the job only
    compares: nothing is written until the cluster is verified, or an operator takes it over.

    ``cluster_uid`` is the identity of a cluster that exists outside Roadstead: the uid of its namespace
    kube-system when a step entered it last, "" before that, and for any other cluster.
    """

    installation: str = ""
    overruled: tuple[str, ...] = ()
    predecessors: tuple[str, ...] = ()
    has_rival: bool = False
    recovering: bool = False
    cluster_uid: str = ""


@dataclass(frozen=True)
class ClusterObservation:
    """What was read of the cluster last; None for what was never read.

    ``running`` is what runs, ``verified`` how Azure showed the cluster when it was compared with git, and
    ``inside`` what a check found inside it. ``companions`` is what a check read of the companions. ``loss``
    is what is known of a cluster that is missing or stopped, None once it is verified again. ``facts`` are
    what manifests on the cluster can use as variables. ``api_server`` is where a token of the app opened its
    Kubernetes API, None when the next connection needs a kubeconfig. ``compared`` is when a sweep read the
    cluster by itself, and not in a list, and compared it.
    """

    running: RunningVersions | None = None
    verified: Verification | None = None
    inside: InsideReading | None = None
    companions: CompanionState = UNREAD_COMPANIONS
    loss: Absence | None = None
    facts: Mapping[str, str] | None = None
    api_server: ApiServer | None = None
    compared: datetime | None = None


@dataclass(frozen=True)
class Divergence:
    """How the cluster differs from git, and what is done about it.

    ``drift`` are the fields that differed when it was compared last, None for none. ``corrections`` are those
    of this generation. ``held`` is what keeps a correction from starting that the last sweep wanted, None for
    nothing. ``lowered`` are the versions that git had and has lowered since, by their paths below ``spec``.
    ``trial`` is the last try, None once its pull request says what became of it. ``order`` is the last
    that an operator gave about its sleep, which may be over.
    """

    drift: Drift | None = None
    corrections: tuple[Correction, ...] = ()
    held: Closure | None = None
    lowered: Mapping[str, str] = field(default_factory=dict)
    trial: Trial | None = None
    order: SleepOrder | None = None
