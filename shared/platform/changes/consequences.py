"""What a change of inventories does on a cluster: by its effect, and not by its sign.

The rules are those of kustomize-controller (``internal/controller/kustomization_controller.go``: ``prune``,
``deleteObjects``, ``finalizerShouldDeleteResources``) and of fluxcd/pkg ``ssa`` (``shouldForceApply``,
``shouldSkipApply``), read at kustomize-controller 1.9:

- A Kustomization applies first, and then deletes what left its inventory, if ``spec.prune`` is true. When it
  is deleted itself, ``deletionPolicy`` decides; a suspended one deletes nothing.
- An object that has ``prune: disabled`` on the cluster stays. ``reconcile: disabled`` and ``ssa: Ignore``
  would keep it too; from git they never come to the cluster, because such an object is not applied.
- Before it deletes, it compares the labels of the owner. So an object that another Kustomization has applied
  meanwhile stays; which of the two comes first is a race (fluxcd/kustomize-controller#338, #339). It counts
  as deleted here.
- Each Kustomization reconciles a new commit as soon as its source has it, with the spec that it has then. So
  a spec that the same commit changes may come too late: the more dangerous one of both counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.frozen import replace
from shared.json_tree import Json
from shared.platform.changes.comparison import (
    Comparison,
    ObjectChange,
    OwnerChange,
    is_unknown,
    object_differences,
)
from shared.platform.changes.effects import (
    DESTROYING,
    PRUNED,
    Cause,
    Consequence,
    ExplainedFate,
    Fate,
    end_with,
)
from shared.platform.changes.fixed_fields import (
    Definitions,
    defaulted_field,
    fixed_by_definitions,
    fixed_field,
    lost_version,
)
from shared.platform.changes.objects import (
    is_asleep,
    is_definition,
    is_marked,
    is_owner,
    is_protected,
    is_skipped,
    is_suspended_release,
    kind_defined,
    loses_claims,
    mapping_at,
    other_release,
    stem,
    stops,
)
from shared.platform.inventory import BuiltObject, ObjectId, Owner


def consequences(comparison: Comparison) -> tuple[Consequence, ...]:
    """Return what a change does, Kustomization by Kustomization; what changes nothing is not there."""
    return tuple(_Judge(comparison).all())


_ELSEWHERE: ExplainedFate = (Fate.UNKNOWN, Cause.ELSEWHERE, "")
_NOTHING: ExplainedFate = (Fate.UNREACHED, Cause.UNBUILT, "")
"""What applies it is refused as a whole."""


class _Judge:
    """Judges one comparison; what became of a Kustomization decides about what it owns."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._before, self._after = comparison.before.owners, comparison.after.owners
        self._names = comparison.places_before.keys() | self._before.keys()
        self._fates: dict[ObjectId, ExplainedFate | None] = {}
        found = (
            built.manifest
            for owners in (self._before, self._after)
            for owner in owners.values()
            for name, built in owner.objects.items()
            if is_definition(name)
        )
        self._definitions: Definitions = fixed_by_definitions(found)

    def all(self) -> Iterator[Consequence]:
        for name in sorted(self._before.keys() | self._after.keys()):
            change = self._comparison.owners.get(name)
            if change is not None or self._fate(name) is not None:
                yield from self._of_owner(name, change)

    # A Kustomization

    def _of_owner(self, name: ObjectId, change: OwnerChange | None) -> Iterator[Consequence]:
        before, after = self._before.get(name), self._after.get(name)
        fate = self._fate(name)
        if fate == _NOTHING:
            return
        if before is not None and fate is not None:
            yield self._end_of_owner(before, fate, change)
        elif after is not None and before is None:
            broken = _is_broken(after) and not self._new_owner_sleeps(name)
            yield _broken(after) if broken else self._new_owner(name, change)
        elif before is not None and after is not None and change is not None:
            yield from self._same_owner(before, after, change)
        if change is None or (before is not None and self._is_emptied(before)):
            return
        for object_change in change.objects:
            if not self._is_told(object_change):
                found = self._of_object(name, object_change)
                if found is not None:
                    yield found

    def _is_told(self, change: ObjectChange) -> bool:
        """Return whether an object is a Kustomization that has a consequence of its own."""
        of_spec = change.sign != "~" or any(field.path.startswith("spec") for field in change.fields)
        return of_spec and (change.id in self._before or change.id in self._after)

    def _is_emptied(self, before: Owner) -> bool:
        """Return whether a Kustomization that stays would lose all of its objects."""
        after = self._after.get(before.id)
        if after is None or after.unbuilt or after.objects or self._fate(before.id) is not None:
            return False
        ends = (self._end_in(before, after, built.manifest) for built in before.objects.values())
        return any(end[0] in DESTROYING for end in ends)

    def _end_of_owner(self, owner: Owner, fate: ExplainedFate, change: OwnerChange | None) -> Consequence:
        effect, cause, detail = fate
        takes = self._taken(owner.id) if effect in DESTROYING else ()
        if effect in DESTROYING and not takes and owner.objects:
            end = self._end_of_object(owner, next(iter(owner.objects)))
            cause, detail = end[1:] if end else (cause, detail)
        other = change.renamed if change else None
        return Consequence(
            owner.id, owner.id, effect, cause, detail, takes=takes, other=other, manifest=_document(owner)
        )

    def _new_owner(self, name: ObjectId, change: OwnerChange | None) -> Consequence:
        parents = self._comparison.places_after.get(name, ())
        asleep = [self._after[parent] for parent in parents if self._sleeps(parent)]
        other = change.renamed if change else None
        if parents and len(asleep) == len(parents):
            return Consequence(name, name, Fate.UNREACHED, Cause.SUSPENDED, asleep[0].file, other=other)
        effect, cause, _ = _ELSEWHERE if name in self._names else (Fate.ADDED, Cause.NONE, "")
        return Consequence(name, name, effect, cause, other=other)

    def _same_owner(self, before: Owner, after: Owner, change: OwnerChange) -> Iterator[Consequence]:
        name = before.id
        unknown = is_unknown(before, after)
        if unknown and _is_broken(after):
            yield replace(_broken(after), fields=change.fields)
            return
        if unknown:
            takes = self._taken(name)
            reason = after.unbuilt or before.unbuilt
            may_prune = self._end_in(before, after, {}) == PRUNED
            lost = takes or (before.unbuilt and after.unbuilt and may_prune)
            effect = Fate.UNKNOWN if lost else Fate.CHANGED
            yield Consequence(
                name, name, effect, Cause.UNBUILT, reason, change.fields, takes, manifest=_document(before)
            )
            return
        if self._is_emptied(before):
            yield Consequence(name, name, Fate.EMPTIED, detail=after.path, fields=change.fields)
            return
        if not change.fields:
            return
        parents = self._comparison.places_after.get(name, ())
        asleep = [self._after[parent] for parent in parents if self._sleeps(parent)]
        if parents and len(asleep) == len(parents):
            yield Consequence(name, name, Fate.UNREACHED, Cause.SUSPENDED, asleep[0].file, change.fields)
            return
        resumes = before.is_suspended and not after.is_suspended
        stops_now = after.is_suspended and not before.is_suspended
        is_forced = bool(after.spec.get("force")) and not before.spec.get("force")
        forced = Cause.FORCED if is_forced else Cause.NONE
        cause = Cause.RESUMED if resumes else Cause.SUSPENDED if stops_now else forced
        yield Consequence(name, name, Fate.CHANGED, cause, fields=change.fields)

    def _fate(self, name: ObjectId) -> ExplainedFate | None:
        """Return what becomes of a Kustomization that leaves git or its owner; None for one that stays."""
        if name not in self._fates:
            self._fates[name] = None  # one that applies itself asks for itself
            self._fates[name] = self._decide_fate(name)
        return self._fates[name]

    def _decide_fate(self, name: ObjectId) -> ExplainedFate | None:
        if name not in self._before:
            return None
        parents = self._comparison.places_before.get(name, ())
        ends = [self._end_of_object(self._before[parent], name) for parent in parents]
        deleted = next((end for end in ends if end and end[0] in DESTROYING), None)
        if deleted is not None:
            return (Fate.MOVED, *deleted[1:]) if name in self._after else deleted
        if name in self._after:
            return None
        if not parents:
            return PRUNED
        remaining = next((end for end in ends if end), None)
        return remaining or _ELSEWHERE

    def _sleeps(self, name: ObjectId) -> bool:
        """Return whether a Kustomization is suspended before and after: it applies nothing of this."""
        before, after = self._before.get(name), self._after.get(name)
        return bool(after and after.is_suspended and (before is None or before.is_suspended))

    # An object

    def _end_of_object(self, owner: Owner, name: ObjectId) -> ExplainedFate | None:
        """Return what becomes of an object that leaves a Kustomization or goes with it; None if it stays."""
        fate, after = self._fate(owner.id), self._after.get(owner.id)
        manifest = owner.objects[name].manifest
        if fate is not None and (fate[0] not in DESTROYING or fate[0] is Fate.UNKNOWN):
            return fate
        end = end_with(owner, manifest) if fate is not None else None
        if end != PRUNED and after is not None and name not in after.objects:  # one that moves goes on
            end = self._end_by(owner, after, manifest)
        if end == PRUNED and self._comparison.places_after.get(name):
            return (Fate.MOVED, Cause.NONE, "")
        return end

    def _end_by(self, before: Owner, after: Owner, manifest: Json) -> ExplainedFate:
        """Return what becomes of an object that a Kustomization does not have any more."""
        if self._is_emptied(before) or _is_broken(after):
            return _NOTHING
        if after.unbuilt:
            return (Fate.UNKNOWN, Cause.UNBUILT, after.unbuilt)
        return self._end_in(before, after, manifest)

    def _end_in(self, before: Owner, after: Owner, manifest: Json) -> ExplainedFate:
        """Return what becomes of an object that leaves a Kustomization which stays."""
        if before.is_suspended and after.is_suspended:
            return (Fate.UNREACHED, Cause.SUSPENDED, after.file)
        if not (before.prunes or after.prunes):
            return (Fate.KEPT, Cause.PRUNE_OFF, after.file)
        return (Fate.KEPT, Cause.PRUNE_DISABLED, "") if is_protected(manifest) else PRUNED

    def _of_object(self, owner: ObjectId, change: ObjectChange) -> Consequence | None:
        before, after = self._before.get(owner), self._after.get(owner)
        if before is not None and change.before is not None and self._leaves(before, change):
            return self._removal(before, change)
        if after is None or change.after is None:
            return None
        if self._sleeps(owner) or self._new_owner_sleeps(owner):
            asleep = after if after.is_suspended else None
            file = asleep.file if asleep else self._new_owner(owner, None).detail
            return Consequence(owner, change.id, Fate.UNREACHED, Cause.SUSPENDED, file, change.fields)
        if change.before is None:
            return self._addition(owner, change)
        return self._change(before, after, change, change.before, change.after)

    def _new_owner_sleeps(self, owner: ObjectId) -> bool:
        return owner not in self._before and self._new_owner(owner, None).effect is Fate.UNREACHED

    def _leaves(self, owner: Owner, change: ObjectChange) -> bool:
        """Return whether an object leaves a Kustomization, or may be deleted with it in between."""
        if change.after is None:
            return True
        end = self._end_of_object(owner, change.id)
        return end is not None and end[0] in DESTROYING

    def _removal(self, owner: Owner, change: ObjectChange) -> Consequence | None:
        end = self._end_of_object(owner, change.id)
        if end is None or change.before is None:
            return None
        effect, cause, detail = end
        manifest = change.before.manifest
        places = [place for place in self._comparison.places_after.get(change.id, ()) if place != owner.id]
        other = next(iter(places), None)
        successor = _rehashed(change.id, self._after.get(owner.id), owner)
        if effect is Fate.DELETED and successor is not None:
            effect, other = Fate.RENEWED, successor
        if effect in DESTROYING and is_suspended_release(change.id, manifest):
            effect, cause, detail = Fate.KEPT, Cause.SUSPENDED, change.before.file
        if effect in DESTROYING and is_owner(change.id):  # it has another source: what it owns is not known
            other_owner = Owner(change.id, mapping_at(manifest, "spec"), change.before.file)
            cause, detail = end_with(other_owner, {})[1:]
        takes: tuple[ObjectId, ...] = ()
        if effect in DESTROYING:
            takes = self._taken(change.id)
        return Consequence(
            owner.id, change.id, effect, cause, detail, takes=takes, other=other, manifest=manifest
        )

    def _addition(self, owner: ObjectId, change: ObjectChange) -> Consequence | None:
        before = self._before.get(owner)
        if before is not None and _rehashed(change.id, before, self._after.get(owner)):
            return None  # its predecessor has the consequence
        if change.after is None:
            return None
        places = [place for place in self._comparison.places_before.get(change.id, ()) if place != owner]
        other = next(iter(places), None)
        if other is not None and self._stays_for(other, change.id):
            old = self._before[other].objects[change.id]
            fields = object_differences(old.manifest, change.after.manifest)
            changed = replace(change, before=old, fields=fields)
            return self._change(before, self._after[owner], changed, old, change.after) if fields else None
        if is_skipped(change.after.manifest):
            return Consequence(owner, change.id, Fate.UNREACHED, Cause.NOT_RECONCILED, change.after.file)
        return Consequence(owner, change.id, Fate.ADDED, other=other)

    def _stays_for(self, other: ObjectId, name: ObjectId) -> bool:
        """Return whether an object that another Kustomization has, or had, is there to be adopted."""
        end = self._end_of_object(self._before[other], name)
        return end is None or end[0] not in DESTROYING

    def _change(
        self,
        before: Owner | None,
        after: Owner,
        change: ObjectChange,
        old: BuiltObject,
        new: BuiltObject,
    ) -> Consequence:
        """Return what becomes of an object that stays and differs."""
        plain = Consequence(after.id, change.id, Fate.CHANGED, fields=change.fields, manifest=old.manifest)
        if is_skipped(new.manifest) or is_marked(new.manifest, "ssa", "IfNotPresent"):
            return replace(plain, effect=Fate.UNREACHED, cause=Cause.NOT_RECONCILED, detail=new.file)
        if is_asleep(change.id, old.manifest, new.manifest):
            return replace(plain, effect=Fate.UNREACHED, cause=Cause.ASLEEP, detail=new.file)
        defaulted = defaulted_field(old.manifest, new.manifest)
        if refused := fixed_field(old.manifest, new.manifest, self._definitions) or defaulted:
            cause = Cause.DEFAULTED if refused == defaulted else Cause.FIXED_FIELD
            forced = any(owner is not None and owner.spec.get("force") for owner in (before, after))
            forced = forced or any(is_marked(built.manifest, "force", "enabled") for built in (old, new))
            effect = Fate.RECREATED if forced else Fate.STUCK
            takes = self._taken(change.id) if forced else ()
            return replace(plain, effect=effect, cause=cause, detail=refused, takes=takes)
        if target := other_release(change.id, old.manifest, new.manifest):
            return replace(plain, effect=Fate.UNINSTALLED, cause=Cause.RELEASE_TARGET, detail=target)
        if loses_claims(old.manifest, new.manifest):
            return replace(plain, effect=Fate.SHRUNK, detail="spec.replicas")
        if stops(change.id, old.manifest, new.manifest):
            return replace(plain, effect=Fate.STOPPED, detail="spec.replicas")
        if version := lost_version(old.manifest, new.manifest, "served"):
            return replace(plain, cause=Cause.UNSERVED, detail=version)
        return plain

    # What goes with an object

    def _taken(self, name: ObjectId) -> tuple[ObjectId, ...]:
        """Return the objects that a cluster has from git and that are deleted with one of them."""
        found: set[ObjectId] = set()
        open_names = [name]
        while open_names:
            current = open_names.pop()
            if current not in found:
                found.add(current)
                open_names += self._directly(current)
        return tuple(sorted(found & self._names - {name}))

    def _directly(self, name: ObjectId) -> Iterator[ObjectId]:
        """Yield what the cluster deletes with an object: Kubernetes with a namespace, Flux with its own."""
        if name == ("", "Namespace", "", name.name):
            yield from (known for known in self._names if known.namespace == name.name)
        if is_definition(name):
            for place in self._comparison.places_before.get(name, ()):
                kind = kind_defined(self._before[place].objects[name].manifest)
                yield from (known for known in self._names if known[:2] == kind)
        before, after, fate = self._before.get(name), self._after.get(name), self._fate(name)
        if before is None:
            return
        if fate is None and after is not None and after.unbuilt:
            ends = {known: self._end_in(before, after, it.manifest) for known, it in before.objects.items()}
        else:
            both = (before, after) if after is not None and fate is not None else (before,)
            ends = {
                known: end_with(owner, built.manifest)
                for owner in reversed(both)  # it may have the new commit when it is deleted
                for known, built in owner.objects.items()
            }
        yield from (known for known, end in ends.items() if end[0] in DESTROYING)


def _rehashed(name: ObjectId, having: Owner | None, lacking: Owner | None) -> ObjectId | None:
    """Return a generated object that differs in its hash, and that only one side has."""
    base = stem(name)
    if having is None or not base:
        return None
    same = (known for known in having.objects if known[:3] == name[:3] and stem(known) == base)
    return next((known for known in same if lacking is None or known not in lacking.objects), None)


def _is_broken(owner: Owner) -> bool:
    """Return whether what is wrong with a Kustomization is known: no app and no machine can build it."""
    return bool(owner.unbuilt and owner.problems)


def _broken(owner: Owner) -> Consequence:
    return Consequence(owner.id, owner.id, Fate.BROKEN, Cause.UNBUILT, owner.unbuilt)


def _document(owner: Owner) -> Json:
    return {"spec": owner.spec}
