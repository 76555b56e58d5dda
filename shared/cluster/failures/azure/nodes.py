"""Errors of nodes that cannot set themselves up: mostly a network that does not let them out.

A node runs a script of AKS (CSE) when it starts. Its exit status is a number, which the pages of
Microsoft name; newer codes begin with VMExtensionError_, older ones end with VMExtensionError.
"""

from __future__ import annotations

from shared.cluster.failures.azure.aks import WRAPPERS
from shared.cluster.failures.entry import Actor, Entry, sourced, support
from shared.cluster.failures.errors import (
    InvalidManifest,
    Obstructed,
    Refused,
    RoleNotEffective,
    Unexplained,
)

_WRAPPER = "VMExtensionProvisioningError"
_CODES = (_WRAPPER, "VMExtensionHandlerNonTransientError", *WRAPPERS)
_OUT = (
    "Let the nodes' subnet reach {addresses} on port 443: a firewall, network security group, route or proxy"
)

_SCRIPTS = {
    31: "ERR_K8S_DOWNLOAD_TIMEOUT",
    41: "ERR_CNI_DOWNLOAD_TIMEOUT",
    50: "ERR_OUTBOUND_CONN_FAIL",
    51: "ERR_K8S_API_SERVER_CONN_FAIL",
    52: "ERR_K8S_API_SERVER_DNS_LOOKUP_FAIL",
    65: "ERR_VHD_FILE_NOT_FOUND",
}
"""The names of exit statuses in the script."""


_ON_THE_MACHINE = (
    *(2, 3, 5, 6, 7, 8, 32, 38, 39, 43, 48, 49, 80, 91, 100, 102, 116, 118, 119, 120),
    *(*range(111, 116), 153, 170, *range(172, 178), 202, 204, 206, 213, 214, *range(216, 221), 223, 231, 232),
)
"""Exit statuses of what the script does without the network."""


def _exit(*numbers: int) -> tuple[str, ...]:
    forms = ("exit status={}", 'exitcode": "{}"', "exitcode: {}")
    ends = (" ", "\n", "\\", ",", ":", ";", '"', ".", ")")
    return tuple(f"{form.format(number)}{end}" for number in numbers for form in forms for end in ends)


def _failed(
    name: str, status: int, meaning: str, remedy: str, actor: Actor = Actor.NETWORK
) -> tuple[Entry, ...]:
    """Return the entry of a failure by its codes, and that by the exit status in a text."""
    kind = RoleNotEffective if actor is Actor.ACCESS else Obstructed
    named = (f"VMExtensionError_{name}", f"{name}VMExtensionError", _SCRIPTS.get(status, ""))
    codes = tuple(filter(None, named))
    by_code = Entry(f"nodes/{name}", kind, codes, meaning, remedy, actor)
    by_status = Entry(f"nodes/{name}ByStatus", kind, _CODES, meaning, remedy, actor, says=_exit(status))
    return by_code, by_status


ENTRIES: tuple[Entry, ...] = (
    *sourced(
        "Azure/Azure-Landing-Zones issue 2600, Azure/AKS-Landing-Zone-Accelerator issue 167,"
        " hashicorp/terraform-provider-azurerm issue 27940, Azure/aks-engine issues 2254 and 4065",
        Entry(
            "nodes/ForeignExtension",
            Refused,
            (*_CODES, "VMExtensionProvisioningTimeout"),
            "An extension that AKS does not know, mostly one that a policy of Azure installs on every"
            " machine, fails on the nodes.",
            "Exempt the node resource group from the policy that installs the extension in the message, and"
            " remove the extension from the scale set.",
            Actor.POLICY,
            says=(
                *("microsoft.azure.monitor", "microsoft.enterprisecloud.monitoring", "omsagentforlinux"),
                *("dependencyagentlinux", "microsoft.guestconfiguration", "microsoft.azure.azuredefender"),
            ),
            link="https://learn.microsoft.com/azure/aks/support-policies",
        ),
    ),
    *sourced(
        "Azure/AgentBaker parts/linux/cloud-init/artifacts/cse_helpers.sh, the table of exit statuses;"
        " Azure/karpenter-provider-azure issue 1441",
        Entry(
            "nodes/Gpu",
            Refused,
            _CODES,
            "The driver or the plugin of the GPU could not be installed, or not started.",
            "Read the status in the message: choose a size and an `osSKU` that AKS has drivers for, or"
            " `gpuProfile.driver: None` and install them yourself.",
            Actor.PLATFORM,
            says=_exit(*range(83, 88), *range(224, 230), 235, 123, 129),
        ),
        Entry(
            "nodes/Kubelet",
            Unexplained,
            _CODES,
            "The kubelet or the container runtime did not start on the nodes.",
            "Check `kubeletConfig` and `linuxOSConfig` of the pool; Azure support can explain the log in the"
            " message.",
            Actor.SUPPORT,
            says=_exit(4, 34, 103, 121, 122, 130, 131),
            wraps=True,
        ),
        Entry(
            "nodes/Certificate",
            InvalidManifest,
            _CODES,
            "A certificate that the manifest gives to the nodes is none.",
            "Commit `httpProxyConfig.trustedCa` and `customCATrustCertificates` as PEM in base64.",
            Actor.AUTHOR,
            says=_exit(160, 161),
        ),
        Entry(
            "nodes/Script",
            Unexplained,
            _CODES,
            "The setup of the nodes failed on the machine itself, not for want of a network.",
            "Azure support can explain the log in the message; a newer node image may not have this.",
            Actor.SUPPORT,
            says=_exit(*_ON_THE_MACHINE),
            wraps=True,
        ),
        link="https://github.com/Azure/AgentBaker/blob/dev/parts/linux/cloud-init/artifacts/cse_helpers.sh",
    ),
    *support(
        "error-codes/vmextensionerror-outboundconnfail",
        *_failed(
            "OutboundConnFail",
            50,
            "The nodes cannot reach the internet, so they cannot load what AKS runs on them.",
            f"{_OUT} is in the way, or a DNS server does not resolve the names.",
        ),
        Entry(
            "nodes/OutboundConnFailByText",
            Obstructed,
            _CODES,
            "The nodes cannot reach the internet, so they cannot load what AKS runs on them.",
            f"{_OUT} is in the way, or a DNS server does not resolve the names.",
            Actor.NETWORK,
            says=("unable to establish outbound connection", "err_outbound_conn_fail"),
        ),
    ),
    *support(
        "error-codes/vmextensionerror-k8sapiserverconnfail",
        *_failed(
            "K8SAPIServerConnFail",
            51,
            "The nodes cannot reach the API server of their cluster on port 443.",
            "Let the nodes' subnet reach {server} on port 443, and the address that it leaves the network"
            " with into the authorised ranges of the cluster.",
        ),
    ),
    *support(
        "error-codes/vmextensionerror-k8sapiserverdnslookupfail",
        *_failed(
            "K8SAPIServerDNSLookupFail",
            52,
            "The nodes cannot resolve the name of the API server of their cluster.",
            "Let the network's DNS server resolve {server}: forward to 168.63.129.16, and link the private"
            " DNS zone to the network of that server.",
        ),
    ),
    *support(
        "error-codes/vmextensionerror-cnidownloadtimeout",
        *_failed(
            "CniDownloadTimeout",
            41,
            "The nodes cannot download the network plugin.",
            f"{_OUT} is in the way, or an appliance breaks TLS.",
        ),
    ),
    *support(
        "error-codes/vmextensionerror-k8sdownloadtimeout",
        *_failed(
            "K8SDownloadTimeout",
            31,
            "The nodes cannot download the programs of Kubernetes.",
            f"{_OUT} is in the way, or an appliance breaks TLS.",
        ),
    ),
    *support(
        "error-codes/vmextensionerror-vhdfilenotfound",
        *_failed(
            "VHDFileNotFound",
            65,
            "The nodes cannot reach what AKS needs.",
            f"{_OUT} is in the way.",
        ),
        Entry(
            "nodes/ScriptTimeout",
            Obstructed,
            _CODES,
            "The nodes did not finish their setup in time; mostly they cannot reach what AKS needs.",
            f"{_OUT} is in the way.",
            Actor.NETWORK,
            says=_exit(124),
        ),
    ),
    *support(
        "error-codes/vmextensionerror-oraspullnetworktimeout",
        *_failed(
            "OrasPullNetworkTimeout",
            211,
            "The nodes of a network-isolated cluster cannot reach the container registry for their start.",
            "Check the private endpoint and the private DNS zone of the registry in"
            " `spec.bootstrapProfile`, and its cache rule for mcr.microsoft.com.",
        ),
    ),
    *support(
        "error-codes/vmextensionerror-oraspullunauthorized",
        *_failed(
            "OrasPullUnauthorized",
            212,
            "The kubelet identity may not pull from the container registry for the start of the nodes.",
            "Assign `AcrPull` on the registry{(scope)} to the kubelet identity of the cluster{(identity)}.",
            Actor.ACCESS,
        ),
    ),
    *sourced(
        "MicrosoftDocs/SupportArticles-docs support/azure/virtual-machines/windows/error-messages.md",
        Entry(
            "nodes/AgentSilent",
            Obstructed,
            ("VMAgentStatusCommunicationError",),
            "A node does not report to Azure: its system does not run well, or its network keeps it from"
            " Azure Storage.",
            "Let the nodes' subnet reach 168.63.129.16 and Azure Storage on port 443.",
            Actor.NETWORK,
        ),
        link="https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/error-messages",
    ),
    *support(
        "error-codes/vmextensionerror-provisioningtimeout",
        Entry(
            "nodes/VMExtensionProvisioningTimeout",
            Obstructed,
            ("VMExtensionProvisioningTimeout",),
            "The setup of the nodes took too long; mostly they cannot reach what AKS needs.",
            f"{_OUT} is in the way, or a DNS server does not resolve the names.",
            Actor.NETWORK,
        ),
        Entry(
            "nodes/SetupTimeoutByText",
            Obstructed,
            ("TemplateDeploymentTimedoutError",),
            "The setup of the nodes took too long; mostly they cannot reach what AKS needs.",
            f"{_OUT} is in the way, or a DNS server does not resolve the names.",
            Actor.NETWORK,
            says=("/extensions/cse", "/extensions/vmsscse"),
        ),
    ),
    *support(
        "error-codes/windows-cse-error-check-api-server-connectivity-error",
        Entry(
            "nodes/WindowsApiServerConnectivity",
            Obstructed,
            ("WINDOWS_CSE_ERROR_CHECK_API_SERVER_CONNECTIVITY",),
            "Windows nodes cannot reach the API server of their cluster on port 443.",
            "Let the nodes' subnet reach {server} on port 443, and the address that it leaves the network"
            " with into the authorised ranges of the cluster.",
            Actor.NETWORK,
        ),
        Entry(
            "nodes/WindowsSetup",
            Obstructed,
            ("WINDOWS_CSE_ERROR_",),
            "The setup of Windows nodes failed.",
            f"Read the code in the message. If it is about a download: {_OUT[0].lower()}{_OUT[1:]} is in the"
            " way.",
            Actor.NETWORK,
            family=True,
        ),
    ),
    *support(
        "availability-performance/node-not-ready-custom-script-extension-errors",
        Entry(
            "nodes/VMExtensionError",
            Obstructed,
            ("VMExtensionError_", "VMExtensionError"),
            "The setup of the nodes failed; mostly they cannot reach what AKS needs.",
            f"{_OUT} is in the way, or a DNS server does not resolve the names.",
            Actor.NETWORK,
            family=True,
        ),
        Entry(
            "nodes/VMExtensionProvisioningError",
            Obstructed,
            (_WRAPPER, "VMExtensionHandlerNonTransientError"),
            "The setup of the nodes failed; mostly they cannot reach what AKS needs.",
            f"{_OUT} is in the way, or a DNS server does not resolve the names.",
            Actor.NETWORK,
            wraps=True,
        ),
    ),
)
