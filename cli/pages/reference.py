"""docs/reference.md: every kind and every field, from the models and the effects of changes.

``python -m cli.pages.reference`` writes the page. The descriptions are those of the JSON Schemas: the
docstring of a field in ``shared/language/model``, and the rule that its check states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from cli.pages.field_descriptions import Field, change, fields
from cli.schemas import OWN, generated
from shared.azure.changes.field_effects import FIELD_EFFECTS, Effect
from shared.language.model.arm_types import COMMANDS_OF_POOLS
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.kinds import (
    API_VERSION,
    Cluster,
    ClusterClass,
    Environment,
    Fleet,
    System,
    Versions,
)
from shared.language.model.notification_kinds import KINDS as NOTIFICATIONS

PAGE = Path("docs/reference.md")
GROUPS: Mapping[str, str] = {
    "Place and choice": """class environment provider existing subscriptionId resourceGroup location
        extendedLocation kind tags""",
    "Flux and protection": "flux bootstrapSecrets deletionProtection lifetime expires lifetimeEnd "
    "suspend drift sleep",
    "Versions and upgrades": """kubernetesVersion sku supportPlan autoUpgradeProfile upgradeSettings
        minNodeImageVersion""",
    "Maintenance windows": "maintenanceWindows",
    "Network": "networkProfile dnsPrefix fqdnSubdomain httpProxyConfig",
    "API server and sign-in": """apiServerAccessProfile publicNetworkAccess aadProfile enableRBAC
        disableLocalAccounts""",
    "Identities": """identity identityProfile oidcIssuerProfile identities federatedCredentials
        roleAssignments""",
    "Policies": "policies",
    "Security": "securityProfile enableFIPS diskEncryptionSetID",
    "Add-ons, ingress and mesh": "addonProfiles ingressProfile serviceMeshProfile aiToolchainOperatorProfile",
    "Autoscaling": "autoScalerProfile workloadAutoScalerProfile nodeProvisioningProfile schedulerProfile",
    "Storage": "storageProfile",
    "Monitoring and costs": "azureMonitorProfile metricsProfile",
    "All nodes": """linuxProfile windowsProfile nodeResourceGroup nodeResourceGroupProfile
        bootstrapProfile hostedSystemProfile""",
    "Node pools, size": """nodePools nodePools[].name nodePools[].mode nodePools[].type
        nodePools[].vmSize nodePools[].virtualMachinesProfile nodePools[].count
        nodePools[].minCount nodePools[].maxCount nodePools[].scaleDownMode nodePools[].powerState
        nodePools[].availabilityZones""",
    "Node pools, workloads and upgrades": """nodePools[].nodeLabels nodePools[].nodeTaints nodePools[].tags
        nodePools[].orchestratorVersion nodePools[].rollback nodePools[].upgradeSettings
        nodePools[].workloadRuntime
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
    "Other properties of Azure": "azure nodePools[].azure",
}
"""The tables of a cluster's fields, each with its title; any other field comes last."""
OTHERS = "Other fields"
_HEAD = """\
# Reference

Every kind of manifest and every field. `python -m cli.pages.reference` generates this page from the models
that validate manifests; [The fleet repository](fleet.md) explains how the kinds work together.

- Paths are below `spec`. `[]` stands for each item of a list, `<name>` for a key of your choice.
- *required*: the resolved cluster must have the field, from its own file, its environment, its class or
  `fleet.yaml`. A required field of an object is required only where the object is set. Azure decides what the
  manifest omits.
- *change*: what a change of the field does to an existing cluster; then the changes with another effect, and
  in parentheses what they need. Roadstead refuses a change that needs recreation before it writes anything,
  and names the alternatives. "nodes are reimaged": AKS drains and reimages the nodes of each pool, as it does
  for a new node image.
- A field with the name of a property of Azure Resource Manager has its meaning:
  learn.microsoft.com/rest/api/aks/managed-clusters and learn.microsoft.com/rest/api/aks/agent-pools.

"""
_KINDS: Mapping[type[BaseModel], str] = {
    Fleet: "`fleet.yaml`: what all clusters share, and the guards.",
    Environment: "`environments/<name>.yaml`: what the clusters of an environment share.",
    Versions: "`environments/<name>.versions.yaml`: the versions that an environment with a "
    "[channel](how-to/keep-up-with-versions.md) has now.",
    ClusterClass: "`classes/<name>.yaml`: a template of clusters. Any field of a [cluster](#cluster) "
    "but `environment` and `suspend`.",
    Cluster: "`clusters/<name>/cluster.yaml`: one AKS cluster.",
    System: "`systems/<name>.yaml`: a team's system, on the clusters that it selects.",
}
_NOTIFICATIONS = "Kinds of notifications"
_OWN_FIELDS = tuple(Field(name, "string", str(field["description"])) for name, field in OWN.items())


def page() -> str:
    """Return the whole page."""
    groups = _grouped()
    index, text = ["- [Every kind](#every-kind)"], [_every_kind()]
    for model, what in _KINDS.items():
        index.append(f"- [{model.__name__}](#{_anchor(model.__name__)})")
        text.append(f"## {model.__name__}\n\n{what}\n")
        if model is ClusterClass:
            text.append(_table(_OWN_FIELDS[:1]))
        elif model is not Cluster:
            text.append(_table(_spec(model)))
            if model is Fleet:
                index.append(f"  - [{_NOTIFICATIONS}](#{_anchor(_NOTIFICATIONS)})")
                text.append(_kinds_of_notifications())
        else:
            index += [f"  - [{title}](#{_anchor(title)}): {_tops(group)}" for title, group in groups.items()]
            text += [f"### {title}\n\n{_table(group, changes=True)}" for title, group in groups.items()]
            text.append(_written_by_azure())
    return _HEAD + "\n".join(index) + "\n\n" + "\n".join(text)


def _kinds_of_notifications() -> str:
    lines = [["`notifications[].events[]`", "severity", "when"], ["---"] * 3]
    lines += [[f"`{kind}`", about.severity.value, about.meaning] for kind, about in NOTIFICATIONS.items()]
    return f"### {_NOTIFICATIONS}\n\n{_rows(lines)}"


def _every_kind() -> str:
    schema = generated(Cluster)
    kinds = f"`{'`, `'.join(model.__name__ for model in _KINDS)}`"
    common = [
        Field("apiVersion", f"`{API_VERSION}`", "The version of the language.", "required"),
        Field("kind", kinds, "The kind of the manifest.", "required"),
        *fields(schema["$defs"]["ClusterMetadata"], schema["$defs"], "metadata."),
    ]
    own = "Only clusters have `adopt`, `rebuild` and `replaces`."
    intro = f"Paths in this table begin at the top of the file. {own}"
    return f"## Every kind\n\n{intro}\n\n{_table(common)}"


def _spec(model: type[BaseModel]) -> Iterator[Field]:
    schema = generated(model)
    part = schema["$defs"][str(schema["properties"]["spec"]["$ref"]).rpartition("/")[2]]
    return fields(part, schema["$defs"], "")


def _grouped() -> dict[str, list[Field]]:
    """Return the fields of a cluster by the title of their table, in the order of ``GROUPS``."""
    titles = {path: title for title, paths in GROUPS.items() for path in paths.split()}
    order = {path: number for number, path in enumerate(titles)}
    grouped: dict[str, list[Field]] = {title: [] for title in (*GROUPS, OTHERS)}
    schema = generated(ClusterSpec)
    listed = [*_OWN_FIELDS, *fields(schema, schema["$defs"], "")]
    for field in sorted(listed, key=lambda field: order.get(_top(field.path), len(order))):
        grouped[titles.get(_top(field.path), OTHERS)].append(field)
    return {title: group for title, group in grouped.items() if group}


def _top(path: str) -> str:
    """Return the field of a cluster or of a pool that a path lies in."""
    first, dot, rest = path.partition(".")
    return f"{first}.{_key(rest)}" if dot and first == "nodePools[]" else _key(first)


def _key(path: str) -> str:
    return path.partition(".")[0].removesuffix("[]")


def _tops(group: Iterable[Field]) -> str:
    names = dict.fromkeys(_top(field.path).removeprefix("nodePools[].") for field in group)
    return ", ".join(f"`{name}`" for name in names)


def _table(listed: Iterable[Field], *, changes: bool = False) -> str:
    names = ["field", "type", "default", *(["change"] if changes else []), "meaning"]
    lines = [names, ["---"] * len(names)]
    for field in listed:
        effect = [change(field)] if changes else []
        lines.append([f"`{field.path}`", field.value, field.default, *effect, field.meaning])
    return _rows(lines)


def _rows(lines: Iterable[Iterable[str]]) -> str:
    return "".join(f"{''.join(f'| {_escaped(cell)} ' for cell in cells)}|\n" for cells in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _written_by_azure() -> str:
    names = ", ".join(f"`{entry.pattern}`" for entry in FIELD_EFFECTS if entry.effect is Effect.AZURE)
    commands = "".join(f"- `nodePools[].{name}`: {why}.\n" for name, why in COMMANDS_OF_POOLS.items())
    return (
        f"### Fields that only Azure writes\n\nThey are invalid in `azure.properties`: {names}.\n\n"
        f"### Fields that are commands\n\nA manifest cannot repeat them:\n\n{commands}"
    )


def _anchor(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
