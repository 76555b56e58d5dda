"""Writes that break one rule of AKS each, by the name of the rule in the tables of the local Azure.

tests/language/refusals.yaml has creations of clusters that `validate` refuses, too, each with its source.
"""

from __future__ import annotations

from typing import Any

from localcloud.azure.world.refusals import autoscaler_rules
from localcloud.azure.world.refusals.node_settings import SYSCTLS

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers"
SUBNET = f"{GROUP}/Microsoft.Network/virtualNetworks/v/subnets/s"
USER = f"{GROUP}/Microsoft.ManagedIdentity/userAssignedIdentities/u"
OWN_IDENTITY: dict[str, Any] = {"identity": {"type": "UserAssigned", "userAssignedIdentities": {USER: {}}}}
ADDRESS = {"publicIPs": [{"id": f"{GROUP}/Microsoft.Network/publicIPAddresses/a"}]}
ON, OVERLAY = {"enabled": True}, {"networkPlugin": "azure", "networkPluginMode": "overlay"}
FLAT = {"networkPlugin": "azure"}
ISOLATED: dict[str, Any] = {
    "networkProfile": {"outboundType": "none"},
    "bootstrapProfile": {"artifactSource": "Cache"},
}
NAT = {"outboundType": "managedNATGateway"}
MANAGED = {"managedOutboundIPProfile": {"count": 2}}
PREFIXES = {"publicIPPrefixes": ["p"]}


def net(**fields: Any) -> dict[str, Any]:
    return {"networkProfile": fields}


def nat(**fields: Any) -> dict[str, Any]:
    return net(**NAT, natGatewayProfile=fields)


def lb(**fields: Any) -> dict[str, Any]:
    return net(loadBalancerProfile=fields)


def kms(**fields: Any) -> dict[str, Any]:
    return {"securityProfile": {"azureKeyVaultKms": fields}}


def access(**fields: Any) -> dict[str, Any]:
    return {"apiServerAccessProfile": fields}


CREATED: dict[str, dict[str, Any]] = {
    "load-balancer-one-kind": lb(managedOutboundIPs={"count": 1}, outboundIPs=ADDRESS),
    "user-defined-routing-without-load-balancer": net(
        outboundType="userDefinedRouting", loadBalancerProfile={"idleTimeoutInMinutes": 5}
    )
    | {"pool": {"vnetSubnetID": SUBNET}},
    "nat-profile-of-another-outbound-type": net(natGatewayProfile=MANAGED),
    "nat-managed-or-own-addresses": nat(**MANAGED, outboundIPs={"publicIPs": ["a"]}),
    "nat-v2-only": nat(sku="Standard", outboundIPPrefixes=PREFIXES),
    "nat-count": nat(managedOutboundIPProfile={"count": 17}),
    "nat-count-ipv6": nat(managedOutboundIPProfile={"countIPv6": 0}),
    "nat-idle-timeout": nat(idleTimeoutInMinutes=3),
    "load-balancer-count": lb(managedOutboundIPs={"count": 101}),
    "load-balancer-count-ipv6": lb(managedOutboundIPs={"countIPv6": 1}),
    "load-balancer-ports": lb(allocatedOutboundPorts=64001),
    "load-balancer-idle-timeout": lb(idleTimeoutInMinutes=121),
    "basic-load-balancer-retired": net(loadBalancerSku="basic"),
    "ranges-are-ranges": net(**OVERLAY, podCidr="10.1.0.0/33"),
    "families-are-one-or-both": net(**OVERLAY, ipFamilies=["IPv6"]),
    "ranges-are-few": access(authorizedIPRanges=[f"20.0.{number}.0/24" for number in range(201)]),
    "services-fit": net(**OVERLAY, serviceCidr="10.0.0.0/11", dnsServiceIP="10.0.0.10"),
    "kms-private-vault-needs-integration": kms(
        enabled=True, keyId="k", keyVaultNetworkAccess="Private", keyVaultResourceId="v"
    )
    | OWN_IDENTITY,
    "ranges-match-families": net(**OVERLAY, podCidrs=["10.1.0.0/16", "fd00::/64"]),
    "overlay-is-azure": net(networkPlugin="kubenet", networkPluginMode="overlay"),
    "cilium-policy-needs-cilium": net(networkPolicy="cilium"),
    "system-identity-alone": {"identity": {"type": "SystemAssigned", "userAssignedIdentities": {USER: {}}}},
    "one-user-identity": {"identity": {"type": "UserAssigned"}},
    "kubelet-identity-needs-user-identity": {"identityProfile": {"kubeletidentity": {"resourceId": USER}}},
    "long-term-support-is-premium": {"supportPlan": "AKSLongTermSupport"},
    "cost-analysis-is-paid": {"metricsProfile": {"costAnalysis": ON}},
    "local-accounts-need-entra": {"disableLocalAccounts": True},
    "workload-identity-needs-issuer": {"securityProfile": {"workloadIdentity": ON}},
    "no-name-at-all": access(
        enablePrivateCluster=True, privateDNSZone="none", enablePrivateClusterPublicFQDN=False
    ),
    "ranges-are-for-public-servers": access(enablePrivateCluster=True, authorizedIPRanges=["192.0.2.7"]),
    "kms-needs-key": kms(enabled=True),
    "kms-off-without-key": kms(enabled=False, keyId="https://v.vault.azure.net/keys/k/1"),
    "kms-private-vault": kms(enabled=True, keyId="k", keyVaultNetworkAccess="Private"),
    "monitoring-needs-workspace": {"addonProfiles": {"omsagent": ON}},
    "http-routing-retired": {"addonProfiles": {"httpApplicationRouting": ON}},
    "fips-everywhere": {"enableFIPS": True},
    "automatic-is-paid": {"sku": {"name": "Automatic", "tier": "Free"}},
    "registry-goes-with-cache": {
        "bootstrapProfile": {"artifactSource": "Direct", "containerRegistryId": "r"}
    },
    "autoscaler-scan-interval": {"autoScalerProfile": {"scan-interval": "10"}},
    **{
        f"autoscaler-{field}": {"autoScalerProfile": {field: "soon" if "skip" in field else "90x"}}
        for field in autoscaler_rules.FORMS
        if field != "scan-interval"
    },
}
_VAULT = {"keyId": "https://v.vault.azure.net/keys/k/1"}
UPDATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nat-addresses-change-hands": (nat(**MANAGED), nat(outboundIPs={"publicIPs": ["a"]})),
    "nat-sku-back": (nat(sku="StandardV2"), nat(sku="Standard")),
    "outbound-type-paths": ({}, net(outboundType="userDefinedRouting")),
    "families-change": (net(**FLAT), net(ipFamilies=["IPv4", "IPv6"])),
    "overlay-and-cilium-are-two-writes": (
        net(**FLAT),
        net(**OVERLAY, podCidr="10.1.0.0/16", networkDataplane="cilium"),
    ),
    "overlay-needs-a-range": (net(**FLAT), net(**OVERLAY)),
    "overlay-without-policy": (net(**FLAT, networkPolicy="calico"), net(**OVERLAY, podCidr="10.1.0.0/16")),
    "kubenet-to-azure-is-overlay": (net(networkPlugin="kubenet"), net(**FLAT)),
    "pod-range-grows": (net(**OVERLAY, podCidr="10.1.0.0/16"), net(podCidr="10.1.0.0/17")),
    "one-gateway-of-istio": (
        {"serviceMeshProfile": {"mode": "Istio", "istio": {"revisions": ["asm-1-30"]}}},
        {
            "serviceMeshProfile": {"mode": "Disabled"},
            "ingressProfile": {
                "webAppRouting": {**ON, "gatewayAPIImplementations": {"appRoutingIstio": {"mode": "Enabled"}}}
            },
        },
    ),
    "mesh-goes-forward": (
        {"serviceMeshProfile": {"mode": "Istio", "istio": {"revisions": ["asm-1-30"]}}},
        {"serviceMeshProfile": {"mode": "Istio", "istio": {"revisions": ["asm-1-29"]}}},
    ),
    "issuer-stays": ({"oidcIssuerProfile": ON}, {"oidcIssuerProfile": {"enabled": False}}),
    "entra-stays": ({"aadProfile": {"managed": True}}, {"aadProfile": {"managed": False}}),
    "network-integration-stays": (
        access(enableVnetIntegration=True),
        access(enableVnetIntegration=False),
    ),
    "kms-mode-of-the-vault-stays": (
        {**kms(enabled=True, **_VAULT), **access(enableVnetIntegration=True), **OWN_IDENTITY},
        kms(enabled=True, **_VAULT, keyVaultNetworkAccess="Private", keyVaultResourceId="/v"),
    ),
    "private-only-with-integration": ({}, access(enablePrivateCluster=True)),
    "private-zone-to-none": (
        access(enablePrivateCluster=True, privateDNSZone="none"),
        access(privateDNSZone="system"),
    ),
}
CILIUM = net(**OVERLAY, networkDataplane="cilium")
WINDOWS = {"osType": "Windows"}
RESERVED = {"capacityReservationGroupID": "c"}
MACHINES: dict[str, Any] = {
    "type": "VirtualMachines",
    "virtualMachinesProfile": {"scale": {"manual": [{"size": "Standard_D4s_v5", "count": 1}]}},
}
POOLS: dict[str, dict[str, Any]] = {
    "system-is-linux-and-regular": {"mode": "System", "scaleSetPriority": "Spot"},
    "windows-name": {**WINDOWS, "name": "windows"},
    "sku-of-its-system": {"osSKU": "Windows2022"},
    "windows-2019-retired": {**WINDOWS, "osSKU": "Windows2019"},
    "windows-2025-is-fips": {**WINDOWS, "osSKU": "Windows2025"},
    "wasm-retired": {"workloadRuntime": "WasmWasi"},
    "max-pods": {"maxPods": 9},
    "taint-form": {"nodeTaints": ["key:NoSchedule"]},
    "labels-of-aks": {"nodeLabels": {"kubernetes.azure.com/x": "y"}},
    "labels-of-kubernetes": {"nodeLabels": {"node-restriction.kubernetes.io/x": "y"}},
    "spot-without-surge": {"scaleSetPriority": "Spot", "upgradeSettings": {"maxSurge": "1"}},
    "spot-price": {"scaleSetPriority": "Spot", "spotMaxPrice": 0.123456},
    "system-pool-has-two-cores": {"mode": "System", "vmSize": "Standard_DS1_v2"},
    "arm-is-linux": {**WINDOWS, "vmSize": "Standard_D4ps_v5"},
    "confidential-machines-alone": {"vmSize": "Standard_DC4as_v5", "enableFIPS": True},
    "system-pods-are-tolerated": {"mode": "System", "nodeTaints": ["team=a:NoSchedule"]},
    "thirty-pods": {"maxPods": 29},
    "no-unavailable-system-nodes": {"mode": "System", "upgradeSettings": {"maxUnavailable": "1"}},
    "machines-are-linux": {**WINDOWS, **MACHINES},
    "machines-without-zones": {**MACHINES, "availabilityZones": ["1"]},
    "deallocates-managed-disks": {"scaleDownMode": "Deallocate", "osDiskType": "Ephemeral"},
    "placement-in-one-zone": {"proximityPlacementGroupID": "p", "availabilityZones": ["1", "2"]},
    "reservation-without-spot": {**RESERVED, "scaleSetPriority": "Spot"},
    "reservation-without-placement": {**RESERVED, "proximityPlacementGroupID": "p"},
    "reservation-without-host": {**RESERVED, "hostGroupID": "h"},
    "reservation-without-ultra-disks": {**RESERVED, "enableUltraSSD": True},
    "divided-gpu": {"gpuInstanceProfile": "MIG1g", "vmSize": "Standard_D4s_v5"},
    "local-dns-needs-room": {"localDNSProfile": {"mode": "Required"}, "vmSize": "Standard_D2s_v5"},
    "fips-on-arm": {"enableFIPS": True, "vmSize": "Standard_D4ps_v5"},
    "taints-are-unique": {"nodeTaints": ["team=a:NoSchedule", "team=b:NoSchedule"]},
    "swap-needs-a-kubelet-that-takes-it": {"linuxOSConfig": {"swapFileSizeMB": 1500}},
    "quota-period": {"kubeletConfig": {"cpuCfsQuotaPeriod": "100"}},
    "kata-without-fips-and-streaming": {
        "workloadRuntime": "KataVmIsolation",
        "osSKU": "AzureLinux",
        "enableFIPS": True,
    },
    "trusted-launch-of-the-image": {
        "osSKU": "AzureLinux",
        "enableFIPS": True,
        "securityProfile": {"enableVTPM": True},
    },
    "disk-of-the-size": {"vmSize": "Standard_D4s_v5", "osDiskType": "Ephemeral"},
    "machines-of-one-kind": {
        "type": "VirtualMachines",
        "virtualMachinesProfile": {
            "scale": {"manual": [{"size": f"Standard_D4{kind}_v5", "count": 1} for kind in ("s", "ps")]}
        },
    },
    "windows-without-divided-gpu": {
        **WINDOWS,
        "vmSize": "Standard_ND96asr_v4",
        "gpuInstanceProfile": "MIG1g",
    },
    "kata-is-azure-linux": {"workloadRuntime": "KataVmIsolation"},
    "pod-pids": {"kubeletConfig": {"podMaxPids": -2}},
    "entra-ssh-on-writable-linux": {**WINDOWS, "securityProfile": {"sshAccess": "EntraId"}},
    "trusted-launch-is-linux": {**WINDOWS, "securityProfile": {"enableVTPM": True}},
    "gateway-fits-its-prefix": {"mode": "Gateway", "count": 3},
    "gateway-needs-static-egress": {"mode": "Gateway"},
    "dns-does-not-loop": {
        "localDNSProfile": {
            "mode": "Required",
            "vnetDNSOverrides": {".": {"forwardDestination": "ClusterCoreDNS"}},
        }
    },
    "dns-serves-stale": {
        "localDNSProfile": {
            "mode": "Required",
            "kubeDNSOverrides": {"a": {"protocol": "ForceTCP", "serveStale": "Verify"}},
        }
    },
    "gateway-profile-of-gateways": {"gatewayProfile": {"publicIPPrefixSize": 30}},
    "gateway-prefix": {"mode": "Gateway", "gatewayProfile": {"publicIPPrefixSize": 27}},
    "zones-of-scale-sets": {"type": "AvailabilitySet", "availabilityZones": ["1"]},
    "machines-of-their-type": {"virtualMachinesProfile": {"scale": {"manual": [{"size": "s", "count": 1}]}}},
    "pod-subnet-needs-subnet": {"podSubnetID": SUBNET},
    "prefix-needs-public-addresses": {"nodePublicIPPrefixID": "p"},
    "message-of-the-day": {"messageOfTheDay": "hi!"},
    "surge": {"upgradeSettings": {"maxSurge": "a third"}},
    "surge-or-unavailable": {"upgradeSettings": {"maxSurge": "0"}},
    "drain-timeout": {"upgradeSettings": {"drainTimeoutInMinutes": 1441}},
    "soak": {"upgradeSettings": {"nodeSoakDurationInMinutes": 31}},
    "host-ports": {"networkProfile": {"allowedHostPorts": [{"portStart": 90, "portEnd": 80}]}},
    "outbound-nat-off": {**WINDOWS, "windowsProfile": {"disableOutboundNat": True}},
    "windows-profile-of-windows": {"windowsProfile": {"disableOutboundNat": False}},
    "sysctl-netIpv4IpLocalPortRange": {"linuxOSConfig": {"sysctls": {"netIpv4IpLocalPortRange": "1 2"}}},
    "image-thresholds": {"kubeletConfig": {"imageGcLowThreshold": 90}},
    "log-files": {"kubeletConfig": {"containerLogMaxFiles": 1}},
    "swap-file-size": {"linuxOSConfig": {"swapFileSizeMB": 0}},
    "unsafe-sysctls": {"kubeletConfig": {"allowedUnsafeSysctls": ["vm.swappiness"]}},
    "windows-kubelet-settings": {**WINDOWS, "kubeletConfig": {"cpuManagerPolicy": "none"}},
    "windows-without-linux-settings": {**WINDOWS, "linuxOSConfig": {"swapFileSizeMB": 1}},
    "setting-cpuManagerPolicy": {"kubeletConfig": {"cpuManagerPolicy": "all"}},
    "setting-topologyManagerPolicy": {"kubeletConfig": {"topologyManagerPolicy": "all"}},
    "setting-transparentHugePageEnabled": {"linuxOSConfig": {"transparentHugePageEnabled": "on"}},
    "setting-transparentHugePageDefrag": {"linuxOSConfig": {"transparentHugePageDefrag": "on"}},
    **{
        f"sysctl-{name}": {"linuxOSConfig": {"sysctls": {name: low - 1}}}
        for name, (low, _) in SYSCTLS.items()
    },
}
LONG_TERM = {"kubernetesVersion": "1.33", "supportPlan": "AKSLongTermSupport", "sku": {"tier": "Premium"}}
POOLS_OF: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "windows-needs-azure-network": (net(networkPlugin="kubenet"), WINDOWS),
    "windows-without-cilium": (CILIUM, WINDOWS),
    "accelerated-image": (
        net(
            **OVERLAY,
            networkDataplane="cilium",
            advancedNetworking={"enabled": True, "performance": {"accelerationMode": "BpfVeth"}},
        ),
        {"osSKU": "Ubuntu2204"},
    ),
    "own-routes-without-public-addresses": (
        net(outboundType="userDefinedRouting") | {"pool": {"vnetSubnetID": SUBNET}},
        {"vnetSubnetID": SUBNET, "enableNodePublicIP": True},
    ),
    "machines-need-user-identity": (
        {"pool": {"vnetSubnetID": SUBNET}},
        {**MACHINES, "vnetSubnetID": SUBNET},
    ),
    **{
        f"image-{image}": ({"kubernetesVersion": version}, {"osSKU": image})
        for image, version in (("Ubuntu2204", "1.37"), ("AzureLinux3", "1.37"))
    },
    "image-Windows2022": ({"kubernetesVersion": "1.37"}, {**WINDOWS, "osSKU": "Windows2022"}),
    "image-AzureContainerLinux": (LONG_TERM, {"osSKU": "AzureContainerLinux"}),
    "own-and-managed-subnets": ({}, {"vnetSubnetID": SUBNET}),
    "enclaves-without-overlay": (net(**OVERLAY), {"vmSize": "Standard_DC4s_v2"}),
    "isolated-without-windows": (ISOLATED, WINDOWS),
    "proxy-without-windows": ({"httpProxyConfig": {"httpProxy": "http://p:1"}}, WINDOWS),
    "one-virtual-network": (
        {"pool": {"vnetSubnetID": SUBNET}},
        {"vnetSubnetID": SUBNET.replace("Networks/v/", "Networks/other/")},
    ),
}
STOPPED = {"powerState": {"code": "Stopped"}}
POOLS_UPDATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "windows-fips-stays": (WINDOWS, {"enableFIPS": True}),
    "windows-sku-stays": (WINDOWS | {"osSKU": "Windows2025", "enableFIPS": True}, {"osSKU": "Windows2022"}),
}
