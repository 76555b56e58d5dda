"""Requests that delete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.api_server.objects import MAPS, MERGE, PODS, WIDGETS, Call, a_map, a_pod


def deletes() -> Iterator[Call]:
    def delete(name: str, what: str, body: Any = None, query: str = "", **rest: Any) -> Call:
        return Call(name, "DELETE", f"{MAPS}/{what}?{query}" if query else f"{MAPS}/{what}", body, **rest)

    for number in range(9):
        yield Call(f"delete: a map ({number})", "POST", MAPS, a_map(f"d{number}"))
    yield delete("delete: a missing object", "absent")
    yield delete("delete: a wrong version", "d0", {"preconditions": {"resourceVersion": "1"}})
    yield delete(
        "delete: a wrong uid", "d0", {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}
    )
    yield delete("delete: an unknown policy", "d0", {"propagationPolicy": "Sideways"})
    yield delete("delete: an unknown policy in the query", "d0", query="propagationPolicy=Sideways")
    yield delete(
        "delete: a policy twice", "d0", {"propagationPolicy": "Orphan", "orphanDependents": True}, text=False
    )
    yield delete("delete: another dry run", "d0", query="dryRun=x")
    yield delete("delete: dry run", "d0", query="dryRun=All")
    yield delete("delete: dry run in the body", "d0", {"dryRun": ["All"]})
    yield delete("delete: a grace of text", "d0", {"gracePeriodSeconds": "soon"}, text=False)
    yield delete("delete: a grace of text in the query", "d0", query="gracePeriodSeconds=soon")
    yield delete("delete: other options", "d0", {"kind": "ConfigMap", "apiVersion": "v1"}, text=False)
    yield Call("delete: it is still there", "GET", f"{MAPS}/d0")
    yield delete("delete: in the background", "d0", {"propagationPolicy": "Background"})
    yield delete("delete: at once", "d1")
    yield delete("delete: with grace", "d2", {"gracePeriodSeconds": 30})
    yield Call("delete: a map has no grace", "GET", f"{MAPS}/d2")
    yield Call("delete: a pod that is nowhere", "POST", PODS, a_pod("nowhere"))
    yield Call("delete: it goes at once", "DELETE", f"{PODS}/nowhere")
    yield Call("delete: and no longer exists", "GET", f"{PODS}/nowhere")
    held = {**a_map("held"), "metadata": {"name": "held", "finalizers": ["example.org/hold"]}}
    yield Call("delete: a map that is held", "POST", MAPS, held)
    yield delete("delete: the map that is held", "held")
    yield Call("delete: it waits", "GET", f"{MAPS}/held")
    yield delete("delete: it again", "held")
    more = {"metadata": {"finalizers": ["example.org/hold", "example.org/more"]}}
    yield Call("delete: another finalizer while it waits", "PATCH", f"{MAPS}/held", more, MERGE, text=False)
    yield Call("delete: let it go", "PATCH", f"{MAPS}/held", {"metadata": {"finalizers": None}}, MERGE)
    yield Call("delete: it went", "GET", f"{MAPS}/held")
    yield Call("delete: a widget", "DELETE", f"{WIDGETS}/u3")
    yield Call("delete: a protected namespace", "DELETE", "/api/v1/namespaces/kube-system", text=False)
    yield Call("delete: some by label", "DELETE", f"{MAPS}?labelSelector=app=none")
    yield Call("delete: some by a wrong label", "DELETE", f"{MAPS}?labelSelector=app%20is%20none")
    yield Call(
        "delete: some with an unknown policy", "DELETE", f"{MAPS}?labelSelector=app=none&propagationPolicy=x"
    )
    yield Call("delete: everything of no namespace", "DELETE", "/api/v1/configmaps", text=False)
