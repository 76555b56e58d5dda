"""The garbage collector: owners, dependents, orphans, and what a finalizer keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.api_server.objects import MAPS, MERGE, WEBS
from tests.support.api_server.steps import HOLD, Step, create, delete, pod_template, read, release


def _owner(name: str, key: str, **metadata: Any) -> Step:
    body = {"metadata": {"name": name, **metadata}}
    return create(f"{name} exists", MAPS, body, keep={key: "metadata.uid"})


def _child(name: str, *owners: tuple[str, str], block: bool = True, hold: bool = False, **rest: Any) -> Step:
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner,
            "uid": uid,
            **({"blockOwnerDeletion": True} if block else {}),
        }
        for owner, uid in owners
    ]
    metadata = {"name": name, "ownerReferences": references, **({"finalizers": [HOLD]} if hold else {})}
    return create(
        f"{name} belongs to {', '.join(owner for owner, _ in owners)}", MAPS, {"metadata": metadata}, **rest
    )


def foreground() -> Iterator[Step]:
    yield _owner("f-owner", "F")
    yield _child("f-child", ("f-owner", "$F"), hold=True)
    yield delete("foreground: the owner", "f-owner", "Foreground")
    yield read("foreground: the dependent is deleted", "f-child", until="deleting")
    yield read("foreground: the owner waits for it", "f-owner")
    yield delete("foreground: the owner again, without a policy", "f-owner")
    yield release("foreground: the dependent may go", "f-child")
    yield read("foreground: the dependent went", "f-child", until="gone")
    yield read("foreground: then the owner", "f-owner", until="gone")
    yield _owner("g-owner", "G")
    yield _child("g-child", ("g-owner", "$G"), block=False, hold=True)
    yield delete("foreground: an owner that nothing blocks", "g-owner", "Foreground")
    yield read("foreground: it does not wait", "g-owner", until="gone")
    yield read("foreground: its dependent is deleted too", "g-child", until="deleting")
    yield release("foreground: that dependent may go", "g-child")
    yield _owner("h-top", "H")
    yield _child("h-middle", ("h-top", "$H"), keep={"M": "metadata.uid"})
    yield _child("h-leaf", ("h-middle", "$M"), hold=True)
    yield delete("foreground: three generations", "h-top", "Foreground")
    yield read("foreground: the third is deleted", "h-leaf", until="deleting")
    yield read("foreground: the second waits for the third", "h-middle")
    yield read("foreground: the first waits for the second", "h-top")
    yield release("foreground: the third may go", "h-leaf")
    yield read("foreground: the second went", "h-middle", until="gone")
    yield read("foreground: the first went", "h-top", until="gone")
    yield _owner("i-owner", "I")
    yield _child("i-child", ("i-owner", "$I"), hold=True)
    yield delete("foreground: an owner in a hurry", "i-owner", "Foreground")
    yield delete("foreground: now in the background", "i-owner", "Background")
    yield read("foreground: it went at once", "i-owner", until="gone")
    yield read("foreground: its dependent goes after it", "i-child", until="deleting")
    yield release("foreground: the last may go", "i-child")
    yield _owner("j-owner", "J")
    yield delete("foreground: an owner without dependents", "j-owner", "Foreground")
    yield read("foreground: it goes soon", "j-owner", until="gone")
    yield _owner("k-owner", "K", finalizers=[HOLD])
    yield delete("foreground: an owner with a finalizer", "k-owner", "Foreground")
    yield delete("foreground: now it orphans", "k-owner", "Orphan")
    yield release("foreground: its finalizers are taken away", "k-owner")
    yield read("foreground: nothing prevented it", "k-owner", until="gone")


def shared_dependents() -> Iterator[Step]:
    yield _owner("s-first", "S")
    yield _owner("s-second", "T")
    yield _child("s-child", ("s-first", "$S"), ("s-second", "$T"))
    yield delete("shared: one of two owners", "s-first", "Foreground")
    yield read("shared: it does not wait for a dependent that another one needs", "s-first", until="gone")
    yield read("shared: the dependent has the other owner left", "s-child")
    yield delete("shared: the other owner", "s-second")
    yield read("shared: then the dependent goes", "s-child", until="gone")
    yield _owner("v-owner", "V")
    yield _child("v-child", ("v-owner", "$V"), ("s-first", "$S"))
    yield read("shared: a reference to an owner that went is removed", "v-child", until="single")
    yield _owner("u-first", "U")
    yield _child("u-stranger", ("u-first", "00000000-0000-0000-0000-000000000000"))
    yield read("shared: an owner of the name, not of the uid, is none", "u-stranger", until="gone")


def orphans() -> Iterator[Step]:
    yield _owner("o-owner", "O")
    yield _child("o-child", ("o-owner", "$O"))
    yield delete("orphan: the owner", "o-owner", "Orphan")
    yield read("orphan: the owner went", "o-owner", until="gone")
    yield read("orphan: the dependent stays, without an owner", "o-child", until="free")


def background() -> Iterator[Step]:
    yield _owner("b-owner", "B")
    yield _child("b-child", ("b-owner", "$B"))
    yield delete("background: the owner", "b-owner", "Background")
    yield read("background: the owner went", "b-owner")
    yield read("background: its dependent goes after it", "b-child", until="gone")
    yield _owner("c-owner", "C", finalizers=[HOLD])
    yield _child("c-child", ("c-owner", "$C"))
    yield delete("background: an owner that waits", "c-owner", "Background")
    yield read("background: its dependent stays as long", "c-child")
    yield release("background: the owner may go", "c-owner")
    yield read("background: then its dependent goes", "c-child", until="gone")


def held() -> Iterator[Step]:
    yield _owner("held", "HELD", finalizers=[HOLD, "example.org/more"])
    yield delete("held: it is deleted", "held")
    yield read("held: it waits", "held")
    one = {"metadata": {"finalizers": ["example.org/more"]}}
    yield Step("held: one finalizer less", "PATCH", f"{MAPS}/held", one, MERGE)
    label = {"metadata": {"labels": {"a": "b"}}}
    yield Step("held: it can be changed", "PATCH", f"{MAPS}/held", label, MERGE)
    undo = {"metadata": {"deletionTimestamp": None}}
    yield Step("held: it cannot be rescued", "PATCH", f"{MAPS}/held", undo, MERGE)
    yield create("held: its name is taken", MAPS, {"metadata": {"name": "held"}})
    yield release("held: no finalizer", "held")
    yield read("held: it went", "held")
    yield create("held: its name is free", MAPS, {"metadata": {"name": "held"}})
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "held"}}, "template": pod_template("held")}
    web = {"metadata": {"name": "held", "finalizers": [HOLD]}, "spec": spec}
    yield create("held: a Deployment", WEBS, web)
    yield delete("held: a deleted Deployment has another generation", "held", path=WEBS)
    yield release("held: the Deployment may go", "held", WEBS)
    yield read("held: the Deployment went", "held", WEBS)
