"""Where the kubeconfig of an existing cluster is: a secret of Azure Key Vault, by its name."""

from __future__ import annotations

from typing import Literal

from shared.fleet.manifests.base import Manifest
from shared.fleet.manifests.cluster.bootstrap_secrets import VaultName, VaultSecretName

EXISTING = "existing"
Provider = Literal["aks", "existing"]


class KubeconfigSecret(Manifest):
    """The secret of Azure Key Vault whose value is the kubeconfig."""

    vault: VaultName
    """The vault that has it, by its name. KEY_VAULTS, a setting of the app, lists the vaults that manifests
    may name."""
    secret: VaultSecretName
    """The name of the secret. Its value is a kubeconfig with a client certificate or a token in it."""


class ExistingCluster(Manifest):
    """How Roadstead enters a cluster that it did not create, with provider: existing."""

    kubeconfig: KubeconfigSecret
