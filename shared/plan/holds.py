"""Why a plan does not change a cluster, as a value; only this module describes the reason in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from string import Template

from shared.frozen import dataclass, field
from shared.kubernetes_versions import never_back
from shared.sentences import many, moment


class HoldKind(StrEnum):
    """The cause of a hold, as stored."""

    INVALID_NEW_MANIFEST = "invalid-new-manifest"
    INVALID_MANIFEST = "invalid-manifest"
    INVALID_FLEET_FILE = "invalid-fleet-file"
    IMMUTABLE_FIELD = "immutable-field"
    MOVE = "move"
    AWAITS_DELETION = "awaits-deletion"
    BEING_DELETED = "being-deleted"
    SUSPENSION = "suspension"
    LIFETIME_HOLD = "lifetime-hold"
    """The delete of a cluster that somebody holds for a time."""
    DELETION_PROTECTION = "deletion-protection"
    DELETE_BUDGET = "delete-budget"
    NAMESPACE_BUDGET = "namespace-budget"
    """Systems that stay on a cluster because the commit takes more namespaces than the budget allows."""
    SYSTEM_PROTECTION = "system-protection"
    SYSTEMS_FLEET_FILE = "systems-invalid-fleet-file"
    RENAME = "rename"
    """The delete of a cluster that looks renamed."""
    RENAMED = "renamed"
    """The creation of what it looks renamed to, which waits for the approval of that delete."""
    UNREAD = "unread"
    """The delete of a cluster in a commit with an invalid one: what is removed may be renamed to that."""
    AWAITS_REPLACEMENT = "awaits-replacement"
    """The delete of a cluster, until those that replace it are Ready."""
    REPLACEMENT_GONE = "replacement-gone"
    """Likewise, where what was to replace it no longer exists, or says so no more."""
    REPLACEMENT_UNKNOWN = "replacement-unknown"
    """The delete of a cluster, where a new one says that it replaces one that the fleet does not have."""
    PLATFORM_REFUSED = "platform-refused"
    """The pin stays, because what Flux would apply is invalid."""
    PLATFORM_REMOVAL = "platform-removal"
    """The pin stays, because Flux would destroy what no commit brings back."""
    VERSION_STAYS = "version-stays"
    """A version that git lowered stays, and all else of the cluster is carried out."""
    SOURCE_HELD = "source-held"
    """The pin stays, because the newest commit of its source is not known, or does not follow the last."""
    SYSTEM_SOURCE_HELD = "system-source-held"
    """Systems stay as they are for the same reason, or because what Flux would apply is invalid."""
    SYSTEM_REMOVAL = "system-removal"
    """Systems stay as they are, because Flux would destroy what no commit brings back."""
    UNREADABLE = "unreadable-record"
    """The cluster has a record, and nobody knows what it says."""
    FREEZE = "freeze"
    WINDOW = "window"
    """None of the change windows of the cluster is open."""


_OF_PEOPLE = (HoldKind.SUSPENSION, HoldKind.LIFETIME_HOLD)
_OF_CLUSTERS = (*_OF_PEOPLE, HoldKind.DELETION_PROTECTION, HoldKind.DELETE_BUDGET, HoldKind.RENAME)
_OF_SYSTEMS = (HoldKind.NAMESPACE_BUDGET, HoldKind.SYSTEM_PROTECTION, HoldKind.SYSTEMS_FLEET_FILE)
_IN_DOUBT = (HoldKind.REPLACEMENT_GONE, HoldKind.REPLACEMENT_UNKNOWN, HoldKind.UNREAD)
_OF_TIME = (HoldKind.FREEZE, HoldKind.WINDOW)
_TO_AN_END = (*_OF_TIME, *_OF_PEOPLE)
_OF_PINS = (HoldKind.PLATFORM_REFUSED, HoldKind.PLATFORM_REMOVAL, HoldKind.SOURCE_HELD)
_BY_APPROVAL = (
    *(*_OF_CLUSTERS, *_IN_DOUBT),
    *(HoldKind.NAMESPACE_BUDGET, HoldKind.SYSTEM_PROTECTION),
    *(HoldKind.PLATFORM_REMOVAL, HoldKind.SYSTEM_REMOVAL),
)

_SENTENCES: Mapping[HoldKind, tuple[str, str]] = {
    HoldKind.INVALID_NEW_MANIFEST: ("{problem}", ""),
    HoldKind.INVALID_MANIFEST: ("{problem} (the cluster stays at its last valid spec)", ""),
    HoldKind.INVALID_FLEET_FILE: ("nothing is $deleted while fleet.yaml is invalid", ""),
    HoldKind.IMMUTABLE_FIELD: (
        "{field} cannot change from {old} to {new}: it is fixed once a cluster exists",
        "restore the old value, add a cluster under another name, or rebuild the cluster: roadstead rebuild",
    ),
    HoldKind.MOVE: (
        "{field} cannot change from {old} to {new}: a cluster cannot move",
        "restore the old value, remove the cluster's folder, add the new cluster under another name,"
        " or rebuild the cluster in its new place: roadstead rebuild",
    ),
    HoldKind.AWAITS_DELETION: (
        "it is still being $deleted",
        "it will be $created again once that has finished; it stays if that has not started",
    ),
    HoldKind.BEING_DELETED: ("it is being $deleted$left", ""),
    HoldKind.SUSPENSION: (
        "the cluster is suspended by {owner} until {until}",
        "the $delete starts by itself then, with the other guards of a delete; {approve} $releases it sooner",
    ),
    HoldKind.LIFETIME_HOLD: (
        "{owner} holds the cluster until {until} ({reason})",
        "the $delete starts by itself then, with the other guards of a delete; {approve} $releases it sooner",
    ),
    HoldKind.DELETION_PROTECTION: (
        "deletionProtection is on",
        "{approve} $releases the $delete$which; or $back",
    ),
    HoldKind.DELETE_BUDGET: (
        "the commit $removes, guards.deleteBudget in fleet.yaml allows {budget}",
        "{approve} $releases the ${delete}s$which, or a commit that raises the budget",
    ),
    HoldKind.NAMESPACE_BUDGET: (
        "it would lose namespaces of {systems}, which stay: the commit takes {namespaces} from "
        "clusters, guards.namespaceBudget in fleet.yaml allows {budget}",
        "{approve} releases the removal of the namespaces with all that runs in them; or restore the system",
    ),
    HoldKind.SYSTEM_PROTECTION: (
        "it would lose namespaces of {systems}, which stay: protection is on",
        "{approve} releases the removal of the namespaces with all that runs in them; or restore the system",
    ),
    HoldKind.SYSTEMS_FLEET_FILE: (
        "it would lose namespaces of {systems}, which stay: nothing is deleted while fleet.yaml is invalid",
        "",
    ),
    **dict.fromkeys(
        (HoldKind.RENAME, HoldKind.RENAMED),
        (
            "it looks like a rename of {old} to {new}, which would $delete {old} and $create: both have"
            " {common}",
            "if they are two clusters, {approve} $releases both; otherwise restore the folder {old}",
        ),
    ),
    HoldKind.UNREAD: (
        "a commit that is half invalid $deletes nothing, because nobody knows what the manifest of {new}"
        " says of {old}",
        "correct the manifest or restore the folder {old}; {approve} $releases the $delete",
    ),
    HoldKind.AWAITS_REPLACEMENT: (
        "its $delete waits until {new}, which replaces it, is Ready",
        "it starts by itself then, with the guards of any delete; `roadstead why {first}` says how far that"
        " is; to keep the cluster, restore its folder",
    ),
    HoldKind.REPLACEMENT_GONE: (
        "{new} was to replace it, and does not any more: it was removed, or no longer names it",
        "{approve} $releases the $delete; or restore the folder, or name it in what is to replace it",
    ),
    HoldKind.REPLACEMENT_UNKNOWN: (
        "{new} says that it replaces {named}, and the fleet has no such cluster: {old} may be meant",
        "{approve} $releases the $delete; or correct the annotation of {new}",
    ),
    HoldKind.PLATFORM_REFUSED: (
        "Flux keeps the commit that it has, because what it would apply is invalid: {problem}",
        "correct it, and push",
    ),
    HoldKind.SYSTEM_SOURCE_HELD: ("{systems} stay as they are: {problem}", "{remedy}"),
    HoldKind.SYSTEM_REMOVAL: (
        "{systems} stay as they are, because {removed objects}",
        "{approve} releases it; without loss: {way}",
    ),
    HoldKind.SOURCE_HELD: ("Flux keeps the commit that it has: {problem}", "{remedy}"),
    HoldKind.PLATFORM_REMOVAL: (
        "Flux keeps the commit that it has, because {removed objects}",
        "{approve} releases it; without loss: {way}",
    ),
    HoldKind.VERSION_STAYS: (
        "{versions}",
        "who owns the manifest sets {field} to the version that runs",
    ),
    HoldKind.UNREADABLE: (
        "nothing is planned for it: {problem}",
        "put the record right, for example from a backup; it is planned again by itself then",
    ),
    HoldKind.FREEZE: (
        "the {start} waits until {until}, because of the freeze {name} of {owner} ({reason})",
        "in an emergency, `roadstead rollout override --reason TEXT` lets it start",
    ),
    HoldKind.WINDOW: (
        "the {start} waits until {until}, when the change window {name} lets it start",
        "in an emergency, `roadstead rollout override --reason TEXT` lets it start",
    ),
}
"""The cause and the remedy; "" where the remedy is to correct the file, or no action is needed.

What has a $ depends on what is on hold: a delete, a rebuild or a release.
"""
_BACK = "restore the folder, commit deletionProtection: false, then remove the folder"
_DELETE: dict[str, str] = {
    **{"delete": "delete", "deletes": "deletes", "deleted": "deleted", "releases": "releases"},
    **{"create": "create {new} empty", "created": "created", "which": "", "left": "", "back": _BACK},
    "removes": "removes {clusters}",
}
_REBUILD: dict[str, str] = _DELETE | {
    "delete": "rebuild",
    "which": ", which deletes the cluster first",
    "removes": "deletes {clusters}, for good or to rebuild them",
    "back": "take the annotation back",
}
_RELEASE: dict[str, str] = _DELETE | {
    **{"delete": "release", "deletes": "releases", "deleted": "released", "releases": "starts"},
    **{"create": "attach {new}", "created": "attached"},
    "which": ", which removes nothing that runs there",
    "left": ": nothing that runs there is removed",
}
_NOT_CREATED = (
    "the cluster is not created, because what Flux would apply is invalid: {problem}",
    "correct it, and push",
)
"""Of ``PLATFORM_REFUSED``, where it holds the creation of a cluster, which has no commit to keep."""
_OUTSIDE_AZURE = {
    HoldKind.IMMUTABLE_FIELD: "restore the old value, or add a cluster under another name",
    HoldKind.MOVE: "restore the old value, or remove its folder and add the new cluster under another name",
}
"""The remedy where git has the cluster outside Azure: only one in Azure is rebuilt."""


RETRY = "retry"
"""What starts, in the details of a hold of time: the retry of a failed job."""
NEVER = "a commit lets it"
"""Until when something waits whose window never opens again."""


@dataclass(frozen=True)
class Closure:
    """A freeze, or change windows, that keep something from starting.

    ``name`` is that of the freeze, which ``owner`` answers for with a ``reason``; or of the window that opens
    next. ``until`` is when it may start, None for never. ``since`` is when the freeze began, or when the last
    window closed, None for windows that have long not been open; of a job that waits, since when it does.
    ``staggered``: a window is open, and others start first.
    """

    name: str
    until: datetime | None
    since: datetime | None
    owner: str = ""
    reason: str = ""
    staggered: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        until = moment(self.until) if self.until else NEVER
        if self.owner:
            return f"a freeze holds its job until {until}: {self.name} of {self.owner} ({self.reason})"
        return f"its job waits until {until}, when the change window {self.name} lets it start"

    def hold(self, start: str) -> Hold:
        """Return the hold of an item with what would ``start``."""
        of_freeze = {"owner": self.owner, "reason": self.reason} if self.owner else {}
        since, until = (at.isoformat() if at else "" for at in (self.since, self.until))
        details = {"start": start, "name": self.name, "since": since, "until": until or NEVER, **of_freeze}
        return Hold(HoldKind.FREEZE if self.owner else HoldKind.WINDOW, details)


@dataclass(frozen=True)
class Hold:
    """Why an item is not carried out; ``details`` has the values for its sentences.

    ``reviewers`` there are the teams whose review releases it, if there are any, and ``rebuild`` is the time
    of the rebuild that it holds. A freeze and a change window have their ``name``, what ``start`` they hold,
    ``since`` and ``until`` when, and a freeze its ``owner`` and ``reason``. A suspension has ``until`` when,
    ``owner`` and ``reason``.
    """

    kind: HoldKind
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs_approval(self) -> bool:
        """Whether an operator can release the delete by approving it."""
        return self.kind in _BY_APPROVAL

    @property
    def keeps_pin(self) -> bool:
        """Whether Flux keeps the commit that it has, and all else of the cluster is carried out."""
        return self.kind in _OF_PINS

    @property
    def is_of_time(self) -> bool:
        """Whether it is that of a freeze or of a change window, which takes no approval."""
        return self.kind in _OF_TIME

    @property
    def has_an_end(self) -> bool:
        """Whether it ends by itself at a time; an approval ends that of a suspension sooner."""
        return self.kind in _TO_AN_END

    @property
    def awaits_replacement(self) -> bool:
        """Whether it ends by itself, once the clusters that replace this one are Ready."""
        return self.kind is HoldKind.AWAITS_REPLACEMENT

    @property
    def since(self) -> datetime | None:
        """Since when the item is on hold, None where that is not known."""
        return _moment(self.details.get("since", ""))

    @property
    def until(self) -> datetime | None:
        """When the item starts by itself, None for never."""
        return _moment(self.details["until"]) if self.has_an_end else None

    @property
    def is_of_retry(self) -> bool:
        """Whether it keeps a failed job from starting again."""
        return self.is_of_time and self.details["start"] == RETRY

    @property
    def awaits_deletion(self) -> bool:
        """Whether the cluster is created again once its delete has finished, or has been tried again."""
        return self.kind is HoldKind.AWAITS_DELETION or "created again" in self.details

    @property
    def is_of_rebuild(self) -> bool:
        """Whether it holds a rebuild."""
        return "rebuild" in self.details

    @property
    def is_of_release(self) -> bool:
        """Whether it holds the release of a cluster outside Azure."""
        return "release" in self.details

    @property
    def by_review(self) -> bool:
        """Whether a review that saw the removal of the cluster says enough to release the delete."""
        return not self.is_of_rebuild and self.kind not in (
            *(*_IN_DOUBT, *_OF_PINS),
            HoldKind.SYSTEM_REMOVAL,
        )

    def lasting_since(self, at: datetime) -> Hold:
        """Return the hold with the time since which it lasts."""
        return Hold(self.kind, {**self.details, "since": at.isoformat()})

    def of_rebuild(self, asked: str) -> Hold:
        """Return the hold as that of a rebuild, by the time of its annotation."""
        return Hold(self.kind, {**self.details, "rebuild": asked})

    def of_release(self) -> Hold:
        """Return the hold as that of a release, where it can hold one."""
        fits = "$" in "".join(_SENTENCES[self.kind]) or self.is_of_time
        return Hold(self.kind, {**self.details, "release": "yes"}) if fits else self

    def until_deleted(self) -> Hold:
        """Return the hold as that of a delete that is tried again, after which the cluster is created."""
        return Hold(self.kind, {**self.details, "created again": "yes"})

    def outside_azure(self) -> Hold:
        """Return the hold as that of a change to a cluster that git has outside Azure."""
        return Hold(self.kind, {**self.details, "outside": "yes"})

    def of_creation(self) -> Hold:
        """Return the hold as that of the creation of a cluster."""
        return Hold(self.kind, {**self.details, "creation": "yes"})

    def reviewed_by(self, teams: Sequence[str]) -> Hold:
        """Return the hold with the teams whose review releases it as well, where one may."""
        if not teams or not self.by_review or "{approve}" not in _SENTENCES[self.kind][1]:
            return self
        return Hold(self.kind, {**self.details, "reviewers": " or ".join(teams)})

    @property
    def cause(self) -> str:
        """Why the item is not carried out, without a full stop."""
        only = f"; Azure changes it only {self.details['only']}" if "only" in self.details else ""
        rebuild = "the rebuild is on hold: " if self.is_of_rebuild else ""
        return rebuild + self._sentences[0].format_map({**self.details, **self._values}) + only

    def remedy(self, approve: str = "roadstead approve") -> str:
        """Return what releases the item, "" where the cause implies it; ``approve`` is the command."""
        if "reviewers" in self.details:
            approve += f" or an approving review of its pull request by {self.details['reviewers']}"
        return self._sentences[1].format_map({**self.details, "approve": approve})

    @property
    def _values(self) -> Mapping[str, str]:
        """How many clusters, or namespaces of them, a commit removes that a budget holds; or which version
        stays, and of which node pool.
        """
        removed, get = int(self.details.get("removed", "0")), self.details.get
        counts = {noun: many(removed, noun.removesuffix("s")) for noun in ("clusters", "namespaces")}
        pool = get("field", "").partition("[")[2].partition("]")[0]
        stays = never_back(get("runs", ""), get("git", ""))
        return {**counts, "versions": f"node pool {pool} {stays}" if pool else stays}

    @property
    def _sentences(self) -> tuple[str, str]:
        """The cause and the remedy, before their values are filled in."""
        if self.kind is HoldKind.PLATFORM_REFUSED and "creation" in self.details:
            return _NOT_CREATED
        words = _RELEASE if self.is_of_release else _REBUILD if self.is_of_rebuild else _DELETE
        cause, remedy = (Template(text).safe_substitute(words) for text in _SENTENCES[self.kind])
        return cause, _OUTSIDE_AZURE[self.kind] if "outside" in self.details else remedy

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.cause, self.remedy())))


def _moment(text: str) -> datetime | None:
    return None if text in ("", NEVER) else datetime.fromisoformat(text)
