"""Requests with options, in other forms, with selectors, and watches."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.api_server.objects import MAPS, PODS, SECRETS, WEBS, YAML, Call, a_map


def options() -> Iterator[Call]:
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


def forms() -> Iterator[Call]:
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
    yield Call("accept: text for a create", "POST", MAPS, a_map("accepted"), headers={"Accept": "text/plain"})
    yield Call("accept: a refused create wrote nothing", "GET", f"{MAPS}/accepted")
    yield Call("content: text", "POST", MAPS, a_map("typed"), "text/plain")
    yield Call("content: a form", "POST", MAPS, a_map("typed"), "application/x-www-form-urlencoded")
    yield Call(
        "content: YAML", "POST", MAPS, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\n", YAML
    )
    yield Call(
        "content: with a character set",
        "POST",
        MAPS,
        a_map("charset"),
        "application/json; charset=utf-8",
    )
    yield Call("content: text for a replace", "PUT", f"{MAPS}/created", a_map("created"), "text/plain")
    yield Call("content: text for a delete", "DELETE", f"{MAPS}/created", b"{}", "text/plain", text=False)
    yield Call(
        "table: an object in another form",
        "GET",
        f"{MAPS}/created?includeObject=Half",
        headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    )


def selectors() -> Iterator[Call]:
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


def watches() -> Iterator[Call]:
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
