"""Rules of every cluster, and those of clusters that exist outside Roadstead.

Such a cluster has no field of AKS, and one manifest. Defaults of the fleet and of an environment are for all
their clusters, so what they say of AKS is left out here. What a cluster's own file says of AKS, or the class
that it chooses, is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from shared.language.desired import Desired
from shared.language.model.cluster.access import EXISTING
from shared.language.model.cluster.drift import WHOLE_CLUSTER, DriftPolicy
from shared.language.model.cluster.flux import EVENT_KEY, Flux
from shared.language.model.cluster.flux_source import GIT, MAIN, OCI, FluxSource, SecretReference
from shared.language.model.cluster.grants import BootstrapSecret
from shared.language.model.cluster.spec import FIELDS, OPERATION_FIELDS, ClusterSpec
from shared.language.model.node_pool import PoolProperties
from shared.language.resolve.problems import Path, Problem, nearest, problem_at
from shared.language.resolve.repository_layout import CLASSES
from shared.language.resolve.rules.refusal import Finding
from shared.language.yaml.nodes import Node

# Rules of bootstrap secrets: what Flux needs of those that it uses, and which vaults a manifest may name.
#
# What Flux reads from a Secret is in the descriptions of ``secretRef`` in its definitions
# (``source.toolkit.fluxcd.io/v1``) and in fluxcd.io/flux/components/kustomize/kustomizations, "Decryption".

_FIELD = "bootstrapSecrets"
_BASIC, _TOKEN, _SSH = ("username", "password"), ("bearerToken",), ("identity", "known_hosts")
_APP = ("githubAppID", "githubAppPrivateKey")
_S3 = ("accesskey", "secretkey")
_BLOB: Sequence[Sequence[str]] = (
    *(("accountKey",), ("sasKey",), ("clientId",)),
    *(("tenantId", "clientId", "clientSecret"), ("tenantId", "clientId", "clientCertificate")),
)
"""What the Secret of a Bucket with provider: azure may have (fluxcd.io/flux/components/source/buckets)."""
_AGE, _PGP, _VAULT = ".agekey", ".asc", "sops.azure-kv"
_DOCKER = "kubernetes.io/dockerconfigjson"


def broken_references(spec: ClusterSpec) -> Iterator[Finding]:
    """Yield the references of Flux to bootstrap secrets that it could not use."""
    secrets = spec.bootstrap_secrets
    if not secrets and spec.flux.events is None:
        return
    here = {secret.called: secret for secret in secrets if secret.namespace == MAIN}
    elsewhere = {secret.called: secret for secret in secrets if secret.namespace != MAIN}
    for path, reference, what, choices in _references(spec.flux):
        found = here.get(reference.name)
        if found is not None:
            if choices and not any(set(keys) <= set(found.keys) for keys in choices):
                needed = ", or ".join(" and ".join(keys) for keys in choices)
                yield path, f"{what} needs the keys {needed} of {found.name}, an entry of {_FIELD}; add them"
        elif reference.name in elsewhere:
            other = elsewhere[reference.name].place
            yield path, f"Flux reads Secrets of {MAIN} only, and {_FIELD} has {other}; set its namespace"
    yield from _of_registries(spec.flux, here)
    yield from _of_decryption(spec.flux, here)
    yield from _of_events(spec.flux, here)
    own = here.get(MAIN)
    first = spec.flux.secret_ref
    if (
        own is not None
        and spec.flux.kind == GIT
        and spec.flux.provider is None
        and (first is None or first.name != MAIN)
    ):
        message = f"{own.place} is the Secret of the git credentials of the app; set flux.secretRef.name to"
        yield (_FIELD, own.name), f"{message} {MAIN}, or choose another name"


def _references(flux: Flux) -> Iterator[tuple[Path, SecretReference, str, Sequence[Sequence[str]]]]:
    """Yield each Secret that a source is read with: its place, what reads it, which keys it may have."""
    for place, source in _sources(flux):
        if source.secret_ref is not None:
            what = flux.repository if source.name == MAIN else f"the source {source.name}"
            yield (*place, "secretRef", "name"), source.secret_ref, what, _keys_of(source)


def _sources(flux: Flux) -> Iterator[tuple[Path, FluxSource]]:
    yield ("flux",), flux.main
    for source in flux.sources:
        yield ("flux", "sources", source.name), source


def _keys_of(source: FluxSource) -> Sequence[Sequence[str]]:
    """Return which keys Flux needs of the Secret of a source: all of one of these, nothing for any."""
    match source.kind, source.provider:
        case ("Bucket", "azure"):
            return _BLOB
        case ("Bucket", _):
            return (_S3,)
        case ("OCIRepository", _) | (_, "azure"):
            return ()
        case (_, "github"):
            return (_APP,)
    return (_SSH,) if (source.url or "").startswith("ssh://") else (_BASIC, _TOKEN)


def _of_registries(flux: Flux, here: Mapping[str, BootstrapSecret]) -> Iterator[Finding]:
    for place, source in _sources(flux):
        found = here.get(source.secret_ref.name) if source.kind == OCI and source.secret_ref else None
        if found is not None and found.type != _DOCKER:
            message = f"an OCIRepository needs a Secret of the type {_DOCKER}; set the type of {found.name}"
            yield (*place, "secretRef", "name"), message


def _of_decryption(flux: Flux, here: Mapping[str, BootstrapSecret]) -> Iterator[Finding]:
    for kustomization in flux.kustomizations:
        reference = kustomization.decryption.secret_ref if kustomization.decryption else None
        found = here.get(reference.name) if reference else None
        if found is not None and not any(key.endswith((_AGE, _PGP)) or key == _VAULT for key in found.keys):
            message = f"Flux decrypts with a key that ends with {_AGE} or {_PGP}; {found.name} has none"
            yield ("flux", "kustomizations", kustomization.name, "decryption", "secretRef", "name"), message


def _of_events(flux: Flux, here: Mapping[str, BootstrapSecret]) -> Iterator[Finding]:
    """Yield why the events of Flux could not be verified: the app reads the key in the vault."""
    if flux.events is None:
        return
    name = flux.events.secret_ref.name
    found = here.get(name)
    if found is None or EVENT_KEY not in found.keys:
        needed = f"an entry of {_FIELD} for the Secret {name} in {MAIN}, with the key {EVENT_KEY}"
        yield ("flux", "events", "secretRef", "name"), f"the app verifies the events with {needed}; add it"


def foreign_vaults(
    clusters: Mapping[str, Desired], vaults: Collection[str] | None
) -> Mapping[str, list[Finding]]:
    """Return, by cluster, the vaults that it names and the app may not read; {} where that is not known.

    A manifest never decides which vault the app's identity opens. The stored forms are read as they are:
    a fleet has thousands.
    """
    if vaults is None:
        return {}
    found: dict[str, list[Finding]] = {}
    known = f"KEY_VAULTS, a setting of the app, has {', '.join(sorted(vaults)) or 'none'}"
    for name, cluster in clusters.items():
        for place, vault in cluster.vaults:
            if vault.lower() not in vaults:
                message = f"the app may not read the vault {vault}: {known}; name one of these, or let the"
                found.setdefault(name, []).append((place, f"{message} app's operator add it"))
    return found


# The rules of a drift policy: each names fields in which a cluster in Azure is compared with git.

_OF_AKS = frozenset(
    (info.alias or name)
    for name, info in ClusterSpec.model_fields.items()
    if (info.alias or name) not in FIELDS
)
_OF_NO_DIFFERENCE = {*OPERATION_FIELDS, "subscriptionId", "resourceGroup", "location", "minNodeImageVersion"}
"""What of that no difference is in: what Roadstead does, and where the cluster is."""
_COMPARED = (*sorted(_OF_AKS - _OF_NO_DIFFERENCE), "managedNamespaces")
_COMPARED_OF_POOLS = (
    *(info.alias or name for name, info in PoolProperties.model_fields.items()),
    *("azure", "enableAutoScaling", "minNodeImageVersion"),
)
_POOL = re.compile(r"nodePools(?:\[[^\]]*\])?\.([^.\[]*)")


def unknown_fields(policy: DriftPolicy | None) -> Iterator[Finding]:
    """Yield the place of each field of a rule that is never compared, and a message."""
    for rule in policy.rules if policy else ():
        for number, pattern in enumerate(rule.fields):
            of_pool = _POOL.match(pattern)
            name = of_pool[1] if of_pool else re.split(r"[.\[]", pattern, maxsplit=1)[0]
            known = _COMPARED_OF_POOLS if of_pool else _COMPARED
            if pattern in WHOLE_CLUSTER:
                continue
            if "*" in name or name in known:
                continue
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else "name a field that Azure shows"
            message = f"{pattern}: {name} is never compared with Azure; {hint}"
            yield ("drift", "rules", rule.name, "fields", number), message


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


def findings_elsewhere(spec: ClusterSpec) -> Iterator[Finding]:
    """Yield the violations in the spec of a cluster outside Roadstead."""
    yield from unknown_fields(spec.drift)
    yield from broken_references(spec)
    if spec.flux.is_extension:
        message = "Microsoft's extension is installed through Azure, and this cluster is not there"
        yield ("flux", "install"), f"{message}; write install: components"


def same_kubeconfigs(clusters: Mapping[str, Desired]) -> Mapping[str, list[Finding]]:
    """Return the clusters whose kubeconfig another cluster names too: one cluster has one manifest."""
    found: dict[str, list[Finding]] = {}
    names: dict[tuple[str, str], list[str]] = {}
    for name, cluster in clusters.items():
        if kubeconfig := cluster.kubeconfig:
            vault, secret = kubeconfig
            names.setdefault((vault.lower(), secret.lower()), []).append(name)
    for (vault, secret), same in names.items():
        for name in same if len(same) > 1 else ():
            other = next(candidate for candidate in same if candidate != name)
            message = (
                f"{other} names the secret {secret} of the vault {vault} too; a cluster has one manifest"
            )
            found[name] = [((*_KUBECONFIG, "secret"), message)]
    return found
