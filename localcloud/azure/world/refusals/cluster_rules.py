"""Refusals about a cluster, except its network: identity, tier, security, add-ons."""

from __future__ import annotations

import re
from typing import Any

from localcloud.azure.world.catalog import parse
from localcloud.azure.world.refusals import api_server_rules, autoscaler_rules, isolation_rules
from localcloud.azure.world.refusals.rule import (
    Broken,
    RefusalRule,
    RequestedWrite,
    is_one_way,
    same,
    unless,
    without,
)
from shared.json_tree import Json

_ACCESS, _KMS = "apiServerAccessProfile", "securityProfile.azureKeyVaultKms"
_ACCOUNTS = frozenset(
    (
        *("administrator", "admin", "user", "user1", "test", "user2", "test1", "user3", "admin1", "1", "123"),
        *("a", "actuser", "adm", "admin2", "aspnet", "backup", "console", "david", "guest", "john", "owner"),
        *("root", "server", "sql", "support", "support_388945a0", "sys", "test2", "test3", "user4", "user5"),
    )
)


def _account_of_everybody(asked: RequestedWrite) -> bool:
    name: str | None = asked.says("windowsProfile.adminUsername")
    return name is not None and (name.lower() in _ACCOUNTS or name.endswith(".") or not 0 < len(name) <= 20)


def _scales(pool: Json) -> bool:
    return bool(pool.get("enableAutoScaling"))


def _provisioning_with(broken: Broken) -> Broken:
    return lambda asked: asked.now("nodeProvisioningProfile.mode") == "Auto" and broken(asked)


def _identities(asked: RequestedWrite) -> Any:
    return (asked.now("identity") or {}).get("userAssignedIdentities") or {}


def _kubelet_identity_alone(asked: RequestedWrite) -> bool:
    path = "identityProfile.kubeletidentity.resourceId"
    own = asked.says(path) and not same(asked.says(path), asked.was(path))
    return bool(own) and asked.now("identity.type") != "UserAssigned"


def _addon(name: str, setting: str = "enabled") -> Broken:
    def value(addons: Any) -> Any:
        found = {str(key).lower(): addon for key, addon in (addons or {}).items()}.get(name)
        return (found or {}).get(setting)

    return lambda asked: value(asked.says("addonProfiles")) and not value(asked.was("addonProfiles"))


def _monitoring_without_workspace(asked: RequestedWrite) -> bool:
    addons = {str(key).lower(): addon for key, addon in (asked.now("addonProfiles") or {}).items()}
    addon = addons.get("omsagent") or {}
    config = {str(key).lower(): value for key, value in (addon.get("config") or {}).items()}
    return bool(addon.get("enabled")) and not config.get("loganalyticsworkspaceresourceid")


def _pools_without_fips(asked: RequestedWrite) -> bool:
    return bool(asked.now("enableFIPS")) and any(
        not pool.get("enableFIPS") for pool in asked.now("agentPoolProfiles") or ()
    )


_SYSTEM_ASSIGNED = "SystemAssigned"


def _turns_kms_on(asked: RequestedWrite) -> bool:
    return bool(asked.now(f"{_KMS}.enabled") and not asked.was(f"{_KMS}.enabled"))


def _mode_of_the_vault_changes(asked: RequestedWrite) -> bool:
    """Return whether a vault changes between public and private while the encryption with it stays on."""
    mode = f"{_KMS}.keyVaultNetworkAccess"
    stays = asked.was(f"{_KMS}.enabled") and asked.now(f"{_KMS}.enabled")
    changes = not same(asked.was(mode) or "Public", asked.now(mode) or "Public")
    keys = (asked.was(f"{_KMS}.keyId"), asked.now(f"{_KMS}.keyId"))
    return bool(stays and changes) and len({str(key).lower().partition("/keys/")[0] for key in keys}) == 1


RULES = (
    *api_server_rules.RULES,
    *isolation_rules.RULES,
    RefusalRule(
        "node-images-by-one-channel",
        "docs auto-upgrade-node-os-image; azurerm cluster: node_os_upgrade_channel",
        "autoUpgradeProfile.nodeOSUpgradeChannel",
        "autoUpgradeProfile.nodeOSUpgradeChannel must be NodeImage with upgradeChannel node-image.",
        lambda asked: (
            asked.now("autoUpgradeProfile.upgradeChannel") == "node-image"
            and asked.now("autoUpgradeProfile.nodeOSUpgradeChannel") not in (None, "NodeImage")
        ),
    ),
    RefusalRule(
        "system-identity-alone",
        "models ManagedClusterIdentity.user_assigned_identities; docs use-managed-identity",
        "identity.userAssignedIdentities",
        "userAssignedIdentities are allowed only with identity type UserAssigned.",
        lambda asked: asked.now("identity.type") != "UserAssigned" and _identities(asked),
    ),
    RefusalRule(
        "one-user-identity",
        "models ManagedClusterIdentity.user_assigned_identities: only one is allowed",
        "identity.userAssignedIdentities",
        "Identity type UserAssigned needs exactly one user assigned identity.",
        lambda asked: asked.now("identity.type") == "UserAssigned" and len(_identities(asked)) != 1,
    ),
    RefusalRule(
        "kubelet-identity-needs-user-identity",
        "docs use-managed-identity: a kubelet identity of one's own needs a user-assigned identity",
        "identityProfile.kubeletidentity",
        "A kubelet identity of one's own needs identity type UserAssigned.",
        _kubelet_identity_alone,
    ),
    RefusalRule(
        "long-term-support-is-premium",
        "docs long-term-support",
        "supportPlan",
        "supportPlan AKSLongTermSupport needs sku tier Premium.",
        lambda asked: asked.now("supportPlan") == "AKSLongTermSupport" and asked.now("sku.tier") != "Premium",
    ),
    *(
        RefusalRule(
            f"provisioning-without-{what}",
            f"docs {source}",
            "nodeProvisioningProfile.mode",
            f"nodeProvisioningProfile.mode Auto is not supported with {text}.",
            _provisioning_with(broken),
        )
        for what, text, source, broken in (
            (
                "autoscaler",
                "the cluster autoscaler",
                "migrate-from-autoscaler-to-node-auto-provisioning: the autoscaler is disabled first",
                lambda asked: any(map(_scales, asked.now("agentPoolProfiles") or ())),
            ),
            (
                "windows",
                "Windows node pools",
                "node-auto-provisioning: Windows node pools aren't supported",
                lambda asked: any(
                    pool.get("osType") == "Windows" for pool in asked.now("agentPoolProfiles") or ()
                ),
            ),
            (
                "ipv6",
                "IPv6",
                "node-auto-provisioning: IPv6 clusters aren't supported",
                lambda asked: "IPv6" in (asked.now("networkProfile.ipFamilies") or ()),
            ),
            (
                "calico",
                "Calico network policy",
                "node-auto-provisioning-networking: unsupported networking configurations",
                lambda asked: asked.now("networkProfile.networkPolicy") == "calico",
            ),
            (
                "pod-subnets",
                "dynamic IP allocation",
                "node-auto-provisioning-networking: unsupported networking configurations",
                lambda asked: any(pool.get("podSubnetID") for pool in asked.now("agentPoolProfiles") or ()),
            ),
        )
    ),
    RefusalRule(
        "provisioning-needs-public-access",
        "Azure/AKS#5586, Azure/AKS#5881",
        "nodeProvisioningProfile.mode",
        ".properties.nodeProvisioningProfile.mode cannot be Auto unless .properties.publicNetworkAccess is "
        "set to one of [Enabled].",
        _provisioning_with(lambda asked: asked.now("publicNetworkAccess") == "Disabled"),
        code="OperationNotAllowed",
    ),
    RefusalRule(
        "windows-account",
        "models ManagedClusterWindowsProfile.admin_username: disallowed values, maximum length",
        "windowsProfile.adminUsername",
        "windowsProfile.adminUsername is not allowed.",
        _account_of_everybody,
    ),
    RefusalRule(
        "static-egress-alone",
        "docs configure-static-egress-gateway: not with Azure CNI Pod Subnet, and IPv4-only",
        "networkProfile.staticEgressGatewayProfile",
        "staticEgressGatewayProfile is not supported with pod subnets and in dual-stack clusters.",
        lambda asked: (
            asked.now("networkProfile.staticEgressGatewayProfile.enabled")
            and (
                "IPv6" in (asked.now("networkProfile.ipFamilies") or ())
                or any(pool.get("podSubnetID") for pool in asked.now("agentPoolProfiles") or ())
            )
        ),
    ),
    RefusalRule(
        "cost-analysis-is-paid",
        "models ManagedClusterCostAnalysis.enabled",
        "metricsProfile.costAnalysis.enabled",
        "metricsProfile.costAnalysis.enabled needs sku tier Standard or Premium.",
        unless("metricsProfile.costAnalysis.enabled", "sku.tier", "Standard", "Premium"),
    ),
    RefusalRule(
        "cost-analysis-needs-disks",
        "SupportArticles-docs aks-cost-analysis-add-on-issues, Cause 1",
        "metricsProfile.costAnalysis.enabled",
        "metricsProfile.costAnalysis.enabled needs the CSI driver of disks.",
        lambda asked: (
            asked.now("metricsProfile.costAnalysis.enabled")
            and asked.now("storageProfile.diskCSIDriver.enabled") is False
        ),
        code="InvalidDiskCSISettingForCostAnalysis",
    ),
    RefusalRule(
        "local-accounts-need-entra",
        "models ManagedClusterProperties.disable_local_accounts",
        "disableLocalAccounts",
        "disableLocalAccounts needs aadProfile.managed.",
        without("disableLocalAccounts", "aadProfile.managed"),
    ),
    RefusalRule(
        "workload-identity-needs-issuer",
        "docs workload-identity-deploy-cluster: both are given; azurerm cluster: workload_identity_enabled",
        "securityProfile.workloadIdentity.enabled",
        "securityProfile.workloadIdentity.enabled needs oidcIssuerProfile.enabled.",
        without("securityProfile.workloadIdentity.enabled", "oidcIssuerProfile.enabled"),
    ),
    RefusalRule(
        "issuer-stays",
        "docs use-oidc-issuer: can't be disabled",
        "oidcIssuerProfile.enabled",
        "Changing property 'oidcIssuerProfile.enabled' is not allowed.",
        is_one_way("oidcIssuerProfile.enabled"),
        code="PropertyChangeNotAllowed",
    ),
    RefusalRule(
        "entra-stays",
        "docs enable-authentication-microsoft-entra-id: can't be disabled",
        "aadProfile.managed",
        "Changing property 'aadProfile.managed' is not allowed.",
        is_one_way("aadProfile.managed"),
        code="PropertyChangeNotAllowed",
    ),
    RefusalRule(
        "kms-needs-key",
        "models AzureKeyVaultKms.key_id: required when enabled",
        f"{_KMS}.keyId",
        "securityProfile.azureKeyVaultKms needs keyId.",
        without(f"{_KMS}.enabled", f"{_KMS}.keyId"),
    ),
    RefusalRule(
        "kms-off-without-key",
        "models AzureKeyVaultKms.key_id: must be omitted when the service is disabled",
        f"{_KMS}.keyId",
        "keyId must be empty while securityProfile.azureKeyVaultKms is disabled.",
        lambda asked: asked.says(f"{_KMS}.keyId") and not asked.now(f"{_KMS}.enabled"),
    ),
    RefusalRule(
        "kms-private-vault",
        "models AzureKeyVaultKms.key_vault_resource_id",
        f"{_KMS}.keyVaultResourceId",
        "keyVaultResourceId is required with keyVaultNetworkAccess Private, and empty with Public.",
        lambda asked: (
            asked.now(f"{_KMS}.enabled")
            and bool(asked.now(f"{_KMS}.keyVaultResourceId"))
            is not (asked.now(f"{_KMS}.keyVaultNetworkAccess") == "Private")
        ),
    ),
    RefusalRule(
        "kms-mode-of-the-vault-stays",
        "docs use-kms-etcd-encryption: turn KMS off first to change between public and private",
        f"{_KMS}.keyVaultNetworkAccess",
        "keyVaultNetworkAccess cannot change while securityProfile.azureKeyVaultKms is enabled.",
        _mode_of_the_vault_changes,
    ),
    RefusalRule(
        "kms-key-without-version",
        "release notes of AKS, 2026-09-04: a versionless key id on 1.37",
        f"{_KMS}.keyId",
        "The Key Vault key ID must be versionless.",
        lambda asked: (
            _turns_kms_on(asked)
            and bool(asked.now("securityProfile.kubernetesResourceObjectEncryptionProfile"))
            and parse(str(asked.now("kubernetesVersion")))[:2] >= (1, 37)
            and re.search(r"/keys/[^/]+/.", str(asked.now(f"{_KMS}.keyId"))) is not None
        ),
    ),
    RefusalRule(
        "kms-needs-user-identity",
        "docs use-kms-etcd-encryption: doesn't work with system-assigned managed identity",
        _KMS,
        "securityProfile.azureKeyVaultKms needs identity type UserAssigned.",
        lambda asked: _turns_kms_on(asked) and asked.now("identity.type") == _SYSTEM_ASSIGNED,
    ),
    RefusalRule(
        "kms-private-vault-needs-integration",
        "docs use-kms-etcd-encryption: must use the API Server VNet Integration",
        f"{_KMS}.keyVaultNetworkAccess",
        "keyVaultNetworkAccess Private needs apiServerAccessProfile.enableVnetIntegration.",
        lambda asked: (
            _turns_kms_on(asked)
            and asked.now(f"{_KMS}.keyVaultNetworkAccess") == "Private"
            and not asked.now(f"{_ACCESS}.enableVnetIntegration")
            and asked.now("sku.name") != "Automatic"
        ),
    ),
    RefusalRule(
        "defender-needs-workspace",
        "models ManagedClusterSecurityProfileDefender.log_analytics_workspace_resource_id",
        "securityProfile.defender.logAnalyticsWorkspaceResourceId",
        "securityProfile.defender needs logAnalyticsWorkspaceResourceId.",
        without(
            "securityProfile.defender.securityMonitoring.enabled",
            "securityProfile.defender.logAnalyticsWorkspaceResourceId",
        ),
    ),
    RefusalRule(
        "monitoring-needs-workspace",
        "docs monitor-aks: the omsagent add-on sends to a Log Analytics workspace",
        "addonProfiles.omsagent.config.logAnalyticsWorkspaceResourceID",
        "The omsagent add-on needs config.logAnalyticsWorkspaceResourceID.",
        _monitoring_without_workspace,
    ),
    RefusalRule(
        "http-routing-retired",
        "docs http-application-routing: retired on 3 March 2025",
        "addonProfiles.httpApplicationRouting",
        "The HTTP application routing add-on is retired. Use the application routing add-on.",
        _addon("httpapplicationrouting"),
    ),
    RefusalRule(
        "fips-everywhere",
        "models ManagedClusterProperties.enable_fips: all node pools must also be FIPS-enabled",
        "enableFIPS",
        "enableFIPS of the cluster needs enableFIPS on every node pool.",
        _pools_without_fips,
    ),
    RefusalRule(
        "automatic-is-paid",
        "docs intro-aks-automatic: AKS Automatic has the Standard tier",
        "sku.tier",
        "sku name Automatic needs tier Standard or Premium.",
        lambda asked: asked.now("sku.name") == "Automatic" and asked.now("sku.tier") == "Free",
    ),
    RefusalRule(
        "registry-goes-with-cache",
        "models ManagedClusterBootstrapProfile.container_registry_id; docs network-isolated",
        "bootstrapProfile.containerRegistryId",
        "bootstrapProfile.containerRegistryId needs artifactSource Cache.",
        unless("bootstrapProfile.containerRegistryId", "bootstrapProfile.artifactSource", "Cache"),
    ),
    *autoscaler_rules.RULES,
)
