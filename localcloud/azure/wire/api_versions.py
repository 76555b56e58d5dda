"""The API versions that Azure Resource Manager takes for each kind of path, and its refusal of others.

Source of AKS' versions: specification/containerservice of github.com/Azure/azure-rest-api-specs, without
2024-03-01 and 2025-06-01: drafts, that pulumi-azure-native and bicep-types-az do not have. Only the versions
that refuse unknown fields are here (Azure/AKS#4060).
Source of the others: the answer of Resource Manager in Azure/bicep#17091 for 2019-10-01 to 2024-11-01
without previews, and specification/resources for the last two.
Source of that of the activity log: specification/monitor, activityLogs_API.json.
Source of those of extensions and configurations of Flux: specification/kubernetesconfiguration.
Source of those of identities and roles: specification/msi and specification/authorization, without previews.
Source of those of policies: specification/resources (from 2019-09-01, without previews) and
specification/policyinsights (policyStates).
Source of those of costs: specification/cost-management, some of the last ones.
Source of those of sizes, limits and networks: specification/compute and specification/network; of their many
versions only some of the last years.
Source of those of alerts: specification/alertsmanagement; of their rules, specification/monitor, the stable
ones.
Source of the text of the refusals: Azure/azure-cli#28038 and #28368.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.catalog import REGIONS

_AKS = (
    *("2024-01-01", "2024-02-01", "2024-05-01", "2024-07-01", "2024-08-01", "2024-09-01", "2024-10-01"),
    *(f"2025-{month:02}-01" for month in (1, 2, 3, 4, 5, 7, 8, 9, 10)),
    *(f"2026-{month:02}-01" for month in range(1, 9)),
)
_RESOURCES = (
    *("2019-10-01", "2019-11-01", "2020-01-01", "2020-05-01", "2020-06-01", "2020-07-01", "2020-08-01"),
    *("2020-09-01", "2020-10-01", "2021-01-01", "2021-04-01", "2022-01-01", "2022-05-01", "2022-06-01"),
    *("2022-09-01", "2022-12-01", "2023-07-01", "2024-03-01", "2024-07-01", "2024-08-01", "2024-11-01"),
    *("2025-03-01", "2025-04-01"),
)
_OPERATIONS = ("2016-03-30", *_AKS)
"""The links of a long-running operation of AKS have the version 2016-03-30 (recordings of azure-cli)."""
_FLUX = "microsoft.kubernetesconfiguration"
_TAKEN: Mapping[str, Sequence[str]] = {
    "microsoft.features": ("2015-12-01", "2021-07-01"),
    "microsoft.alertsmanagement": ("2018-05-05", "2019-05-05-preview", "2023-07-12-preview"),
    "microsoft.managedidentity": ("2018-11-30", "2023-01-31", "2024-11-30"),
    "microsoft.authorization": ("2015-07-01", "2022-04-01"),
    "microsoft.authorization/policyassignments": (
        *("2019-09-01", "2020-03-01", "2020-09-01", "2021-06-01", "2022-06-01", "2023-04-01"),
        *("2024-04-01", "2024-05-01", "2025-01-01", "2025-03-01", "2025-11-01"),
    ),
    "microsoft.policyinsights": ("2018-04-04", "2019-10-01"),
    "microsoft.costmanagement": ("2023-11-01", "2024-08-01", "2025-03-01"),
    "microsoft.compute": ("2019-04-01", "2021-07-01", "2024-03-01", "2024-07-01", "2024-11-01"),
    "microsoft.network": ("2023-09-01", "2024-01-01", "2024-03-01", "2024-05-01", "2024-07-01"),
    "microsoft.resources/tags": _RESOURCES,
    "microsoft.insights/scheduledqueryrules": ("2021-08-01", "2022-06-15", "2023-12-01", "2026-03-01"),
    "microsoft.insights/eventtypes": ("2015-04-01",),
    _FLUX: (),
    f"{_FLUX}/locations": ("2023-05-01-preview", "2024-11-01-preview", "2026-05-01"),
    f"{_FLUX}/extensions": ("2022-11-01", "2023-05-01", "2024-11-01", "2025-03-01"),
    f"{_FLUX}/fluxconfigurations": ("2022-11-01", "2023-05-01", "2024-11-01", "2025-04-01"),
}
"""The versions of a provider, or of one of its types. The last provider that a path names counts; a path
with none of these is of AKS, or of Resource Manager itself."""
_TYPE = re.compile(r"/providers/microsoft\.containerservice/(?P<rest>.*)", re.IGNORECASE)


def check_version(path: str, version: str, location: str) -> None:
    """Raise the refusal of a missing or unknown version for a path."""
    if not version:
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise ArmError(400, "MissingApiVersionParameter", message)
    taken, aks = _taken(path.lower()), _TYPE.search(path)
    if taken is None and aks is not None:
        kind = _kind(aks["rest"])
        known: Sequence[str] = _OPERATIONS if kind.startswith("locations/operation") else _AKS
        if version not in known:
            raise ArmError(400, "NoRegisteredProviderFound", _unregistered(version, kind, location, known))
        return
    if taken is None:
        taken = _RESOURCES
    if version not in taken:
        raise ArmError(400, "InvalidApiVersionParameter", _invalid(version, taken))


def _taken(path: str) -> Sequence[str] | None:
    """Return the versions of the table for a path in lower case; features name another provider below."""
    if "/providers/microsoft.features/" in path:
        return _TAKEN["microsoft.features"]
    provider, _, rest = path.rpartition("/providers/")[2].partition("/")
    return _TAKEN.get(f"{provider}/{rest.partition('/')[0]}", _TAKEN.get(provider))


def _kind(rest: str) -> str:
    """Return the resource type of the part of a path after its provider: "managedClusters/agentPools"."""
    parts = rest.strip("/").split("/")
    if parts[0].lower() == "locations":
        return "/".join(["locations", *parts[2:3]])
    return "/".join(parts[::2])


def _invalid(version: str, known: Sequence[str]) -> str:
    supported = ",".join(reversed(known))
    return f"The api-version '{version}' is invalid. The supported versions are '{supported}'."


def _unregistered(version: str, kind: str, location: str, known: Sequence[str]) -> str:
    return (
        f"No registered resource provider found for location '{location}' and API version '{version}' for "
        f"type '{kind}'. The supported api-versions are '{', '.join(known)}'. The supported locations are "
        f"'{', '.join(sorted(REGIONS))}'."
    )
