"""The Kubernetes API of one cluster as a state machine over JSON objects.

It keeps the rules that clients rely on: versions and conflicts, generations, finalizers, namespaces,
status as its own subresource, server-side apply with field managers, CRDs whose kinds are unknown until
they are established, and evictions with disruption budgets. Nothing runs behind the objects: a Deployment
is simply available, and a pod that is bound to a node is simply Ready.
All methods are safe to call from several threads. Refusals are raised as ``ApiError``.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from localcloud.kubernetes.world.admission import check_fixed, checked, finished, with_status
from localcloud.kubernetes.world.api_errors import (
    ApiError,
    exists,
    not_found,
    precondition,
    stale,
    terminating,
)
from localcloud.kubernetes.world.controllers import Controllers, Delays
from localcloud.kubernetes.world.eviction import check_eviction, matching
from localcloud.kubernetes.world.kinds import BUDGET, NAMESPACE, POD, Kind, Kinds
from localcloud.kubernetes.world.object_requests import At, Write
from localcloud.kubernetes.world.object_store import Change, Object, Store
from localcloud.kubernetes.world.patches import patched
from localcloud.kubernetes.world.selectors import selector
from localcloud.kubernetes.world.server_side_apply import Writer, applied, same, updated

PROTECTED = ("default", "kube-system", "kube-public", "kube-node-lease")


_PLAIN = Write()
_DELAYS = Delays()


class KubernetesWorld:
    """One cluster; ``delays`` are those of its controllers, ``name`` makes its uids its own."""

    def __init__(self, clock: Callable[[], datetime], *, name: str = "", delays: Delays = _DELAYS) -> None:
        self.clock = clock
        self.kinds = Kinds()
        self._name = name
        self._lock = threading.RLock()
        self._store = Store()
        self._controllers = Controllers(self, delays)
        for namespace in PROTECTED:
            body = {"metadata": {"name": namespace}}
            self.create(NAMESPACE, "", body, Write(manager="kube-apiserver"))

    @property
    def version(self) -> int:
        """The version of the newest write."""
        return self._store.version

    def subscribe(self, call: Callable[[], None]) -> None:
        """Call this after every write, under the world's lock: it must be quick."""
        self._store.on_change.append(call)

    def tick(self) -> None:
        """Let the controllers do what is due by the clock; every method does so by itself."""
        with self._lock:
            self._controllers.run()

    def kind(self, api_version: str, kind: str) -> Kind | None:
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
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[Sequence[Object], int]:
        """Return the objects that match both selectors, and the version they were read at."""
        matches = selector(labels, fields)
        with self._lock:
            self._controllers.run()
            found = self._store.list(kind, namespace)
            return [value for value in found if matches(value)], self._store.version

    def changes(self, version: int) -> Sequence[Change]:
        """Return the writes after a version; raise ApiError (410) when that is too long ago."""
        with self._lock:
            self._controllers.run()
            return self._store.since(version)

    def create(self, kind: Kind, namespace: str, body: Any, write: Write = _PLAIN) -> Object:
        """Create an object."""
        with self._lock:
            self._controllers.run()
            metadata = body.get("metadata") or {} if isinstance(body, Mapping) else {}
            suffix = f"{self._store.version:05x}"
            prefix = metadata.get("generateName")
            name = metadata.get("name") or (f"{prefix}{suffix}" if prefix else "")
            new = checked(kind, namespace, name, body)
            at = At(kind, name, namespace)
            self._admit(at)
            if self._store.get(kind, (namespace, name)) is not None:
                raise exists(kind, name)
            new["metadata"].pop("resourceVersion", None)
            new = with_status(kind, None, new, "")
            return self._commit(at, None, updated(None, new, self._writer(kind, write)), write)

    def replace(self, at: At, body: Any, write: Write = _PLAIN) -> Object:
        """Replace an object, or its status; a resourceVersion in the body must be the present one."""
        with self._lock:
            live = self.get(at)
            new = checked(at.kind, at.namespace, at.name, body)
            return self._rewrite(at, live, new, write)

    def patch(self, at: At, patch: Any, media_type: str, write: Write = _PLAIN) -> Object:
        """Patch an object, or its status, in one of the media types of ``kubernetes_patch``."""
        with self._lock:
            live = self.get(at)
            new = checked(at.kind, at.namespace, at.name, patched(live, patch, media_type))
            return self._rewrite(at, live, new, write)

    def apply(self, at: At, body: Any, write: Write = _PLAIN) -> Object:
        """Apply a configuration server-side; it creates what is not there."""
        with self._lock:
            live = self.find(at)
            config = checked(at.kind, at.namespace, at.name, body)
            if live is None:
                if write.subresource:
                    raise not_found(at.kind, at.name)
                self._admit(at)
            self._expect_version(at, live, config)
            for key in ("status",) if at.kind.status and not write.subresource else ():
                config.pop(key, None)
            new = applied(live, config, self._writer(at.kind, write))
            return self._commit(at, live, new, write)

    def delete(self, at: At, *, uid: str = "", dry_run: bool = False) -> Object:
        """Delete an object; one with finalizers stays, marked, until they are gone."""
        with self._lock:
            live = self.get(at)
            metadata = live["metadata"]
            if uid and metadata["uid"] != uid:
                raise precondition(at.kind, at.name, "the UID in the precondition does not match")
            if at.kind == NAMESPACE and at.name in PROTECTED:
                message = f'namespaces "{at.name}" is forbidden: this namespace may not be deleted'
                raise ApiError(403, "Forbidden", message)
            if dry_run or "deletionTimestamp" in metadata:
                return live
            if not metadata.get("finalizers") and at.kind != NAMESPACE:
                return self._after(self._store.remove(at.kind, (at.namespace, at.name)))
            mark = {"deletionTimestamp": self._now(), "deletionGracePeriodSeconds": 0}
            marked = {**live, "metadata": {**metadata, **mark}}
            return self._after(self._store.put(at.kind, (at.namespace, at.name), marked))

    def evict(self, namespace: str, name: str, *, dry_run: bool = False) -> None:
        """Delete a pod if the disruption budgets allow it."""
        with self._lock:
            at = At(POD, name, namespace)
            pod = self.get(at)
            budgets = [b for b in self._store.list(BUDGET, namespace) if matching(b, [pod])]
            check_eviction(pod, budgets)
            self.delete(at, dry_run=dry_run)

    def drop(self, at: At) -> None:
        """Remove an object whatever its finalizers: for the controllers."""
        with self._lock:
            self._store.remove(at.kind, (at.namespace, at.name))

    def set_status(self, at: At, status: Mapping[str, Any], *, manager: str) -> None:
        """Write a status as a controller does; nothing when it is the same, or the object is gone."""
        with self._lock:
            live = self._store.get(at.kind, (at.namespace, at.name))
            if live is not None and live.get("status") != status:
                write = Write(manager=manager, subresource="status")
                self._rewrite(at, live, {**live, "status": dict(status)}, write)

    def _rewrite(self, at: At, live: Object, new: Mapping[str, Any], write: Write) -> Object:
        self._expect_version(at, live, new)
        whole = with_status(at.kind, live, dict(new), write.subresource)
        managed = live["metadata"].get("managedFields") or []
        whole["metadata"] = {**whole["metadata"], "managedFields": managed}
        return self._commit(at, live, updated(live, whole, self._writer(at.kind, write)), write)

    def _commit(self, at: At, live: Object | None, new: Mapping[str, Any], write: Write) -> Object:
        check_fixed(at.kind, live, new)
        born = {"uid": self._uid(at), "creationTimestamp": self._now()}
        whole = finished(at.kind, live, new, born)
        if live is not None and same(live, whole):
            return live
        if write.dry_run:
            return whole
        key = (at.namespace, at.name)
        metadata = whole["metadata"]
        gone = "deletionTimestamp" in metadata and not metadata.get("finalizers") and at.kind != NAMESPACE
        stored = self._store.put(at.kind, key, whole)
        return self._after(self._store.remove(at.kind, key) if gone else stored)

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

    def _expect_version(self, at: At, live: Object | None, body: Mapping[str, Any]) -> None:
        wanted = body["metadata"].get("resourceVersion")
        if wanted and (live is None or wanted != live["metadata"]["resourceVersion"]):
            raise stale(at.kind, at.name)

    def _writer(self, kind: Kind, write: Write) -> Writer:
        return Writer(
            write.manager,
            kind.api_version,
            self._now(),
            subresource=write.subresource,
            custom=kind.custom,
            force=write.force,
        )

    def _now(self) -> str:
        return self.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _uid(self, at: At) -> str:
        text = f"{self._name}/{at.kind.storage}/{at.namespace}/{at.name}/{self._store.version}"
        return str(uuid.uuid5(uuid.NAMESPACE_URL, text))
