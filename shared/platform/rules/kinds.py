"""Kinds and fields are ones that the API servers of the clusters know, in an order that comes to an end.

kustomize-controller asks for a dry run of all objects of a stage before it applies one of them; definitions,
roles and namespaces are a stage of their own (``ApplyAllStaged`` of fluxcd/pkg ``ssa``). So a custom object
may come with its definition, and never with the HelmRelease whose chart brings its definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from shared.json_tree import Json
from shared.platform.changes.objects import HELM, mapping, value_at
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import ClusterPlatform, Finding, OwnedObject, full_name, is_kind, named
from shared.platform.schemas.kinds import KindState

_OF_FLUX = ("fluxcd.io", "fluxcd.controlplane.io")
"""Groups of Flux and of its operator, which some installations define and others do not."""
_OF_SECRETS = (("data",), ("stringData",))
"""Where a value is never shown."""
_SHORTEST_WORD = 4
_COMMON_WORDS = frozenset(
    ("chart", "cluster", "controller", "crds", "helm", "operator", "system", "template")
)
CHARTS: Mapping[str, tuple[str, ...]] = {
    "aad-pod-identity": ("aadpodidentity.k8s.io",),
    "actions-runner-controller": ("actions.summerwind.dev",),
    "argo-cd": ("argoproj.io",),
    "argo-rollouts": ("argoproj.io",),
    "argo-workflows": ("argoproj.io",),
    "azure-service-operator": ("azure.com",),
    "base": ("istio.io",),
    "cert-manager": ("cert-manager.io",),
    "chaos-mesh": ("chaos-mesh.org",),
    "cilium": ("cilium.io",),
    "cloudnative-pg": ("postgresql.cnpg.io",),
    "consul": ("consul.hashicorp.com",),
    "contour": ("projectcontour.io",),
    "crossplane": ("crossplane.io",),
    "csi-secrets-store-provider-azure": ("secrets-store.csi.x-k8s.io",),
    "dapr": ("dapr.io",),
    "eck-operator": ("k8s.elastic.co",),
    "eck-operator-crds": ("k8s.elastic.co",),
    "emissary-ingress": ("getambassador.io",),
    "external-dns": ("externaldns.k8s.io",),
    "external-secrets": ("external-secrets.io",),
    "flagger": ("flagger.app",),
    "gatekeeper": ("gatekeeper.sh",),
    "gateway-helm": ("gateway.envoyproxy.io", "gateway.networking.k8s.io"),
    "gha-runner-scale-set-controller": ("actions.github.com",),
    "gpu-operator": ("nvidia.com",),
    "grafana-operator": ("grafana.integreatly.org",),
    "istio-base": ("istio.io",),
    "jaeger-operator": ("jaegertracing.io",),
    "karpenter": ("karpenter.sh",),
    "keda": ("keda.sh",),
    "kong": ("configuration.konghq.com",),
    "kube-prometheus-stack": ("monitoring.coreos.com",),
    "kuberay-operator": ("ray.io",),
    "kubernetes-ingress": ("core.haproxy.org",),
    "kyverno": ("kyverno.io",),
    "linkerd-crds": ("linkerd.io",),
    "longhorn": ("longhorn.io",),
    "mariadb-operator": ("k8s.mariadb.com",),
    "metallb": ("metallb.io",),
    "nginx-ingress": ("k8s.nginx.org",),
    "node-feature-discovery": ("nfd.k8s-sigs.io",),
    "opentelemetry-operator": ("opentelemetry.io",),
    "postgres-operator": ("acid.zalan.do",),
    "prometheus-operator-crds": ("monitoring.coreos.com",),
    "rabbitmq-cluster-operator": ("rabbitmq.com",),
    "rook-ceph": ("ceph.rook.io",),
    "sealed-secrets": ("bitnami.com",),
    "secrets-store-csi-driver": ("secrets-store.csi.x-k8s.io",),
    "snapshot-controller": ("snapshot.storage.k8s.io",),
    "spark-operator": ("sparkoperator.k8s.io",),
    "strimzi-kafka-operator": ("kafka.strimzi.io",),
    "tigera-operator": ("projectcalico.org", "operator.tigera.io"),
    "traefik": ("traefik.io", "traefik.containo.us"),
    "traefik-crds": ("traefik.io", "traefik.containo.us"),
    "trivy-operator": ("aquasecurity.github.io",),
    "trust-manager": ("trust.cert-manager.io",),
    "vault-secrets-operator": ("secrets.hashicorp.com",),
    "velero": ("velero.io",),
    "victoria-metrics-k8s-stack": ("operator.victoriametrics.com",),
    "victoria-metrics-operator": ("operator.victoriametrics.com",),
    "volsync": ("volsync.backube",),
}
"""The groups whose definitions a chart brings, each with those below it; source: the chart's ``crds``."""


class _Release(NamedTuple):
    """A HelmRelease that may bring definitions, who owns it, and its chart."""

    owner: ObjectId
    id: ObjectId
    chart: str


def wrong_kinds(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the objects of a kind that nothing serves, and a note for each kind that Flux is without."""
    seen: set[str] = set()
    for owned in platform.objects:
        standing, message = platform.kinds.standing(owned.manifest)
        missing = standing is KindState.NOT_INSTALLED
        if message and message not in seen:
            yield owned.finding(("apiVersion",), message, is_note=missing)
        seen |= {message} if missing else set()


def wrong_fields(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the fields that the schema of their kind does not have, or refuses.

    A kind of Flux that the components here do not define has the fields that Flux publishes.
    """
    for owned in platform.objects:
        if platform.kinds.standing(owned.manifest)[0] not in (KindState.DEFINED, KindState.NOT_INSTALLED):
            continue
        for path, message in platform.kinds.faults(owned.manifest):
            is_secret = is_kind(owned.id, "", "Secret") and path[:1] in _OF_SECRETS
            yield owned.finding(path, message.partition(", got ")[0] if is_secret else message)
        for path, message in platform.kinds.doubts(owned.manifest):
            yield owned.finding(path, message, is_note=True)


def kinds_of_charts(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the kinds that nobody here defines: a fault where only a chart of the same Kustomization can.

    Any other such kind may be on the clusters by a chart or an add-on: a note for each kind.
    """
    seen: set[tuple[ObjectId, str, str]] = set()
    releases = [
        _Release(owned.owner.id, owned.id, _chart(owned.spec))
        for owned in platform.of_kind(HELM, "HelmRelease")
        if _defines(owned.spec)
    ]
    others: dict[tuple[str, str], list[OwnedObject]] = {}
    for owned in platform.objects:
        owner, group, kind = owned.owner.id, owned.id.group, owned.id.kind
        known = platform.kinds.standing(owned.manifest)[0] is not KindState.UNKNOWN
        if known or group.endswith(_OF_FLUX) or (owner, group, kind) in seen:
            continue
        seen.add((owner, group, kind))
        bringing = _bringing(owned.id, releases)
        beside = [release.id for release in bringing if release.owner == owner]
        if bringing and len(beside) == len(bringing) and platform.is_whole:
            yield _with_its_chart(owned, beside)
        else:
            others.setdefault((str(owned.manifest.get("apiVersion")), kind), []).append(owned)
    for (api_version, kind), using in others.items():
        uses = "a Kustomization uses" if len(using) == 1 else f"{len(using)} Kustomizations use"
        message = (
            f"nothing here defines {api_version} {kind}, which {uses}: Flux applies nothing of them before a "
            "chart or an add-on brings it, and that chart must not be in the same Kustomization"
        )
        yield using[0].finding(("kind",), message, is_note=True)


def _with_its_chart(owned: OwnedObject, releases: Sequence[ObjectId]) -> Finding:
    api_version, kind = owned.manifest.get("apiVersion"), owned.id.kind
    message = (
        f"{api_version} {kind} comes with the chart of HelmRelease {named(list(map(full_name, releases)))}, "
        f"which Kustomization {full_name(owned.owner.id)} has too: on a cluster without the kind, Flux "
        f"applies neither, because it wants to know every kind before; move the {kind} into a Kustomization "
        "that depends on this one"
    )
    return owned.finding(("kind",), message)


def _bringing(object_id: ObjectId, releases: Sequence[_Release]) -> Sequence[_Release]:
    """Return the HelmReleases that define a kind.

    These are the charts that are known to bring its group; where nobody knows one, the only one that is named
    as the kind or its group is.
    """
    group = object_id.group
    if any(_brings(groups, group) for groups in CHARTS.values()):
        return [release for release in releases if _brings(CHARTS.get(release.chart, ()), group)]
    named_so = [
        release
        for release in releases
        if release.chart not in CHARTS and _is_named_as(release.chart, object_id)
    ]
    return named_so if len(named_so) == 1 else []


def _is_named_as(chart: str, object_id: ObjectId) -> bool:
    """Return whether a word of a chart's name is in the name of a kind or of its group.

    What many bring (``*.k8s.io``) is nobody's.
    """
    if object_id.group.endswith("k8s.io"):
        return False
    words = {word for word in re.split(r"[^a-z0-9]+", chart.lower()) if len(word) >= _SHORTEST_WORD}
    return any(word in object_id.kind.lower() or word in object_id.group for word in words - _COMMON_WORDS)


def _defines(spec: Json) -> bool:
    """Return whether a release may bring definitions: it, or its values, can leave them out."""
    values = mapping(spec.get("values"))
    crds = mapping(values.get("crds"))
    off = (values.get("installCRDs"), crds.get("enabled"), crds.get("install"), crds.get("create"))
    return mapping(spec.get("install")).get("crds") != "Skip" and False not in off


def _brings(groups: tuple[str, ...], group: str) -> bool:
    return any(group == known or group.endswith(f".{known}") for known in groups)


def _chart(spec: Json) -> str:
    """Return the name of a release's chart, or of the source that has it."""
    found = value_at(spec, "chart.spec.chart") or value_at(spec, "chartRef.name")
    return str(found or "").rpartition("/")[2]
