"""The Kubernetes API of one cluster as a state machine over JSON objects.

It follows the rules that clients rely on: versions and conflicts, generations, finalizers, namespaces, status
as its own subresource, server-side apply with field managers, CRDs whose kinds are unknown until they are
established, and evictions with disruption budgets. Nothing runs behind the objects: a Deployment is available
at once, and a pod that is bound to a node is Ready. All methods are safe to call from several threads, and
raise refusals as ``ApiError``.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from localcloud.common.clock import in_seconds
from localcloud.kubernetes.world.admission import (
    checked,
    configuration,
    created,
    finished,
    replaced,
    same_uid,
    with_status,
)
from localcloud.kubernetes.world.api_errors import (
    exists,
    not_found,
    stale,
    terminating,
)
from localcloud.kubernetes.world.controllers import Controllers, Delays
from localcloud.kubernetes.world.deletion.deletion import PROTECTED, check_deletion, deleting
from localcloud.kubernetes.world.deletion.eviction import check_eviction, matching
from localcloud.kubernetes.world.kinds import BUDGET, NAMESPACE, POD, Kinds, ResourceKind
from localcloud.kubernetes.world.managed_by_arm import check_change
from localcloud.kubernetes.world.object_store import At, Deletion, Object, Store, StoreChange, WriteMode
from localcloud.kubernetes.world.refusals import RefusedWrites
from localcloud.kubernetes.world.selectors import selector
from localcloud.kubernetes.world.typed_objects import (
    after_apply,
    after_patch,
    check_configuration,
    check_values,
    received,
)
from localcloud.kubernetes.world.writes.patches import patched
from localcloud.kubernetes.world.writes.repeated_applies import RepeatedApplies
from localcloud.kubernetes.world.writes.server_side_apply import Writer, applied, given_owners, same, updated
from shared.kubernetes.kubeconfig import Certificate

_PLAIN = WriteMode()
_AT_ONCE = Deletion()
_DELAYS = Delays()


class KubernetesWorld:
    """One cluster; ``delays`` are those of its controllers, ``name`` makes its uids unique."""

    def __init__(self, clock: Callable[[], datetime], *, name: str = "", delays: Delays = _DELAYS) -> None:
        self.clock = clock
        self.kinds = Kinds()
        self.missing_images: set[str] = set()
        """Images that no registry has: a test adds them."""
        self.refused: list[RefusedWrites] = []
        """What policies, webhooks and limits of the cluster refuse to everybody: a test adds them."""
        self.certificates: tuple[Certificate, ...] = ()
        """What a handshake would show: a test sets them."""
        self._name = name
        self._lock = threading.RLock()
        self._store = Store()
        self._repeated = RepeatedApplies()
        self._controllers = Controllers(self, delays)
        for namespace in PROTECTED:
            body = {"metadata": {"name": namespace}}
            self.create(NAMESPACE, "", body, WriteMode(manager="kube-apiserver"))

    @property
    def version(self) -> int:
        """The version of the newest write."""
        return self._store.version

    def written(self, kind: ResourceKind) -> int:
        """Return the version of the newest write of a kind, 0 for none."""
        return self._store.written(kind)

    def subscribe(self, call: Callable[[], None]) -> None:
        """Call this after every write, under the world's lock: it must be quick."""
        self._store.on_change.append(call)

    def tick(self) -> None:
        """Run the controllers that are due by the clock; every method does so too."""
        with self._lock:
            self._controllers.run()

    def due(self) -> datetime | None:
        """Return when a controller is due by the clock, None when none is."""
        with self._lock:
            return self._controllers.due()

    def kind(self, api_version: str, kind: str) -> ResourceKind | None:
        """Return a kind that is served now, or None."""
        with self._lock:
            self._controllers.run()
            return self.kinds.named(api_version, kind)

    def get(self, at: At) -> Object:
        """Return an object; raise ApiError (404) when there is none."""
        found = self.find(at)
        if found is None:
            raise not_found(at.kind, at.name)
        return found

    def find(self, at: At) -> Object | None:
        """Return an object, or None."""
        with self._lock:
            self._controllers.run()
            return self._store.get(at.kind, (at.namespace, at.name))

    def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = "", at: int = 0
    ) -> tuple[Sequence[Object], int]:
        """Return the objects that match both selectors, and their version: ``at``, 0 for the present one.

        Raise ApiError (410) when the version is no longer stored.
        """
        matches = selector(kind, labels, fields)
        with self._lock:
            self._controllers.run()
            found = self._store.list(kind, namespace, at=at)
            return [value for value in found if matches(value)], at or self._store.version

    def keeps(self, version: int) -> bool:
        """Return whether the objects of a version can still be read."""
        with self._lock:
            return self._store.keeps(version)

    def changes(self, version: int) -> Sequence[StoreChange]:
        """Return the writes after a version; raise ApiError (410) when that version is too old."""
        with self._lock:
            self._controllers.run()
            return self._store.since(version)

    def forget_history(self) -> None:
        """Lose every change until now, as after a compaction: older versions can no longer be read."""
        with self._lock:
            self._store.forget()

    def create(self, kind: ResourceKind, namespace: str, body: Any, write: WriteMode = _PLAIN) -> Object:
        """Create an object."""
        with self._lock:
            self._controllers.run()
            metadata = body.get("metadata") or {} if isinstance(body, Mapping) else {}
            suffix = f"{self._store.version:05x}"
            prefix = metadata.get("generateName")
            name = metadata.get("name") or (f"{prefix}{suffix}" if prefix else "")
            new = received(kind, created(kind, namespace, name, body), write)
            at = At(kind, name, namespace)
            self._admit(at)
            present = self._store.get(kind, (namespace, name))
            if present is not None:
                raise exists(kind, name, ending="deletionTimestamp" in present["metadata"])
            new = with_status(kind, None, new, "")
            return self._commit(at, None, updated(None, new, self._writer(kind, write)), write)

    def replace(self, at: At, body: Any, write: WriteMode = _PLAIN) -> Object:
        """Replace an object, or its status; a resourceVersion in the body must be the present one."""
        with self._lock:
            checked(at.kind, at.namespace, at.name, body)
            live = self.get(at)
            new = received(at.kind, replaced(at.kind, at.namespace, body, live), write)
            return self._rewrite(at, live, new, write, managed=given_owners(body))

    def patch(self, at: At, patch: Any, media_type: str, write: WriteMode = _PLAIN) -> Object:
        """Patch an object, or its status, in one of the media types of ``kubernetes_patch``."""
        with self._lock:
            live = self.get(at)
            result = patched(at.kind.type, live, patch, media_type)
            known = after_patch(at.kind, checked(at.kind, at.namespace, at.name, result), write)
            new = same_uid(at.kind, known, live)
            return self._rewrite(at, live, new, write)

    def apply(self, at: At, body: Any, write: WriteMode = _PLAIN) -> Object:
        """Apply a configuration server-side; create the object when it does not exist."""
        with self._lock:
            live = self.find(at)
            if live is not None and self._repeated.changes_nothing(at, live, body, write):
                return live
            config = configuration(at.kind, at.namespace, at.name, body)
            if live is None:
                if write.subresource:
                    raise not_found(at.kind, at.name)
                self._admit(at)
            self._expect_version(at, live, config)
            for key in ("status",) if at.kind.status and not write.subresource else ():
                config.pop(key, None)
            stated = str((body.get("metadata") or {}).get("namespace") or "")
            check_configuration(at.kind, config, stated)
            new = after_apply(at.kind, applied(live, config, self._writer(at.kind, write)), stated)
            after = self._commit(at, live, new, write)
            if after is live:
                self._repeated.changed_nothing(at, after, body, write)
            return after

    def delete(self, at: At, options: Deletion = _AT_ONCE) -> Object:
        """Delete an object; one with finalizers or grace stays, with a deletion timestamp, until they end."""
        return self.end(at, options)[0]

    def end(self, at: At, options: Deletion = _AT_ONCE) -> tuple[Object, bool]:
        """Delete an object; return it, and whether it went at once."""
        with self._lock:
            live = self.get(at)
            check_deletion(at.kind, live, options)
            check_change(at.kind, live, None, options.manager)
            self._review(at)
            left, gone = deleting(at.kind, live, options, self.clock())
            if options.dry_run:
                return left, gone
            key = (at.namespace, at.name)
            if gone:
                return self._after(self._store.remove(at.kind, key, left)), True
            return (live if left == live else self._after(self._store.put(at.kind, key, left))), False

    def owned(self) -> bool:
        """Return whether any object has an owner, or waits for a finalizer: for the garbage collector."""
        return self._store.owned

    def evict(
        self, namespace: str, name: str, options: Deletion = _AT_ONCE, *, dry_run: bool = False
    ) -> None:
        """Delete a pod if the disruption budgets allow it."""
        with self._lock:
            at = At(POD, name, namespace)
            pod = self.get(at)
            budgets = [b for b in self._store.list(BUDGET, namespace) if matching(b, [pod])]
            check_eviction(pod, budgets)
            self.delete(at, replace(options, dry_run=dry_run or options.dry_run))

    def drop(self, at: At) -> None:
        """Remove an object regardless of its finalizers: for the controllers."""
        with self._lock:
            self._store.remove(at.kind, (at.namespace, at.name))

    def set_status(self, at: At, status: Mapping[str, Any], *, manager: str) -> None:
        """Write a status as a controller does; skip an unchanged status and an object that does not exist."""
        with self._lock:
            live = self._store.get(at.kind, (at.namespace, at.name))
            if live is not None and live.get("status") != status:
                write = WriteMode(manager=manager, subresource="status")
                self._rewrite(at, live, {**live, "status": dict(status)}, write)

    def _rewrite(
        self,
        at: At,
        live: Object,
        new: Mapping[str, Any],
        write: WriteMode,
        managed: Sequence[Mapping[str, Any]] = (),
    ) -> Object:
        self._expect_version(at, live, new)
        whole = with_status(at.kind, live, dict(new), write.subresource)
        managed = managed or live["metadata"].get("managedFields") or []
        whole["metadata"] = {**whole["metadata"], "managedFields": managed}
        return self._commit(at, live, updated(live, whole, self._writer(at.kind, write)), write)

    def _commit(self, at: At, live: Object | None, new: Mapping[str, Any], write: WriteMode) -> Object:
        born = {"uid": self._uid(at), "creationTimestamp": self._now()} if live is None else {}
        whole = finished(at.kind, live, new, born)
        if live is not None and same(live, whole):
            return live
        check_values(at.kind, live, whole, write.subresource)
        check_change(at.kind, live, whole, write.manager)
        if not write.subresource:
            self._review(at)
        if write.dry_run:
            return whole
        key = (at.namespace, at.name)
        metadata = whole["metadata"]
        stored = self._store.put(at.kind, key, whole)
        graceful = metadata.get("deletionGracePeriodSeconds") or at.kind == NAMESPACE
        final = "deletionTimestamp" in metadata and not graceful and not metadata.get("finalizers")
        return self._after(self._store.remove(at.kind, key) if final else stored)

    def _after(self, stored: Object) -> Object:
        self._controllers.run()
        return stored

    def _admit(self, at: At) -> None:
        if not at.kind.namespaced:
            return
        namespace = self._store.get(NAMESPACE, ("", at.namespace))
        if namespace is None:
            raise not_found(NAMESPACE, at.namespace)
        if "deletionTimestamp" in namespace["metadata"]:
            raise terminating(at.kind, at.name, at.namespace)

    def _review(self, at: At) -> None:
        """Refuse a write or a delete as the policies and webhooks of the cluster do."""
        for refused in self.refused:
            if refused.refuses(at):
                raise refused.error(at)

    def _expect_version(self, at: At, live: Object | None, body: Mapping[str, Any]) -> None:
        wanted = body["metadata"].get("resourceVersion")
        if wanted and (live is None or wanted != live["metadata"]["resourceVersion"]):
            raise stale(at.kind, at.name)

    def _writer(self, kind: ResourceKind, write: WriteMode) -> Writer:
        return Writer(
            write.manager,
            kind.api_version,
            self._now(),
            kind.type,
            subresource=write.subresource,
            force=write.force,
        )

    def _now(self) -> str:
        return in_seconds(self.clock())

    def _uid(self, at: At) -> str:
        text = f"{self._name}/{at.kind.storage}/{at.namespace}/{at.name}/{self._store.version}"
        return str(uuid.uuid5(uuid.NAMESPACE_URL, text))
