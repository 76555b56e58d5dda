"""docs/local-azure-refusals.md: what the local Azure refuses beyond the shape of a body, with its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from localcloud.azure.world.refusals import (
    capacity_rules,
    cluster_rules,
    extension_rules,
    fixed,
    maintenance_rules,
    network_rules,
    pool_rules,
)
from localcloud.azure.world.refusals.rule import RefusalRule

_HEAD = """# What the local Azure refuses

Generated from `localcloud/azure/world/refusals/` by `python -m localcloud.azure.refusals_page`. The models of
Azure's library take a body that breaks one of these rules; AKS refuses it, and so does the local Azure.

Sources:
- "models": the models of azure-mgmt-containerservice; of extensions and configurations, those of
  azure-mgmt-kubernetesconfiguration-extensions and -fluxconfigurations
- "REST specification": specification/containerservice of github.com/Azure/azure-rest-api-specs
- "docs": the pages below learn.microsoft.com/azure/aks
- "CAPZ webhook": what cluster-api-provider-azure does not let change, azuremanagedmachinepool_webhook.go
- "azurerm": what Terraform's azurerm_kubernetes_cluster and azurerm_kubernetes_cluster_node_pool replace
- owner/repository#number: an issue or a pull request on GitHub
- "not found": no statement was found; the rule is retained for the reason given, because a test shows what is
  refused too much, and no test what is accepted too much
"""


def page() -> str:
    """Return the page."""
    parts = [
        _HEAD,
        _rules("Clusters: network", network_rules.RULES),
        _rules("Clusters: everything else", cluster_rules.RULES),
        _rules("Agent pools", pool_rules.RULES),
        _rules("All agent pools of a cluster together", capacity_rules.RULES),
        _rules("Maintenance configurations", maintenance_rules.RULES),
        _rules("Extensions", extension_rules.EXTENSIONS),
        _rules("Configurations of Flux", extension_rules.CONFIGURATIONS),
        _fixed("Fixed at the creation of a cluster", fixed.CLUSTER, ""),
        _fixed("Fixed at the creation of an agent pool", fixed.POOL, "properties."),
    ]
    return "\n".join(parts)


def _rules(title: str, rules: Iterable[RefusalRule]) -> str:
    lines = [f"| `{rule.name}` | {rule.message} | `{rule.code}` | {rule.source} |" for rule in rules]
    return "\n".join([f"## {title}\n", "| rule | message | code | source |", "|---|---|---|---|", *lines, ""])


def _fixed(title: str, paths: Mapping[str, str], prefix: str) -> str:
    lines = [f"| `PropertyChangeNotAllowed {prefix}{path}` | {source} |" for path, source in paths.items()]
    return "\n".join([f"## {title}\n", "| refusal | source |", "|---|---|", *lines, ""])


if __name__ == "__main__":
    print(page(), end="")
