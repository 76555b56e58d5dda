"""What a Kustomization reports, and what it deletes: notes, because each is right for somebody.

Sources: ``checkHealth`` in ``kustomization_controller.go``: without ``wait`` and ``healthChecks`` nothing is
looked at; ``spec.prune`` is required, and false keeps what leaves git.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.language.resolve.problems import Path
from shared.platform.inventory import Owner
from shared.platform.rules.finding import ClusterPlatform, Finding, full_name, named


def reports_early(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the Kustomizations that are Ready as soon as they have applied, as one note."""
    owners = platform.inventory.owners.values()
    early = [owner for owner in owners if not (owner.spec.get("wait") or owner.spec.get("healthChecks"))]
    yield from _note(
        early,
        ("spec",),
        "Ready as soon as applied, whatever becomes of the objects; add wait: true, or healthChecks",
    )


def keeps_everything(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the Kustomizations that delete nothing of what leaves git, as one note."""
    keeping = [owner for owner in platform.inventory.owners.values() if not owner.prunes]
    yield from _note(
        keeping, ("spec", "prune"), "without prune: what leaves git stays on the clusters; add prune: true"
    )


def _note(owners: Sequence[Owner], path: Path, message: str) -> Iterator[Finding]:
    if owners:
        first = min(owners, key=lambda owner: owner.id)
        names = named(sorted(full_name(owner.id) for owner in owners))
        what = "Kustomizations" if len(owners) > 1 else "Kustomization"
        yield Finding(first.file, first.id, path, f"{what} {names}: {message}", is_note=True)
