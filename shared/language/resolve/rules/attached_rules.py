"""Rules of clusters that exist outside Roadstead: no field of AKS, and one manifest for each of them.

Defaults of the fleet and of an environment are for all their clusters, so what they say of AKS is left out
here. What a cluster's own file says of AKS, or the class that it chooses, is a problem.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from shared.language.desired import Desired
from shared.language.model.attached import FIELDS
from shared.language.model.cluster.access import EXISTING
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.resolve.problems import Path, Problem, problem_at
from shared.language.resolve.repository_layout import CLASSES
from shared.language.resolve.rules.drift_rules import unknown_fields
from shared.language.resolve.rules.secret_rules import broken_references
from shared.language.yaml.nodes import Node

_CHOICES = frozenset({"class", "environment"})
_KUBECONFIG: Path = ("existing", "kubeconfig")


def is_elsewhere(spec: Node) -> bool:
    """Return whether a merged spec is that of a cluster outside Roadstead."""
    provider = spec.child("provider")
    return provider is not None and provider.value == EXISTING


def without_aks(spec: Node) -> Node:
    """Return a layer without the fields of AKS; one that no cluster has is reported."""
    return Node({key: node for key, node in spec.value.items() if not _is_of_aks(key)}, spec.mark)


def fields_of_aks(own: Node, below: Node) -> Iterator[Problem]:
    """Yield the fields of AKS in the spec of a cluster's own file, and the class that has some."""
    for key, node in own.value.items():
        if _is_of_aks(key):
            message = "is a field of AKS clusters, and this one has provider: existing; remove it"
            yield problem_at(node.mark, f"spec.{key}", message)
    chosen = own.child("class")
    of_class = [
        key
        for key, node in below.value.items()
        if _is_of_aks(key) and node.mark.file.startswith(f"{CLASSES}/")
    ]
    if chosen is not None and of_class:
        message = f"{chosen.value} is a class of AKS clusters: it has {', '.join(sorted(of_class)[:3])}"
        yield problem_at(chosen.mark, "spec.class", f"{message}; choose one for provider: existing")


def _is_of_aks(key: str) -> bool:
    return key in _OF_AKS


_OF_AKS = frozenset(
    (info.alias or name)
    for name, info in ClusterSpec.model_fields.items()
    if (info.alias or name) not in FIELDS
)


def findings_elsewhere(spec: ClusterSpec) -> Iterator[tuple[Path, str]]:
    """Yield the violations in the spec of a cluster outside Roadstead."""
    yield from unknown_fields(spec.drift)
    yield from broken_references(spec)
    if spec.flux.is_extension:
        message = "Microsoft's extension is installed through Azure, and this cluster is not there"
        yield ("flux", "install"), f"{message}; write install: components"


def same_kubeconfigs(clusters: Mapping[str, Desired]) -> Mapping[str, list[tuple[Path, str]]]:
    """Return the clusters whose kubeconfig another cluster names too: one cluster has one manifest."""
    found: dict[str, list[tuple[Path, str]]] = {}
    names: dict[tuple[str, str], list[str]] = {}
    for name, cluster in clusters.items():
        if kubeconfig := cluster.kubeconfig:
            vault, secret = kubeconfig
            names.setdefault((vault.lower(), secret.lower()), []).append(name)
    for (vault, secret), same in names.items():
        for name in same if len(same) > 1 else ():
            other = next(one for one in same if one != name)
            message = (
                f"{other} names the secret {secret} of the vault {vault} too; a cluster has one manifest"
            )
            found[name] = [((*_KUBECONFIG, "secret"), message)]
    return found


def foreign_kubeconfigs(
    clusters: Mapping[str, Desired], vaults: Collection[str] | None
) -> Iterator[tuple[str, tuple[Path, str]]]:
    """Yield the clusters whose kubeconfig is in a vault that the app may not read, if that is known."""
    known = f"KEY_VAULTS, a setting of the app, has {', '.join(sorted(vaults or ())) or 'none'}"
    if vaults is None:
        return
    for name, cluster in clusters.items():
        if cluster.kubeconfig and cluster.kubeconfig[0].lower() not in vaults:
            message = (
                f"the app may not read the vault {cluster.kubeconfig[0]}: {known}; name one of these, or"
            )
            yield name, ((*_KUBECONFIG, "vault"), f"{message} let the app's operator add it")
