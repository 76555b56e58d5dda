"""What Flux pulls and has applied on the clusters, past every port, and how a person moves a pin by hand."""

from __future__ import annotations

from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At
from shared.json_tree import Json
from simulation.platforms import GuardedContents

BRANCHES = "roadstead/pin/"
_API = "source.toolkit.fluxcd.io/v1"
_SOURCE, _ARTIFACT = (_API, "GitRepository"), (_API, "OCIRepository")
_SYNC = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
_NAME = "flux-system"


def pinned_commit(world: KubernetesWorld) -> str:
    """Return the commit, or the digest, that Flux pulls on a cluster, "" while it pulls none."""
    found = _found(world, _SOURCE) or _found(world, _ARTIFACT)
    ref = (found or {}).get("spec", {}).get("ref") or {}
    return str(ref.get("commit") or ref.get("digest") or "") or pulled_branch(world).rpartition("/")[2]


def pulled_branch(world: KubernetesWorld) -> str:
    """Return the branch of a pin that Flux pulls on a cluster, "" where it pulls none."""
    ref = (_found(world, _SOURCE) or {}).get("spec", {}).get("ref") or {}
    branch = str(ref.get("branch") or "")
    return branch if branch.startswith(BRANCHES) else ""


def has_source(world: KubernetesWorld) -> bool:
    """Return whether Flux has what it pulls from on a cluster, pinned or not."""
    return _found(world, _SOURCE) is not None or _found(world, _ARTIFACT) is not None


def applied_commit(world: KubernetesWorld) -> str:
    """Return the commit that Flux has applied last on a cluster, "" for none."""
    found = _found(world, _SYNC)
    revision = str(((found or {}).get("status") or {}).get("lastAppliedRevision") or "")
    digest = revision.rpartition("sha256:")
    return "".join(digest[1:]) if digest[1] else revision.rpartition("sha1:")[2]


def uid_of(world: KubernetesWorld, guarded: GuardedContents) -> str:
    """Return the uid that what is guarded has on a cluster, "" where it is not there."""
    kind = world.kind(guarded.api_version, guarded.kind)
    found = kind and world.find(At(kind, guarded.object_name, guarded.namespace))
    return str(found["metadata"]["uid"]) if found else ""


def move_by_hand(world: KubernetesWorld, fleet: str, commit: str) -> None:
    """Let Flux pull a commit, as a person does with kubectl on a cluster of a fleet."""
    live = _found(world, _SOURCE) or _found(world, _ARTIFACT)
    kind = world.kind(_API, live["kind"]) if live else None
    if kind is not None and live is not None:
        named = "digest" if live["kind"] == _ARTIFACT[1] else "commit"
        pinned = str(live["spec"].get("ref", {}).get("branch", "")).startswith(BRANCHES)
        ref = {"branch": f"{BRANCHES}{fleet}/{commit}"} if pinned else {named: commit}
        spec = {**live["spec"], "ref": ref}
        world.replace(At(kind, _NAME, _NAME), {**live, "spec": spec})


def _found(world: KubernetesWorld, of: tuple[str, str]) -> Json | None:
    kind = world.kind(*of)
    return world.find(At(kind, _NAME, _NAME)) if kind is not None else None
