"""What a request to a Kubernetes API says besides its body: where, and how to write."""

from __future__ import annotations

from dataclasses import dataclass

from localcloud.kubernetes.world.kinds import Kind


@dataclass(frozen=True)
class At:
    """Where an object is: kind, name, and namespace ("" for cluster-scoped kinds)."""

    kind: Kind
    name: str
    namespace: str = ""


@dataclass(frozen=True)
class Write:
    """How to write: the field manager, force for applies, dry run, and the subresource ("" or "status")."""

    manager: str = "unknown"
    force: bool = False
    dry_run: bool = False
    subresource: str = ""
