"""Requests about custom resources and their definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.api_server.objects import APPLY, CRDS, MERGE, STRATEGIC, WIDGETS, Call, a_crd, a_widget


def custom() -> Iterator[Call]:
    def create(name: str, body: Any, query: str = "", **rest: Any) -> Call:
        return Call(name, "POST", f"{WIDGETS}?{query}" if query else WIDGETS, body, **rest)

    yield Call("custom: the definition", "POST", CRDS, a_crd())
    yield Call("custom: it is served", "GET", WIDGETS, wait=True)
    yield create("custom: an object", a_widget())
    yield Call("custom: its defaults", "GET", f"{WIDGETS}/one")
    yield create("custom: an unknown field", a_widget("u1", shape="round"))
    yield Call("custom: an unknown field is pruned", "GET", f"{WIDGETS}/u1")
    yield create("custom: an unknown field, strict", a_widget("u2", shape="round"), "fieldValidation=Strict")
    yield create("custom: a free field", a_widget("u3", free={"a": {"b": 1}}), "fieldValidation=Strict")
    yield create("custom: a wrong type", a_widget("v", size="big"))
    yield create("custom: too small", a_widget("v", size=0))
    yield create("custom: too big", a_widget("v", size=10))
    yield create("custom: none of the values", a_widget("v", colour="green"))
    yield create("custom: a pattern that does not match", a_widget("v", url="http://example.org"))
    yield create("custom: a missing field", {**a_widget("v"), "spec": {"size": 1}})
    yield create("custom: a port by name", a_widget("v1", port="http"))
    yield create("custom: no port", a_widget("v", port=[1]), text=False)
    yield create("custom: too many", a_widget("v", tags=["aa", "bb", "cc"]))
    yield create("custom: too short", a_widget("v", tags=["a"]))
    yield create("custom: too long", a_widget("v", short="long"))
    yield create("custom: null where it may be", a_widget("n1", gone=None))
    yield create("custom: null where it may not be", a_widget("n2", colour=None))
    yield create("custom: a spec of text", {**a_widget("v"), "spec": "text"}, text=False)
    yield create("custom: two problems", a_widget("v", size=0, colour="green"), text=False)
    yield create(
        "custom: the same key twice", a_widget("v", parts=[{"name": "a"}, {"name": "a"}]), text=False
    )
    yield create("custom: another version", {**a_widget("v"), "apiVersion": "example.org/v2"}, text=False)
    apply = f"{WIDGETS}/applied?fieldManager=alice"
    yield Call("custom: apply", "PATCH", apply, a_widget("applied", parts=[{"name": "a", "count": 1}]), APPLY)
    yield Call("custom: apply an unknown field", "PATCH", apply, a_widget("applied", shape="round"), APPLY)
    yield Call("custom: apply a wrong type", "PATCH", apply, a_widget("applied", size="big"), APPLY)
    yield Call("custom: apply a wrong value", "PATCH", apply, a_widget("applied", size=0), APPLY)
    yield Call("custom: apply null where it may be", "PATCH", apply, a_widget("applied", gone=None), APPLY)
    yield Call(
        "custom: apply null where it may not be", "PATCH", apply, a_widget("applied", free=None), APPLY
    )
    bob = f"{WIDGETS}/applied?fieldManager=bob"
    yield Call(
        "custom: apply an item of another manager",
        "PATCH",
        bob,
        a_widget("applied", parts=[{"name": "a", "count": 2}]),
        APPLY,
    )
    yield Call(
        "custom: apply an item next to it",
        "PATCH",
        bob,
        a_widget("applied", parts=[{"name": "b"}]),
        APPLY,
    )
    yield Call("custom: strategic", "PATCH", f"{WIDGETS}/one", {"spec": {}}, STRATEGIC)
    yield Call("custom: merge a wrong value", "PATCH", f"{WIDGETS}/one", {"spec": {"size": 0}}, MERGE)
    yield Call(
        "custom: merge an unknown field, strict",
        "PATCH",
        f"{WIDGETS}/one?fieldValidation=Strict",
        {"spec": {"shape": "x"}},
        MERGE,
        text=False,
    )
    yield Call("custom: the status", "PATCH", f"{WIDGETS}/one/status", {"status": {"phase": "Done"}}, MERGE)
    yield Call(
        "custom: a status of a wrong type", "PATCH", f"{WIDGETS}/one/status", {"status": {"phase": 1}}, MERGE
    )
    yield Call("custom: select by a field", "GET", f"{WIDGETS}?fieldSelector=spec.size=1")
    yield Call("custom: accept text", "GET", WIDGETS, headers={"Accept": "text/plain"})
    yield Call("custom: content text", "POST", WIDGETS, a_widget("x"), "text/plain")


def definitions() -> Iterator[Call]:
    def create(name: str, body: Any, **rest: Any) -> Call:
        return Call(name, "POST", CRDS, body, **rest)

    gadgets = a_crd("gadgets", "Gadget")
    yield create("definition: without a schema", a_crd("gadgets", "Gadget", schema=None), text=False)
    yield create("definition: not stored", a_crd("gadgets", "Gadget", storage=False), text=False)
    yield create("definition: another name", {**gadgets, "metadata": {"name": "other.example.org"}})
    untyped = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}
    yield create("definition: a field without a type", a_crd("gadgets", "Gadget", schema=untyped), text=False)
    root = {"openAPIV3Schema": {"type": "string"}}
    yield create("definition: a root of text", a_crd("gadgets", "Gadget", schema=root), text=False)
    yield create(
        "definition: a scope that does not exist",
        {**gadgets, "spec": {**gadgets["spec"], "scope": "World"}},
        text=False,
    )
    unknown = {**gadgets, "spec": {**gadgets["spec"], "colour": "blue"}}
    yield Call("definition: an unknown field, strict", "POST", f"{CRDS}?fieldValidation=Strict", unknown)
    one = f"{CRDS}/widgets.example.org"
    yield Call("definition: another scope", "PATCH", one, {"spec": {"scope": "Cluster"}}, MERGE, text=False)
    second = {**a_crd()["spec"]["versions"][0], "name": "v2"}
    first = {**a_crd()["spec"]["versions"][0], "storage": False}
    yield Call(
        "definition: another storage version", "PATCH", one, {"spec": {"versions": [first, second]}}, MERGE
    )
    yield Call(
        "definition: a stored version is dropped", "PATCH", one, {"spec": {"versions": [second]}}, MERGE
    )
