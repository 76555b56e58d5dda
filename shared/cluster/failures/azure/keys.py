"""Errors of keys and vaults: those that encrypt the disks of nodes, and those of the secrets in etcd."""

from __future__ import annotations

from shared.cluster.failures.azure.access import LATE
from shared.cluster.failures.entry import Actor, Entry, sourced, support
from shared.cluster.failures.errors import Refused, RoleNotEffective

_KMS = "https://learn.microsoft.com/azure/aks/kms-data-encryption-concepts"

ENTRIES: tuple[Entry, ...] = (
    *sourced(
        "Azure/azure-sdk-for-net sdk/keyvault, a sample on errors",
        Entry(
            "vault/ObjectDeleted",
            Refused,
            ("ObjectIsDeletedButRecoverable", "ObjectIsBeingDeleted"),
            "A key of the vault is being deleted, or is deleted and its name is not free.",
            "Recover the key in the message, or purge it and create it again.",
            Actor.SUBSCRIPTION,
        ),
        link="https://learn.microsoft.com/azure/key-vault/general/key-vault-recovery",
    ),
    *sourced(
        "MicrosoftDocs/azure-docs issue 96319, an answer of AKS",
        Entry(
            "vault/KeyVaultAccessForbidden",
            RoleNotEffective,
            ("KeyVaultAccessForbidden",),
            "The disk encryption set may not use its key in the vault.",
            "Grant get, wrap and unwrap of keys on the vault in the message to the disk encryption set"
            " in it{(identity)}."
            f" {LATE}",
            Actor.ACCESS,
        ),
        link="https://learn.microsoft.com/azure/aks/azure-disk-customer-managed-keys",
    ),
    *sourced(
        "Azure/aks-deployer pkg/armerror/utils.go: the vault forbids it, or the set does not exist",
        Entry(
            "vault/DiskEncryptionSet",
            Refused,
            ("DiskEncryptionSetError",),
            "The disk encryption set does not exist, or may not use its key in the vault.",
            "Correct the disk encryption set, or its rights on the vault, as the message says.",
            Actor.SUBSCRIPTION,
            wraps=True,
        ),
        link="https://learn.microsoft.com/azure/aks/azure-disk-customer-managed-keys",
    ),
    *sourced(
        "Azure/AKS issue 3575 and MicrosoftDocs/azure-docs issue 110117, answers of AKS",
        Entry(
            "vault/KmsIdentity",
            RoleNotEffective,
            ("AzureKeyVaultKmsValidateIdentityPermissionCustomerError",),
            "The cluster's identity may not encrypt and decrypt with the key of its secrets, or the key is no"
            " RSA key.",
            "Assign `Key Vault Crypto User` on the vault in the message to the identity of the"
            f" cluster{{(identity)}}, and use a key of the type RSA. {LATE}",
            Actor.ACCESS,
        ),
        Entry(
            "vault/Kms",
            Refused,
            ("AzureKeyVaultKms",),
            "AKS cannot use the key of the cluster's secrets.",
            "Correct the vault or the key in the message: it exists, is enabled, and AKS reaches the vault.",
            Actor.SUBSCRIPTION,
            family=True,
        ),
        link=_KMS,
    ),
    *support(
        "storage/troubleshoot-common-bring-your-own-key-issues",
        Entry(
            "vault/Unprotected",
            Refused,
            ("KeyVaultNotPurgeProtectionEnabled",),
            "The vault with the key of the disks has no purge protection.",
            "Run `az keyvault update --enable-purge-protection true` for the vault in the message.",
            Actor.SUBSCRIPTION,
        ),
        Entry(
            "vault/Elsewhere",
            Refused,
            ("KeyVaultAndDiskInDifferentRegions",),
            "The vault and the disk encryption set are in different regions.",
            "Create the key in a vault of the region of the disk encryption set.",
            Actor.SUBSCRIPTION,
        ),
    ),
)
