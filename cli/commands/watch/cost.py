"""``roadstead cost``: what the clusters of the fleet are listed at for a month, in groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.text import Text

from cli.errors import CommandError
from cli.fleet_api.recorded import Against, recorded
from cli.options import Address, RepositoryPath
from cli.terminal.cluster_table import indented
from cli.terminal.columns import fitted
from cli.terminal.output import Output, OutputOption, console, show
from cli.text import line
from cli.worktree import open_worktree
from shared.app.api import schema
from shared.frozen import dataclass
from shared.language.cluster_systems import systems_in
from shared.language.desired import Desired
from shared.plan.list_price import NAMED, amount, price_day
from shared.prices.cost_groups import NO_GROUP
from shared.prices.monthly import ALWAYS_LEFT_OUT, Monthly, idle, together
from shared.prices.price_file import Prices
from shared.prices.quota_prices import price_of
from shared.sentences import some_of

OWN_UNKNOWN = (
    "Not known: Azure's costs are read for the app's own resource group where its subscription has "
    "clusters of the fleet, and readCosts"
)
OWN_LEFT_OUT = "logs, traffic, the storage of the hosts, and the free grants of a month"
IDLE = "Idle: a month asleep has addresses, and at most the disks of nodes; the tier is not billed"


def cost(
    address: Address,
    path: RepositoryPath = Path(),
    *,
    by: Annotated[
        str,
        typer.Option(
            metavar="KEY",
            help="cluster, environment, class, location, subscription, system, or a label, such as owner.",
        ),
    ] = "cluster",
    files: Annotated[
        bool, typer.Option("--files", help="Take the files on disk instead of what the app has accepted.")
    ] = False,
    own: Annotated[
        bool,
        typer.Option("--own", help="Show what Roadstead itself costs: billed, and counted at list prices."),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what the fleet is listed at for a month.

    Takes the prices of prices.yaml in PATH: list prices, before every discount, and not what a bill says.
    """
    if own:
        with address.connect() as api:
            _show_own(api.costs(), output)
        return
    tree = open_worktree(path)
    prices = tree.prices()
    if isinstance(prices, str):
        raise CommandError(f"the list price is {prices}")
    known_costs, problems, invalid = dict[str, schema.ClusterCost](), list[str](), list[str]()
    if files:
        resolved = tree.resolve()
        clusters: Mapping[str, Desired] = resolved.clusters
        if resolved.invalid:
            names = some_of(sorted(resolved.invalid), NAMED)
            invalid.append(f"what is not valid: {names} (roadstead validate)")
    else:
        with address.connect() as api:
            known, found = recorded(tree, api), api.costs()
        clusters = _accepted(known)
        if known.unreadable:
            invalid.append(f"records that the app cannot read: {some_of(sorted(known.unreadable), NAMED)}")
        known_costs = {cost["name"]: cost for cost in found["clusters"]}
        problems = [f"costs of {cost['subscription']}: {cost['problem']}" for cost in found["problems"]]
    members = dict[str, list[_Priced]]()
    all_of = list[_Priced]()
    for name, cluster in sorted(clusters.items()):
        cost = known_costs.get(name)
        try:
            asleep = idle(cluster.spec, prices) if cost and cost["asleep"] else None
            priced = _Priced(price_of(cluster, prices), asleep, cost["billed"] if cost else None)
        except ValidationError:
            invalid.append(f"{name}, whose accepted spec is not valid by the rules of today")
            continue
        all_of.append(priced)
        for group in _groups(name, cluster, by):
            members.setdefault(group, []).append(priced)
    found_groups = _Found(by, {name: _group(some) for name, some in members.items()}, _group(all_of))
    show(
        {**_as_json(found_groups, prices, invalid), "problems": problems},
        output,
        table=lambda wide: _table(found_groups, prices, invalid, problems, wide=wide),
        names=lambda: (f"{by}/{group}" for group in found_groups.groups),
    )


def _show_own(view: schema.CostsView, output: Output) -> None:
    """Show what the resources of the app's own group have cost; nothing of it is computed here."""
    total = _billed([kind["billed"] for kind in view["own"]])
    found = {
        "own": view["own"],
        "total": asdict(total) if total else None,
        "ownUse": view["ownUse"],
        "problems": view["problems"],
    }
    show(
        found,
        output,
        table=lambda wide: Group(*_own_lines(view, total), *_used_lines(view["ownUse"], wide=wide)),
        names=lambda: (kind["type"] for kind in view["own"]),
    )


def _own_lines(view: schema.CostsView, total: _Billed | None) -> Iterator[Text]:
    if total is None:
        yield Text(OWN_UNKNOWN, "yellow")
        yield from (Text(line(problem["problem"]), "yellow") for problem in view["problems"])
        return
    billed = amount(total.amount, total.currency, signed=False)
    yield Text(f"Roadstead itself: {billed}, billed by Azure from {total.since} to {total.until}", "bold")
    entries = [
        (line(kind["type"]), [Text(amount(kind["billed"]["cost"], total.currency, signed=False))])
        for kind in view["own"]
    ]
    lines, _ = fitted([("TYPE OF RESOURCE", [Text("BILLED")]), *entries], 2, console().width)
    yield from lines


def _used_lines(used: schema.OwnUse | None, *, wide: bool) -> Iterator[Text]:
    """Yield what was counted, by kind, or by operation where there is room."""
    if used is None:
        yield Text("Counted: nothing yet", "dim")
        return
    day = f"since {used['since']}, at list prices of {used['region']}"
    total, month = amount(used["listed"], used["currency"], signed=False), used["month"]
    a_month = f", {amount(month, used['currency'], signed=False)} a month" if month is not None else ""
    yield Text(f"Counted {day}: {total} at least{a_month}", "bold")
    sums = dict[tuple[str, ...], tuple[float, float]]()
    for found in used["operations"]:
        key: tuple[str, ...] = (found["kind"], *([found["operation"]] if wide else []))
        count, listed = sums.get(key, (0.0, 0.0))
        sums[key] = count + found["count"], listed + found["listed"]
    heads = ["OPERATION"] * wide + ["COUNTED", "LISTED"]
    entries = [("KIND", [Text(head) for head in heads])]
    for key, (count, listed) in sums.items():
        cells = [*map(line, key[1:]), f"{count:,.0f}", amount(listed, used["currency"], signed=False)]
        entries.append((line(key[0]), [Text(cell) for cell in cells]))
    lines, _ = fitted(entries, 2, console().width)
    yield from lines
    yield Text(f"Not counted: {OWN_LEFT_OUT}", "dim")


def _accepted(known: Against) -> Mapping[str, Desired]:
    clusters = (known.clusters or {}).items()
    return {name: Desired(found.document) for name, found in clusters if not found.deleting}


def _groups(name: str, cluster: Desired, by: str) -> Sequence[str]:
    """Return the groups of a cluster; it is as a whole in that of each of its systems.

    Any other key is that of a label.
    """
    if by == "system":
        return [system["name"] for system in systems_in(cluster.document())] or [NO_GROUP]
    keys = {
        "cluster": name,
        "environment": cluster.environment,
        "class": cluster.cluster_class,
        "location": cluster.footprint[2],
        "subscription": cluster.footprint[0],
    }
    return [(keys[by] if by in keys else cluster.labels.get(by, "")) or NO_GROUP]


@dataclass(frozen=True)
class _Priced:
    """A cluster's list price, that of a month asleep where it sleeps now, and what was billed for it."""

    listed: Monthly
    asleep: Monthly | None
    billed: schema.BilledCost | None


@dataclass(frozen=True)
class _Billed:
    """What Azure has billed for clusters in a time, each once; ``clusters`` is how many it knows."""

    amount: float
    currency: str
    since: str
    until: str
    clusters: int


@dataclass(frozen=True)
class _Group:
    """So many clusters with their list price, and what Azure has billed for them, None for nothing known.

    ``asleep`` of them sleep, which are listed at ``idle`` for a month of that.
    """

    clusters: int
    listed: Monthly
    asleep: int
    idle: Monthly
    billed: _Billed | None


@dataclass(frozen=True)
class _Found:
    """The groups by a key, and all clusters together."""

    by: str
    groups: Mapping[str, _Group]
    whole: _Group


def _group(clusters: Sequence[_Priced]) -> _Group:
    asleep = [cluster.asleep for cluster in clusters if cluster.asleep]
    billed = _billed([cluster.billed for cluster in clusters if cluster.billed])
    listed = together(cluster.listed for cluster in clusters)
    return _Group(len(clusters), listed, len(asleep), together(asleep), billed)


def _billed(costs: Sequence[schema.BilledCost]) -> _Billed | None:
    """Return the sum of costs; None without any, and where they are of several times or currencies."""
    if len({(cost["currency"], cost["since"], cost["until"]) for cost in costs}) != 1:
        return None
    first, total = costs[0], sum(cost["cost"] for cost in costs)
    return _Billed(round(total, 2), first["currency"], first["since"], first["until"], len(costs))


def _as_json(found: _Found, prices: Prices, invalid: Sequence[str]) -> Mapping[str, Any]:
    whole = found.whole.listed
    return {
        "by": found.by,
        "currency": prices.currency,
        "day": prices.day.isoformat(),
        "listPrice": _amounts(whole),
        **_idle_amounts(found.whole),
        "groups": [
            {
                "name": name,
                "clusters": group.clusters,
                "listPrice": _amounts(group.listed),
                **_idle_amounts(group),
                "billed": asdict(group.billed) if group.billed else None,
            }
            for name, group in _ordered(found.groups)
        ],
        "missing": list(whole.missing),
        "leftOut": [*invalid, *whole.left_out],
    }


def _amounts(found: Monthly) -> Mapping[str, float]:
    spot = found.spot
    amounts = {"low": found.low, "high": found.high, "spotLow": spot.low, "spotHigh": spot.high}
    return {name: round(float(value), 2) for name, value in amounts.items()}


def _idle_amounts(group: _Group) -> Mapping[str, Any]:
    low, high = (round(float(value), 2) for value in (group.idle.low, group.idle.high))
    return {"asleep": group.asleep, "idle": {"low": low, "high": high}}


def _ordered(groups: Mapping[str, _Group]) -> list[tuple[str, _Group]]:
    return sorted(groups.items(), key=lambda found: (-found[1].listed.low, found[0]))


def _table(
    found: _Found,
    prices: Prices,
    invalid: Sequence[str],
    problems: Sequence[str],
    *,
    wide: bool,
) -> RenderableType:
    whole, groups = found.whole.listed, found.groups
    low, high = (amount(float(value), prices.currency, signed=False) for value in (whole.low, whole.high))
    most = f", at most {high} by the autoscaler" if whole.low != whole.high else ""
    head = f"List price: {low} a month{most}, {price_day(prices.day.isoformat(), datetime.now(UTC).date())}"
    entries: list[tuple[str, list[Text]]] = [
        (found.by.upper(), [Text("CLUSTERS"), Text("A MONTH"), Text("AT MOST"), Text("SPOT AT MOST")])
    ]
    if found.whole.asleep:
        entries[0][1].extend((Text("ASLEEP"), Text("IDLE AT MOST")))
    times = sorted({(g.billed.since, g.billed.until) for g in groups.values() if g.billed})
    if times:
        entries[0][1].append(Text("BILLED"))
    for name, group in _ordered(groups):
        amounts = (group.listed.low, group.listed.high, group.listed.spot.high)
        cells = [Text(amount(float(value), prices.currency, signed=False)) for value in amounts]
        if found.whole.asleep:
            idle_most = amount(float(group.idle.high), prices.currency, signed=False)
            cells += [Text(str(group.asleep)), Text(idle_most if group.asleep else "")]
        entries.append((line(name), [Text(str(group.clusters)), *cells, *_billed_cell(group, bool(times))]))
    lines, _ = fitted(entries, 2, console().width)
    if found.whole.asleep:
        lines.append(Text(IDLE, "dim"))
    lines += [Text(f"Billed by Azure from {since} to {until}", "dim") for since, until in times]
    notes = [*(_notes(whole, invalid) if wide or whole.missing or invalid else ()), *problems]
    return Group(Text(head, "bold"), *lines, *(indented(Text(line(note), "yellow"), 2) for note in notes))


def _billed_cell(group: _Group, shown: bool) -> list[Text]:
    """Return the cell of what was billed, where there is such a column."""
    if not shown:
        return []
    billed = group.billed
    if billed is None:
        return [Text("not known", "dim")]
    of = f" of {billed.clusters}" if billed.clusters < group.clusters else ""
    return [Text(f"{amount(billed.amount, billed.currency, signed=False)}{of}")]


def _notes(whole: Monthly, invalid: Sequence[str]) -> Iterator[str]:
    if whole.missing:
        yield f"{some_of(whole.missing, NAMED, between='; ')}: not counted"
    yield f"not counted: {'; '.join((*invalid, *whole.left_out[:NAMED], ALWAYS_LEFT_OUT))}"
