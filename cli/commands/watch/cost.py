"""``roadstead cost``: what the clusters of the fleet are listed at for a month, and what Azure has billed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.options import Address
from cli.terminal.cluster_table import fitted, indented
from cli.terminal.output import Output, OutputOption, console, show
from cli.text import line
from shared.app.api import schema
from shared.plan.list_price import NAMED, amount, price_day
from shared.sentences import some_of

OWN_UNKNOWN = (
    "Not known: Azure's costs are read for the app's own resource group where its subscription has "
    "clusters of the fleet, and readCosts"
)
OWN_LEFT_OUT = "logs, traffic, the storage of the hosts, and the free grants of a month"
NOT_YET = "not known yet: the app adds up once a day, from the prices.yaml of the newest commit"
IDLE = "Idle: a month asleep has addresses, and at most the disks of nodes; the tier is not billed"


class By(StrEnum):
    """What the clusters are together by; a cluster counts as a whole for each of its systems."""

    CLUSTER = "cluster"
    ENVIRONMENT = "environment"
    OWNER = "owner"
    SYSTEM = "system"


def cost(
    address: Address,
    *,
    by: Annotated[By, typer.Option(metavar="KEY", help=f"{', '.join(By)}.")] = By.CLUSTER,
    own: Annotated[
        bool,
        typer.Option("--own", help="Show what Roadstead itself costs: billed, and counted at list prices."),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what the fleet is listed at for a month, and what Azure has billed, as the app found it.

    Once a day, with the prices.yaml of the newest commit: list prices, before every discount, and not what a
    bill says.
    """
    with address.connect() as api:
        view = api.costs()
    show(
        view,
        output,
        table=lambda wide: Group(*(_own_lines(view, wide=wide) if own else _lines(view, by))),
        names=lambda: (
            (kind["type"] for kind in view["own"])
            if own
            else (f"{by}/{group['name']}" for group in _groups(view, by))
        ),
    )


def _groups(view: schema.CostsView, by: By) -> Sequence[schema.CostGroupView]:
    """Return the groups, the dearest first; a cluster is a group of one."""
    if by is By.CLUSTER:
        return sorted(map(_alone, view["clusters"]), key=lambda group: (-group["low"], group["name"]))
    return {By.ENVIRONMENT: view["environments"], By.OWNER: view["owners"], By.SYSTEM: view["systems"]}[by]


def _alone(cluster: schema.ClusterCost) -> schema.CostGroupView:
    listed, billed, asleep = cluster["listed"], cluster["billed"], cluster["asleep"]
    return {
        "name": cluster["name"],
        "clusters": 1,
        "listedClusters": int(listed is not None),
        "low": listed["low"] if listed else 0,
        "high": listed["high"] if listed else 0,
        "asleep": int(asleep),
        "idleLow": listed["idleLow"] if listed and asleep else 0,
        "idleHigh": listed["idleHigh"] if listed and asleep else 0,
        "unpriced": int(bool(listed and listed["unpriced"])),
        "billedClusters": int(billed is not None),
        "billed": billed["cost"] if billed else None,
    }


def _lines(view: schema.CostsView, by: By) -> Iterator[RenderableType]:
    groups, currency = _groups(view, by), view["currency"]
    asleep, billed = (any(group[key] for group in groups) for key in ("asleep", "billedClusters"))
    yield Text(_head(view), "bold")
    heads = ["CLUSTERS", "A MONTH", "AT MOST", *["ASLEEP", "IDLE AT MOST"] * asleep, *["BILLED"] * billed]
    rows: list[tuple[str, list[Text]]] = [(by.upper(), [Text(head) for head in heads])]
    for group in groups:
        known = bool(group["listedClusters"] and currency)
        low, high, idle = (_money(group[key], currency) for key in ("low", "high", "idleHigh"))
        cells = [str(group["clusters"]), *((low, high) if known else ("not known", "not known"))]
        cells += [str(group["asleep"]), idle if group["asleep"] and known else ""] * asleep
        cells += [_billed(group, view["billedCurrency"])] * billed
        rows.append((line(group["name"]), [Text(cell) for cell in cells]))
    lines, _ = fitted(rows, 2, console().width)
    yield from lines
    if asleep:
        yield Text(IDLE, "dim")
    times = {(c["billed"]["since"], c["billed"]["until"]) for c in view["clusters"] if c["billed"]}
    yield from (Text(f"Billed by Azure from {since} to {until}", "dim") for since, until in sorted(times))
    notes = [f"costs of {problem['subscription']}: {problem['problem']}" for problem in view["problems"]]
    if view["missing"]:
        notes.append(f"{some_of(view['missing'], NAMED, between='; ')}: not counted")
    yield from (indented(Text(line(note), "yellow"), 2) for note in notes)


def _head(view: schema.CostsView) -> str:
    """Return the list price of the whole fleet, or why there is none."""
    listed = [cluster["listed"] for cluster in view["clusters"] if cluster["listed"]]
    if not listed or not view["currency"]:
        return f"List price: {view['listProblem'] or NOT_YET}"
    low, high = (_money(sum(found[end] for found in listed), view["currency"]) for end in ("low", "high"))
    most = f", at most {high} by the autoscaler" if low != high else ""
    day = max(found["pricesOf"] for found in listed)
    return f"List price: {low} a month{most}, {price_day(day, datetime.now(UTC).date())}"


def _money(value: float, currency: str) -> str:
    return amount(value, currency, signed=False)


def _billed(group: schema.CostGroupView, currency: str) -> str:
    if group["billed"] is None or not currency:
        return "not known"
    of = f" of {group['billedClusters']}" if group["billedClusters"] < group["clusters"] else ""
    return f"{_money(group['billed'], currency)}{of}"


def _own_lines(view: schema.CostsView, *, wide: bool) -> Iterator[Text]:
    """Yield what the resources of the app's own group have cost, and what the apps have counted."""
    costs = [kind["billed"] for kind in view["own"]]
    if len({(cost["currency"], cost["since"], cost["until"]) for cost in costs}) != 1:
        yield Text(OWN_UNKNOWN, "yellow")
        yield from (Text(line(problem["problem"]), "yellow") for problem in view["problems"])
    else:
        first, total = costs[0], _money(sum(cost["cost"] for cost in costs), costs[0]["currency"])
        span = f"from {first['since']} to {first['until']}"
        yield Text(f"Roadstead itself: {total}, billed by Azure {span}", "bold")
        entries = [
            (line(kind["type"]), [Text(_money(kind["billed"]["cost"], first["currency"]))])
            for kind in view["own"]
        ]
        lines, _ = fitted([("TYPE OF RESOURCE", [Text("BILLED")]), *entries], 2, console().width)
        yield from lines
    yield from _used_lines(view["ownUse"], wide=wide)


def _used_lines(used: schema.OwnUse | None, *, wide: bool) -> Iterator[Text]:
    """Yield what was counted, by kind, or by operation where there is room."""
    if used is None:
        yield Text("Counted: nothing yet", "dim")
        return
    day = f"since {used['since']}, at list prices of {used['region']}"
    total, month = _money(used["listed"], used["currency"]), used["month"]
    a_month = f", {_money(month, used['currency'])} a month" if month is not None else ""
    yield Text(f"Counted {day}: {total} at least{a_month}", "bold")
    sums = dict[tuple[str, ...], tuple[float, float]]()
    for found in used["operations"]:
        key: tuple[str, ...] = (found["kind"], *([found["operation"]] if wide else []))
        count, listed = sums.get(key, (0.0, 0.0))
        sums[key] = count + found["count"], listed + found["listed"]
    heads = ["OPERATION"] * wide + ["COUNTED", "LISTED"]
    entries = [("KIND", [Text(head) for head in heads])]
    for key, (count, listed) in sums.items():
        cells = [*map(line, key[1:]), f"{count:,.0f}", _money(listed, used["currency"])]
        entries.append((line(key[0]), [Text(cell) for cell in cells]))
    lines, _ = fitted(entries, 2, console().width)
    yield from lines
    yield Text(f"Not counted: {OWN_LEFT_OUT}", "dim")
