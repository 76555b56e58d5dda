"""Who owns a resource: the tags of everything that Roadstead creates, which no commit changes.

The tags with fleet, cluster and repository say what a resource belongs to; a second app with a state of its
own has the same. So a cluster and its group also carry the installation: an id that each state has, and the
branch. A cluster carries its life, which is the uid of the record that created it and says for which rebuild.
An installation that meets the cluster of another one leaves
its contest tag there, so that the other one sees it too, and writes nothing else (docs/decisions/0013).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from shared.frozen import dataclass
from shared.json_tree import Json

POOL_TAG = "roadstead-pool"
"""The manifest's name of a node pool, on a pool that has another name in Azure."""
FLEET_TAG, CLUSTER_TAG, REPOSITORY_TAG = "roadstead-fleet", "roadstead-cluster", "roadstead-repository"
INSTALLATION_TAG, LIFE_TAG = "roadstead-installation", "roadstead-life"
ROLLBACK_TAG = "roadstead-rollback"
"""The rollback that a node pool carried out last, or was created for: see ``shared.language.rollback``."""
CONTEST_TAG = "roadstead-contested-by"
"""The contest tag of an installation on the cluster of another one."""
_CREATED_FOR = re.compile(r"-([0-9]{8}T[0-9]{6}Z)\Z")
MAX_BRANCH = 200
"""A tag's value has at most 256 characters; the branch is there for people, the id decides."""


@dataclass(frozen=True)
class Installation:
    """An app with its own state: ``id`` is that of the state, ``branch`` is what it tracks.

    Without an id: nobody knows who created a cluster whose tag somebody removed.
    """

    id: str
    branch: str = ""

    @classmethod
    def of(cls, value: str) -> Installation:
        """Return the installation that the value of a tag names."""
        name, _, branch = value.partition("@")
        return cls(name, branch)

    def __str__(self) -> str:
        return f"{self.id}@{self.branch[:MAX_BRANCH]}"


@dataclass(frozen=True)
class OwnerTags:
    """The tags of a cluster's resources; ``previous`` is the repository's name before a rename.

    Two apps can have the same fleet name by mistake: the repository distinguishes their clusters, and the
    installation two apps of one repository. ``known``: the record has seen our tags on the cluster.
    ``overruled`` are the ids that an operator's takeover overrules, ``predecessors`` all that one ever did.
    """

    fleet: str
    repository: str
    cluster: str
    previous: str = ""
    installation: Installation | None = None
    life: str = ""
    known: bool = True
    overruled: tuple[str, ...] = ()
    predecessors: tuple[str, ...] = ()

    @property
    def tags(self) -> dict[str, str]:
        """The tags of a resource that belongs to this cluster of this fleet."""
        return {**self._identity, REPOSITORY_TAG: self.repository.lower()}

    @property
    def group_tags(self) -> dict[str, str]:
        """The tags of a resource group that this installation creates."""
        return {**self.tags, **({INSTALLATION_TAG: str(self.installation)} if self.installation else {})}

    def cluster_tags(self, live: Json | None = None) -> dict[str, str]:
        """Return the tags of the cluster; an existing one keeps its life."""
        life = (tag(live, LIFE_TAG) if live else None) or self.life
        return {**self.group_tags, **({LIFE_TAG: life} if life and self.installation else {})}

    @property
    def _identity(self) -> dict[str, str]:
        return {FLEET_TAG: self.fleet, CLUSTER_TAG: self.cluster}

    def owns(self, resource: Json) -> bool:
        """Return whether a resource carries the tags of this fleet and cluster; Azure may change key case."""
        tagged = all(tag(resource, key) == value for key, value in self._identity.items())
        return tagged and self._from_our_repository(resource)

    def rivals(self, cluster: Json) -> tuple[Installation, ...]:
        """Return the other installations that the tags of a cluster of ours name, unless overruled.

        A cluster without an installation is ours if the record has seen our tags on it.
        """
        return tuple(
            installation for installation in self._named(cluster) if installation.id not in self.overruled
        )

    def _named(self, cluster: Json) -> Iterator[Installation]:
        mine = self.installation.id if self.installation else None
        creator = tag(cluster, INSTALLATION_TAG)
        if creator is None and not self.known:
            yield Installation("")
        for value in (creator, tag(cluster, CONTEST_TAG)):
            if value is not None and Installation.of(value).id != mine:
                yield Installation.of(value)

    def is_by_us(self, cluster: Json) -> bool:
        """Return whether our installation is the owner of a cluster, whoever else has marked it."""
        creator = tag(cluster, INSTALLATION_TAG)
        return self.installation is not None and Installation.of(creator or "").id == self.installation.id

    def is_contested(self, cluster: Json) -> bool:
        """Return whether a cluster carries the contest tag of an installation, ours or another one."""
        return tag(cluster, CONTEST_TAG) is not None

    def is_our_life(self, cluster: Json) -> bool:
        """Return whether a cluster lives the life that the record knows; one without the tag does."""
        return tag(cluster, LIFE_TAG) in (None, self.life)

    def created_group(self, group: Json) -> bool:
        """Return whether this installation, or one that it took over, created a group."""
        creator = tag(group, INSTALLATION_TAG)
        mine = self.installation.id if self.installation else None
        ours = self.known if creator is None else Installation.of(creator).id in (mine, *self.predecessors)
        return tag(group, FLEET_TAG) == self.fleet and self._from_our_repository(group) and ours

    def _from_our_repository(self, resource: Json) -> bool:
        repository = (tag(resource, REPOSITORY_TAG) or self.repository).lower()
        return repository in (self.repository.lower(), self.previous.lower())

    def is_others(self, resource: Json) -> bool:
        """Return whether a resource carries the tags of another fleet, or of another cluster of this one."""
        return not self.owns(resource) and any(tag(resource, key) is not None for key in self._identity)

    def describe_tags(self, resource: Json) -> str:
        """Return a phrase with the tags that our resources have, and those of this one."""
        ours = self._from_our_repository(resource)
        expected_tags = self._identity if ours else self.tags
        expected = " and ".join(f"{key}={value}" for key, value in expected_tags.items())
        found = " and ".join(
            f"no {key}" if (value := tag(resource, key)) is None else f"{key}={value}"
            for key in expected_tags
        )
        renamed = "" if ours else "; set REPOSITORY_PREVIOUS after a rename of the repository"
        return f"expected the tags {expected}, found {found}{renamed}"

    def pool_tags(self, pool: str, azure_name: str) -> dict[str, str]:
        """Return the tags for a node pool of the manifest that has this name in Azure."""
        return self.tags if pool == azure_name else {**self.tags, POOL_TAG: pool}

    def pool_of(self, profile: Json) -> str:
        """Return the manifest's name of the pool that a pool in Azure serves."""
        return (self.owns(profile) and tag(profile, POOL_TAG)) or str(profile["name"])


def tag(resource: Json, key: str) -> str | None:
    """Return the value of a tag, None where there is none; Azure may change the case of its key."""
    tags = resource.get("tags") or {}
    return next((str(value) for name, value in tags.items() if name.lower() == key), None)


def rollback_tag(last_used: datetime) -> str:
    """Return the value of the tag of a rollback; that of a later one is greater."""
    return f"{last_used.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def new_life(unique: str, rebuild: str) -> str:
    """Return the name of the life that a cluster begins.

    ``rebuild`` is the time of its manifest's annotation of that name in UTC, "" for none.
    """
    return f"{unique}-{datetime.fromisoformat(rebuild).astimezone(UTC):%Y%m%dT%H%M%SZ}" if rebuild else unique


def created_for(life: str) -> str:
    """Return the time of the rebuild for which a life was created, "" for none: a later time is greater."""
    found = _CREATED_FOR.search(life)
    try:
        moment = datetime.strptime(found[1], "%Y%m%dT%H%M%S%z") if found else None
    except ValueError:
        return ""
    return moment.astimezone(UTC).isoformat(timespec="seconds") if moment else ""


# The ids of the app's requests, by which it knows in Azure's events what followed from them.


def correlation_id(random: str, app: str) -> str:
    """Return an id for a request that ``app`` sends; ``random`` are 16 hexadecimal digits or more.

    Azure takes it over (the header x-ms-correlation-request-id), and what it does in consequence has it too.
    """
    digits = f"{random[:16]}{_mark(random[:16], app)}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def is_marked(correlation: str, app: str) -> bool:
    """Return whether an id, in lower case, is of a request of ``app``; anybody may use one."""
    digits = correlation.replace("-", "")
    return len(digits) == 32 and digits[16:] == _mark(digits[:16], app)


def _mark(random: str, app: str) -> str:
    return hashlib.sha256(f"{app}|{random}".encode()).hexdigest()[:16]
