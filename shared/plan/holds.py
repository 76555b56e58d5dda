"""Why a plan does not change a cluster, as a value; only this module describes the reason in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from shared.frozen import dataclass, field
from shared.kubernetes_versions import never_back
from shared.plan.hold_kinds import HoldKind
from shared.sentences import many

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
    HoldKind.INVALID_FLEET_FILE: ("nothing is deleted while fleet.yaml is invalid", ""),
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
        "it is still being deleted",
        "it will be created again once the deletion has finished; it stays if that has not started",
    ),
    HoldKind.BEING_DELETED: ("it is being deleted", ""),
    HoldKind.SUSPENSION: (
        "the cluster is suspended by {owner} until {until}",
        "the delete starts by itself then, with the other guards of a delete; {approve} releases it sooner",
    ),
    HoldKind.LIFETIME_HOLD: (
        "{owner} holds the cluster until {until} ({reason})",
        "the delete starts by itself then, with the other guards of a delete; {approve} releases it sooner",
    ),
    HoldKind.DELETION_PROTECTION: (
        "deletionProtection is on",
        "{approve} releases the delete; or restore the folder, commit deletionProtection: false,"
        " then remove the folder",
    ),
    HoldKind.DELETE_BUDGET: (
        "the commit removes {clusters}, guards.deleteBudget in fleet.yaml allows {budget}",
        "{approve} releases the deletes, or a commit that raises the budget",
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
    HoldKind.RENAME: (
        "it looks like a rename of {old} to {new}, which would delete {old} and create {new} empty: both have"
        " {common}",
        "if they are two clusters, {approve} releases both; otherwise restore the folder {old}",
    ),
    HoldKind.RENAMED: (
        "it looks like a rename of {old} to {new}, which would delete {old} and create {new} empty: both have"
        " {common}",
        "if they are two clusters, {approve} releases both; otherwise restore the folder {old}",
    ),
    HoldKind.UNREAD: (
        "a commit that is half invalid deletes nothing, because nobody knows what the manifest of {new}"
        " says of {old}",
        "correct the manifest or restore the folder {old}; {approve} releases the delete",
    ),
    HoldKind.AWAITS_REPLACEMENT: (
        "its delete waits until {new}, which replaces it, is Ready",
        "it starts by itself then, with the guards of any delete; `roadstead why {first}` says how far that"
        " is; to keep the cluster, restore its folder",
    ),
    HoldKind.REPLACEMENT_GONE: (
        "{new} was to replace it, and does not any more: it was removed, or no longer names it",
        "{approve} releases the delete; or restore the folder, or name it in what is to replace it",
    ),
    HoldKind.REPLACEMENT_UNKNOWN: (
        "{new} says that it replaces {named}, and the fleet has no such cluster: {old} may be meant",
        "{approve} releases the delete; or correct the annotation of {new}",
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
"""The cause and the remedy; "" where the remedy is to correct the file, or no action is needed."""

_OF_REBUILDS: Mapping[HoldKind, tuple[str, str]] = {
    HoldKind.SUSPENSION: (
        "the cluster is suspended by {owner} until {until}",
        "the rebuild starts by itself then, with the other guards of a delete; {approve} releases it sooner",
    ),
    HoldKind.LIFETIME_HOLD: (
        "{owner} holds the cluster until {until} ({reason})",
        "the rebuild starts by itself then, with the other guards of a delete; {approve} releases it sooner",
    ),
    HoldKind.DELETION_PROTECTION: (
        "deletionProtection is on",
        "{approve} releases the rebuild, which deletes the cluster first; or take the annotation back",
    ),
    HoldKind.DELETE_BUDGET: (
        "the commit deletes {clusters}, for good or to rebuild them, and guards.deleteBudget in"
        " fleet.yaml allows {budget}",
        "{approve} releases the deletes, or a commit that raises the budget",
    ),
}
"""The same for the guards of a delete where they hold a rebuild."""

_OF_RELEASES: Mapping[HoldKind, tuple[str, str]] = {
    HoldKind.INVALID_FLEET_FILE: ("no cluster is released while fleet.yaml is invalid", ""),
    HoldKind.AWAITS_DELETION: (
        "it is still being released",
        "it will be attached again once that has finished; it stays if that has not started",
    ),
    HoldKind.BEING_DELETED: ("it is being released: nothing that runs there is removed", ""),
    HoldKind.SUSPENSION: (
        "the cluster is suspended by {owner} until {until}",
        "the release starts by itself then, with the other guards of a delete; {approve} starts it sooner",
    ),
    HoldKind.DELETION_PROTECTION: (
        "deletionProtection is on",
        "{approve} starts the release, which removes nothing that runs there; or restore the folder, commit"
        " deletionProtection: false, then remove the folder",
    ),
    HoldKind.DELETE_BUDGET: (
        "the commit removes {clusters}, guards.deleteBudget in fleet.yaml allows {budget}",
        "{approve} starts the release, which removes nothing that runs there, or a commit that raises the"
        " budget",
    ),
    HoldKind.RENAME: (
        "it looks like a rename of {old} to {new}, which would release {old} and attach {new}",
        "{approve} starts both; or restore the folder {old}",
    ),
    HoldKind.RENAMED: (
        "it looks like a rename of {old} to {new}, which would release {old} and attach {new}",
        "{approve} starts both; or restore the folder {old}",
    ),
    HoldKind.UNREAD: (
        "a commit that is half invalid releases nothing, because nobody knows what the manifest of {new}"
        " says of {old}",
        "correct the manifest or restore the folder {old}; {approve} starts the release",
    ),
    HoldKind.AWAITS_REPLACEMENT: (
        "its release waits until {new}, which replaces it, is Ready",
        "it starts by itself then, with the guards of any delete; `roadstead why {first}` says how far that"
        " is; to keep the cluster, restore its folder",
    ),
    HoldKind.REPLACEMENT_GONE: (
        "{new} was to replace it, and does not any more: it was removed, or no longer names it",
        "{approve} starts the release; or restore the folder, or name it in what is to replace it",
    ),
    HoldKind.REPLACEMENT_UNKNOWN: (
        "{new} says that it replaces {named}, and the fleet has no such cluster: {old} may be meant",
        "{approve} starts the release; or correct the annotation of {new}",
    ),
}
"""The same where they hold the release of a cluster outside Azure."""


_OF_CREATIONS: Mapping[HoldKind, tuple[str, str]] = {
    HoldKind.PLATFORM_REFUSED: (
        "the cluster is not created, because what Flux would apply is invalid: {problem}",
        "correct it, and push",
    ),
}
"""The same where they hold the creation of a cluster, which has no commit to keep."""


_BEFORE: Mapping[str, str] = {"common": "the same spec"}
"""Details that a plan of an earlier version does not have."""
RETRY = "retry"
"""What starts, in the details of a hold of time: the retry of a failed job."""
NEVER = "a commit lets it"
"""Until when a hold of time lasts whose window never opens again."""


@dataclass(frozen=True)
class Postponement:
    """What keeps a cluster beyond its end: until when, who asked for it and why.

    ``of`` is the end that git gave the cluster then.
    """

    until: datetime
    by: str
    reason: str
    of: datetime


@dataclass(frozen=True)
class Hold:
    """Why an item is not carried out; ``details`` has the values for its sentences.

    ``reviewers`` there are the teams whose review releases it, if there are any, and ``rebuild`` is the time
    of the rebuild that it holds. A freeze and a change window have their ``name``, what ``start`` they hold,
    ``since`` and ``until`` when, and a freeze its ``owner`` and ``reason``. A suspension has ``until`` when,
    ``owner`` and ``reason``. An invalid manifest whose record cannot be stored is ``too large``.
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
    def is_of_size(self) -> bool:
        """Whether the manifest is invalid because its record cannot be stored, as a hand-over found."""
        return "too large" in self.details

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
        fits = self.kind in _OF_RELEASES or self.is_of_time
        return Hold(self.kind, {**self.details, "release": "yes"}) if fits else self

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
        return rebuild + self._sentences[0].format_map({**_BEFORE, **self.details, **self._values}) + only

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
        counts = {each: many(removed, each.removesuffix("s")) for each in ("clusters", "namespaces")}
        pool = get("field", "").partition("[")[2].partition("]")[0]
        stays = never_back(get("runs", ""), get("git", ""))
        return {**counts, "versions": f"node pool {pool} {stays}" if pool else stays}

    @property
    def _sentences(self) -> tuple[str, str]:
        """The cause and the remedy, before their values are filled in."""
        usual = _SENTENCES[self.kind]
        if "creation" in self.details:
            return _OF_CREATIONS.get(self.kind, usual)
        if self.is_of_release:
            return _OF_RELEASES.get(self.kind, usual)
        return _OF_REBUILDS.get(self.kind, usual) if self.is_of_rebuild else usual

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.cause, self.remedy())))


def _moment(text: str) -> datetime | None:
    return None if text in ("", NEVER) else datetime.fromisoformat(text)
