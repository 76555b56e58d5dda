"""The kubeconfigs that AKS gives out: with a certificate for local accounts, with a plugin for Entra ID.

Sources: "Use kubelogin to authenticate users" (user credentials of a cluster with Entra ID are for kubelogin)
and "Manage local accounts" (what disabling them refuses), learn.microsoft.com/azure/aks;
github.com/Azure/kubelogin (the arguments);
github.com/hashicorp/terraform-provider-azurerm/pull/15489 (the message).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from localcloud.azure.world.arm_errors import AksError
from localcloud.azure.world.catalog import TENANT

SERVER_APPLICATION = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""The Entra application of every AKS API server: the audience of the tokens that it accepts."""
CLIENT_APPLICATION = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
"""The Entra application as which kubelogin signs a person in."""
_NO_LOCAL_ACCOUNTS = (
    "Getting static credential is not allowed because this cluster is set to disable local accounts."
)
_PLUGIN = {
    "apiVersion": "client.authentication.k8s.io/v1beta1",
    "command": "kubelogin",
    "args": [
        *("get-token", "--login", "devicecode", "--environment", "AzurePublicCloud"),
        *("--server-id", SERVER_APPLICATION, "--client-id", CLIENT_APPLICATION, "--tenant-id", TENANT),
    ],
    "provideClusterInfo": False,
}


def has_entra(properties: Mapping[str, Any]) -> bool:
    """Return whether a cluster is integrated with Entra ID."""
    return bool((properties.get("aadProfile") or {}).get("managed"))


def given_kubeconfig(kubeconfig: str, properties: Mapping[str, Any], who: str) -> str:
    """Return the kubeconfig for a user or an admin, from the one with the certificate of a local account."""
    if who == "admin" and properties.get("disableLocalAccounts"):
        raise AksError(400, "BadRequest", _NO_LOCAL_ACCOUNTS)
    if who == "admin" or not has_entra(properties):
        return kubeconfig
    content = yaml.load(kubeconfig, Loader=yaml.CSafeLoader)
    for user in content["users"]:
        user["user"] = {"exec": _PLUGIN}
    return yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False)
