"""How a cluster was compared with git last: what it has beyond git, and what of that somebody accepted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from shared.azure.differences import Difference
from shared.cluster.divergence.drift import DriftedField, value_text
from shared.frozen import dataclass, replace
from shared.kubernetes_versions import is_version

_TAINTS = re.compile(r"nodePools\[[^\]]*\]\.nodeTaints")


@dataclass(frozen=True)
class AcceptedField:
    """A field below ``spec`` that somebody added to a cluster, and somebody accepted.

    ``live`` is the value that was accepted, as a drifted field has it. ``names`` are what the cluster has
    there beyond git.
    """

    path: str
    live: str
    names: tuple[str, ...]
    by: str
    at: datetime
    reason: str = ""


@dataclass(frozen=True)
class Verification:
    """How Azure showed a cluster when it was compared last.

    ``digest`` is that of the cluster if nothing differed, "" otherwise: such a cluster is compared again with
    each sweep. ``unmanaged`` names the tags, labels, taints and node pools that git does not have and that
    the cluster had when it became Ready, or that are ``accepted``. ``added`` names those that came
    afterwards: they count until git has them, they no longer exist, or somebody accepts them, whatever is
    committed meanwhile.
    """

    digest: str = ""
    unmanaged: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    accepted: tuple[AcceptedField, ...] = ()

    def now(self, beyond: Mapping[str, Difference]) -> Verification:
        """Return it without the acceptances that have ended, by what the cluster has ``beyond`` git now.

        One ends when Azure has another value, when what was added no longer exists, and when git has it. What
        still exists counts again.
        """
        shown = {difference.path: value_text(difference.live) for difference in beyond.values()}
        ended = [field for field in self.accepted if shown.get(field.path) != field.live]
        if not ended:
            return self
        names = {name for field in ended for name in field.names}
        return replace(
            self,
            unmanaged=tuple(name for name in self.unmanaged if name not in names),
            added=(*self.added, *sorted(names & beyond.keys())),
            accepted=tuple(field for field in self.accepted if field not in ended),
        )

    def compared(self, digest: str, beyond: Iterable[str]) -> Verification:
        """Return it after a comparison that showed a ``digest``, and these names of what is beyond git."""
        added = tuple(name for name in beyond if name not in self.unmanaged)
        return replace(self, digest=digest, added=added)

    def names_of(self, field: DriftedField) -> tuple[str, ...]:
        """Return the names of what somebody added at a field, none for a difference of another kind."""
        if not field.left_alone or is_version(field.path):
            return ()
        many = f"{field.path}." if _TAINTS.fullmatch(field.path) else None
        return tuple(name for name in self.added if name == field.path or (many and name.startswith(many)))

    def accepting(self, field: DriftedField, by: str, at: datetime, reason: str) -> Verification:
        """Return it with what somebody added at a field as accepted, with the value that it has."""
        names = self.names_of(field)
        return replace(
            self,
            unmanaged=tuple(sorted({*self.unmanaged, *names})),
            added=tuple(name for name in self.added if name not in names),
            accepted=(*self.accepted, AcceptedField(field.path, field.live, names, by, at, reason)),
        )


def known_beyond(verified: Verification | None, beyond: Mapping[str, Difference]) -> tuple[str, ...] | None:
    """Return the names that count no more of what a cluster has beyond git now; None where nobody looked."""
    return verified.now(beyond).unmanaged if verified else None
