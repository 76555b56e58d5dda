"""What AKS refuses of the way out of a cluster, and of what runs on it: isolation, proxy, gateways, mesh.

A source without a site is a page below learn.microsoft.com/azure/aks; owner/repository#number is an issue or
a pull request on GitHub.
"""

from __future__ import annotations

import re

from shared.kubernetes_versions import newest_for_revision, numbers
from shared.language.model.cluster.nodes import HttpProxyConfig
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.resolve.problems import Path
from shared.language.resolve.rules.refusal import Broken, ClusterRule, PoolRule

_PROXIED = re.compile(r"\*|[A-Za-z0-9.:/-]+")
"""An entry of ``noProxy``: everything, or a name, an address or a network."""
_ISOLATED = "a network isolated cluster (outboundType: none with bootstrapProfile.artifactSource: Cache)"
_NOT_ISOLATED = "concepts-network-isolated, Limitations"


def _isolated(spec: ClusterSpec) -> bool:
    source = spec.bootstrap_profile.artifact_source if spec.bootstrap_profile else None
    return source == "Cache" and spec.network_profile.outbound_type == "none"


def _proxy(spec: ClusterSpec) -> HttpProxyConfig | None:
    proxy = spec.http_proxy_config
    return None if proxy is None or proxy.enabled is False else proxy


def _not_http(spec: ClusterSpec) -> bool:
    proxy = _proxy(spec)
    return bool(proxy and proxy.http_proxy and not proxy.http_proxy.lower().startswith("http://"))


def _wildcard(spec: ClusterSpec) -> Broken:
    proxy = _proxy(spec)
    entries = (proxy.no_proxy or ()) if proxy else ()
    return next(({"entry": entry} for entry in entries if not _PROXIED.fullmatch(entry)), False)


def _scattered_zones(spec: ClusterSpec) -> Broken:
    """Return the two groups of DNS zones of one kind, public or private."""
    routing = spec.ingress_profile.web_app_routing if spec.ingress_profile else None
    groups = dict[str, str]()
    for zone in (routing.dns_zone_resource_ids or ()) if routing else ():
        group, _, rest = zone.lower().partition("/providers/")
        kind = rest.rpartition("/")[0]
        first = groups.setdefault(kind, group)
        if first != group:
            return {"first": first.rpartition("/")[2], "other": group.rpartition("/")[2]}
    return False


def _two_gateways(spec: ClusterSpec) -> bool:
    routing = spec.ingress_profile.web_app_routing if spec.ingress_profile else None
    gateways = routing.gateway_api_implementations if routing else None
    mesh = spec.service_mesh_profile
    enabled = gateways is not None and gateways.app_routing_istio.mode == "Enabled"
    return enabled and mesh is not None and mesh.mode == "Istio"


def _old_mesh(spec: ClusterSpec) -> Broken:
    mesh, wanted = spec.service_mesh_profile, numbers(spec.kubernetes_version)[:2]
    for revision in (mesh.istio.revisions or ()) if mesh and mesh.istio else ():
        newest = newest_for_revision(revision)
        if newest is not None and newest < wanted:
            return {"revision": revision, "newest": ".".join(map(str, newest))}
    return False


_PROXY: Path = ("httpProxyConfig",)
CLUSTER_RULES: tuple[ClusterRule, ...] = (
    ClusterRule(
        ("autoUpgradeProfile", "nodeOSUpgradeChannel"),
        lambda spec: (
            _isolated(spec)
            and spec.auto_upgrade_profile is not None
            and spec.auto_upgrade_profile.node_os_upgrade_channel == "Unmanaged"
        ),
        f"Unmanaged does not go with {_ISOLATED}; write NodeImage or SecurityPatch",
        _NOT_ISOLATED,
    ),
    ClusterRule(
        ("networkProfile", "networkPlugin"),
        lambda spec: _isolated(spec) and spec.network_profile.network_plugin == "kubenet",
        f"kubenet does not go with {_ISOLATED}; write azure",
        _NOT_ISOLATED,
    ),
    ClusterRule(
        ("flux", "install"),
        lambda spec: _isolated(spec) and spec.flux.is_extension,
        f"Microsoft's extension does not go with {_ISOLATED}; write components",
        "concepts-network-isolated: the extension Flux (GitOps) isn't supported yet",
    ),
    ClusterRule(
        (*_PROXY, "httpProxy"),
        _not_http,
        "AKS takes http:// alone here; write http://, also for a proxy that reaches https addresses",
        "http-proxy: the URL scheme must be http",
    ),
    ClusterRule(
        (*_PROXY, "noProxy"),
        _wildcard,
        "{entry} is no host name, domain, address or network: AKS takes neither a wildcard before a domain "
        "nor an underscore; write a domain such as .example.com",
        "http-proxy: no * attached to a domain suffix, and noProxy hosts are RFC 1123 compliant",
    ),
    ClusterRule(
        ("ingressProfile", "webAppRouting", "dnsZoneResourceIds"),
        _scattered_zones,
        "has zones of one kind in the resource groups {first} and {other}: AKS wants all public zones in one "
        "group, and all private zones in one",
        "app-routing, Limitations",
    ),
    ClusterRule(
        ("ingressProfile", "webAppRouting", "gatewayAPIImplementations"),
        _two_gateways,
        "the gateway of application routing does not go with serviceMeshProfile.mode: Istio; keep one",
        "app-routing-gateway-api, Limitations",
    ),
    ClusterRule(
        ("serviceMeshProfile", "istio", "revisions"),
        _old_mesh,
        "{revision} is for Kubernetes {newest} at most; choose a newer revision, or that version",
        "istio-support-policy; Azure/ARO-HCP#5156: not compatible with cluster version 1.35.1",
    ),
)
POOL_RULES: tuple[PoolRule, ...] = (
    PoolRule(
        "osType",
        lambda spec, pool: pool.os_type == "Windows" and _isolated(spec),
        f"Windows does not go with {_ISOLATED}; use Linux nodes",
        _NOT_ISOLATED,
    ),
    PoolRule(
        "osType",
        lambda spec, pool: pool.os_type == "Windows" and _proxy(spec) is not None,
        "Windows does not go with httpProxyConfig; remove one of the two",
        "http-proxy: AKS clusters with Windows node pools",
    ),
)
