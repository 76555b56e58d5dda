"""docs/reference.md: every kind and every field, from the models and the table of effects that are used.

``python -m cli.pages.reference`` writes it. The descriptions are those of the JSON Schemas: the text below a
field in ``shared/fleet/manifests``, and the rule that its check states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from cli.pages.field_descriptions import Row, change, fields
from cli.schemas import OWN, generated
from shared.fleet.aks.change_effects import ROWS, Effect
from shared.fleet.manifests import API_VERSION, Cluster, ClusterClass, ClusterSpec, Environment, Fleet, System

PAGE = Path("docs/reference.md")
GROUPS: Mapping[str, str] = {
    "Place and choice": "class environment subscriptionId resourceGroup location tags",
    "Flux and protection": "flux deletionProtection suspend",
    "Versions and upgrades": """kubernetesVersion sku supportPlan autoUpgradeProfile upgradeSettings
        minNodeImageVersion""",
    "Maintenance windows": "maintenanceWindows",
    "Network": "networkProfile dnsPrefix httpProxyConfig",
    "API server and sign-in": "apiServerAccessProfile publicNetworkAccess aadProfile disableLocalAccounts",
    "Identities": "identity identityProfile oidcIssuerProfile",
    "Security": "securityProfile diskEncryptionSetID",
    "Add-ons, ingress and mesh": "addonProfiles ingressProfile serviceMeshProfile aiToolchainOperatorProfile",
    "Autoscaling": "autoScalerProfile workloadAutoScalerProfile nodeProvisioningProfile",
    "Storage": "storageProfile",
    "Monitoring and costs": "azureMonitorProfile metricsProfile",
    "All nodes": """linuxProfile windowsProfile nodeResourceGroup nodeResourceGroupProfile
        bootstrapProfile""",
    "Node pools, size": """nodePools nodePools[].name nodePools[].mode nodePools[].vmSize nodePools[].count
        nodePools[].minCount nodePools[].maxCount nodePools[].scaleDownMode nodePools[].availabilityZones""",
    "Node pools, workloads and upgrades": """nodePools[].nodeLabels nodePools[].nodeTaints nodePools[].tags
        nodePools[].orchestratorVersion nodePools[].upgradeSettings nodePools[].workloadRuntime
        nodePools[].artifactStreamingProfile""",
    "Node pools, system and disks": """nodePools[].osType nodePools[].osSKU nodePools[].osDiskSizeGB
        nodePools[].osDiskType nodePools[].kubeletDiskType nodePools[].enableUltraSSD
        nodePools[].enableEncryptionAtHost nodePools[].enableFIPS nodePools[].securityProfile
        nodePools[].windowsProfile nodePools[].creationData nodePools[].messageOfTheDay""",
    "Node pools, network": """nodePools[].vnetSubnetID nodePools[].podSubnetID nodePools[].podIPAllocationMode
        nodePools[].maxPods nodePools[].enableNodePublicIP nodePools[].nodePublicIPPrefixID
        nodePools[].networkProfile nodePools[].localDNSProfile nodePools[].gatewayProfile""",
    "Node pools, Spot, GPUs and hosts": """nodePools[].scaleSetPriority nodePools[].scaleSetEvictionPolicy
        nodePools[].spotMaxPrice nodePools[].gpuInstanceProfile nodePools[].gpuProfile
        nodePools[].proximityPlacementGroupID nodePools[].hostGroupID
        nodePools[].capacityReservationGroupID""",
    "Node pools, kubelet and kernel": "nodePools[].kubeletConfig nodePools[].linuxOSConfig",
    "Fields of Azure without a name here": "azure nodePools[].azure",
}
"""The tables of a cluster's fields; fields that are in none of them come last."""
OTHERS = "Other fields"
_HEAD = """\
# Reference

Every kind of manifest and every field. `python -m cli.pages.reference` generates this page from the models
that validate manifests; [The fleet repository](fleet.md) explains how the kinds work together.

- Paths are below `spec`. `[]` stands for each item of a list, `<name>` for a key of your choice.
- *required*: the resolved cluster must have it, from its own file, its environment, its class or
  `fleet.yaml`; a field of an object, where the object is written. Azure decides what the manifest omits.
- *a change* is what it does to a cluster that exists. A recreation is refused with the way out before
  anything is written. After "in place:" stand the changes that Azure makes all the same.
- Fields with the names of Azure Resource Manager mean what they mean there:
  learn.microsoft.com/rest/api/aks/managed-clusters and learn.microsoft.com/rest/api/aks/agent-pools.

"""
_KINDS: Mapping[type[BaseModel], str] = {
    Fleet: "`fleet.yaml`: what all clusters share, and the guards.",
    Environment: "`environments/<name>.yaml`: what the clusters of an environment share.",
    ClusterClass: "`classes/<name>.yaml`: a template of clusters. Any field of a [cluster](#cluster) "
    "but `environment` and `suspend`.",
    Cluster: "`clusters/<name>/cluster.yaml`: one AKS cluster.",
    System: "`systems/<name>.yaml`: a team's tenant. Roadstead validates it and does not act on it yet.",
}
_OWN_ROWS = tuple(Row(name, "string", str(field["description"])) for name, field in OWN.items())


def page() -> str:
    """Return the whole page."""
    groups = _grouped()
    index, text = ["- [Every kind](#every-kind)"], [_every_kind()]
    for model, what in _KINDS.items():
        index.append(f"- [{model.__name__}](#{_anchor(model.__name__)})")
        text.append(f"## {model.__name__}\n\n{what}\n")
        if model is ClusterClass:
            text.append(_table(_OWN_ROWS[:1]))
        elif model is not Cluster:
            text.append(_table(_spec(model)))
        else:
            index += [f"  - [{title}](#{_anchor(title)}): {_tops(rows)}" for title, rows in groups.items()]
            text += [f"### {title}\n\n{_table(rows, changes=True)}" for title, rows in groups.items()]
            text.append(_azures())
    return _HEAD + "\n".join(index) + "\n\n" + "\n".join(text)


def _every_kind() -> str:
    schema = generated(Cluster)
    rows = [
        Row("apiVersion", f"`{API_VERSION}`", "The version of the language.", "required"),
        Row("kind", f"`{'`, `'.join(model.__name__ for model in _KINDS)}`", "What the file is.", "required"),
        *fields(schema["$defs"]["ClusterMetadata"], schema["$defs"], "metadata."),
    ]
    return f"## Every kind\n\nHere paths are of the whole file. `adopt` is for clusters.\n\n{_table(rows)}"


def _spec(model: type[BaseModel]) -> Iterator[Row]:
    schema = generated(model)
    part = schema["$defs"][str(schema["properties"]["spec"]["$ref"]).rpartition("/")[2]]
    return fields(part, schema["$defs"], "")


def _grouped() -> dict[str, list[Row]]:
    """Return the rows of a cluster by the title of their table, in the order of ``GROUPS``."""
    wanted = {path: title for title, paths in GROUPS.items() for path in paths.split()}
    order = {path: number for number, path in enumerate(wanted)}
    grouped: dict[str, list[Row]] = {title: [] for title in (*GROUPS, OTHERS)}
    schema = generated(ClusterSpec)
    rows = [*_OWN_ROWS, *fields(schema, schema["$defs"], "")]
    for row in sorted(rows, key=lambda row: order.get(_top(row.path), len(order))):
        grouped[wanted.get(_top(row.path), OTHERS)].append(row)
    return {title: found for title, found in grouped.items() if found}


def _top(path: str) -> str:
    """Return the field of a cluster or of a pool that a path lies in."""
    first, dot, rest = path.partition(".")
    return f"{first}.{_key(rest)}" if dot and first == "nodePools[]" else _key(first)


def _key(path: str) -> str:
    return path.partition(".")[0].removesuffix("[]")


def _tops(rows: Iterable[Row]) -> str:
    names = dict.fromkeys(_top(row.path).removeprefix("nodePools[].") for row in rows)
    return ", ".join(f"`{name}`" for name in names)


def _table(rows: Iterable[Row], *, changes: bool = False) -> str:
    names = ["field", "type", "default", *(["change"] if changes else []), "meaning"]
    lines = [names, ["---"] * len(names)]
    for row in rows:
        effect = [change(row)] if changes else []
        lines.append([f"`{row.path}`", row.value, row.default, *effect, row.meaning])
    return "".join(f"{''.join(f'| {_escaped(cell)} ' for cell in cells)}|\n" for cells in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _azures() -> str:
    names = ", ".join(f"`{row.pattern}`" for row in ROWS if row.effect is Effect.AZURE)
    return f"### Fields that only Azure writes\n\nThey are invalid in `azure.properties`: {names}.\n"


def _anchor(title: str) -> str:
    """Return the anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
