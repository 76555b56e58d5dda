"""Whether a head is one of the repository and the branch that the fleet is planned from.

A repository's name can pass to somebody else: its owner renames or deletes it, and another one takes the
name. The host's id of a repository never changes. The first plan records the id and the branch; from then
on nothing is planned, deleted or reported from any other, until an operator accepts it.
"""

from __future__ import annotations

from shared.cluster.failures.errors import OtherRepository
from shared.ports import BranchHead, FleetRecord, Ports, Source


def source_of(read: BranchHead, ports: Ports) -> Source:
    """Return the repository and the branch of a head."""
    return Source(read.repository, ports.config.branch)


def is_own(read: BranchHead, fleet: FleetRecord, ports: Ports) -> bool:
    """Return whether a head is of the fleet's source, or the fleet has none yet."""
    return fleet.origin.source in (None, source_of(read, ports))


def require_own(read: BranchHead, fleet: FleetRecord, ports: Ports) -> None:
    """Raise OtherRepository for a head of another source."""
    known, found = fleet.origin.source, source_of(read, ports)
    if known is None or known == found:
        return
    if known.repository != found.repository:
        raise _other(known, found, ports)
    raise OtherRepository(f"the fleet was planned from the branch {known.branch}, not from {found.branch}")


def require_name(fleet: FleetRecord, ports: Ports) -> None:
    """Raise OtherRepository where the last read of the branch was that of a repository with our name."""
    known, found = fleet.origin.source, fleet.origin.other_source
    if known is not None and found is not None and known.repository != found.repository:
        raise _other(known, found, ports)


def _other(known: Source, found: Source, ports: Ports) -> OtherRepository:
    what = f"{ports.config.repository} is another repository on {ports.git_host.name} than before"
    return OtherRepository(f"{what}: its id is {found.repository}, not {known.repository}")
