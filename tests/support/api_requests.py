"""Requests to an API server, in an order in which each finds what it needs; data, for any server.

The answers of a real one are recorded in ``tests/localcloud/recorded``; the stand-in must give the same. A
name is unique; ``ns`` in a path is the namespace of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

JSON, YAML = "application/json", "application/yaml"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"

MAPS, SECRETS, PODS = (f"/api/v1/namespaces/ns/{plural}" for plural in ("configmaps", "secrets", "pods"))
WEBS = "/apis/apps/v1/namespaces/ns/deployments"
SETS = "/apis/apps/v1/namespaces/ns/statefulsets"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns/rolebindings"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns/roles"
BUDGETS = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets"
SERVICES = "/api/v1/namespaces/ns/services"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.org/v1/namespaces/ns/widgets"


@dataclass(frozen=True)
class Call:
    """One request; ``wait``: send it again until it succeeds. ``text`` False: messages may differ."""

    name: str
    method: str
    path: str
    body: Any = None
    content: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    wait: bool = False
    text: bool = True

    def data(self) -> bytes | None:
        """Return the body as it is sent."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body).encode()


def _map(name: str = "one", **rest: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **rest}


def _web(name: str = "web", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "web", "image": "web:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    whole = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def _templated(**container: Any) -> dict[str, Any]:
    one = {"name": "web", "image": "web:1", **container}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [one]}}


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    whole = {"containers": [{"name": "web", "image": "web:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


SIZE = {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["url"],
            "properties": {
                "url": {"type": "string", "pattern": "^https://"},
                "size": SIZE,
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "tags": {"type": "array", "maxItems": 2, "items": {"type": "string", "minLength": 2}},
                "short": {"type": "string", "maxLength": 3},
                "gone": {"type": "string", "nullable": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}


def _crd(plural: str = "widgets", kind: str = "Widget", **version: Any) -> dict[str, Any]:
    first = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}},
        **version,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [first],
        },
    }


def _widget(name: str = "one", **spec: Any) -> dict[str, Any]:
    whole = {"url": "https://example.org", **spec}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": whole}


def _apply(path: str, name: str, body: Any, query: str = "fieldManager=alice") -> dict[str, Any]:
    return {"method": "PATCH", "path": f"{path}/{name}?{query}", "body": body, "content": APPLY}


def calls() -> tuple[Call, ...]:
    """Return every request in order."""
    groups = (_applies, _creates, _patches, _options, _forms, _selectors, _custom, _definitions, _deletes)
    return tuple(call for group in (*groups, _fixed, _conflicts, _watches) for call in group())


def _applies() -> Iterator[Call]:
    def apply(name: str, path: str, body: Any, query: str = "fieldManager=alice", **rest: Any) -> Call:
        return Call(name, **_apply(path, body["metadata"]["name"], body, query), **rest)

    yield apply("apply: a new object", MAPS, _map(data={"a": "1"}))
    yield apply("apply: the same again", MAPS, _map(data={"a": "1"}))
    yield apply("apply: an unknown field", MAPS, _map("bad", colour="blue"))
    yield apply("apply: a number for a string", MAPS, _map("bad", data={"a": 1}))
    yield apply("apply: a boolean for a string", MAPS, _map("bad", data={"a": True}))
    yield apply("apply: a list for a map", MAPS, _map("bad", data=["a"]))
    yield apply("apply: a string for a map", MAPS, _map("bad", data="a"))
    yield apply("apply: a null value", MAPS, _map("null", data={"a": None}))
    yield apply(
        "apply: an unknown field in metadata", MAPS, {**_map("bad"), "metadata": {"name": "bad", "x": 1}}
    )
    yield apply(
        "apply: a number as a label", MAPS, {**_map("bad"), "metadata": {"name": "bad", "labels": {"a": 1}}}
    )
    yield apply("apply: a Deployment", WEBS, _web())
    yield apply("apply: an unknown field of a spec", WEBS, _web(colour="blue"))
    yield apply("apply: text for a number", WEBS, _web(replicas="two"))
    yield apply("apply: a fraction of a replica", WEBS, _web(replicas=1.5), text=False)
    yield apply("apply: text for a boolean", WEBS, _web(paused="yes"))
    yield apply("apply: an unknown field of a container", WEBS, _web(template=_templated(imagee="x")))
    yield apply("apply: a map for a list", WEBS, _web(template=_templated(args={"a": "b"})))
    two = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    yield apply("apply: a key twice in a list", WEBS, _web(template=_templated(env=two)))
    yield apply("apply: an item without its key", WEBS, _web(template=_templated(env=[{"value": "1"}])))
    yield apply("apply: a port without its number", WEBS, _web(template=_templated(ports=[{"name": "x"}])))
    yield apply("apply: a text in a list of maps", WEBS, _web(template=_templated(env=["a"])))
    limits = {"limits": {"cpu": "plenty"}}
    yield apply("apply: no quantity", WEBS, _web(template=_templated(resources=limits)), text=False)
    yield apply("apply: without a selector", WEBS, _web("bare", selector=None))
    yield apply("apply: labels that are not selected", WEBS, _web("other", template=_templated()))
    yield apply("apply: without a manager", MAPS, _map(), query="force=true")
    yield apply("apply: with a manager of 129 characters", MAPS, _map(), query=f"fieldManager={'m' * 129}")
    yield apply(
        "apply: with a manager that cannot be printed", MAPS, _map(), query="fieldManager=a%0Ab", text=False
    )
    yield apply("apply: into a missing namespace", MAPS.replace("/ns/", "/nowhere/"), _map())
    yield apply("apply: dry run", MAPS, _map("dry"), query="fieldManager=alice&dryRun=All")
    yield Call("apply: a dry run wrote nothing", "GET", f"{MAPS}/dry")
    yield apply("apply: another dry run", MAPS, _map("dry"), query="fieldManager=alice&dryRun=x")
    yield Call("apply: a refused dry run wrote nothing", "GET", f"{MAPS}/dry")
    yield apply("apply: another kind", MAPS, {**_map("bad"), "kind": "Secret"}, text=False)
    yield apply("apply: a name that is not allowed", MAPS, _map("Not_Allowed"))
    owned = {"name": "one", "managedFields": [{"manager": "x", "operation": "Apply"}]}
    yield apply("apply: with managed fields", MAPS, {**_map(), "metadata": owned}, text=False)
    yield apply(
        "apply: a wrong version", MAPS, {**_map(), "metadata": {"name": "one", "resourceVersion": "1"}}
    )
    other = {"url": f"{MAPS}/one?fieldManager=alice"}["url"]
    yield Call("apply: a name that is not the URL's", "PATCH", other, _map("two"), APPLY)
    yield Call("apply: no YAML", "PATCH", other, b"a: [", APPLY, text=False)
    yield Call("apply: a list", "PATCH", other, b"- a", APPLY, text=False)


def _creates() -> Iterator[Call]:
    def create(name: str, body: Any, path: str = MAPS, query: str = "", **rest: Any) -> Call:
        return Call(name, "POST", f"{path}?{query}" if query else path, body, **rest)

    strict, warn = "fieldValidation=Strict", "fieldValidation=Warn"
    yield create("create: an object", _map("created"))
    yield create("create: it exists", _map("created"))
    yield create("create: an unknown field, strict", _map("s1", colour="blue"), query=strict)
    yield create("create: an unknown field, warn", _map("s2", colour="blue"), query=warn)
    yield create(
        "create: an unknown field, ignore", _map("s3", colour="blue"), query="fieldValidation=Ignore"
    )
    yield create("create: an unknown field", _map("s4", colour="blue"))
    yield create("create: an unknown validation", _map("s5"), query="fieldValidation=Loud")
    yield create("create: a wrong type", _map("t1", data={"a": 1}))
    yield create("create: a wrong type, ignore", _map("t1", data={"a": 1}), query="fieldValidation=Ignore")
    yield create("create: text for a number", _web("t2", replicas="two"), WEBS, text=False)
    yield create(
        "create: an unknown field of a container, strict", _web("t3", template=_templated(x=1)), WEBS, strict
    )
    yield create("create: without a selector", _web("t4", selector=None), WEBS)
    yield create("create: without containers", _pod("t5", containers=[]), PODS)
    yield create(
        "create: a restart policy that does not exist", _pod("t6", restartPolicy="Perhaps"), PODS, text=False
    )
    yield create("create: without a name", {"apiVersion": "v1", "kind": "ConfigMap"}, text=False)
    yield create("create: with a prefix of a name", {**_map(), "metadata": {"generateName": "created-"}})
    yield create("create: a name that is not allowed", _map("Not_Allowed"))
    yield create(
        "create: a label that is not allowed",
        {**_map("l"), "metadata": {"name": "l", "labels": {"a": "b c"}}},
    )
    yield create(
        "create: an annotation that is not allowed",
        {**_map("l"), "metadata": {"name": "l", "annotations": {"a b": ""}}},
    )
    yield create(
        "create: a finalizer without a prefix",
        {**_map("l"), "metadata": {"name": "l", "finalizers": ["hold"]}},
        text=False,
    )
    yield create("create: a key that is not allowed", _map("k", data={"a b": "c"}))
    yield create("create: another kind", {**_map("k"), "kind": "Secret"}, text=False)
    yield create("create: another version", {**_map("k"), "apiVersion": "v2"}, text=False)
    yield create("create: another namespace", {**_map("k"), "metadata": {"name": "k", "namespace": "other"}})
    yield create(
        "create: a version of its own",
        {**_map("k"), "metadata": {"name": "k", "resourceVersion": "1"}},
        text=False,
    )
    yield create("create: into a missing namespace", _map("k"), MAPS.replace("/ns/", "/nowhere/"))
    yield create("create: dry run", _map("dry"), query="dryRun=All")
    yield create("create: another dry run", _map("dry"), query="dryRun=x")
    yield create("create: an empty dry run", _map("dry"), query="dryRun=")
    yield create("create: a manager of 129 characters", _map("m"), query=f"fieldManager={'m' * 129}")
    yield create("create: no JSON", b"{", text=False)
    yield create("create: a list", b"[]", text=False)
    yield create("create: no body", b"", text=False)
    yield create("create: no base64 in a Secret", _secret(data={"a": "?"}), SECRETS, text=False)
    yield create("create: a Secret from text", _secret(stringData={"a": "b"}), SECRETS)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    yield create(
        "create: a rule without verbs", {**role, "rules": [{"apiGroups": [""], "resources": ["pods"]}]}, ROLES
    )
    yield create(
        "create: a rule without groups", {**role, "rules": [{"verbs": ["get"], "resources": ["pods"]}]}, ROLES
    )
    yield create("create: a binding to nothing", _binding({"kind": "", "name": ""}), BINDINGS, text=False)
    yield create(
        "create: a budget with both bounds", _budget(minAvailable=1, maxUnavailable=1), BUDGETS, text=False
    )
    yield create("create: a budget with no percentage", _budget(minAvailable="some"), BUDGETS, text=False)
    port = {"port": 70000, "targetPort": 80}
    yield create("create: a port that does not exist", _service(ports=[port]), SERVICES, text=False)
    yield create("create: a service without ports", _service(), SERVICES)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}
    yield create("create: a namespace with a dot", namespace, "/api/v1/namespaces")
    yield Call("create: at a name", "POST", f"{MAPS}/created", _map("created"), text=False)
    yield Call("create: in all namespaces", "POST", "/api/v1/configmaps", _map("created"), text=False)


def _secret(**rest: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, **rest}


def _service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def _binding(role: dict[str, str]) -> dict[str, Any]:
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b"}}
    return {**head, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **role}}


def _budget(**spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    return {**head, "spec": {"selector": {"matchLabels": {"app": "none"}}, **spec}}


def _patches() -> Iterator[Call]:
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
    yield Call("replace: a missing object", "PUT", f"{MAPS}/absent", _map("absent"))
    yield Call("replace: an object", "PUT", f"{MAPS}/created", _map("created", data={"c": "1"}))
    yield Call(
        "replace: a stale version",
        "PUT",
        f"{MAPS}/created",
        {**_map("created"), "metadata": {"name": "created", "resourceVersion": "1"}},
    )
    yield Call(
        "replace: an unknown field, strict",
        "PUT",
        f"{MAPS}/created?fieldValidation=Strict",
        _map("created", x=1),
    )
    yield Call("replace: another name", "PUT", f"{MAPS}/created", _map("other"), text=False)
    yield Call("replace: another dry run", "PUT", f"{MAPS}/created?dryRun=x", _map("created"))


def _options() -> Iterator[Call]:
    yield Call("list: a limit of text", "GET", f"{MAPS}?limit=many")
    yield Call("list: a negative limit", "GET", f"{MAPS}?limit=-1")
    yield Call("list: one at a time", "GET", f"{MAPS}?limit=1")
    yield Call("list: a token that is none", "GET", f"{MAPS}?limit=1&continue=what", text=False)
    yield Call("list: a version of text", "GET", f"{MAPS}?resourceVersion=old", text=False)
    yield Call("list: a match without a version", "GET", f"{MAPS}?resourceVersionMatch=Exact")
    yield Call("list: a timeout of text", "GET", f"{MAPS}?timeoutSeconds=soon")
    yield Call("get: a version of text", "GET", f"{MAPS}/created?resourceVersion=old", text=False)
    yield Call("list: an unknown kind", "GET", "/api/v1/namespaces/ns/gadgets", text=False)
    yield Call("list: an unknown group", "GET", "/apis/example.net/v1/gadgets", text=False)
    yield Call("get: an unknown subresource", "GET", f"{MAPS}/created/status", text=False)
    yield Call("get: a missing object", "GET", f"{MAPS}/absent")
    yield Call("get: a missing object of a group", "GET", f"{WEBS}/absent")


def _forms() -> Iterator[Call]:
    for title, accept in {
        "text": "text/plain",
        "XML": "application/xml",
        "anything": "*/*",
        "JSON or text": "text/plain, application/json",
        "YAML": YAML,
        "a table": "application/json;as=Table;v=v1;g=meta.k8s.io",
        "a chair": "application/json;as=Chair;v=v1;g=meta.k8s.io",
        "metadata": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    }.items():
        yield Call(f"accept: {title}", "GET", f"{MAPS}/created", headers={"Accept": accept})
    yield Call("accept: text for a list", "GET", MAPS, headers={"Accept": "text/plain"})
    yield Call("accept: text for a create", "POST", MAPS, _map("accepted"), headers={"Accept": "text/plain"})
    yield Call("accept: a refused create wrote nothing", "GET", f"{MAPS}/accepted")
    yield Call("content: text", "POST", MAPS, _map("typed"), "text/plain")
    yield Call("content: a form", "POST", MAPS, _map("typed"), "application/x-www-form-urlencoded")
    yield Call(
        "content: YAML", "POST", MAPS, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\n", YAML
    )
    yield Call(
        "content: with a character set", "POST", MAPS, _map("charset"), "application/json; charset=utf-8"
    )
    yield Call("content: text for a replace", "PUT", f"{MAPS}/created", _map("created"), "text/plain")
    yield Call("content: text for a delete", "DELETE", f"{MAPS}/created", b"{}", "text/plain", text=False)
    yield Call(
        "table: an object in another form",
        "GET",
        f"{MAPS}/created?includeObject=Half",
        headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    )


def _selectors() -> Iterator[Call]:
    for title, selector in {
        "equal": "app=web",
        "in a set": "app in (web, db),!old",
        "an open bracket": "app in (web",
        "no bracket": "app in web",
        "an unknown operator": "app is web",
        "a comma at the end": "app=web,",
        "no key": "=web",
        "a key that is not allowed": "a b=c",
        "a value that is not allowed": "app=a_",
        "two signs": "app==!web",
        "a number": "app>3",
        "no number": "app>three",
        "a closing bracket": ")",
    }.items():
        query = selector.replace(" ", "%20").replace(">", "%3E").replace("!", "%21")
        yield Call(
            f"labels: {title}", "GET", f"{MAPS}?labelSelector={query}", text=title != "an open bracket"
        )
    for title, path, selector in (
        ("a name", MAPS, "metadata.name=one"),
        ("not a name", MAPS, "metadata.name!=one"),
        ("an unknown field", MAPS, "data.a=1"),
        ("no comparison", MAPS, "metadata.name"),
        ("a node", PODS, "spec.nodeName=one"),
        ("an unknown field of a pod", PODS, "spec.colour=blue"),
        ("a phase", PODS, "status.phase=Running"),
        ("an unknown field of a Deployment", WEBS, "spec.replicas=1"),
        ("a type", SECRETS, "type=Opaque"),
    ):
        yield Call(f"fields: {title}", "GET", f"{path}?fieldSelector={selector}")


def _custom() -> Iterator[Call]:
    def create(name: str, body: Any, query: str = "", **rest: Any) -> Call:
        return Call(name, "POST", f"{WIDGETS}?{query}" if query else WIDGETS, body, **rest)

    yield Call("custom: the definition", "POST", CRDS, _crd())
    yield Call("custom: it is served", "GET", WIDGETS, wait=True)
    yield create("custom: an object", _widget())
    yield Call("custom: its defaults", "GET", f"{WIDGETS}/one")
    yield create("custom: an unknown field", _widget("u1", shape="round"))
    yield Call("custom: an unknown field is pruned", "GET", f"{WIDGETS}/u1")
    yield create("custom: an unknown field, strict", _widget("u2", shape="round"), "fieldValidation=Strict")
    yield create("custom: a free field", _widget("u3", free={"a": {"b": 1}}), "fieldValidation=Strict")
    yield create("custom: a wrong type", _widget("v", size="big"))
    yield create("custom: too small", _widget("v", size=0))
    yield create("custom: too big", _widget("v", size=10))
    yield create("custom: none of the values", _widget("v", colour="green"))
    yield create("custom: a pattern that does not match", _widget("v", url="http://example.org"))
    yield create("custom: a missing field", {**_widget("v"), "spec": {"size": 1}})
    yield create("custom: a port by name", _widget("v1", port="http"))
    yield create("custom: no port", _widget("v", port=[1]), text=False)
    yield create("custom: too many", _widget("v", tags=["aa", "bb", "cc"]))
    yield create("custom: too short", _widget("v", tags=["a"]))
    yield create("custom: too long", _widget("v", short="long"))
    yield create("custom: null where it may be", _widget("n1", gone=None))
    yield create("custom: null where it may not be", _widget("n2", colour=None))
    yield create("custom: a spec of text", {**_widget("v"), "spec": "text"}, text=False)
    yield create("custom: two problems", _widget("v", size=0, colour="green"), text=False)
    yield create("custom: the same key twice", _widget("v", parts=[{"name": "a"}, {"name": "a"}]), text=False)
    yield create("custom: another version", {**_widget("v"), "apiVersion": "example.org/v2"}, text=False)
    apply = f"{WIDGETS}/applied?fieldManager=alice"
    yield Call("custom: apply", "PATCH", apply, _widget("applied", parts=[{"name": "a", "count": 1}]), APPLY)
    yield Call("custom: apply an unknown field", "PATCH", apply, _widget("applied", shape="round"), APPLY)
    yield Call("custom: apply a wrong type", "PATCH", apply, _widget("applied", size="big"), APPLY)
    yield Call("custom: apply a wrong value", "PATCH", apply, _widget("applied", size=0), APPLY)
    yield Call("custom: apply null where it may be", "PATCH", apply, _widget("applied", gone=None), APPLY)
    yield Call("custom: apply null where it may not be", "PATCH", apply, _widget("applied", free=None), APPLY)
    bob = f"{WIDGETS}/applied?fieldManager=bob"
    yield Call(
        "custom: apply an item of another manager",
        "PATCH",
        bob,
        _widget("applied", parts=[{"name": "a", "count": 2}]),
        APPLY,
    )
    yield Call(
        "custom: apply an item next to it", "PATCH", bob, _widget("applied", parts=[{"name": "b"}]), APPLY
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
    yield Call("custom: content text", "POST", WIDGETS, _widget("x"), "text/plain")


def _definitions() -> Iterator[Call]:
    def create(name: str, body: Any, **rest: Any) -> Call:
        return Call(name, "POST", CRDS, body, **rest)

    gadgets = _crd("gadgets", "Gadget")
    yield create("definition: without a schema", _crd("gadgets", "Gadget", schema=None), text=False)
    yield create("definition: not stored", _crd("gadgets", "Gadget", storage=False), text=False)
    yield create("definition: another name", {**gadgets, "metadata": {"name": "other.example.org"}})
    untyped = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}
    yield create("definition: a field without a type", _crd("gadgets", "Gadget", schema=untyped), text=False)
    root = {"openAPIV3Schema": {"type": "string"}}
    yield create("definition: a root of text", _crd("gadgets", "Gadget", schema=root), text=False)
    yield create(
        "definition: a scope that does not exist",
        {**gadgets, "spec": {**gadgets["spec"], "scope": "World"}},
        text=False,
    )
    unknown = {**gadgets, "spec": {**gadgets["spec"], "colour": "blue"}}
    yield Call("definition: an unknown field, strict", "POST", f"{CRDS}?fieldValidation=Strict", unknown)
    one = f"{CRDS}/widgets.example.org"
    yield Call("definition: another scope", "PATCH", one, {"spec": {"scope": "Cluster"}}, MERGE, text=False)
    second = {**_crd()["spec"]["versions"][0], "name": "v2"}
    first = {**_crd()["spec"]["versions"][0], "storage": False}
    yield Call(
        "definition: another storage version", "PATCH", one, {"spec": {"versions": [first, second]}}, MERGE
    )
    yield Call(
        "definition: a stored version is dropped", "PATCH", one, {"spec": {"versions": [second]}}, MERGE
    )


def _deletes() -> Iterator[Call]:
    def delete(name: str, what: str, body: Any = None, query: str = "", **rest: Any) -> Call:
        return Call(name, "DELETE", f"{MAPS}/{what}?{query}" if query else f"{MAPS}/{what}", body, **rest)

    for number in range(9):
        yield Call(f"delete: a map ({number})", "POST", MAPS, _map(f"d{number}"))
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
    yield Call("delete: a pod that is nowhere", "POST", PODS, _pod("nowhere"))
    yield Call("delete: it goes at once", "DELETE", f"{PODS}/nowhere")
    yield Call("delete: and no longer exists", "GET", f"{PODS}/nowhere")
    held = {**_map("held"), "metadata": {"name": "held", "finalizers": ["example.org/hold"]}}
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


def _fixed() -> Iterator[Call]:
    selector = {"spec": {"selector": {"matchLabels": {"app": "other"}}}}
    yield Call("fixed: the selector of a Deployment", "PATCH", f"{WEBS}/web", selector, MERGE, text=False)
    yield Call("fixed: a binding", "POST", BINDINGS, _binding({"kind": "Role", "name": "r"}))
    other = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "s"}}
    yield Call("fixed: the role of a binding", "PATCH", f"{BINDINGS}/b", other, MERGE, text=False)
    yield Call("fixed: the type of a Secret", "PATCH", f"{SECRETS}/login", {"type": "other"}, MERGE)
    yield Call("fixed: a map", "POST", MAPS, _map("fixed", immutable=True, data={"a": "1"}))
    yield Call("fixed: the data of the map", "PATCH", f"{MAPS}/fixed", {"data": {"a": "2"}}, MERGE)
    yield Call("fixed: that it is fixed", "PATCH", f"{MAPS}/fixed", {"immutable": False}, MERGE)
    yield Call(
        "fixed: a label of the map", "PATCH", f"{MAPS}/fixed", {"metadata": {"labels": {"a": "b"}}}, MERGE
    )
    yield Call("fixed: a pod", "POST", PODS, _pod("fixed"))
    yield Call(
        "fixed: the node of a pod", "PATCH", f"{PODS}/fixed", {"spec": {"nodeName": "one"}}, MERGE, text=False
    )
    image = {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}
    yield Call("fixed: the image of a pod is not", "PATCH", f"{PODS}/fixed", image, STRATEGIC)
    stateful = {**_web("set")["spec"], "serviceName": "set"}
    head = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"}}
    yield Call("fixed: a StatefulSet", "POST", SETS, {**head, "spec": stateful})
    yield Call(
        "fixed: the service of a StatefulSet", "PATCH", f"{SETS}/set", {"spec": {"serviceName": "x"}}, MERGE
    )
    yield Call("fixed: the uid", "PATCH", f"{MAPS}/fixed", {"metadata": {"uid": "1"}}, MERGE, text=False)


def _conflicts() -> Iterator[Call]:
    def apply(name: str, manager: str, body: Any, path: str = MAPS, force: str = "", **rest: Any) -> Call:
        query = f"fieldManager={manager}{force}"
        return Call(name, **_apply(path, body["metadata"]["name"], body, query), **rest)

    yield apply("conflict: alice applies", "alice", _map("shared", data={"a": "1", "b": "1"}))
    yield apply("conflict: bob applies the same", "bob", _map("shared", data={"a": "1"}))
    yield apply("conflict: bob applies another value", "bob", _map("shared", data={"b": "2"}))
    yield apply("conflict: bob applies two", "bob", _map("shared", data={"a": "2", "b": "2"}))
    yield apply("conflict: bob forces", "bob", _map("shared", data={"b": "2"}), force="&force=true")
    yield apply("conflict: alice applies again", "alice", _map("shared", data={"a": "1", "b": "1"}))
    patch = f"{MAPS}/shared?fieldManager=carol"
    yield Call("conflict: carol patches", "PATCH", patch, {"data": {"c": "1"}}, MERGE)
    yield apply("conflict: alice meets carol", "alice", _map("shared", data={"a": "1", "c": "2"}), text=False)
    yield apply("conflict: replicas", "bob", _web(replicas=3), WEBS)
    yield apply("conflict: replicas of bob", "alice", _web(replicas=2), WEBS)
    image = _web(template=_templated(image="web:2"))
    yield apply("conflict: an image of two managers", "carol", image, WEBS, text=False)
    yield apply("conflict: force of text", "alice", _map("shared"), force="&force=perhaps")


def _watches() -> Iterator[Call]:
    yield Call(
        "watch: a version of text",
        "GET",
        f"{MAPS}?watch=true&resourceVersion=old&timeoutSeconds=1",
        text=False,
    )
    yield Call("watch: a wrong label", "GET", f"{MAPS}?watch=true&labelSelector=a%20is%20b&timeoutSeconds=1")
    yield Call("watch: a wrong field", "GET", f"{PODS}?watch=true&fieldSelector=spec.x=1&timeoutSeconds=1")
    yield Call(
        "watch: accept text",
        "GET",
        f"{MAPS}?watch=true&timeoutSeconds=1",
        headers={"Accept": "text/plain"},
        text=False,
    )
    yield Call("watch: a timeout of text", "GET", f"{MAPS}?watch=true&timeoutSeconds=soon")
    yield Call(
        "watch: what is there",
        "GET",
        f"{MAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=created",
    )
