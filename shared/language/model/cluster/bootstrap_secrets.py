"""Secrets that a cluster needs before Flux runs: what they are called, and where their values are.

A manifest names secrets of Azure Key Vault and never a value. The rules of names and types are those of
Kubernetes (kubernetes.io/docs/concepts/configuration/secret) and of Key Vault
(learn.microsoft.com/azure/key-vault/general/about-keys-secrets-certificates, "Object identifiers").
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StrictStr, model_validator

from shared.language.model.base import OWN_PREFIX, LabelKey, LabelValue, Manifest, rule, twice
from shared.language.model.cluster.flux_source import MAIN, FluxName

_PART = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
SecretName = Annotated[
    StrictStr,
    rule(
        rf"(?=.{{1,253}}\Z){_PART}(\.{_PART})*",
        "lowercase letters, digits, hyphens and dots, with a letter or digit at both ends",
    ),
]
SecretKey = Annotated[
    StrictStr,
    rule(r"(?!\.{1,2}\Z)[-._a-zA-Z0-9]{1,253}", "a key of a Secret: letters, digits, hyphens, dots and _"),
]
VaultName = Annotated[
    StrictStr,
    rule(
        r"(?!.*--)[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]",
        "the name of a vault: 3 to 24 letters, digits and hyphens, without its domain",
    ),
]


def _no_value(name: str) -> str:
    """Refuse what is the value of a secret, without repeating it."""
    if name.upper().startswith("AGE-SECRET-KEY-"):
        raise ValueError(
            "is the value of a key and no name; revoke it, and write the name of a vault's secret"
        )
    return name


VaultSecretName = Annotated[
    StrictStr,
    AfterValidator(_no_value),
    rule(r"[0-9a-zA-Z-]{1,127}", "the name of a secret of a vault: letters, digits and hyphens"),
]
SecretType = Annotated[
    StrictStr,
    rule(r"[A-Za-z0-9]([A-Za-z0-9./-]{0,251}[A-Za-z0-9])?", "the type of a Secret, such as Opaque"),
]

TYPES: Mapping[str, Sequence[str]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""The keys that a type of Kubernetes needs."""
BASIC_AUTH, _OF_BASIC_AUTH = "kubernetes.io/basic-auth", ("username", "password")
_MADE_BY_KUBERNETES = "kubernetes.io/service-account-token"


def _not_ours(key: str) -> str:
    if key.startswith(OWN_PREFIX):
        raise ValueError(f"{key} is reserved by Roadstead; use another domain")
    return key


class BootstrapSecret(Manifest):
    """A Secret that Roadstead applies before Flux, with values from Azure Key Vault."""

    name: SecretName
    """The name of the entry, and of the Secret unless secretName says another; entries of the layers are
    merged by it."""
    secret_name: SecretName | None = None
    """The name of the Secret, where two namespaces need one of the same name."""
    namespace: FluxName = MAIN
    """The namespace of the Secret; created if it does not exist."""
    type: SecretType = "Opaque"
    """The type of the Secret, such as kubernetes.io/tls; Kubernetes never changes it."""
    labels: dict[Annotated[LabelKey, AfterValidator(_not_ours)], LabelValue] = Field(default_factory=dict)
    """Labels of the Secret."""
    vault: VaultName
    """The vault that has the values, by its name. KEY_VAULTS, a setting of the app, lists the vaults that
    manifests may name."""
    keys: Annotated[dict[SecretKey, VaultSecretName], Field(min_length=1, max_length=20)]
    """The keys of the Secret, each with the name of the secret of the vault that has its value."""

    binary: Annotated[tuple[SecretKey, ...], Field(max_length=20)] = ()
    """The keys whose values the vault has as base64, because they are no text: the Secret gets the bytes."""

    @property
    def called(self) -> str:
        """The name of the Secret in the cluster."""
        return self.secret_name or self.name

    @property
    def place(self) -> str:
        """The namespace and the name, as people read them."""
        return f"{self.namespace}/{self.called}"

    @model_validator(mode="after")
    def _keys_fit_the_type(self) -> Self:
        if self.type == _MADE_BY_KUBERNETES:
            raise ValueError(f"type: Kubernetes itself makes the Secrets of {self.type}; choose another type")
        unknown = [key for key in self.binary if key not in self.keys]
        if unknown:
            raise ValueError(f"binary: there is no key {unknown[0]}; there are {', '.join(self.keys)}")
        missing = [key for key in TYPES.get(self.type, ()) if key not in self.keys]
        if missing:
            raise ValueError(f"keys: a Secret of {self.type} needs {' and '.join(missing)}; add it")
        if self.type == BASIC_AUTH and not set(_OF_BASIC_AUTH) & set(self.keys):
            raise ValueError(f"keys: a Secret of {self.type} needs {' or '.join(_OF_BASIC_AUTH)}; add it")
        return self


def differ(secrets: Sequence[BootstrapSecret]) -> None:
    """Raise ValueError where two entries are one Secret."""
    place = twice(secret.place for secret in secrets)
    if place is not None:
        raise ValueError(f"bootstrapSecrets has two entries for the Secret {place}; they must differ")
