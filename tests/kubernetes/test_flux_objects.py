"""The objects of Flux, and how their readiness is read."""

from __future__ import annotations

from typing import Any

import pytest

from shared.kubernetes.flux_objects import (
    ComponentsError,
    GitCredentials,
    comes_first,
    components,
    is_applied,
    ref_of,
)
from shared.kubernetes.sync_objects import sync_objects
from shared.language.desired import Desired
from shared.language.model.cluster.spec import ClusterSpec
from tests.support import fleet_files
from tests.support.desired_clusters import desired

CREDENTIALS = GitCredentials("git", "canary-token")
FLEET = "example"


def pulling(url: str) -> Desired:
    """Return a cluster whose Flux pulls from an address that its record has."""
    cluster = desired("one")
    flux = cluster.spec.flux.model_copy(update={"repository": url})
    return Desired.of(cluster.stored, cluster.spec.model_copy(update={"flux": flux}))


def kinds(objects: tuple[dict[str, Any], ...]) -> list[str]:
    return [str(item["kind"]) for item in objects]


def test_a_private_source_gets_its_secret_and_a_public_one_none() -> None:
    with_secret = sync_objects(desired("one"), FLEET, CREDENTIALS)
    assert kinds(with_secret) == ["Secret", "GitRepository", "Kustomization"]
    assert with_secret[1]["spec"]["secretRef"] == {"name": "flux-system"}
    public = sync_objects(desired("one"), FLEET, None)
    assert kinds(public) == ["GitRepository", "Kustomization"]
    assert "secretRef" not in public[0]["spec"]


@pytest.mark.parametrize(
    "url",
    [
        *("https://elsewhere.example/x", "https://github.com.evil.example/x"),
        *(
            "https://github.com:8443/example/fleet",
            "https://github.com:80/example/fleet",
            "https://github.com:port/example/fleet",
            "https://[::1/x",
        ),
    ],
)
def test_the_token_goes_to_no_other_host_or_port_and_never_in_the_clear(url: str) -> None:
    assert kinds(sync_objects(pulling(url), FLEET, CREDENTIALS)) == ["GitRepository", "Kustomization"]


@pytest.mark.parametrize(
    ("host", "url", "served"),
    [
        ("github.com", "https://GitHub.com/example/fleet", True),
        ("github.com", "https://github.com:443/example/fleet", True),
        ("github.com:443", "https://github.com/example/fleet", True),
        ("Git.Example.com:8443", "https://git.example.com:8443/a/b", True),
        ("git.example.com:8443", "https://git.example.com/a/b", False),
        ("git.example.com:8443", "https://git.example.com:8444/a/b", False),
        ("git.example.com:99999", "https://elsewhere.example:99999/a/b", False),
        ("github.com", "https://github.com:0/a/b", False),
    ],
)
def test_credentials_are_for_one_host_and_port(host: str, url: str, served: bool) -> None:
    assert GitCredentials("git", "canary-token", host).serve(url) is served
    assert ("Secret" in kinds(sync_objects(pulling(url), FLEET, GitCredentials("git", "t", host)))) is served


@pytest.mark.parametrize(
    "url",
    [
        "http://github.com/example/fleet",
        "ssh://git@github.com/example/fleet",
        "https://github.com@evil.example/x",
    ],
)
def test_credentials_are_for_no_other_protocol_and_no_user(url: str) -> None:
    assert not CREDENTIALS.serve(url)


def test_the_credentials_do_not_show_their_token() -> None:
    assert "canary" not in repr(CREDENTIALS)


def test_an_applied_object_is_recognised_by_its_digest() -> None:
    source = sync_objects(desired("one"), FLEET, None)[1]
    assert is_applied(source, source)
    assert not is_applied(source, None)
    assert not is_applied(source, {**source, "metadata": {"name": "flux-system"}})
    other = sync_objects(Desired.of(desired("one").stored, _path("./other")), FLEET, None)[1]
    assert not is_applied(other, source)


def _path(path: str) -> ClusterSpec:
    spec = desired("one").spec
    return spec.model_copy(update={"flux": spec.flux.model_copy(update={"path": path})})


def test_namespaces_and_definitions_of_the_example_components_are_applied_first() -> None:
    objects = components(fleet_files.example()["flux/gotk-components.yaml"])
    first = [ref_of(item).kind for item in objects if comes_first(item)]
    assert set(first) == {"Namespace", "CustomResourceDefinition"}
    assert len(objects) > len(first)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no Kubernetes object"),
        (b"- a\n", "document 1 is not a Kubernetes object"),
        (b"kind: X\napiVersion: v1\nmetadata: {name: 2026-01-01}\n---\nkind: Y\n", "document 2 is not"),
        (b"a: [", "not valid YAML"),
        (b"a: &x 1\nb: *x\n", "line 2: aliases"),
        (b"[" * 5000, "very deep nesting"),
        (b"x" * (9 << 20), "more than 8388608"),
    ],
)
def test_a_file_without_components_of_flux_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ComponentsError, match=message):
        components(content)
