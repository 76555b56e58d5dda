"""What AKS refuses of the ways into a cluster and out of it: API server, keys, isolation, proxy, mesh.

A source without a site is a page below learn.microsoft.com/azure/aks; owner/repository#number is an issue or
a pull request on GitHub.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from shared.json_tree import Json
from shared.kubernetes_versions import newest_for_revision, numbers
from shared.language.model.cluster.nodes import HttpProxyConfig
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.resolve.problems import Path
from shared.language.resolve.rules.network_rules import in_own_network
from shared.language.resolve.rules.refusal import Broken, ClusterRule, PoolRule

_ACCESS = "apiServerAccessProfile"
_OF_KEY = len(["https:", "", "vault", "keys", "name"]) - 1
"""The slashes in the id of a key without its version."""
_MOST_RANGES = 200
_SOVEREIGN = ("china", "usgov", "usdod")
"""Regions whose zones have another suffix."""
_PRIVATE = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"),
        *("127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
"""Addresses that nobody has on the internet."""


def own_zone(spec: ClusterSpec) -> str:
    """Return the resource id of the cluster's own private DNS zone, "" for none."""
    profile = spec.api_server_access_profile
    zone = (profile.private_dns_zone or "") if profile else ""
    return zone if zone.startswith("/") else ""


def zone_of_another_region(access: Json | None, region: str) -> Mapping[str, object] | None:
    """Return what is wrong with the name of an own private DNS zone, None if nothing is.

    ``access`` is the stored ``apiServerAccessProfile``.
    """
    zone = ((access or {}).get("privateDNSZone") or "").lower().rpartition("/")[2]
    if zone in ("", "system", "none") or region.startswith(_SOVEREIGN):
        return None
    names = "|".join(re.escape(f"{kind}.{region}.azmk8s.io") for kind in ("privatelink", "private"))
    fits = re.fullmatch(rf"([a-z0-9-]{{1,32}}\.)?({names})|{re.escape(region)}\.azmk8s\.io", zone)
    return None if fits else {"zone": zone, "region": region}


def _is_system_assigned(spec: ClusterSpec) -> bool:
    return spec.identity is not None and spec.identity.type != "UserAssigned"


def _encrypts_with_system_identity(spec: ClusterSpec) -> bool:
    kms = spec.security_profile.azure_key_vault_kms if spec.security_profile else None
    return kms is not None and kms.enabled and _is_system_assigned(spec)


def _names_a_version(spec: ClusterSpec) -> bool:
    profile = spec.security_profile
    kms = profile.azure_key_vault_kms if profile else None
    if profile is None or kms is None or profile.kubernetes_resource_object_encryption_profile is None:
        return False
    return numbers(spec.kubernetes_version) >= (1, 37) and (kms.key_id or "").count("/") > _OF_KEY


def _private_vault_without_integration(spec: ClusterSpec) -> bool:
    kms = spec.security_profile.azure_key_vault_kms if spec.security_profile else None
    access = spec.api_server_access_profile
    private = kms is not None and kms.enabled and kms.key_vault_network_access == "Private"
    return private and access is not None and access.enable_vnet_integration is False


def _ranges(spec: ClusterSpec) -> tuple[str, ...]:
    access = spec.api_server_access_profile
    return (access.authorized_ip_ranges or ()) if access else ()


def _is_integrated(spec: ClusterSpec) -> bool:
    access = spec.api_server_access_profile
    return access is not None and bool(access.enable_vnet_integration)


def _not_public(spec: ClusterSpec) -> Broken:
    """Return the first range that no caller of a public API server can have."""
    ranges = () if _is_integrated(spec) else _ranges(spec)
    found = ((text, ipaddress.ip_network(text)) for text in ranges)
    return next(
        (
            {"range": text}
            for text, network in found
            if isinstance(network, ipaddress.IPv6Network)
            or any(network.subnet_of(private) for private in _PRIVATE)
        ),
        False,
    )


def _subnet_without_integration(spec: ClusterSpec) -> bool:
    access = spec.api_server_access_profile
    return bool(access and access.subnet_id and access.enable_vnet_integration is False)


def _integration_without_subnet(spec: ClusterSpec) -> bool:
    access = spec.api_server_access_profile
    return bool(access and access.enable_vnet_integration and access.subnet_id == "" and in_own_network(spec))


def _findings_go_nowhere(spec: ClusterSpec) -> bool:
    defender = spec.security_profile.defender if spec.security_profile else None
    watches = defender.security_monitoring if defender else None
    return bool(
        watches and watches.enabled and not (defender and defender.log_analytics_workspace_resource_id)
    )


_PROXIED = re.compile(r"\*|[A-Za-z0-9._:/-]+")
"""An entry of ``noProxy``: everything, or a name, an address or a network."""
_ISOLATED = "a network isolated cluster (outboundType: none with bootstrapProfile.artifactSource: Cache)"
_NOT_ISOLATED = "concepts-network-isolated, Limitations"


def _isolated(spec: ClusterSpec) -> bool:
    source = spec.bootstrap_profile.artifact_source if spec.bootstrap_profile else None
    return source == "Cache" and spec.network_profile.outbound_type == "none"


def _proxy(spec: ClusterSpec) -> HttpProxyConfig | None:
    proxy = spec.http_proxy_config
    return None if proxy is None or proxy.enabled is False else proxy


def _without_address(spec: ClusterSpec) -> bool:
    proxy = _proxy(spec)
    return bool(
        proxy and not (proxy.http_proxy or proxy.https_proxy) and (proxy.no_proxy or proxy.trusted_ca)
    )


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
        (_ACCESS, "privateDNSZone"),
        lambda spec: bool(own_zone(spec)) and _is_system_assigned(spec),
        "your own zone needs identity.type: UserAssigned with a role on the zone, since the cluster writes "
        "there before it has an identity of its own",
        "private-clusters; hashicorp/terraform-provider-azurerm#10940",
    ),
    ClusterRule(
        (_ACCESS, "authorizedIPRanges"),
        lambda spec: "0.0.0.0/32" in _ranges(spec) and len(_ranges(spec)) > 1,
        "0.0.0.0/32 admits the nodes alone, and goes without other ranges; remove it, or the others",
        "Azure/terraform-azurerm-aks#378; azure-cli validate_ip_ranges",
    ),
    ClusterRule(
        (_ACCESS, "authorizedIPRanges"),
        lambda spec: (
            {"count": len(_ranges(spec))}
            if len(_ranges(spec)) > _MOST_RANGES and not _is_integrated(spec)
            else False
        ),
        "has {count} ranges, and AKS takes 200; write fewer, or add enableVnetIntegration: true, which "
        "takes 2,000",
        "api-server-authorized-ip-ranges, Limitations",
    ),
    ClusterRule(
        (_ACCESS, "authorizedIPRanges"),
        _not_public,
        "{range} is no public IPv4 range, and the API server sees public addresses alone; write the address "
        "with which your network reaches the internet",
        "api-server-authorized-ip-ranges; azure-cli validate_ip_ranges; MicrosoftDocs/azure-docs#98356",
    ),
    ClusterRule(
        (_ACCESS, "subnetId"),
        _subnet_without_integration,
        "is the subnet of an integrated API server; add enableVnetIntegration: true, or remove it",
        "azure-cli get_apiserver_subnet_id",
    ),
    ClusterRule(
        (_ACCESS, "enableVnetIntegration"),
        _integration_without_subnet,
        "needs apiServerAccessProfile.subnetId where node pools have a vnetSubnetID; add it",
        "azure-rest-api-specs ManagedClusterAPIServerAccessProfile.subnetId: required with one's own network",
    ),
    ClusterRule(
        ("securityProfile", "azureKeyVaultKms"),
        _encrypts_with_system_identity,
        "needs identity.type: UserAssigned, which may read the key before the cluster exists",
        "use-kms-etcd-encryption: doesn't work with system-assigned managed identity",
    ),
    ClusterRule(
        ("securityProfile", "azureKeyVaultKms", "keyId"),
        _names_a_version,
        "from Kubernetes 1.37 on, kubernetesResourceObjectEncryptionProfile needs a key without a version; "
        "write https://VAULT.vault.azure.net/keys/NAME",
        "github.com/Azure/AKS/releases/tag/2026-09-04",
    ),
    ClusterRule(
        ("securityProfile", "azureKeyVaultKms", "keyVaultNetworkAccess"),
        _private_vault_without_integration,
        "Private needs apiServerAccessProfile.enableVnetIntegration: true",
        "use-kms-etcd-encryption: must use API Server VNet Integration",
    ),
    ClusterRule(
        ("securityProfile", "defender"),
        _findings_go_nowhere,
        "securityMonitoring needs logAnalyticsWorkspaceResourceId, the workspace that findings go to; add it",
        "azure-rest-api-specs ManagedClusterSecurityProfileDefender: required when Defender is enabled",
    ),
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
        _PROXY,
        _without_address,
        "needs httpProxy or httpsProxy; add one",
        "Azure/AKS#205: HTTPProxyConfigInputError, both cannot be empty",
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
        "{entry} is no host name, domain, address or network: AKS takes no wildcard before a domain; write "
        "a domain such as .example.com",
        "http-proxy: no * attached to a domain suffix; github.com/Azure/AKS/releases/tag/2026-04-02: other "
        "entries are taken",
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
