"""What AKS refuses of a cluster's network: addresses, subnets, egress, plugin, private API server.

A source without a site is a page below learn.microsoft.com/azure/aks; owner/repository#number is an issue or
a pull request on GitHub. A rule stands here only if AKS, a client or a page of Microsoft refuses it.
"""

from __future__ import annotations

import ipaddress

from shared.language.model.arm_types import Switch
from shared.language.model.cluster.network import LoadBalancerProfile
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.resolve.problems import Path
from shared.language.resolve.rules.refusal import (
    Broken,
    ClusterRule,
    PoolRule,
    most_nodes,
    pod_ranges,
    surge_of,
)

PORTS_OF_AN_ADDRESS = 64_000
"""SNAT ports of an outbound address (SupportArticles-docs, error-code-invalidloadbalancerprofile...ports)."""
ADDRESSES_OF_A_NODE = 256
"""A node has a /24 of the pods' range, with overlay and with kubenet (concepts-network-azure-cni-overlay)."""
FEWEST_PODS = 30
_ROUTES, _LABEL = 400, 63
"""How many nodes kubenet has routes for (configure-kubenet), and the longest value of a label."""
_EGRESS = ("managed_outbound_ips", "outbound_ips", "outbound_ip_prefixes")


def _outbound_addresses(balancer: LoadBalancerProfile) -> int | None:
    """Return the number of outbound addresses, None where Azure alone knows it: a prefix has any length."""
    if balancer.outbound_ip_prefixes or balancer.enable_multiple_standard_load_balancers:
        return None
    if balancer.outbound_ips:
        return len(balancer.outbound_ips.public_ips)
    managed = balancer.managed_outbound_ips
    return ((managed.count or 1) + (managed.count_ipv6 or 0)) if managed else 1


def _ports(spec: ClusterSpec) -> Broken:
    network = spec.network_profile
    balancer = network.load_balancer_profile
    ports = balancer.allocated_outbound_ports if balancer else None
    if not balancer or not ports or network.outbound_type not in (None, "loadBalancer"):
        return False
    addresses = _outbound_addresses(balancer)
    pools = [pool for pool in spec.node_pools if pool.mode != "Gateway"]
    nodes, surge = sum(map(most_nodes, pools)), sum(map(surge_of, pools))
    if addresses is None or (nodes + surge) * ports <= addresses * PORTS_OF_AN_ADDRESS:
        return False
    available = addresses * PORTS_OF_AN_ADDRESS
    return {
        "nodes": nodes,
        "surge": surge,
        "ports": ports,
        "needed": (nodes + surge) * ports,
        "available": available,
        "addresses": addresses,
        "fits": available // (nodes + surge) // 8 * 8,
        "enough": -(-(nodes + surge) * ports // PORTS_OF_AN_ADDRESS),
    }


def _pod_range(spec: ClusterSpec) -> Broken:
    network = spec.network_profile
    kubenet = network.network_plugin == "kubenet"
    if not kubenet and network.network_plugin_mode != "overlay":
        return False
    ranges = [ipaddress.ip_network(text) for text in pod_ranges(network)]
    room = next((found.num_addresses for found in ranges if found.version == 4), None)
    nodes = sum(map(most_nodes, spec.node_pools))
    surge = 0 if kubenet else sum(map(surge_of, spec.node_pools))
    if room is None or (nodes + surge) * ADDRESSES_OF_A_NODE <= room:
        return False
    needed = (nodes + surge) * ADDRESSES_OF_A_NODE
    return {
        "range": next(str(found) for found in ranges if found.version == 4),
        "holds": room // ADDRESSES_OF_A_NODE,
        "nodes": nodes,
        "surge": surge,
        "prefix": 32 - (needed - 1).bit_length(),
    }


def hosted_subnets(spec: ClusterSpec) -> int:
    """Return how many of the three subnets that go together a cluster has."""
    hosted, access = spec.hosted_system_profile, spec.api_server_access_profile
    own = (hosted.system_node_subnet_id, hosted.node_subnet_id) if hosted else ()
    return sum(1 for subnet in (*own, access and access.subnet_id) if subnet) if any(own) else 0


def in_own_network(spec: ClusterSpec) -> bool:
    """Return whether a node is in a subnet that is not AKS's own."""
    return bool(hosted_subnets(spec)) or any(pool.vnet_subnet_id for pool in spec.node_pools)


def _network_of(subnet: str) -> str:
    return subnet.lower().partition("/subnets/")[0]


def _other_network(spec: ClusterSpec, pool: NodePool) -> Broken:
    """Return whether a subnet of a pool is in another virtual network than the first pool's."""
    first = next((other for other in spec.node_pools if other.vnet_subnet_id), None)
    if first is None or not pool.vnet_subnet_id:
        return False
    wanted = _network_of(first.vnet_subnet_id or "")
    own = (pool.vnet_subnet_id, *((pool.pod_subnet_id,) if pool.pod_subnet_id else ()))
    return {"first": first.name} if any(_network_of(subnet) != wanted for subnet in own) else False


def _managed_subnet(spec: ClusterSpec, pool: NodePool) -> Broken:
    """Return the node pools that have no subnet, for the first pool that has one."""
    first = next((other for other in spec.node_pools if other.vnet_subnet_id), None)
    without = [other.name for other in spec.node_pools if not other.vnet_subnet_id]
    return (
        {"without": ", ".join(without)} if first is pool and without and not hosted_subnets(spec) else False
    )


def _own_pods(spec: ClusterSpec, pool: NodePool) -> Broken:
    """Return what of the network the subnet of a pool's pods does not go with."""
    if pool.pod_subnet_id is None:
        return False
    if spec.network_profile.network_plugin_mode == "overlay":
        return {"other": "networkPluginMode: overlay"}
    plugin = spec.network_profile.network_plugin
    return {"other": f"networkPlugin: {plugin}"} if plugin != "azure" else False


def _delegated(spec: ClusterSpec, pool: NodePool) -> Broken:
    """Return for which purpose AKS delegates the subnet of a pool's nodes."""
    access, own = spec.api_server_access_profile, (pool.vnet_subnet_id or "").lower()
    subnets = {
        "podSubnetID": [other.pod_subnet_id for other in spec.node_pools],
        "apiServerAccessProfile.subnetId": [access.subnet_id if access else None],
    }
    found = [field for field, ids in subnets.items() if own and own in [(text or "").lower() for text in ids]]
    return {"field": found[0]} if found else False


def _long_names(spec: ClusterSpec, pool: NodePool) -> Broken:
    """Return the first name in a subnet's id that is too long for the label that overlay makes of it."""
    long = next((name for name in (pool.vnet_subnet_id or "").split("/") if len(name) > _LABEL), None)
    return long is not None and spec.network_profile.network_plugin_mode == "overlay" and {"name": long}


def _balances_other_egress(spec: ClusterSpec) -> bool:
    network = spec.network_profile
    balancer = network.load_balancer_profile
    fields = (*_EGRESS, "allocated_outbound_ports", "idle_timeout_in_minutes")
    other = network.outbound_type not in (
        None,
        "loadBalancer",
        "userDefinedRouting",
    )  # its model has the last
    return other and any(getattr(balancer, field) is not None for field in fields if balancer)


def _secures_without_cilium(spec: ClusterSpec) -> bool:
    networking = spec.network_profile.advanced_networking
    security = networking.security if networking else None
    asks = security and (security.enabled or security.advanced_network_policies in ("L7", "FQDN"))
    return bool(asks and spec.network_profile.network_dataplane == "azure")


def _accelerates(spec: ClusterSpec) -> bool:
    networking = spec.network_profile.advanced_networking
    performance = networking.performance if networking else None
    return performance is not None and performance.acceleration_mode == "BpfVeth"


def _outbound_nat_off(spec: ClusterSpec, pool: NodePool) -> bool:
    profile = pool.windows_profile
    off = bool(profile and profile.disable_outbound_nat)
    return off and (
        bool(pool.enable_node_public_ip) or spec.network_profile.outbound_type in ("loadBalancer", "none")
    )


_NET = "networkProfile"
_OUTBOUND: Path = (_NET, "outboundType")
CLUSTER_RULES: tuple[ClusterRule, ...] = (
    ClusterRule(
        (_NET, "loadBalancerProfile", "allocatedOutboundPorts"),
        _ports,
        "{nodes} nodes and {surge} more during an upgrade x {ports} ports are {needed:,}, and {addresses} "
        "outbound address(es) have {available:,}; write at most {fits}, {enough} addresses "
        "(managedOutboundIPs.count), or fewer nodes",
        "SupportArticles-docs error-code-invalidloadbalancerprofileallocatedoutboundports; "
        "Azure/azure-cli#22374; jenkins-infra/azure#580: maxCount and surge count",
    ),
    ClusterRule(
        (_NET, "podCidr"),
        _pod_range,
        "{range} has room for {holds} node(s), each with a /24, and the node pools may have {nodes} and "
        "{surge} more during an upgrade; write a range of /{prefix}, or lower count, maxCount or maxSurge",
        "Azure/AKS-Construction#701, Azure/AKS#4467: overlay, with maxCount and surge; "
        "Azure/AKS-Construction#357: kubenet, without surge",
    ),
    ClusterRule(
        _OUTBOUND,
        lambda spec: (
            spec.network_profile.outbound_type in ("userDefinedRouting", "userAssignedNATGateway")
            and not in_own_network(spec)
        ),
        "userDefinedRouting and userAssignedNATGateway need your own network: add vnetSubnetID to every "
        "node pool, or write loadBalancer",
        "egress-outboundtype; azure-cli get_outbound_type; Azure/AKS#1842, Azure/azure-cli#33204",
    ),
    ClusterRule(
        _OUTBOUND,
        lambda spec: spec.network_profile.outbound_type == "managedNATGateway" and in_own_network(spec),
        "managedNATGateway does not go with your own network; write userAssignedNATGateway, or remove "
        "vnetSubnetID",
        "nat-gateway; azure-cli get_outbound_type",
    ),
    ClusterRule(
        (_NET, "loadBalancerProfile"),
        _balances_other_egress,
        "is about outboundType: loadBalancer, and this cluster has another one; remove it",
        "egress-outboundtype; azure-cli get_outbound_type",
    ),
    ClusterRule(
        (_NET, "podCidr"),
        lambda spec: (
            spec.network_profile.network_plugin == "azure"
            and spec.network_profile.network_plugin_mode is None
            and bool(pod_ranges(spec.network_profile))
        ),
        "goes with networkPluginMode: overlay or networkPlugin: kubenet; write overlay, or remove it",
        "azure-cni-overlay; azure-cli get_network_plugin; azurerm kubernetes_cluster: pod_cidr",
    ),
    ClusterRule(
        (_NET, "networkDataplane"),
        lambda spec: (
            spec.network_profile.network_dataplane == "cilium"
            and spec.network_profile.network_plugin != "azure"
            and spec.network_profile.network_plugin is not None
        ),
        "cilium goes with networkPlugin: azure; write that, or remove this line",
        "azure-cni-powered-by-cilium",
    ),
    ClusterRule(
        (_NET, "networkPolicy"),
        lambda spec: (
            spec.network_profile.network_dataplane == "cilium"
            and spec.network_profile.network_policy in ("azure", "calico")
        ),
        "networkDataplane: cilium has its own policies; write cilium",
        "Azure/bicep-registry-modules#3361: CiliumDataplaneRequiresNetworkPolicyCilium",
    ),
    ClusterRule(
        (_NET, "networkPolicy"),
        lambda spec: (
            spec.network_profile.network_policy == "azure"
            and spec.network_profile.network_plugin == "kubenet"
        ),
        "azure needs networkPlugin: azure; write calico, or another plugin",
        "use-network-policies; azurerm kubernetes_cluster: network_policy",
    ),
    ClusterRule(
        (_NET, "ipFamilies"),
        lambda spec: (
            "IPv6" in (spec.network_profile.ip_families or ())
            and spec.network_profile.network_plugin is not None
            and spec.network_profile.network_plugin_mode != "overlay"
        ),
        "IPv6 needs networkPlugin: azure with networkPluginMode: overlay; write these, or [IPv4]",
        "configure-dual-stack",
    ),
    ClusterRule(
        (_NET, "networkPolicy"),
        lambda spec: (
            "IPv6" in (spec.network_profile.ip_families or ())
            and spec.network_profile.network_policy in ("azure", "calico")
        ),
        "azure and calico have no IPv6; write cilium with networkDataplane: cilium, or ipFamilies: [IPv4]",
        "azure-cni-overlay: not with dual-stack; type ErrorCode of AKS: UnsupportedDualStackNetworkPolicy",
    ),
    ClusterRule(
        (_NET, "advancedNetworking", "security"),
        _secures_without_cilium,
        "needs networkDataplane: cilium; write that, or remove it",
        "azure-rest-api-specs AdvancedNetworkingSecurity.enabled: only on cilium based clusters",
    ),
    ClusterRule(
        (_NET, "advancedNetworking", "performance"),
        lambda spec: _accelerates(spec) and spec.network_profile.network_dataplane != "cilium",
        "BpfVeth needs networkDataplane: cilium; write that, or None",
        "how-to-enable-ebpf-host-routing: only on Azure CNI powered by Cilium",
    ),
    ClusterRule(
        (_NET, "advancedNetworking", "performance"),
        lambda spec: (
            _accelerates(spec) and spec.network_profile.static_egress_gateway_profile == Switch(enabled=True)
        ),
        "BpfVeth does not go with staticEgressGatewayProfile; remove one of the two",
        "container-network-performance-ebpf-host-routing",
    ),
    ClusterRule(
        (_NET, "networkPolicy"),
        lambda spec: (
            spec.network_profile.network_plugin == "none"
            and spec.network_profile.network_policy not in (None, "none")
        ),
        "AKS installs no policy engine with networkPlugin: none; remove it, or write another plugin",
        "use-byo-cni; type ErrorCode of AKS: NetworkPolicyNotSupportedForNone",
    ),
    ClusterRule(
        (_NET, "networkPlugin"),
        lambda spec: (
            spec.network_profile.network_plugin == "kubenet"
            and sum(map(most_nodes, spec.node_pools)) > _ROUTES
        ),
        "kubenet has a route for each of at most 400 nodes; lower count or maxCount, or write azure in a new "
        "cluster",
        "configure-kubenet: you can't have an AKS cluster larger than 400 nodes",
    ),
)
POOL_RULES: tuple[PoolRule, ...] = (
    PoolRule(
        "vnetSubnetID",
        _managed_subnet,
        "has a subnet of yours, and {without} none: AKS takes one for every node pool, or for none; add it "
        "there",
        "MicrosoftDocs/azure-docs#116169, Azure/AKS#2927: own and managed subnets do not mix",
    ),
    PoolRule(
        "vnetSubnetID",
        _other_network,
        "is in another virtual network than that of node pool {first}; choose subnets of one network",
        "create-node-pools: all node pools must reside in the same virtual network",
    ),
    PoolRule(
        "podSubnetID",
        _own_pods,
        "gives pods addresses of a subnet, which {other} does not; remove one of the two",
        "concepts-network-cni-overview: options to choose from; configure-kubenet",
    ),
    PoolRule(
        "vnetSubnetID",
        _delegated,
        "is also {field}, a subnet that AKS delegates to itself, and nodes are in none that is delegated; "
        "choose another subnet for one of the two",
        "concepts-network-cni-overview: can't be a delegated subnet; api-server-vnet-integration",
    ),
    PoolRule(
        "vnetSubnetID",
        _long_names,
        "has the name {name}, which is longer than the 63 characters of the label that nodes get with "
        "overlay; choose a subnet with shorter names",
        "concepts-network-azure-cni-overlay, Limitations",
    ),
    PoolRule(
        "enableNodePublicIP",
        lambda spec, pool: (
            bool(pool.enable_node_public_ip) and spec.network_profile.outbound_type == "userDefinedRouting"
        ),
        "does not go with outboundType: userDefinedRouting, where your own routes lead out; remove one of "
        "the two",
        "type ErrorCode of AKS: UDRWithNodePublicIPNotAllowed",
    ),
    PoolRule(
        "windowsProfile",
        _outbound_nat_off,
        "disableOutboundNat needs outboundType: managedNATGateway, userAssignedNATGateway or "
        "userDefinedRouting, and no enableNodePublicIP",
        "azure-rest-api-specs AgentPoolWindowsProfile.disableOutboundNat",
    ),
    PoolRule(
        "maxPods",
        lambda _spec, pool: (
            {"pods": pool.max_pods, "nodes": most_nodes(pool), "least": -(-FEWEST_PODS // pool.max_pods)}
            if pool.max_pods and 0 < most_nodes(pool) * pool.max_pods < FEWEST_PODS
            else False
        ),
        "{nodes} node(s) x {pods} pods are fewer than the 30 that AKS wants of a node pool; write at least "
        "{least} nodes, or more pods",
        "concepts-network-ip-address-planning: space for a minimum of 30 pods",
    ),
)
