"""Requests that apply, create and patch, and conflicts of field managers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.api_server.objects import (
    APPLY,
    BINDINGS,
    BUDGETS,
    JSON,
    MAPS,
    MERGE,
    PATCH,
    PODS,
    ROLES,
    SECRETS,
    SERVICES,
    SETS,
    STRATEGIC,
    WEBS,
    Call,
    a_binding,
    a_budget,
    a_map,
    a_pod,
    a_secret,
    a_service,
    a_web,
    apply_call,
    templated,
)


def applies() -> Iterator[Call]:
    def apply(name: str, path: str, body: Any, query: str = "fieldManager=alice", **rest: Any) -> Call:
        return Call(name, **apply_call(path, body["metadata"]["name"], body, query), **rest)

    yield apply("apply: a new object", MAPS, a_map(data={"a": "1"}))
    yield apply("apply: the same again", MAPS, a_map(data={"a": "1"}))
    yield apply("apply: an unknown field", MAPS, a_map("bad", colour="blue"))
    yield apply("apply: a number for a string", MAPS, a_map("bad", data={"a": 1}))
    yield apply("apply: a boolean for a string", MAPS, a_map("bad", data={"a": True}))
    yield apply("apply: a list for a map", MAPS, a_map("bad", data=["a"]))
    yield apply("apply: a string for a map", MAPS, a_map("bad", data="a"))
    yield apply("apply: a null value", MAPS, a_map("null", data={"a": None}))
    yield apply(
        "apply: an unknown field in metadata",
        MAPS,
        {**a_map("bad"), "metadata": {"name": "bad", "x": 1}},
    )
    yield apply(
        "apply: a number as a label",
        MAPS,
        {**a_map("bad"), "metadata": {"name": "bad", "labels": {"a": 1}}},
    )
    yield apply("apply: a Deployment", WEBS, a_web())
    yield apply("apply: an unknown field of a spec", WEBS, a_web(colour="blue"))
    yield apply("apply: text for a number", WEBS, a_web(replicas="two"))
    yield apply("apply: a fraction of a replica", WEBS, a_web(replicas=1.5), text=False)
    yield apply("apply: text for a boolean", WEBS, a_web(paused="yes"))
    yield apply("apply: an unknown field of a container", WEBS, a_web(template=templated(imagee="x")))
    yield apply("apply: a map for a list", WEBS, a_web(template=templated(args={"a": "b"})))
    two = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    yield apply("apply: a key twice in a list", WEBS, a_web(template=templated(env=two)))
    yield apply("apply: an item without its key", WEBS, a_web(template=templated(env=[{"value": "1"}])))
    yield apply("apply: a port without its number", WEBS, a_web(template=templated(ports=[{"name": "x"}])))
    yield apply("apply: a text in a list of maps", WEBS, a_web(template=templated(env=["a"])))
    limits = {"limits": {"cpu": "plenty"}}
    yield apply("apply: no quantity", WEBS, a_web(template=templated(resources=limits)), text=False)
    yield apply("apply: without a selector", WEBS, a_web("bare", selector=None))
    yield apply("apply: labels that are not selected", WEBS, a_web("other", template=templated()))
    yield apply("apply: without a manager", MAPS, a_map(), query="force=true")
    yield apply("apply: with a manager of 129 characters", MAPS, a_map(), query=f"fieldManager={'m' * 129}")
    yield apply(
        "apply: with a manager that cannot be printed",
        MAPS,
        a_map(),
        query="fieldManager=a%0Ab",
        text=False,
    )
    yield apply("apply: into a missing namespace", MAPS.replace("/ns/", "/nowhere/"), a_map())
    yield apply("apply: dry run", MAPS, a_map("dry"), query="fieldManager=alice&dryRun=All")
    yield Call("apply: a dry run wrote nothing", "GET", f"{MAPS}/dry")
    yield apply("apply: another dry run", MAPS, a_map("dry"), query="fieldManager=alice&dryRun=x")
    yield Call("apply: a refused dry run wrote nothing", "GET", f"{MAPS}/dry")
    yield apply("apply: another kind", MAPS, {**a_map("bad"), "kind": "Secret"}, text=False)
    yield apply("apply: a name that is not allowed", MAPS, a_map("Not_Allowed"))
    owned = {"name": "one", "managedFields": [{"manager": "x", "operation": "Apply"}]}
    yield apply("apply: with managed fields", MAPS, {**a_map(), "metadata": owned}, text=False)
    yield apply(
        "apply: a wrong version", MAPS, {**a_map(), "metadata": {"name": "one", "resourceVersion": "1"}}
    )
    other = {"url": f"{MAPS}/one?fieldManager=alice"}["url"]
    yield Call("apply: a name that is not the URL's", "PATCH", other, a_map("two"), APPLY)
    yield Call("apply: no YAML", "PATCH", other, b"a: [", APPLY, text=False)
    yield Call("apply: a list", "PATCH", other, b"- a", APPLY, text=False)


def creates() -> Iterator[Call]:
    def create(name: str, body: Any, path: str = MAPS, query: str = "", **rest: Any) -> Call:
        return Call(name, "POST", f"{path}?{query}" if query else path, body, **rest)

    strict, warn = "fieldValidation=Strict", "fieldValidation=Warn"
    yield create("create: an object", a_map("created"))
    yield create("create: it exists", a_map("created"))
    yield create("create: an unknown field, strict", a_map("s1", colour="blue"), query=strict)
    yield create("create: an unknown field, warn", a_map("s2", colour="blue"), query=warn)
    yield create(
        "create: an unknown field, ignore", a_map("s3", colour="blue"), query="fieldValidation=Ignore"
    )
    yield create("create: an unknown field", a_map("s4", colour="blue"))
    yield create("create: an unknown validation", a_map("s5"), query="fieldValidation=Loud")
    yield create("create: a wrong type", a_map("t1", data={"a": 1}))
    yield create("create: a wrong type, ignore", a_map("t1", data={"a": 1}), query="fieldValidation=Ignore")
    yield create("create: text for a number", a_web("t2", replicas="two"), WEBS, text=False)
    yield create(
        "create: an unknown field of a container, strict",
        a_web("t3", template=templated(x=1)),
        WEBS,
        strict,
    )
    yield create("create: without a selector", a_web("t4", selector=None), WEBS)
    yield create("create: without containers", a_pod("t5", containers=[]), PODS)
    yield create(
        "create: a restart policy that does not exist",
        a_pod("t6", restartPolicy="Perhaps"),
        PODS,
        text=False,
    )
    yield create("create: without a name", {"apiVersion": "v1", "kind": "ConfigMap"}, text=False)
    yield create("create: with a prefix of a name", {**a_map(), "metadata": {"generateName": "created-"}})
    yield create("create: a name that is not allowed", a_map("Not_Allowed"))
    yield create(
        "create: a label that is not allowed",
        {**a_map("l"), "metadata": {"name": "l", "labels": {"a": "b c"}}},
    )
    yield create(
        "create: an annotation that is not allowed",
        {**a_map("l"), "metadata": {"name": "l", "annotations": {"a b": ""}}},
    )
    yield create(
        "create: a finalizer without a prefix",
        {**a_map("l"), "metadata": {"name": "l", "finalizers": ["hold"]}},
        text=False,
    )
    yield create("create: a key that is not allowed", a_map("k", data={"a b": "c"}))
    yield create("create: another kind", {**a_map("k"), "kind": "Secret"}, text=False)
    yield create("create: another version", {**a_map("k"), "apiVersion": "v2"}, text=False)
    yield create("create: another namespace", {**a_map("k"), "metadata": {"name": "k", "namespace": "other"}})
    yield create(
        "create: a version of its own",
        {**a_map("k"), "metadata": {"name": "k", "resourceVersion": "1"}},
        text=False,
    )
    yield create("create: into a missing namespace", a_map("k"), MAPS.replace("/ns/", "/nowhere/"))
    yield create("create: dry run", a_map("dry"), query="dryRun=All")
    yield create("create: another dry run", a_map("dry"), query="dryRun=x")
    yield create("create: an empty dry run", a_map("dry"), query="dryRun=")
    yield create("create: a manager of 129 characters", a_map("m"), query=f"fieldManager={'m' * 129}")
    yield create("create: no JSON", b"{", text=False)
    yield create("create: a list", b"[]", text=False)
    yield create("create: no body", b"", text=False)
    yield create("create: no base64 in a Secret", a_secret(data={"a": "?"}), SECRETS, text=False)
    yield create("create: a Secret from text", a_secret(stringData={"a": "b"}), SECRETS)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    yield create(
        "create: a rule without verbs", {**role, "rules": [{"apiGroups": [""], "resources": ["pods"]}]}, ROLES
    )
    yield create(
        "create: a rule without groups", {**role, "rules": [{"verbs": ["get"], "resources": ["pods"]}]}, ROLES
    )
    yield create("create: a binding to nothing", a_binding({"kind": "", "name": ""}), BINDINGS, text=False)
    yield create(
        "create: a budget with both bounds",
        a_budget(minAvailable=1, maxUnavailable=1),
        BUDGETS,
        text=False,
    )
    yield create("create: a budget with no percentage", a_budget(minAvailable="some"), BUDGETS, text=False)
    port = {"port": 70000, "targetPort": 80}
    yield create("create: a port that does not exist", a_service(ports=[port]), SERVICES, text=False)
    yield create("create: a service without ports", a_service(), SERVICES)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}
    yield create("create: a namespace with a dot", namespace, "/api/v1/namespaces")
    yield Call("create: at a name", "POST", f"{MAPS}/created", a_map("created"), text=False)
    yield Call("create: in all namespaces", "POST", "/api/v1/configmaps", a_map("created"), text=False)


def patches() -> Iterator[Call]:
    def patch(name: str, body: Any, content: str = MERGE, path: str = f"{MAPS}/created", **rest: Any) -> Call:
        return Call(name, "PATCH", path, body, content, **rest)

    yield patch("patch: merge", {"data": {"a": "1"}})
    yield patch("patch: a wrong type", {"data": {"a": 1}}, text=False)
    yield patch("patch: an unknown field", {"colour": "blue"})
    yield patch(
        "patch: an unknown field, strict",
        {"colour": "b"},
        path=f"{MAPS}/created?fieldValidation=Strict",
        text=False,
    )
    yield patch("patch: a list as a merge patch", [], text=False)
    yield patch("patch: operations", [{"op": "replace", "path": "/data/a", "value": "2"}], PATCH)
    yield patch("patch: a map as operations", {}, PATCH, text=False)
    yield patch(
        "patch: an operation that does not exist", [{"op": "jump", "path": "/data/a"}], PATCH, text=False
    )
    yield patch("patch: a path that does not exist", [{"op": "remove", "path": "/data/b"}], PATCH, text=False)
    yield patch(
        "patch: a test that fails", [{"op": "test", "path": "/data/a", "value": "9"}], PATCH, text=False
    )
    yield patch("patch: strategic", {"data": {"b": "1"}}, STRATEGIC)
    yield patch("patch: plain JSON", {"data": {"b": "1"}}, JSON)
    yield patch("patch: text", b"data", "text/plain")
    yield patch("patch: force without an apply", {"data": {}}, path=f"{MAPS}/created?force=true")
    yield patch("patch: another dry run", {"data": {}}, path=f"{MAPS}/created?dryRun=x")
    yield patch("patch: a missing object", {"data": {}}, path=f"{MAPS}/absent")
    yield patch("patch: the name", {"metadata": {"name": "other"}}, text=False)
    yield patch("patch: a stale version", {"metadata": {"resourceVersion": "1"}})
    yield Call("replace: a missing object", "PUT", f"{MAPS}/absent", a_map("absent"))
    yield Call("replace: an object", "PUT", f"{MAPS}/created", a_map("created", data={"c": "1"}))
    yield Call(
        "replace: a stale version",
        "PUT",
        f"{MAPS}/created",
        {**a_map("created"), "metadata": {"name": "created", "resourceVersion": "1"}},
    )
    yield Call(
        "replace: an unknown field, strict",
        "PUT",
        f"{MAPS}/created?fieldValidation=Strict",
        a_map("created", x=1),
    )
    yield Call("replace: another name", "PUT", f"{MAPS}/created", a_map("other"), text=False)
    yield Call("replace: another dry run", "PUT", f"{MAPS}/created?dryRun=x", a_map("created"))


def conflicts() -> Iterator[Call]:
    def apply(name: str, manager: str, body: Any, path: str = MAPS, force: str = "", **rest: Any) -> Call:
        query = f"fieldManager={manager}{force}"
        return Call(name, **apply_call(path, body["metadata"]["name"], body, query), **rest)

    yield apply("conflict: alice applies", "alice", a_map("shared", data={"a": "1", "b": "1"}))
    yield apply("conflict: bob applies the same", "bob", a_map("shared", data={"a": "1"}))
    yield apply("conflict: bob applies another value", "bob", a_map("shared", data={"b": "2"}))
    yield apply("conflict: bob applies two", "bob", a_map("shared", data={"a": "2", "b": "2"}))
    yield apply("conflict: bob forces", "bob", a_map("shared", data={"b": "2"}), force="&force=true")
    yield apply("conflict: alice applies again", "alice", a_map("shared", data={"a": "1", "b": "1"}))
    patch = f"{MAPS}/shared?fieldManager=carol"
    yield Call("conflict: carol patches", "PATCH", patch, {"data": {"c": "1"}}, MERGE)
    yield apply(
        "conflict: alice meets carol", "alice", a_map("shared", data={"a": "1", "c": "2"}), text=False
    )
    yield apply("conflict: replicas", "bob", a_web(replicas=3), WEBS)
    yield apply("conflict: replicas of bob", "alice", a_web(replicas=2), WEBS)
    image = a_web(template=templated(image="web:2"))
    yield apply("conflict: an image of two managers", "carol", image, WEBS, text=False)
    yield apply("conflict: force of text", "alice", a_map("shared"), force="&force=perhaps")


def fixed() -> Iterator[Call]:
    selector = {"spec": {"selector": {"matchLabels": {"app": "other"}}}}
    yield Call("fixed: the selector of a Deployment", "PATCH", f"{WEBS}/web", selector, MERGE, text=False)
    yield Call("fixed: a binding", "POST", BINDINGS, a_binding({"kind": "Role", "name": "r"}))
    other = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "s"}}
    yield Call("fixed: the role of a binding", "PATCH", f"{BINDINGS}/b", other, MERGE, text=False)
    yield Call("fixed: the type of a Secret", "PATCH", f"{SECRETS}/login", {"type": "other"}, MERGE)
    yield Call("fixed: a map", "POST", MAPS, a_map("fixed", immutable=True, data={"a": "1"}))
    yield Call("fixed: the data of the map", "PATCH", f"{MAPS}/fixed", {"data": {"a": "2"}}, MERGE)
    yield Call("fixed: that it is fixed", "PATCH", f"{MAPS}/fixed", {"immutable": False}, MERGE)
    yield Call(
        "fixed: a label of the map", "PATCH", f"{MAPS}/fixed", {"metadata": {"labels": {"a": "b"}}}, MERGE
    )
    yield Call("fixed: a pod", "POST", PODS, a_pod("fixed"))
    yield Call(
        "fixed: the node of a pod", "PATCH", f"{PODS}/fixed", {"spec": {"nodeName": "one"}}, MERGE, text=False
    )
    image = {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}
    yield Call("fixed: the image of a pod is not", "PATCH", f"{PODS}/fixed", image, STRATEGIC)
    stateful = {**a_web("set")["spec"], "serviceName": "set"}
    head = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"}}
    yield Call("fixed: a StatefulSet", "POST", SETS, {**head, "spec": stateful})
    yield Call(
        "fixed: the service of a StatefulSet", "PATCH", f"{SETS}/set", {"spec": {"serviceName": "x"}}, MERGE
    )
    yield Call("fixed: the uid", "PATCH", f"{MAPS}/fixed", {"metadata": {"uid": "1"}}, MERGE, text=False)
