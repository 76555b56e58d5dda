"""Reads one cluster's manifest: from the bytes of its file to a tree that is merged over its layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from shared.frozen import dataclass
from shared.language.model.cluster.flux import EXTENSION, OPERATOR
from shared.language.model.kinds import AttachedCluster, Cluster
from shared.language.resolve.layers import FLUX, KUBERNETES, NODE_IMAGES, Base, Layers
from shared.language.resolve.manifest_file import (
    Contents,
    Problems,
    layer_problems,
    over_limit,
    part,
    reference,
    unmatched_removals,
    without,
)
from shared.language.resolve.problems import Problem, problem_at
from shared.language.resolve.repository_layout import CLUSTER_FILE, Files, cluster_path
from shared.language.resolve.reuse import OWN, key_of
from shared.language.resolve.rules.common_rules import fields_of_aks, is_attached, without_aks
from shared.language.resolve.validation import problems_of
from shared.language.resolve.work import Work, units_of
from shared.language.yaml.nodes import Mark, Node, Root, merge
from shared.language.yaml.parser import YamlError, parse, value_of

SPEC = ("spec",)
LONG_TERM, INSTALL = "AKSLongTermSupport", "spec.flux.install"


@dataclass(frozen=True)
class ReadManifest:
    """A parsed manifest: its spec without ``class`` and ``environment``, and the layers that these choose."""

    root: Root
    spec: Node
    base: Base
    cluster_class: str
    environment: str


@dataclass(frozen=True)
class MergedManifest:
    """A cluster's manifest merged over its layers, without ``class`` and ``environment`` in its spec."""

    read: ReadManifest
    node: Node
    problems: Problems = ()

    @property
    def model(self) -> type[Cluster]:
        """The model of the provider that the manifest names."""
        return AttachedCluster if is_attached(self.node.find(SPEC)) else Cluster


class MergedValue(NamedTuple):
    """The value of a manifest, without the places in it, and the own fields of its spec.

    ``key`` is that of the rest of the spec, which other clusters may have too. ``layers`` is how many values
    are merged into it.
    """

    value: Mapping[str, Any]
    own: Mapping[str, Any]
    key: str
    layers: int


class ClusterReader:
    """Reads the manifests of the clusters of a commit."""

    def __init__(self, layers: Layers, files: Files, contents: Contents) -> None:
        self._layers, self._files, self._contents = layers, files, contents
        self._share = layers.work.limit

    def share_among(self, clusters: int) -> None:
        """Give each of so many clusters an even share of the work."""
        self._share = self._layers.work.share(clusters)

    def read(self, name: str) -> ReadManifest | Problems:
        """Return the manifest of a cluster, or its problems."""
        content = self.content(name)
        return self.placed(name, content) if isinstance(content, bytes) else content

    def content(self, name: str) -> bytes | Problems:
        """Return the content of a cluster's file, if the work allows that it is read."""
        path = cluster_path(name)
        if name in self._files.misplaced:
            return self._files.misplaced[name]
        if path not in self._files.blobs:
            return (problem_at(Mark(path, 1, 1), "", self._no_file(name)),)
        content, work = self._contents[path], self._layers.work
        if not work.admits(units_of(content), self._share):
            return (problem_at(Mark(path, 1, 1), "", over_limit(content, work, self._share)),)
        return content

    def unplaced(self, content: bytes) -> MergedValue | None:
        """Return a manifest without its places; None where these are needed, or may be."""
        value = value_of(content)
        spec = value.get("spec") if isinstance(value, dict) else None
        if not isinstance(spec, dict):
            return None
        cluster_class, environment = spec.get("class", ""), spec.get("environment", "")
        if not (self._has("class", cluster_class) and self._has("environment", environment)):
            return None
        base = self._layers.base(cluster_class, environment)
        if base.problems or base.size > self._share:
            return None
        own, rest = dict[str, Any](), dict[str, Any]()
        for field, inner in spec.items():
            (own if field in OWN else rest)[field] = inner
        return MergedValue(value, own, key_of(own, rest), base.size)

    def merges(self, read: MergedValue) -> None:
        """Count the work of merging a manifest over its layers, which is within its share."""
        self._layers.work.spend(read.layers)

    def _has(self, kind: str, name: Any) -> bool:
        return isinstance(name, str) and not self._layers.unknown(kind, name)

    def placed(self, name: str, content: bytes) -> ReadManifest | Problems:
        """Return the manifest of a cluster with this content, or its problems."""
        try:
            root = parse(content, cluster_path(name))
        except YamlError as error:
            return (problem_at(error.mark, error.field, error.message),)
        given = root.child("spec")
        spec = given if given is not None and _has_spec(root) else Node({}, root.mark)
        cluster_class, environment, problems = self._chosen(spec)
        base = self._layers.base(cluster_class, environment)
        if not self._layers.work.admits(base.size, self._share):
            return (problem_at(root.mark, "", _over_share(base.size, self._share, self._layers.work)),)
        if problems or base.problems:
            own = [*_header(root), *layer_problems(root, SPEC, chooses=("class", "environment")), *problems]
            return (*sorted(own), *base.problems)
        own_spec = without(spec, "class", "environment")
        return ReadManifest(root, own_spec, base, cluster_class, environment)

    def merged(self, read: ReadManifest) -> MergedManifest:
        """Merge a manifest over its layers."""
        root, base = read.root, read.base
        if not _has_spec(root):
            return MergedManifest(read, root)
        own_spec, below = read.spec, base.node
        unmatched: list[Problem] = []
        attached = is_attached(own_spec if own_spec.child("provider") else below)
        if attached:
            unmatched += fields_of_aks(root.find(SPEC), below)
            own_spec, below = without_aks(own_spec), without_aks(below)
        merged = Node({**root.value, "spec": _protected(merge(below, own_spec), base)}, root.mark)
        if base.channels and not attached:
            wrong = [*_against_channels(merged.find(SPEC), base.channels)]
            unmatched += wrong
            if any(problem.field == INSTALL for problem in wrong):
                merged = _without_versions(merged)
        if root.has_removals:
            unmatched += unmatched_removals(own_spec, [below], SPEC, root)
        return MergedManifest(read, merged, tuple(unmatched))

    def _no_file(self, name: str) -> str:
        near = self._files.like_manifest(name)
        if near:
            return f"the folder has no {CLUSTER_FILE}; rename {near} to {CLUSTER_FILE}"
        return f"the folder has no {CLUSTER_FILE}; add it, or remove the whole folder to delete the cluster"

    def _chosen(self, spec: Node) -> tuple[str, str, list[Problem]]:
        """Return the class and environment that a spec names, "" for one that does not exist."""
        chosen, problems = [], []
        for kind in ("class", "environment"):
            name, problem = reference(spec, kind)
            message = self._layers.unknown(kind, name)
            if problem is None and message:
                problem = problem_at(spec.find((kind,)).mark, f"spec.{kind}", message)
            problems += [problem] if problem else []
            chosen.append("" if problem else name)
        return chosen[0], chosen[1], problems


def _has_spec(root: Root) -> bool:
    given = root.child("spec")
    return given is not None and isinstance(given.value, dict)


def _over_share(size: int, share: int, work: Work) -> str:
    return (
        f"is not resolved: all clusters together take more than {work.limit:,} units of work, and its class, "
        f"environment and fleet with {size:,} values take more than its share of {share:,}; make them smaller"
    )


def _header(root: Node) -> list[Problem]:
    """Return the problems of everything but the spec."""
    try:
        Cluster.model_validate(root.plain())
    except ValidationError as error:
        return [p for p in problems_of(error, root, Cluster) if p.field.partition(".")[0] != "spec"]
    return []


def _against_channels(spec: Node, channels: Mapping[str, Node]) -> Iterator[Problem]:
    """Yield what keeps a cluster from following the channels of its environment, which only git moves.

    Source: learn.microsoft.com/azure/aks/long-term-support, auto-upgrade-cluster for ``upgradeChannel``, and
    auto-upgrade-node-os-image: an image is replaced with ``NodeImage``, the default, and ``SecurityPatch``.
    """
    plan, own = spec.child("supportPlan"), spec.child("autoUpgradeProfile")
    upgrades = own.child("upgradeChannel") if own is not None else None
    patches = own.child("nodeOSUpgradeChannel") if own is not None else None
    images, channel = channels.get(NODE_IMAGES), channels.get(KUBERNETES)
    if images is not None and (patches is None or patches.value not in ("None", "Unmanaged")):
        yield problem_at(
            images.mark if patches is None else patches.mark,
            "spec.autoUpgradeProfile.nodeOSUpgradeChannel",
            f"the environment follows node images, and {'unset' if patches is None else 'with this'}, AKS "
            "replaces them without a commit; write None, as into spec.defaults of the environment, or remove "
            "its spec.nodeImages",
        )
    if FLUX in channels:
        yield from _against_flux(part(spec, "flux"), channels[FLUX])
    if channel is None:
        return
    if channel.value == "lts" and (plan is None or plan.value != LONG_TERM):
        yield problem_at(
            channel.mark if plan is None else plan.mark,
            "spec.supportPlan",
            f"the environment follows the channel lts, which needs supportPlan: {LONG_TERM} with sku.tier: "
            "Premium; write both, as into spec.defaults of the environment, or choose another channel",
        )
    if upgrades is not None and upgrades.value not in (None, "none", "node-image"):
        yield problem_at(
            upgrades.mark,
            "spec.autoUpgradeProfile.upgradeChannel",
            f"the environment follows the channel {channel.value}, and with this AKS upgrades without a "
            "commit; write none, or remove spec.kubernetes of the environment",
        )


def _against_flux(flux: Node, channel: Node) -> Iterator[Problem]:
    """Yield what keeps the Flux of a cluster from following the channel of its environment.

    Source: ``flux install`` (fluxcd.io/flux/cmd/flux_install) has a dozen options, of which its output names
    the components alone; the operator takes a version from its artifact, and only of a minor that its own
    image has (controlplaneio-fluxcd/flux-operator, ``MatchVersionWithEmbedded``).
    """
    install, distribution = flux.child("install"), part(flux, "instance", "distribution")
    way = _way(flux)
    places = {EXTENSION: part(flux, "extension"), OPERATOR: distribution}
    others = [name for name, place in places.items() if name != way and place.child("version") is not None]
    where = channel.mark if install is None else install.mark
    if way == "components":
        yield problem_at(
            where,
            INSTALL,
            "the environment follows a channel of Flux, and this cluster has a file of flux install, which "
            "the app cannot write again: nobody but you knows its options; write install: operator or "
            "extension for a new cluster, or remove spec.flux of the environment and upgrade by a new file",
        )
    elif others:
        yield problem_at(
            where,
            INSTALL,
            f"the channel gives the environment a version for install: {others[0]}; a cluster with install: "
            f"{way} needs another environment",
        )
    elif way == OPERATOR and channel.value != "patch":
        yield problem_at(
            channel.mark,
            "spec.flux",
            f"the channel {channel.value} has newer minors of Flux, which may need a newer operator; write "
            "patch, and newer minors yourself, with the file of the operator",
        )
    elif way == OPERATOR and distribution.child("artifact") is None:
        yield problem_at(
            distribution.mark,
            "spec.flux.instance.distribution.artifact",
            "the app reads the versions of a channel from the artifact from which the operator takes them; "
            "write one, such as oci://ghcr.io/controlplaneio-fluxcd/flux-operator-manifests",
        )


def _way(flux: Node) -> Any:
    install = flux.child("install")
    return "components" if install is None else install.value


def _without_versions(merged: Node) -> Node:
    """Leave out what the channel gives a cluster whose way of installing Flux has no such field."""
    spec = part(merged, *SPEC)
    flux = part(spec, "flux")
    own = {EXTENSION: "extension", OPERATOR: "instance"}.get(_way(flux))
    others = (field for field in ("extension", "instance") if field != own)
    left = Node({**spec.value, "flux": without(flux, *others)}, spec.mark)
    return Node({**merged.value, "spec": left}, merged.mark)


def _protected(spec: Node, base: Base) -> Node:
    """Protect a cluster of a production environment from deletion unless its manifest sets the field."""
    own = spec.child("deletionProtection")
    if base.production is None or (own is not None and own.value is not None):
        return spec
    return Node({**spec.value, "deletionProtection": Node(True, base.production.mark)}, spec.mark)
