"""Defaults and quantities of built-in kinds, and reads of versions that are no longer stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.api_server.objects import BUDGETS, MAPS, PODS, SERVICES, SETS, WEBS
from tests.support.api_server.steps import Step, create, delete, pod_template

QUOTAS = "/api/v1/namespaces/ns/resourcequotas"
CLAIMS = "/api/v1/namespaces/ns/persistentvolumeclaims"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/ns/networkpolicies"
DAEMONS = "/apis/apps/v1/namespaces/ns/daemonsets"
JOBS = "/apis/batch/v1/namespaces/ns/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/ns/cronjobs"


def defaults() -> Iterator[Step]:
    def minimal(name: str, path: str, shown: tuple[str, ...] = ("spec",), **content: Any) -> Step:
        return create(f"defaults: {name}", path, {"metadata": {"name": "minimal"}, **content}, shown=shown)

    selector = {"matchLabels": {"app": "minimal"}}
    template = pod_template("minimal")
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
    yield create("defaults: a PersistentVolumeClaim", CLAIMS, body, shown=("spec",))
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
    whole = pod_template("minimal", **probes)
    whole["spec"].update(volumes=volumes, serviceAccountName="default")
    body = {"metadata": {"name": "full"}, "spec": {"selector": selector, "template": whole}}
    yield create("defaults: probes and volumes", WEBS, body, shown=("spec",))
    for name, strategy in (
        ("recreate", {"type": "Recreate"}),
        ("rolling", {"rollingUpdate": {"maxSurge": 2}}),
    ):
        body = {"metadata": {"name": name}, "spec": {**workload, "strategy": strategy}}
        yield create(f"defaults: the strategy {name}", WEBS, body, shown=("spec.strategy",))
    for name, image in (
        ("latest", "web:latest"),
        ("digest", f"web@sha256:{'0' * 64}"),
        ("port", "host:5000/web"),
    ):
        body = {
            "metadata": {"name": name},
            "spec": {**workload, "template": pod_template("minimal", image=image)},
        }
        yield create(f"defaults: an image by {name}", WEBS, body, shown=("spec.template.spec.containers",))


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


def quantities() -> Iterator[Step]:
    for number, text in enumerate(_AMOUNTS):
        hard = {"requests.memory": text}
        body = {"metadata": {"name": f"amount-{number}"}, "spec": {"hard": hard}}
        yield create(f"quantity: {text}", f"{QUOTAS}?dryRun=All", body, shown=("spec.hard",))
    resources = {
        "requests": {"cpu": "0.25", "memory": "1024Mi"},
        "limits": {"cpu": "2000m", "memory": "1.5Gi"},
    }
    body = {
        "metadata": {"name": "amounts"},
        "spec": {
            "selector": {"matchLabels": {"app": "amounts"}},
            "template": pod_template("amounts", resources=resources),
        },
    }
    negative = {"limits": {"cpu": "-1m"}}
    spec = {
        "selector": {"matchLabels": {"app": "negative"}},
        "template": pod_template("negative", resources=negative),
    }
    yield create(
        "quantity: a negative one of a container", WEBS, {"metadata": {"name": "negative"}, "spec": spec}
    )
    yield create("quantity: of a container", WEBS, body, shown=("spec.template.spec.containers.0.resources",))


def history() -> Iterator[Step]:
    query = f"{MAPS}?labelSelector=app=page"
    for number in range(4):
        metadata = {"name": f"page-{number}", "labels": {"app": "page"}}
        keep = {"OLD": "metadata.resourceVersion"} if number == 0 else {}
        yield create(f"history: page-{number}", MAPS, {"metadata": metadata}, keep=keep)
    yield Step("history: a page", "GET", f"{query}&limit=2", keep={"TOKEN": "metadata.continue"})
    yield delete("history: an object of the next page goes", "page-2")
    late = {"metadata": {"name": "page-9", "labels": {"app": "page"}}}
    yield create("history: another one comes", MAPS, late)
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
