"""Commands that have a pull request opened: ``request``, ``suspend``, ``rollback`` and ``promote``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.errors import UsageError
from cli.options import Address, NeededReason, Reason, cluster_name, span
from cli.terminal.cluster_table import indented
from cli.terminal.output import Output, OutputOption, echo, show
from cli.text import line, printable
from cli.times import age
from shared.app.api import schema
from shared.promotions import Promotable
from shared.sentences import many, some_of


def request(
    address: Address,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new cluster.")],
    *,
    cluster_class: Annotated[str, typer.Option("--class", metavar="CLASS", help="Its class.")],
    lifetime: Annotated[
        str,
        typer.Option("--lifetime", metavar="TIME", help="How long it lasts once it is Ready, such as 8h."),
    ],
    environment: Annotated[
        str, typer.Option("--environment", metavar="ENVIRONMENT", help="Its environment.")
    ] = "",
    location: Annotated[str, typer.Option("--location", metavar="REGION", help="Its Azure region.")] = "",
    reason: NeededReason,
) -> None:
    """Ask for a cluster for a time, by a pull request that adds its folder.

    What may be asked for is selfService in fleet.yaml. Nothing exists before the merge.
    """
    asked = {"name": cluster_name(name), "class": cluster_class, "lifetime": lifetime, "reason": reason}
    places = {"environment": environment, "location": location}
    with address.connect() as api:
        body = asked | {key: value for key, value in places.items() if value}
        receipt = api.act(schema.ClusterRequestReceipt, "requests", body)
    echo(Text(line(f"{receipt['cluster']} in {receipt['environment']} for {receipt['lifetime']}:")))
    echo(Text(line(f"  {receipt['pullRequest']}")))
    echo(Text(line(f"  who merges it: {receipt['merge']}")))


SHOWN = 5


def suspend(
    address: Address,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The clusters.")],
    *,
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="For how long, such as 4h or 7d; 365d at most.")
    ],
    owner: Annotated[
        str, typer.Option("--owner", metavar="OWNER", help="Who is responsible; you, without it.")
    ] = "",
    reason: NeededReason,
) -> None:
    """Propose to suspend clusters until a time, by one pull request that changes their manifests.

    Nothing changes before the merge. Then Roadstead writes nothing to them until the end.
    """
    clusters = list(dict.fromkeys(map(cluster_name, names)))
    body = {"clusters": clusters, "for": span(lasts), "owner": owner, "reason": reason}
    with address.connect() as api:
        receipt = api.act(schema.SuspensionReceipt, "suspensions", body)
    text = f"{some_of(receipt['clusters'], SHOWN)}: a pull request is open, for a suspension until"
    echo(Text(line(f"{text} {receipt['until']}") + "\n  " + line(receipt["pullRequest"])))


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


def promote(
    address: Address,
    source: Annotated[str, typer.Argument(metavar="FROM", help="An environment with Ready clusters.")] = "",
    target: Annotated[str, typer.Argument(metavar="TO", help="The environment that is to get it.")] = "",
    *,
    what: Annotated[
        list[Promotable] | None,
        typer.Option(
            "--what",
            metavar="KIND",
            help="version, images, components or platform, more than once (default: all).",
        ),
    ] = None,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Give an environment what is proven in another one: open a pull request, or list them.

    Every cluster of FROM must be Ready with the same value. Nothing changes before the merge.
    """
    if bool(source) != bool(target):
        raise UsageError("give two environments, or none to list the promotions")
    with address.connect() as api:
        if source:
            kinds = [promoted.value for promoted in what or ()]
            body = {"from": source, "to": target, "what": kinds, "reason": reason}
            receipt = api.act(schema.PromotionReceipt, "promotions", body)
            show(
                receipt,
                output,
                table=lambda _: receipt_view(receipt),
                names=lambda: [f"environment/{receipt['target']}"],
            )
            return
        found = api.read(schema.PromotionsView, "promotions")
    show(
        found,
        output,
        table=lambda _: promotions_view(found["promotions"], datetime.now(UTC)),
        names=lambda: (f"environment/{promotion['target']}" for promotion in found["promotions"]),
    )


_HOLDS = {
    "withdrawn": "on hold: a commit took it back; roadstead promote gives it again",
    "declined": "on hold: its pull request was closed; roadstead promote opens another",
}


def receipt_view(receipt: schema.PromotionReceipt) -> Text:
    """Return what a promotion that was asked for will change."""
    clusters = many(len(receipt["clusters"]), "cluster")
    head = f"{receipt['source']} to {receipt['target']}: a pull request for {clusters} is queued"
    values = "".join(f"\n  {promoted['field']}: {promoted['value']}" for promoted in receipt["values"])
    return Text(f"{line(head)}{printable(values)}\nroadstead promote shows its address")


def promotions_view(found: Sequence[schema.PromotionView], now: datetime) -> RenderableType:
    """Return some lines for each environment."""
    if not found:
        return Text("nothing was promoted yet, and fleet.yaml has no promotions")
    return Group(*(part for promotion in printable(found) for part in _promotion(promotion, now)))


def _promotion(promotion: schema.PromotionView, now: datetime) -> Iterator[RenderableType]:
    how = "by a rule" if promotion["rule"] else "when somebody asks"
    yield Text(f"{promotion['source']} to {promotion['target']}, {how}", style="bold")
    if promotion["values"]:
        by = promotion["by"] or "a rule"
        asked = f"asked {age(promotion['askedAt'], now)} ago by {by}"
        yield indented(Text(f"{promotion['state']}  {promotion['pullRequest']}  {asked}"), 2)
    for promoted in promotion["values"]:
        yield indented(Text(f"{promoted['field']}: {promoted['value']}"), 4)
    if promotion["problem"]:
        yield indented(Text(promotion["problem"], style="yellow"), 2)
    for hold in promotion["holds"]:
        yield indented(Text(f"{hold['field']}: {hold['value']}  {_HOLDS[hold['reason']]}", style="dim"), 2)
