"""Before azd removes anything: says what stays, and stops azd, with --force too.

azd deletes every resource group in which a template wrote something: those of your vaults, identities and
target subscriptions are among them (github.com/Azure/azure-dev/issues/2916, pull/7998).
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    group = os.environ.get("resourceGroupName", "roadstead-FLEET")  # noqa: SIM112 - azd has the names of outputs
    sys.exit(
        "azd down is off for Roadstead: it would delete resource groups that the template only refers to.\n"
        f"Remove the locks of {group}, and then: az group delete --name {group}\n"
        "The clusters, their subscriptions, your vaults and networks stay, and the roles of the apps too: "
        "docs/how-to/deploy-to-azure.md says how to remove those."
    )
