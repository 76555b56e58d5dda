"""What objects that go to Azure Resource Manager unchanged share: its spelling, and string types.

A field that the manifest omits is not in the body, so Azure keeps its own default.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)

from shared.language.model.base import Manifest, in_camel_case, models_in, rule, shown, stated_rule

_CAPITALS = {
    word.lower(): word
    for word in ("ID", "IDs", "IP", "IPs", "DNS", "FQDN", "RBAC", "OS", "GB", "MB", "FIPS", "SSD", "VTPM")
} | {"csi": "CSI", "ca": "CA"}
_CAMEL = (
    "subscription_id",
    *("subnet_id", "key_id", "key_vault_id", "key_vault_resource_id", "source_resource_id", "resource_id"),
    *("log_analytics_workspace_resource_id", "container_registry_id", "client_id", "object_id"),
    *("dns_zone_resource_ids", "trusted_ca", "net_ipv4_ip_local_port_range"),
)
_OWN = {
    "os_sku": "osSKU",
    "count_ipv6": "countIPv6",
    "gateway_api": "gatewayAPI",
    "gateway_api_implementations": "gatewayAPIImplementations",
}


def arm_name(name: str) -> str:
    """Return ARM's spelling of a field: capitals as in osDiskSizeGB, with a few exceptions (subnetId)."""
    if name in _OWN:
        return _OWN[name]
    if name in _CAMEL:
        return in_camel_case(name)
    first, *rest = name.split("_")
    return first + "".join(_CAPITALS.get(word, word[:1].upper() + word[1:]) for word in rest)


class Section(Manifest):
    """A part of a cluster or a pool that is sent to ARM under these names."""

    model_config = ConfigDict(alias_generator=arm_name)


class Switch(Section):
    """A feature that is on or off."""

    enabled: StrictBool
    """Whether the feature is on."""


def between(least: float, most: float) -> Any:
    """Return the bounds of a number."""
    return Field(ge=least, le=most)


def retired(instead: Mapping[Any, str]) -> BeforeValidator:
    """Return the rule for values that Azure has retired; ``instead`` has what to do, by the value."""

    def check(value: Any) -> Any:
        advice = instead.get(value) if isinstance(value, str | bool) else None
        if advice:
            raise ValueError(
                f"{shown(str(value).lower() if value is True else value)} is retired by Azure; {advice}"
            )
        return value

    return BeforeValidator(check)


def resource(provider: str, kinds: str, what: str) -> AfterValidator:
    """Return the rule for a resource id, as of ("Microsoft.Network", "publicIPAddresses", "an address")."""
    path = "/".join(rf"{kind}/[^/\s]+" for kind in kinds.split("/"))
    pattern = rf"(?i)/subscriptions/[^/\s]+/resourceGroups/[^/\s]+/providers/{re.escape(provider)}/{path}"
    return rule(pattern, f"the resource id of {what} (/subscriptions/.../providers/{provider}/{kinds}/...)")


def _ranges(value: str) -> str:
    try:
        ipaddress.ip_network(value)
    except ValueError as error:
        hint = "an address or network such as 192.0.2.7 or 192.0.2.0/24, without host bits"
        raise ValueError(f"must be {hint}, got {shown(value)}") from error
    return value


_YEAR_MONTH_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""The only one of the forms of ISO 8601 that ARM takes: "date" of its OpenAPI is full-date of RFC 3339."""


_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_DAY = "a date such as 2027-06-30"
_MOMENT = "a time with its zone, such as 2026-05-01T13:00:00Z"


def _that_there_is(form: re.Pattern[str], read: Callable[[str], object], what: str) -> AfterValidator:
    """Return the check of a day or time: it has the form, and the calendar has it."""

    def check(value: str) -> str:
        try:
            if form.fullmatch(value) and read(value):
                return value
        except ValueError:
            pass
        raise ValueError(f"must be {what}, got {shown(value)}")

    return AfterValidator(check)


def _utc(value: str) -> str:
    try:
        if _RFC3339.fullmatch(value):
            return datetime.fromisoformat(value).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        pass
    hint = "a time with its offset, such as 2026-05-01T13:00:00Z or 2026-05-01T15:00:00+02:00"
    raise ValueError(f"must be {hint}, got {shown(value)}")


Flag = StrictBool | None
Count = Annotated[StrictInt, Field(ge=0)]
Text = Annotated[StrictStr, Field(min_length=1, max_length=4096)]
TextFlag = Annotated[StrictStr, rule("true|false", '"true" or "false", in quotes')]
IpRange = Annotated[
    StrictStr, AfterValidator(_ranges), stated_rule("an address or network such as 192.0.2.7 or 192.0.2.0/24")
]
Date = Annotated[StrictStr, _that_there_is(_YEAR_MONTH_DAY, date.fromisoformat, _DAY), stated_rule(_DAY)]
Moment = Annotated[StrictStr, _that_there_is(_RFC3339, datetime.fromisoformat, _MOMENT), stated_rule(_MOMENT)]
UtcMoment = Annotated[
    StrictStr, AfterValidator(_utc), stated_rule("a time with its offset, such as 2026-05-01T13:00:00Z")
]
"""A time of RFC 3339; stored in UTC, to the second, so that equal times are equal strings."""
Guid = Annotated[
    StrictStr,
    rule(
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        "an id such as 00000000-0000-0000-0000-000000000001",
    ),
]
ProxyUrl = Annotated[
    StrictStr,
    rule(r"https?://[^\s@/]+/?", "an address such as http://proxy.example:3128, without a password"),
]
_SIGN = r"[\r\n]*[A-Za-z0-9+/]"
_END = rf"(?:{_SIGN}){{2}}[\r\n]*==|(?:{_SIGN}){{3}}[\r\n]*="
BASE64 = rf"(?=[A-Za-z0-9+/])(?:(?:{_SIGN}){{4}})*(?:{_END})?[\r\n]*"
"""Whole groups of four, as Azure decodes them: line breaks do not count, other spaces are refused."""
Base64 = Annotated[StrictStr, rule(BASE64, "a certificate in PEM, encoded once more in base64")]
Minutes = Annotated[StrictStr, rule(r"[0-9]+m", 'minutes such as "10m"')]
Seconds = Annotated[StrictStr, rule(r"[0-9]+s", 'seconds such as "10s"')]
Duration = Annotated[StrictStr, rule(r"[0-9]+[smh]", 'a number with one unit, such as "10s", "10m" or "1h"')]
WorkspaceId = Annotated[
    StrictStr, resource("Microsoft.OperationalInsights", "workspaces", "a Log Analytics workspace")
]
VaultId = Annotated[StrictStr, resource("Microsoft.KeyVault", "vaults", "a key vault")]
AddressId = Annotated[StrictStr, resource("Microsoft.Network", "publicIPAddresses", "a public address")]
PrefixId = Annotated[StrictStr, resource("Microsoft.Network", "publicIPPrefixes", "a public address prefix")]
RegistryId = Annotated[StrictStr, resource("Microsoft.ContainerRegistry", "registries", "a registry")]
DiskEncryptionId = Annotated[
    StrictStr, resource("Microsoft.Compute", "diskEncryptionSets", "a disk encryption set")
]
SECRET = re.compile(r"(?i).*(password|secret|connectionstring|accesskey|sastoken)")
"""Names of fields that hold secrets, which do not belong in git."""


# ``azure.properties``: properties of ARM for which the manifest has no field yet.
#
# They are merged into the body last. Properties that have a field are refused here, so that there is one
# way to write them; so are properties that only Azure writes, and those that look like secrets.

OWNED_BY_AZURE = {
    "cluster": (
        *("provisioningState", "powerState", "currentKubernetesVersion", "fqdn", "privateFQDN"),
        *("azurePortalFQDN", "maxAgentPools", "resourceUID", "status", "eTag"),
    ),
    "pool": (
        *("provisioningState", "currentOrchestratorVersion", "eTag", "status", "virtualMachineNodesStatus"),
    ),
}
"""The properties that only Azure writes."""
COMMANDS_OF_POOLS = {
    "nodeImageVersion": "writing it rolls the pool back once, to an image that it ran lately and that Azure "
    "soon does not offer any more; spec.minNodeImageVersion and autoUpgradeProfile keep images new, and "
    "rollback.nodeImageVersion, which `roadstead rollback` proposes, rolls back",
}
"""Properties whose write is a command, which git cannot repeat, and what to do instead.

Source: AgentPool.node_image_version in the models of the management library, and
learn.microsoft.com/azure/aks/roll-back-node-pool-version.
"""


def only_untyped(
    models: Iterable[type[BaseModel]],
    kind: str,
    instead: Mapping[str, str],
    commands: Mapping[str, str] = MappingProxyType({}),
) -> AfterValidator:
    """Return the rule for the properties of a "cluster" or "pool" for which these models have no field.

    ``instead`` has the manifest's field for a property with another name in ARM; ``commands`` what to do
    instead of writing a property that is no state.
    """
    typed, owned = tuple(models), {name.lower() for name in OWNED_BY_AZURE[kind]}
    other = {name.lower(): place for name, place in instead.items()}
    refused = {name.lower(): why for name, why in commands.items()}

    def check(value: dict[str, Any]) -> dict[str, Any]:
        for key in value:
            if key.lower() in owned:
                raise ValueError(f"only Azure writes {key}; remove it")
            if key.lower() in refused:
                raise ValueError(
                    f"{key} is a command, which a manifest cannot repeat: {refused[key.lower()]}"
                )
            if key.lower() in other:
                raise ValueError(f"{key} has a field of its own in the manifest: {other[key.lower()]}")
        _refuse_typed(value, typed, "")
        _refuse_secrets(value, "")
        return value

    return AfterValidator(check)


def _refuse_typed(value: Mapping[str, Any], models: Iterable[type[BaseModel]], path: str) -> None:
    fields = {
        (info.alias or name).lower(): (info.alias or name, info)
        for model in models
        for name, info in model.model_fields.items()
    }
    for key, inner in value.items():
        if key.lower() not in fields:
            continue
        alias, info = fields[key.lower()]
        below = tuple(models_in(info.annotation))
        if not (below and isinstance(inner, Mapping)):
            raise ValueError(f"{path}{key} has a field of its own in the manifest: write {path}{alias} there")
        _refuse_typed(inner, below, f"{path}{alias}.")


def _refuse_secrets(value: Any, path: str) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if SECRET.fullmatch(key):
                raise ValueError(f"{path}{key} looks like a secret; secrets do not belong in git")
            _refuse_secrets(inner, f"{path}{key}.")
    elif isinstance(value, list):
        for inner in value:
            _refuse_secrets(inner, path)
