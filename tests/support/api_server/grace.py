"""The grace of pods on nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.api_server.objects import MERGE, PODS
from tests.support.api_server.steps import HOLD, Step, create, delete, read, release


def pods() -> Iterator[Step]:
    def pod(name: str, finalizers: tuple[str, ...] = (), **spec: Any) -> Step:
        metadata = {"name": name, **({"finalizers": list(finalizers)} if finalizers else {})}
        whole = {"nodeName": "grace-node", "containers": [{"name": "web", "image": "web:1"}], **spec}
        return create(f"pod {name}", PODS, {"metadata": metadata, "spec": whole})

    yield create("grace: a node", "/api/v1/nodes", {"metadata": {"name": "grace-node"}})
    yield pod("usual")
    yield delete("grace: the usual", "usual", path=PODS)
    yield delete("grace: the usual again", "usual", path=PODS)
    yield delete("grace: a longer one is not given", "usual", path=PODS, gracePeriodSeconds=60)
    yield delete("grace: a shorter one is", "usual", path=PODS, gracePeriodSeconds=5)
    yield read("grace: it waits", "usual", PODS)
    yield delete("grace: none", "usual", path=PODS, gracePeriodSeconds=0)
    yield read("grace: it ended", "usual", PODS)
    yield pod("own", terminationGracePeriodSeconds=7)
    yield delete("grace: its own", "own", path=PODS)
    yield delete("grace: dry run of none", "own", path=PODS, gracePeriodSeconds=0, dryRun=["All"])
    yield read("grace: a dry run ended nothing", "own", PODS)
    yield delete("grace: one second at least", "own", path=PODS, gracePeriodSeconds=-1)
    yield Step("grace: none, in the query", "DELETE", f"{PODS}/own?gracePeriodSeconds=0")
    yield read("grace: its own ended", "own", PODS)
    yield pod("zero", terminationGracePeriodSeconds=0)
    yield delete("grace: a pod that wants none", "zero", path=PODS)
    yield read("grace: it went at once", "zero", PODS)
    yield pod("finalized", (HOLD,))
    yield delete("grace: a finalizer and some grace", "finalized", path=PODS, gracePeriodSeconds=9)
    yield delete("grace: a finalizer and none", "finalized", path=PODS, gracePeriodSeconds=0)
    yield read("grace: the finalizer holds it", "finalized", PODS)
    yield release("grace: the pod may go", "finalized", PODS)
    yield read("grace: nothing holds it", "finalized", PODS)
    yield pod("released", (HOLD,))
    yield delete("grace: it and a finalizer", "released", path=PODS, gracePeriodSeconds=9)
    yield release("grace: the finalizer goes first", "released", PODS)
    yield read("grace: the kubelet has not ended it", "released", PODS)
    yield delete("grace: the kubelet ends it", "released", path=PODS, gracePeriodSeconds=0)
    yield read("grace: the released one went", "released", PODS)
    yield pod("done")
    done = {"status": {"phase": "Succeeded"}}
    yield Step("grace: a pod that is done", "PATCH", f"{PODS}/done/status", done, MERGE)
    yield delete("grace: it needs none", "done", path=PODS)
    yield read("grace: the pod that was done went", "done", PODS)
    yield pod("waiting")
    yield delete("grace: in the foreground", "waiting", "Foreground", PODS, gracePeriodSeconds=20)
    yield read("grace: the collector found no dependents", "waiting", PODS, until="collected")
    yield delete("grace: ended in the foreground", "waiting", path=PODS, gracePeriodSeconds=0)
    yield read("grace: the one in the foreground went", "waiting", PODS, until="gone")
    yield pod("evicted")
    options = {"gracePeriodSeconds": 3}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "evicted"},
        "deleteOptions": options,
    }
    yield create("grace: an eviction", f"{PODS}/evicted/eviction", eviction)
    yield read("grace: the evicted pod has that of the eviction", "evicted", PODS)
    yield delete("grace: the evicted pod ends", "evicted", path=PODS, gracePeriodSeconds=0)
