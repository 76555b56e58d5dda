"""Sequences of requests to an API server whose later answers depend on what controllers did; data.

The garbage collector, the grace of pods on nodes, defaults and quantities, and reads of versions that are no
longer stored. The answers of a real server are recorded as those of ``api_requests`` are. No node of the
cluster has a kubelet: a deleted pod stays until somebody ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.api_requests import BUDGETS, JSON, MAPS, MERGE, PODS, SERVICES, SETS, WEBS

HOLD = "example.org/hold"
QUOTAS = "/api/v1/namespaces/ns/resourcequotas"
CLAIMS = "/api/v1/namespaces/ns/persistentvolumeclaims"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/ns/networkpolicies"
DAEMONS = "/apis/apps/v1/namespaces/ns/daemonsets"
JOBS = "/apis/batch/v1/namespaces/ns/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/ns/cronjobs"


@dataclass(frozen=True)
class Step:
    """One request of a sequence; ``$NAME`` in its path or body is what an earlier step remembered.

    ``until``: ask again until the object no longer exists, waits for its end, has no finalizer left, or has
    one owner or none. ``keep`` maps names to paths in the answer, ``shown`` are the paths that must be equal
    besides what always must. ``lose``: before it, the server loses its history of versions.
    """

    name: str
    method: str
    path: str
    body: Any = None
    content: str = JSON
    until: Literal["", "gone", "deleting", "collected", "single", "free"] = ""
    keep: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    lose: bool = False


def steps() -> tuple[Step, ...]:
    """Return every step in order."""
    groups = (_foreground, _shared_dependents, _orphans, _background, _held, _pods, _defaults, _quantities)
    return tuple(step for group in (*groups, _history) for step in group())


def _create(title: str, path: str, body: Any, **rest: Any) -> Step:
    return Step(title, "POST", path, body, **rest)


def _owner(name: str, key: str, **metadata: Any) -> Step:
    body = {"metadata": {"name": name, **metadata}}
    return _create(f"{name} exists", MAPS, body, keep={key: "metadata.uid"})


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
    return _create(
        f"{name} belongs to {', '.join(owner for owner, _ in owners)}", MAPS, {"metadata": metadata}, **rest
    )


def _delete(title: str, name: str, policy: str = "", path: str = MAPS, **options: Any) -> Step:
    body = {**({"propagationPolicy": policy} if policy else {}), **options}
    return Step(title, "DELETE", f"{path}/{name}", body or None)


def _read(title: str, name: str, path: str = MAPS, **rest: Any) -> Step:
    return Step(title, "GET", f"{path}/{name}", **rest)


def _release(title: str, name: str, path: str = MAPS) -> Step:
    return Step(title, "PATCH", f"{path}/{name}", {"metadata": {"finalizers": None}}, MERGE)


def _foreground() -> Iterator[Step]:
    yield _owner("f-owner", "F")
    yield _child("f-child", ("f-owner", "$F"), hold=True)
    yield _delete("foreground: the owner", "f-owner", "Foreground")
    yield _read("foreground: the dependent is deleted", "f-child", until="deleting")
    yield _read("foreground: the owner waits for it", "f-owner")
    yield _delete("foreground: the owner again, without a policy", "f-owner")
    yield _release("foreground: the dependent may go", "f-child")
    yield _read("foreground: the dependent went", "f-child", until="gone")
    yield _read("foreground: then the owner", "f-owner", until="gone")
    yield _owner("g-owner", "G")
    yield _child("g-child", ("g-owner", "$G"), block=False, hold=True)
    yield _delete("foreground: an owner that nothing blocks", "g-owner", "Foreground")
    yield _read("foreground: it does not wait", "g-owner", until="gone")
    yield _read("foreground: its dependent is deleted too", "g-child", until="deleting")
    yield _release("foreground: that dependent may go", "g-child")
    yield _owner("h-top", "H")
    yield _child("h-middle", ("h-top", "$H"), keep={"M": "metadata.uid"})
    yield _child("h-leaf", ("h-middle", "$M"), hold=True)
    yield _delete("foreground: three generations", "h-top", "Foreground")
    yield _read("foreground: the third is deleted", "h-leaf", until="deleting")
    yield _read("foreground: the second waits for the third", "h-middle")
    yield _read("foreground: the first waits for the second", "h-top")
    yield _release("foreground: the third may go", "h-leaf")
    yield _read("foreground: the second went", "h-middle", until="gone")
    yield _read("foreground: the first went", "h-top", until="gone")
    yield _owner("i-owner", "I")
    yield _child("i-child", ("i-owner", "$I"), hold=True)
    yield _delete("foreground: an owner in a hurry", "i-owner", "Foreground")
    yield _delete("foreground: now in the background", "i-owner", "Background")
    yield _read("foreground: it went at once", "i-owner", until="gone")
    yield _read("foreground: its dependent goes after it", "i-child", until="deleting")
    yield _release("foreground: the last may go", "i-child")
    yield _owner("j-owner", "J")
    yield _delete("foreground: an owner without dependents", "j-owner", "Foreground")
    yield _read("foreground: it goes soon", "j-owner", until="gone")
    yield _owner("k-owner", "K", finalizers=[HOLD])
    yield _delete("foreground: an owner with a finalizer", "k-owner", "Foreground")
    yield _delete("foreground: now it orphans", "k-owner", "Orphan")
    yield _release("foreground: its finalizers are taken away", "k-owner")
    yield _read("foreground: nothing prevented it", "k-owner", until="gone")


def _shared_dependents() -> Iterator[Step]:
    yield _owner("s-first", "S")
    yield _owner("s-second", "T")
    yield _child("s-child", ("s-first", "$S"), ("s-second", "$T"))
    yield _delete("shared: one of two owners", "s-first", "Foreground")
    yield _read("shared: it does not wait for a dependent that another one needs", "s-first", until="gone")
    yield _read("shared: the dependent has the other owner left", "s-child")
    yield _delete("shared: the other owner", "s-second")
    yield _read("shared: then the dependent goes", "s-child", until="gone")
    yield _owner("v-owner", "V")
    yield _child("v-child", ("v-owner", "$V"), ("s-first", "$S"))
    yield _read("shared: a reference to an owner that went is removed", "v-child", until="single")
    yield _owner("u-first", "U")
    yield _child("u-stranger", ("u-first", "00000000-0000-0000-0000-000000000000"))
    yield _read("shared: an owner of the name, not of the uid, is none", "u-stranger", until="gone")


def _orphans() -> Iterator[Step]:
    yield _owner("o-owner", "O")
    yield _child("o-child", ("o-owner", "$O"))
    yield _delete("orphan: the owner", "o-owner", "Orphan")
    yield _read("orphan: the owner went", "o-owner", until="gone")
    yield _read("orphan: the dependent stays, without an owner", "o-child", until="free")


def _background() -> Iterator[Step]:
    yield _owner("b-owner", "B")
    yield _child("b-child", ("b-owner", "$B"))
    yield _delete("background: the owner", "b-owner", "Background")
    yield _read("background: the owner went", "b-owner")
    yield _read("background: its dependent goes after it", "b-child", until="gone")
    yield _owner("c-owner", "C", finalizers=[HOLD])
    yield _child("c-child", ("c-owner", "$C"))
    yield _delete("background: an owner that waits", "c-owner", "Background")
    yield _read("background: its dependent stays as long", "c-child")
    yield _release("background: the owner may go", "c-owner")
    yield _read("background: then its dependent goes", "c-child", until="gone")


def _held() -> Iterator[Step]:
    yield _owner("held", "HELD", finalizers=[HOLD, "example.org/more"])
    yield _delete("held: it is deleted", "held")
    yield _read("held: it waits", "held")
    one = {"metadata": {"finalizers": ["example.org/more"]}}
    yield Step("held: one finalizer less", "PATCH", f"{MAPS}/held", one, MERGE)
    label = {"metadata": {"labels": {"a": "b"}}}
    yield Step("held: it can be changed", "PATCH", f"{MAPS}/held", label, MERGE)
    undo = {"metadata": {"deletionTimestamp": None}}
    yield Step("held: it cannot be rescued", "PATCH", f"{MAPS}/held", undo, MERGE)
    yield _create("held: its name is taken", MAPS, {"metadata": {"name": "held"}})
    yield _release("held: no finalizer", "held")
    yield _read("held: it went", "held")
    yield _create("held: its name is free", MAPS, {"metadata": {"name": "held"}})
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "held"}}, "template": _template("held")}
    web = {"metadata": {"name": "held", "finalizers": [HOLD]}, "spec": spec}
    yield _create("held: a Deployment", WEBS, web)
    yield _delete("held: a deleted Deployment has another generation", "held", path=WEBS)
    yield _release("held: the Deployment may go", "held", WEBS)
    yield _read("held: the Deployment went", "held", WEBS)


def _template(app: str, **container: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "web", "image": "web:1", **container}]},
    }


def _pods() -> Iterator[Step]:
    def pod(name: str, finalizers: tuple[str, ...] = (), **spec: Any) -> Step:
        metadata = {"name": name, **({"finalizers": list(finalizers)} if finalizers else {})}
        whole = {"nodeName": "grace-node", "containers": [{"name": "web", "image": "web:1"}], **spec}
        return _create(f"pod {name}", PODS, {"metadata": metadata, "spec": whole})

    yield _create("grace: a node", "/api/v1/nodes", {"metadata": {"name": "grace-node"}})
    yield pod("usual")
    yield _delete("grace: the usual", "usual", path=PODS)
    yield _delete("grace: the usual again", "usual", path=PODS)
    yield _delete("grace: a longer one is not given", "usual", path=PODS, gracePeriodSeconds=60)
    yield _delete("grace: a shorter one is", "usual", path=PODS, gracePeriodSeconds=5)
    yield _read("grace: it waits", "usual", PODS)
    yield _delete("grace: none", "usual", path=PODS, gracePeriodSeconds=0)
    yield _read("grace: it ended", "usual", PODS)
    yield pod("own", terminationGracePeriodSeconds=7)
    yield _delete("grace: its own", "own", path=PODS)
    yield _delete("grace: dry run of none", "own", path=PODS, gracePeriodSeconds=0, dryRun=["All"])
    yield _read("grace: a dry run ended nothing", "own", PODS)
    yield _delete("grace: one second at least", "own", path=PODS, gracePeriodSeconds=-1)
    yield Step("grace: none, in the query", "DELETE", f"{PODS}/own?gracePeriodSeconds=0")
    yield _read("grace: its own ended", "own", PODS)
    yield pod("zero", terminationGracePeriodSeconds=0)
    yield _delete("grace: a pod that wants none", "zero", path=PODS)
    yield _read("grace: it went at once", "zero", PODS)
    yield pod("finalized", (HOLD,))
    yield _delete("grace: a finalizer and some grace", "finalized", path=PODS, gracePeriodSeconds=9)
    yield _delete("grace: a finalizer and none", "finalized", path=PODS, gracePeriodSeconds=0)
    yield _read("grace: the finalizer holds it", "finalized", PODS)
    yield _release("grace: the pod may go", "finalized", PODS)
    yield _read("grace: nothing holds it", "finalized", PODS)
    yield pod("released", (HOLD,))
    yield _delete("grace: it and a finalizer", "released", path=PODS, gracePeriodSeconds=9)
    yield _release("grace: the finalizer goes first", "released", PODS)
    yield _read("grace: the kubelet has not ended it", "released", PODS)
    yield _delete("grace: the kubelet ends it", "released", path=PODS, gracePeriodSeconds=0)
    yield _read("grace: the released one went", "released", PODS)
    yield pod("done")
    done = {"status": {"phase": "Succeeded"}}
    yield Step("grace: a pod that is done", "PATCH", f"{PODS}/done/status", done, MERGE)
    yield _delete("grace: it needs none", "done", path=PODS)
    yield _read("grace: the pod that was done went", "done", PODS)
    yield pod("waiting")
    yield _delete("grace: in the foreground", "waiting", "Foreground", PODS, gracePeriodSeconds=20)
    yield _read("grace: the collector found no dependents", "waiting", PODS, until="collected")
    yield _delete("grace: ended in the foreground", "waiting", path=PODS, gracePeriodSeconds=0)
    yield _read("grace: the one in the foreground went", "waiting", PODS, until="gone")
    yield pod("evicted")
    options = {"gracePeriodSeconds": 3}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "evicted"},
        "deleteOptions": options,
    }
    yield _create("grace: an eviction", f"{PODS}/evicted/eviction", eviction)
    yield _read("grace: the evicted pod has that of the eviction", "evicted", PODS)
    yield _delete("grace: the evicted pod ends", "evicted", path=PODS, gracePeriodSeconds=0)


def _defaults() -> Iterator[Step]:
    def minimal(name: str, path: str, shown: tuple[str, ...] = ("spec",), **content: Any) -> Step:
        return _create(f"defaults: {name}", path, {"metadata": {"name": "minimal"}, **content}, shown=shown)

    selector = {"matchLabels": {"app": "minimal"}}
    template = _template("minimal")
    workload = {"selector": selector, "template": template}
    service = (
        "spec.type",
        "spec.ports",
        "spec.sessionAffinity",
        "spec.internalTrafficPolicy",
        "spec.selector",
    )
    yield minimal("a Deployment", WEBS, spec=workload)
    yield minimal("a StatefulSet", SETS, spec={**workload, "serviceName": "minimal"})
    yield minimal("a DaemonSet", DAEMONS, spec=workload)
    yield minimal(
        "a Service", SERVICES, service, spec={"selector": {"app": "minimal"}, "ports": [{"port": 80}]}
    )
    yield minimal("a PodDisruptionBudget", BUDGETS, spec={"maxUnavailable": 1, "selector": selector})
    yield minimal(
        "a NetworkPolicy", POLICIES, spec={"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}
    )
    yield minimal("a ResourceQuota", QUOTAS, spec={"hard": {"pods": "10"}})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    protected = {
        "name": "claim",
        "finalizers": ["kubernetes.io/pvc-protection"],
    }  # an admission plugin adds it
    body = {"metadata": protected, "spec": claim}
    yield _create("defaults: a PersistentVolumeClaim", CLAIMS, body, shown=("spec",))
    once = {"spec": {"restartPolicy": "Never", "containers": [{"name": "once", "image": "once"}]}}
    job = ("spec.completions", "spec.parallelism", "spec.backoffLimit", "spec.completionMode", "spec.suspend")
    yield minimal("a Job", JOBS, job, spec={"template": once})
    yield minimal(
        "a CronJob", CRON_JOBS, spec={"schedule": "@daily", "jobTemplate": {"spec": {"template": once}}}
    )
    shown = (
        "spec.restartPolicy",
        "spec.dnsPolicy",
        "spec.terminationGracePeriodSeconds",
        "spec.schedulerName",
    )
    pod = {"containers": [{"name": "web", "image": "web", "resources": {"limits": {"cpu": "1"}}}]}
    inner = ("spec.containers.0.resources", "spec.containers.0.imagePullPolicy", "spec.enableServiceLinks")
    yield minimal("a Pod", PODS, (*shown, *inner), spec=pod)
    probes = {
        "livenessProbe": {"httpGet": {"port": 80}},
        "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 3},
        "startupProbe": {"grpc": {"port": 80}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"containerPort": 80}],
    }
    volumes = [
        {"name": "a", "configMap": {"name": "a"}},
        {"name": "b", "secret": {"secretName": "b"}},
        {"name": "c", "emptyDir": {}},
        {"name": "d", "hostPath": {"path": "/d"}},
        {"name": "e", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        {"name": "f", "downwardAPI": {"items": [{"path": "f", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    whole = _template("minimal", **probes)
    whole["spec"].update(volumes=volumes, serviceAccountName="default")
    body = {"metadata": {"name": "full"}, "spec": {"selector": selector, "template": whole}}
    yield _create("defaults: probes and volumes", WEBS, body, shown=("spec",))
    for name, strategy in (
        ("recreate", {"type": "Recreate"}),
        ("rolling", {"rollingUpdate": {"maxSurge": 2}}),
    ):
        body = {"metadata": {"name": name}, "spec": {**workload, "strategy": strategy}}
        yield _create(f"defaults: the strategy {name}", WEBS, body, shown=("spec.strategy",))
    for name, image in (
        ("latest", "web:latest"),
        ("digest", f"web@sha256:{'0' * 64}"),
        ("port", "host:5000/web"),
    ):
        body = {
            "metadata": {"name": name},
            "spec": {**workload, "template": _template("minimal", image=image)},
        }
        yield _create(f"defaults: an image by {name}", WEBS, body, shown=("spec.template.spec.containers",))


_AMOUNTS = (
    *("0.5", "1000m", "1", "1.5", "0.1", "100m", "1500m", "2000", "1k", "1e3", "1E3", "12e6", "1000000", "0"),
    *(
        "1024Mi",
        "1Gi",
        "1.5Gi",
        "0.5Gi",
        "1023Mi",
        "1024",
        "1025Ki",
        "0.5Ki",
        "1000Ki",
        "1.25Mi",
        "2Ti",
        "0Mi",
    ),
    *("500M", "1000M", "1.5M", "1n", "0.1n", "1u", "1500u", "999999999", "1G", "1T", "010", "+5", ".5", "5."),
    *(
        "1e-3",
        "1.5e3",
        "1e1",
        "5e0",
        "123456789012",
        "1Ei",
        "7.5k",
        "0.0001",
        "00.50",
        "1.500k",
        "-1",
        "1000",
        "16Mi",
        "1e",
        "1Qi",
        "1.125m",
        "1e-6",
        "1.0001Ki",
    ),
)


def _quantities() -> Iterator[Step]:
    for number, text in enumerate(_AMOUNTS):
        hard = {"requests.memory": text}
        body = {"metadata": {"name": f"amount-{number}"}, "spec": {"hard": hard}}
        yield _create(f"quantity: {text}", f"{QUOTAS}?dryRun=All", body, shown=("spec.hard",))
    resources = {
        "requests": {"cpu": "0.25", "memory": "1024Mi"},
        "limits": {"cpu": "2000m", "memory": "1.5Gi"},
    }
    body = {
        "metadata": {"name": "amounts"},
        "spec": {
            "selector": {"matchLabels": {"app": "amounts"}},
            "template": _template("amounts", resources=resources),
        },
    }
    negative = {"limits": {"cpu": "-1m"}}
    spec = {
        "selector": {"matchLabels": {"app": "negative"}},
        "template": _template("negative", resources=negative),
    }
    yield _create(
        "quantity: a negative one of a container", WEBS, {"metadata": {"name": "negative"}, "spec": spec}
    )
    yield _create(
        "quantity: of a container", WEBS, body, shown=("spec.template.spec.containers.0.resources",)
    )


def _history() -> Iterator[Step]:
    query = f"{MAPS}?labelSelector=app=page"
    for number in range(4):
        metadata = {"name": f"page-{number}", "labels": {"app": "page"}}
        keep = {"OLD": "metadata.resourceVersion"} if number == 0 else {}
        yield _create(f"history: page-{number}", MAPS, {"metadata": metadata}, keep=keep)
    yield Step("history: a page", "GET", f"{query}&limit=2", keep={"TOKEN": "metadata.continue"})
    yield _delete("history: an object of the next page goes", "page-2")
    late = {"metadata": {"name": "page-9", "labels": {"app": "page"}}}
    yield _create("history: another one comes", MAPS, late)
    yield Step("history: the next page is of the same version", "GET", f"{query}&limit=2&continue=$TOKEN")
    watch = f"{query}&watch=true&timeoutSeconds=2"
    yield Step("history: a watch from an old version", "GET", f"{watch}&resourceVersion=$OLD")
    yield Step("history: a token of nobody", "GET", f"{query}&limit=2&continue=nonsense")
    yield Step(
        "history: an old version, exactly", "GET", f"{query}&resourceVersionMatch=Exact&resourceVersion=$OLD"
    )
    at_old = f"{query}&resourceVersion=$OLD"
    yield Step("history: an old version, in pages", "GET", f"{at_old}&limit=3")
    yield Step("history: not older than it", "GET", f"{at_old}&resourceVersionMatch=NotOlderThan")
    yield Step("history: an unknown match", "GET", f"{at_old}&resourceVersionMatch=Sometimes")
    yield Step("history: a token and a version", "GET", f"{at_old}&limit=2&continue=$TOKEN")
    yield Step(
        "history: a token and a match", "GET", f"{query}&limit=2&continue=$TOKEN&resourceVersionMatch=Exact"
    )
    yield Step("history: exactly no version", "GET", f"{query}&resourceVersion=0&resourceVersionMatch=Exact")
    yield Step("history: a watch of a lost version", "GET", f"{watch}&resourceVersion=$OLD", lose=True)
    again = {"RESTART": "metadata.continue"}
    yield Step("history: an expired token", "GET", f"{query}&limit=2&continue=$TOKEN", keep=again)
    yield Step("history: it goes on with what is there now", "GET", f"{query}&limit=2&continue=$RESTART")
    yield Step(
        "history: a lost version, exactly", "GET", f"{query}&resourceVersionMatch=Exact&resourceVersion=$OLD"
    )
    yield Step("history: at least a lost version", "GET", f"{query}&resourceVersion=$OLD")
    fresh = f"{query}&limit=1"
    yield Step("history: a new list", "GET", fresh, keep={"NOW": "metadata.resourceVersion"})
    yield Step("history: a watch of the new version", "GET", f"{watch}&resourceVersion=$NOW")
