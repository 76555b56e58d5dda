"""``roadstead rollback``: a pull request that rolls a node pool back by one step."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from cli.errors import UsageError
from cli.options import Address, Reason, cluster_name
from cli.terminal.output import echo
from cli.text import line
from shared.app.api import schema


def rollback(
    address: Address,
    place: Annotated[str, typer.Argument(metavar="POOL", help="A node pool, as CLUSTER/POOL.")],
    *,
    reason: Reason = "",
) -> None:
    """Propose to roll a node pool back to what it ran before its last upgrade, by a pull request.

    It names each condition of Azure that is not met. Nothing changes before the merge.
    """
    cluster, slash, pool = place.partition("/")
    if not (slash and pool) or "/" in pool:
        raise UsageError("give a cluster and one of its node pools, such as atlantic-aks/apps")
    with address.connect() as api:
        path = f"clusters/{cluster_name(cluster)}/pools/{pool}/rollback"
        echo(_view(api.act(schema.RollbackReceipt, path, {"reason": reason})))


def _view(receipt: schema.RollbackReceipt) -> Text:
    running, target = receipt["running"], receipt["target"]
    rows = (
        f"{receipt['cluster']}/{receipt['pool']}: a pull request is open",
        f"  Kubernetes: {running['orchestratorVersion']} to {target['orchestratorVersion']}",
        f"  node image: {running['nodeImageVersion']} to {target['nodeImageVersion']}",
        f"  it ran these until {receipt['lastUsed']}; Azure rolls back within seven days",
        f"  {receipt['pullRequest']}",
    )
    return Text("\n".join(map(line, rows)))
