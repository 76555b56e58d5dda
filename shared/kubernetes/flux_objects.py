"""The Kubernetes objects of Flux: its components as pinned in git, and how what we applied is recognised."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, urlsplit

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from shared.frozen import dataclass, field
from shared.json_tree import Json, digest_of
from shared.resource_ids import ObjectRef

NAMESPACE = "flux-system"
EXTENSION_NAME = "flux"
"""The name that Azure gives Microsoft's extension where it installs it by itself."""
HTTPS = 443
DIGEST = "roadstead.dev/applied-digest"
"""Annotation with the digest of the applied object; an equal digest means that there is nothing to write."""
MAX_COMPONENT_BYTES = 8 * 1024 * 1024
MAX_COMPONENT_DEPTH = 100

SOURCE = ObjectRef("source.toolkit.fluxcd.io/v1", "GitRepository", NAMESPACE, NAMESPACE)
SECRET = ObjectRef("v1", "Secret", NAMESPACE, NAMESPACE)
CREDENTIALS = ("username", "password")
"""The keys of the Secret."""
FACTS = ObjectRef("v1", "ConfigMap", "cluster-facts", NAMESPACE)
"""The ConfigMap with the facts of the cluster, from which Kustomizations can take variables."""
KUSTOMIZATION = ObjectRef("kustomize.toolkit.fluxcd.io/v1", "Kustomization", NAMESPACE, NAMESPACE)


@dataclass(frozen=True)
class GitCredentials:
    """User name and token with which Flux reads sources on one server; never shown, never sent to another.

    ``host`` is a name, or a name and a port as "git.example.com:8443"; without one the port is 443.
    """

    username: str
    password: str = field(repr=False)
    host: str = "github.com"

    def serve(self, url: str) -> bool:
        """Return whether these credentials are for a source at this address."""
        return is_on_host(url, self.host)


def is_on_host(url: str, host: str) -> bool:
    """Return whether a source is on a server; ``host`` is its name, with its port unless that is 443."""
    try:
        source, ours = urlsplit(url), urlsplit(f"https://{host}")
        same = (source.hostname, _port(source)) == (ours.hostname, _port(ours))
    except ValueError:  # no address, or no port
        return False
    return same and source.scheme == "https"


def is_git_on(url: str, host: str) -> bool:
    """Return whether a git repository is on a server, which it names for HTTPS or for SSH."""
    if not url.startswith("ssh://"):
        return is_on_host(url, host)
    try:
        return urlsplit(url).hostname == urlsplit(f"https://{host}").hostname
    except ValueError:
        return False


def _port(address: SplitResult) -> int:
    return HTTPS if address.port is None else address.port


class ComponentsError(ValueError):
    """The components file is no list of Kubernetes objects."""


@lru_cache(maxsize=2)
def components(content: bytes) -> tuple[Json, ...]:
    """Return the objects of a ``gotk-components.yaml``; raise ComponentsError for any other content.

    Parsing half a megabyte takes longer than applying it, so the last two results are cached: a fleet has one
    such file, or two while it moves to another version.
    """
    if len(content) > MAX_COMPONENT_BYTES:
        raise ComponentsError(f"the file has {len(content)} bytes, more than {MAX_COMPONENT_BYTES}")
    try:
        _refuse_unbounded(content)
        documents = [item for item in yaml.load_all(content, Loader=_ManifestLoader) if item is not None]
    except (yaml.YAMLError, ValueError) as error:
        raise ComponentsError(f"not valid YAML: {str(error).splitlines()[0]}") from error
    for number, item in enumerate(documents, start=1):
        if not _is_object(item):
            raise ComponentsError(f"document {number} is not a Kubernetes object with a name")
    if not documents:
        raise ComponentsError("the file has no Kubernetes object")
    return tuple(stamped(item) for item in documents)


class _ManifestLoader(yaml.CSafeLoader):
    """Reads dates as strings, because JSON, and so Kubernetes, has no dates."""


_ManifestLoader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _refuse_unbounded(content: bytes) -> None:
    """Refuse aliases, which can grow without bound, and nesting that overflows the parser's stack."""
    depth = 0
    for event in yaml.parse(content, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or depth > MAX_COMPONENT_DEPTH:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise ComponentsError(f"line {line}: aliases, and very deep nesting, are not allowed")


def _is_object(item: Any) -> bool:
    if not (isinstance(item, dict) and isinstance(item.get("metadata"), dict)):
        return False
    names = (item.get("apiVersion"), item.get("kind"), item["metadata"].get("name"))
    namespace = item["metadata"].get("namespace")
    return all(isinstance(name, str) and name for name in names) and isinstance(namespace, str | None)


def stamped(manifest: Json) -> dict[str, Any]:
    """Return the object with the digest of its content as an annotation."""
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), DIGEST: digest_of(manifest)}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def is_applied(manifest: Json, live: Json | None) -> bool:
    """Return whether the object on the cluster is the one that Roadstead would apply."""
    if live is None:
        return False
    applied = (live["metadata"].get("annotations") or {}).get(DIGEST)
    return bool(applied == manifest["metadata"]["annotations"][DIGEST])


def is_ours(live: Json) -> bool:
    """Return whether Roadstead applied the object."""
    return DIGEST in (live["metadata"].get("annotations") or {})


def ref_of(manifest: Json) -> ObjectRef:
    """Return the reference of an object."""
    metadata = manifest["metadata"]
    return ObjectRef(
        manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace") or ""
    )


def comes_first(manifest: Json) -> bool:
    """Return whether other objects depend on this one: a namespace, or the definition of a kind."""
    return manifest["kind"] in ("Namespace", "CustomResourceDefinition")


# The inventory of Flux's components on a cluster: what Roadstead applied, so that it can remove it later.
#
# It is a ConfigMap. An object is added to it before it is applied, and leaves it after it was removed.

INVENTORY = ObjectRef("v1", "ConfigMap", "roadstead-components", NAMESPACE)
_KEY = "objects"
_STORED = TypeAdapter(list[ObjectRef], config=ConfigDict(defer_build=True))
_NEVER_REMOVED = ("Namespace",)
_WORKLOADS, _DEFINITION = ("Deployment", "StatefulSet", "DaemonSet"), "CustomResourceDefinition"


def inventory_of(refs: Collection[ObjectRef], at: ObjectRef = INVENTORY) -> Json:
    """Return the ConfigMap that lists these objects."""
    listed = [ref.__dict__ for ref in sorted(refs, key=lambda ref: (ref.kind, ref.namespace, ref.name))]
    metadata = {"name": at.name, "namespace": at.namespace}
    content = json.dumps(listed, indent=1)
    return stamped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: content}})


def listed_in(live: Json) -> frozenset[ObjectRef]:
    """Return the objects that an inventory lists; none from an unreadable one."""
    try:
        return frozenset(_STORED.validate_json(str((live.get("data") or {}).get(_KEY) or "[]")))
    except ValidationError:
        return frozenset()


def removable(manifests: Sequence[Json]) -> frozenset[ObjectRef]:
    """Return those of the components that may be removed one day: all but namespaces."""
    return frozenset(ref_of(manifest) for manifest in manifests if manifest["kind"] not in _NEVER_REMOVED)


def in_order_of_removal(refs: Collection[ObjectRef]) -> list[ObjectRef]:
    """Return workloads first, so that nothing runs without its rights, and definitions last."""

    def rank(ref: ObjectRef) -> tuple[int, str, str]:
        return (0 if ref.kind in _WORKLOADS else 2 if ref.kind == _DEFINITION else 1, ref.kind, ref.name)

    return sorted((ref for ref in refs if ref.kind not in _NEVER_REMOVED), key=rank)
