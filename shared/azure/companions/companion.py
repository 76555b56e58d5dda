"""A companion: a resource of Azure that a manifest asks for with its cluster. Pure.

A class for each kind of companion has what is so of it: its id, its documents, and what makes one differ. An
id follows from the cluster's id, which no other cluster has, and from the manifest. So it says whose a
companion is without any record: nothing else has such an id unless this cluster's steps have written it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

from shared.azure.differences import Difference
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.resource_ids import ClusterId

Fields = Mapping[str, Any]
"""Values by the names of the manifest. None is no value."""
Live = Mapping[str, Json]
"""Azure's documents by their ids in lower case, also those of others."""


@dataclass(frozen=True)
class Companion(ABC):
    """A resource that git wants: its entry's name, its id, its fields, and what is shown of a missing one."""

    noun: ClassVar[str]
    entries: ClassVar[str]
    """The field of a spec that has the entries; the path of a difference begins with it."""
    segment: ClassVar[str]
    """What an id has before the name in Azure, in lower case."""
    has_name_of_entry: ClassVar[bool] = False
    """Whether its name in Azure is that of its entry."""
    is_removed: ClassVar[bool] = True
    """Whether what git no longer has is removed."""
    makes_room: ClassVar[bool] = False
    """Whether what goes has to go before anything comes."""
    is_fixed: ClassVar[bool] = False
    """Whether Azure changes none: one that differs is removed and created again."""

    cluster: ClusterId
    name: str
    id: str
    fields: Fields
    summary: Any

    @classmethod
    @abstractmethod
    def of(cls, desired: Desired) -> Sequence[Self]:
        """Return what git wants of this kind."""

    @classmethod
    def stored(cls, document: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the ids, in lower case, of all that a stored form has; its entries may be invalid by now."""
        spec = document["spec"]
        cluster = ClusterId(spec["subscriptionId"], spec["resourceGroup"], document["name"])
        return tuple(cls.id_of(cluster, entry).lower() for entry in cls._stored(document))

    @classmethod
    def id_of(cls, cluster: ClusterId, entry: Json) -> str:
        """Return the id of a stored entry."""
        return f"{cluster.resource}{cls.segment}{entry['name']}"

    @classmethod
    def ids_among(cls, resources: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of this kind among ids in lower case."""
        return tuple(resource for resource in resources if cls.segment in resource)

    @classmethod
    def is_ours(cls, cluster: ClusterId, resource: str, live: Json) -> bool:
        """Return whether a step of this cluster has written a resource of this kind: its id says so."""
        return False

    @property
    def azure_name(self) -> str:
        """The name in Azure."""
        return self.id.rpartition("/")[2]

    @property
    def key(self) -> str:
        """The id in lower case."""
        return self.id.lower()

    @property
    def path(self) -> str:
        """The path of its difference where it is missing."""
        return f"{self.entries}[{self.name}]"

    def is_twin(self, resource: str, live: Json) -> bool:
        """Return whether another resource says the same, so that Azure takes no second one."""
        return False

    def is_rival(self, resource: str, live: Json) -> bool:
        """Return whether another resource of ours is in the way of this one."""
        return self.is_twin(resource, live)

    def has_twin(self, live: Live) -> bool:
        """Return whether any other resource says the same."""
        return any(key != self.key and self.is_twin(key, document) for key, document in live.items())

    def differing(self, live: Json) -> list[str]:
        """Return the fields in which a resource differs."""
        has, wanted = self.shown(live), self.fields
        names = dict.fromkeys((*wanted, *has))
        return [name for name in names if not self._is_same(name, has.get(name), wanted.get(name))]

    def differences(self, live: Json | None, *, left_alone: bool = False) -> Iterator[Difference]:
        """Yield what differs, whatever a job leaves; ``left_alone``: no job creates the missing one."""
        if live is None:
            yield Difference(self.path, self.summary, None, left_alone)
            return
        has = self.shown(live)
        for name in self.differing(live):
            yield Difference(f"{self.path}.{name}", self.fields.get(name), has.get(name))

    def written(self, live: Json | None, left: Collection[str]) -> Json | None:
        """Return the body to write, None for nothing; what the job leaves keeps the value that Azure has."""
        if self.path in left:
            return None
        if live is None:
            return self._body(self.fields)
        names = [name for name in self.differing(live) if f"{self.path}.{name}" not in left]
        fields = {**self.shown(live), **{name: self.fields.get(name) for name in names}}
        return self._body(fields) if names else None

    def shown(self, live: Json) -> Fields:
        """Return the fields as Azure has them."""
        return live.get("properties") or {}

    def _body(self, fields: Fields) -> Json:
        return {"properties": fields}

    def _is_same(self, field: str, has: Any, wanted: Any) -> bool:
        return bool(has == wanted)

    def _is_next_to(self, resource: str) -> bool:
        """Return whether a resource is at the same place: at one scope, or of one identity."""
        return resource.rpartition(self.segment)[0] == self.key.rpartition(self.segment)[0]

    @classmethod
    def _stored(cls, document: Mapping[str, Any]) -> Sequence[Json]:
        return document["spec"].get(cls.entries) or ()


C = TypeVar("C", bound=Companion)


@dataclass(frozen=True)
class CompanionWrites(Generic[C]):
    """What is done to the companions of a kind: keys that go first, bodies to write, and keys that go last.

    ``foreign`` are those that exist under a name that is not ours: they are left, and count.
    """

    first: Sequence[str]
    bodies: Sequence[tuple[C, Json]]
    last: Sequence[str]
    foreign: Sequence[C]


def writes_of(
    wanted: Sequence[C], live: Live, going: Collection[str], left: Collection[str]
) -> CompanionWrites[C]:
    """Return what is done so that all that git wants is there, and what is ``going`` is not.

    What goes is first where it is in the way of what comes, and otherwise last: so a narrower role is there
    before the wider one goes.
    """
    changing = [
        companion.key
        for companion in wanted
        if companion.key in live and companion.written(live[companion.key], left) is not None
    ]
    first = {
        key
        for key in (*going, *changing)
        for other in wanted
        if (key in live and key != other.key and other.is_rival(key, live[key]))
        or (other.makes_room and key in going)
        or (other.is_fixed and key == other.key)
    }
    remaining = {key: document for key, document in live.items() if key not in first}
    bodies = [(companion, companion.written(remaining.get(companion.key), left)) for companion in wanted]
    foreign = [companion for companion, body in bodies if body is not None and companion.has_twin(remaining)]
    writes = [
        (companion, body) for companion, body in bodies if body is not None and companion not in foreign
    ]
    return CompanionWrites(sorted(first), writes, sorted({*going} - first), foreign)
