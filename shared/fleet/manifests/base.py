"""What every manifest model shares: strictness, and text with rules that are told in words.

Limits come from Azure's naming rules
(learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules) and the AKS REST reference.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictStr
from pydantic.alias_generators import to_camel


class Manifest(BaseModel):
    """A strict, frozen model whose fields are written in camelCase; unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=False)


def rule(pattern: str, rule: str) -> AfterValidator:
    """Return a check that tells the rule, not the pattern."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(f"must be {rule}, got {value[:60]}")
        return value

    return AfterValidator(check)


def _network(value: str) -> str:
    try:
        ipaddress.ip_network(value)
    except ValueError as error:
        raise ValueError(f"must be a network such as 10.0.0.0/16, got {value[:60]}") from error
    return value


def _address(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError as error:
        raise ValueError(f"must be an address such as 10.0.0.10, got {value[:60]}") from error
    return value


ClusterName = Annotated[
    StrictStr,
    rule(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "1 to 63 lowercase letters, digits and hyphens, with a letter or digit at both ends",
    ),
]
Uuid = Annotated[
    StrictStr,
    rule(
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        "a subscription id such as 00000000-0000-0000-0000-000000000001",
    ),
]
ResourceGroupName = Annotated[
    StrictStr,
    rule(
        r"[\w\-.()]{0,89}[\w\-()]",
        "1 to 90 letters, digits, hyphens, underscores, dots and parentheses, not ending in a dot",
    ),
]
Location = Annotated[
    StrictStr,
    rule(r"[a-z]+[a-z0-9]*", "an Azure region in its short form, such as westeurope"),
]
Version = Annotated[
    StrictStr,
    rule(r"1\.[0-9]{1,3}(\.[0-9]{1,3})?", 'a Kubernetes version such as "1.33" or "1.33.2"'),
]
PoolName = Annotated[
    StrictStr,
    rule(r"[a-z][a-z0-9]{0,11}", "1 to 12 lowercase letters and digits, beginning with a letter"),
]
VmSize = Annotated[StrictStr, rule(r"[A-Z][A-Za-z]+_[A-Za-z0-9_]+", "a VM size such as Standard_D4s_v5")]
Taint = Annotated[
    StrictStr,
    rule(
        r"[A-Za-z0-9][A-Za-z0-9./_-]*(=[A-Za-z0-9._-]*)?:(NoSchedule|PreferNoSchedule|NoExecute)",
        "key=value:NoSchedule, key=value:PreferNoSchedule or key=value:NoExecute",
    ),
]
SubnetId = Annotated[
    StrictStr,
    rule(
        r"(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network"
        r"/virtualNetworks/[^/]+/subnets/[^/]+",
        "the resource id of a subnet (/subscriptions/.../virtualNetworks/.../subnets/...)",
    ),
]
IdentityId = Annotated[
    StrictStr,
    rule(
        r"(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ManagedIdentity"
        r"/userAssignedIdentities/[^/]+",
        "the resource id of a user-assigned identity",
    ),
]
GitUrl = Annotated[
    StrictStr,
    rule(
        r"(https?|ssh)://[^\s@/]*(?<!:)(/[^\s]*)?|ssh://[^\s@:]+@[^\s]+",
        "an https:// or ssh:// address of a git repository, without a password in it",
    ),
]
RepositoryPath = Annotated[
    StrictStr,
    rule(r"(?!.*(^|/)\.\.(/|$))(\./)?[^/\s][^\s]*|\./?", "a path inside the repository, such as ./platform"),
]
Cidr = Annotated[StrictStr, AfterValidator(_network)]
Address = Annotated[StrictStr, AfterValidator(_address)]
