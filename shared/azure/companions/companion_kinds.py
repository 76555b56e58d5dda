"""All kinds of companions: which one a path or an id is of, and what a change of a manifest takes away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.azure.companions.companion import Companion
from shared.azure.companions.identity_access import CredentialCompanion, IdentityCompanion, RoleCompanion
from shared.azure.companions.maintenance_windows import WindowCompanion
from shared.azure.companions.managed_namespaces import NamespaceCompanion
from shared.azure.companions.policies import PolicyCompanion

KINDS: tuple[type[Companion], ...] = (
    WindowCompanion,
    PolicyCompanion,
    IdentityCompanion,
    CredentialCompanion,
    RoleCompanion,
    NamespaceCompanion,
)


def kind_of(path: str) -> type[Companion] | None:
    """Return the kind of the companion that a field is of, None for a field of the cluster itself."""
    entries = path.partition("[")[0]
    return next((kind for kind in KINDS if kind.entries == entries), None)


def companions_to_remove(
    before: Mapping[str, Any], after: Mapping[str, Any], earlier: Sequence[str]
) -> tuple[str, ...]:
    """Return the ids of what one stored form has and the next has not; ``earlier`` still had to go."""
    present = set(_removable(after))
    former = dict.fromkeys((*earlier, *_removable(before)))
    return tuple(resource for resource in former if resource not in present)


def _removable(document: Mapping[str, Any]) -> list[str]:
    return [resource for kind in KINDS if kind.is_removed for resource in kind.stored(document)]
