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
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, RepositoryPath, Timeout, Url, connect
from cli.price_file import prices_in
from cli.terminal.cluster_table import indented
from cli.terminal.columns import fitted
from cli.terminal.output import Output, OutputOption, console, show
from cli.text import line
from cli.worktree import open_worktree
from shared.app.api import schema
from shared.frozen import dataclass
from shared.language.desired import Desired
from shared.language.stored_cluster import StoredCluster
from shared.plan.list_price import NAMED, amount, price_day
from shared.prices.monthly import ALWAYS_LEFT_OUT, Monthly, monthly, together
from shared.prices.price_file import Prices
from shared.sentences import some_of

WITHOUT = "(none)"
"""The group of clusters that have no value."""


def cost(
    path: RepositoryPath = Path(),
    *,
    by: Annotated[
        str,
        typer.Option(
            metavar="KEY",
            help="cluster, environment, class, location, subscription, or a label, such as owner.",
        ),
    ] = "cluster",
    files: Annotated[
        bool, typer.Option("--files", help="Take the files on disk instead of what the app has accepted.")
    ] = False,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Show what the fleet is listed at for a month.

    Takes the prices of prices.yaml in PATH: list prices, before every discount, and not what a bill says.
    """
    tree = open_worktree(path)
    prices = prices_in(tree)
    if isinstance(prices, str):
        raise CommandError(f"the list price is {prices}")
    billed, problems, invalid = dict[str, schema.ClusterCost](), list[str](), list[str]()
    if files:
        resolved = tree.resolve()
        clusters: Mapping[str, Desired] = resolved.clusters
        if resolved.invalid:
            names = some_of(sorted(resolved.invalid), NAMED)
            invalid.append(f"what is not valid: {names} (roadstead validate)")
    else:
        with connect(url, key_file, timeout) as api:
            known, found = recorded(tree, api), api.costs()
        clusters = _accepted(known)
        if known.unreadable:
            invalid.append(f"records that the app cannot read: {some_of(sorted(known.unreadable), NAMED)}")
        billed = {cost["name"]: cost for cost in found["clusters"]}
        problems = [f"costs of {cost['subscription']}: {cost['problem']}" for cost in found["problems"]]
    listed = dict[str, list[Monthly]]()
    actual = dict[str, list[schema.ClusterCost]]()
    for name, cluster in sorted(clusters.items()):
        try:
            price = monthly(cluster.spec, prices)
        except ValidationError:
            invalid.append(f"{name}, whose accepted spec is not valid by the rules of today")
            continue
        group = _group(name, cluster, by)
        listed.setdefault(group, []).append(price)
        if name in billed:
            actual.setdefault(group, []).append(billed[name])
    groups = {
        name: _Group(len(found), together(found), _billed(actual.get(name, [])))
        for name, found in listed.items()
    }
    show(
        {**_as_json(groups, prices, by, invalid), "problems": problems},
        output,
        table=lambda wide: _table(groups, prices, by, invalid, problems, wide=wide),
        names=lambda: (f"{by}/{group}" for group in groups),
    )


def _accepted(known: Against) -> Mapping[str, Desired]:
    clusters = (known.clusters or {}).items()
    return {name: StoredCluster(found.document) for name, found in clusters if not found.deleting}


def _group(name: str, cluster: Desired, by: str) -> str:
    """Return the group of a cluster; any other key is that of a label."""
    keys = {
        "cluster": name,
        "environment": cluster.environment,
        "class": cluster.cluster_class,
        "location": cluster.footprint[2],
        "subscription": cluster.footprint[0],
    }
    return (keys[by] if by in keys else cluster.labels.get(by, "")) or WITHOUT


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
    """So many clusters with their list price, and what Azure has billed for them, None for nothing known."""

    clusters: int
    listed: Monthly
    billed: _Billed | None


_Groups = Mapping[str, _Group]


def _billed(costs: Sequence[schema.ClusterCost]) -> _Billed | None:
    """Return the sum of costs; None without any, and where they are of several times or currencies."""
    if len({(cost["currency"], cost["since"], cost["until"]) for cost in costs}) != 1:
        return None
    first, total = costs[0], sum(cost["cost"] for cost in costs)
    return _Billed(round(total, 2), first["currency"], first["since"], first["until"], len(costs))


def _as_json(groups: _Groups, prices: Prices, by: str, invalid: Sequence[str]) -> Mapping[str, Any]:
    whole = together(group.listed for group in groups.values())
    return {
        "by": by,
        "currency": prices.currency,
        "day": prices.day.isoformat(),
        "listPrice": _amounts(whole),
        "groups": [
            {
                "name": name,
                "clusters": group.clusters,
                "listPrice": _amounts(group.listed),
                "billed": asdict(group.billed) if group.billed else None,
            }
            for name, group in _ordered(groups)
        ],
        "missing": list(whole.missing),
        "leftOut": [*invalid, *whole.left_out],
    }


def _amounts(found: Monthly) -> Mapping[str, float]:
    spot = found.spot
    amounts = {"low": found.low, "high": found.high, "spotLow": spot.low, "spotHigh": spot.high}
    return {name: round(float(value), 2) for name, value in amounts.items()}


def _ordered(groups: _Groups) -> list[tuple[str, _Group]]:
    return sorted(groups.items(), key=lambda found: (-found[1].listed.low, found[0]))


def _table(
    groups: _Groups,
    prices: Prices,
    by: str,
    invalid: Sequence[str],
    problems: Sequence[str],
    *,
    wide: bool,
) -> RenderableType:
    whole = together(group.listed for group in groups.values())
    low, high = (amount(float(value), prices.currency, signed=False) for value in (whole.low, whole.high))
    most = f", at most {high} by the autoscaler" if whole.low != whole.high else ""
    head = f"List price: {low} a month{most}, {price_day(prices.day.isoformat(), datetime.now(UTC).date())}"
    entries: list[tuple[str, list[Text]]] = [
        (by.upper(), [Text("CLUSTERS"), Text("A MONTH"), Text("AT MOST"), Text("SPOT AT MOST")])
    ]
    times = sorted({(g.billed.since, g.billed.until) for g in groups.values() if g.billed})
    if times:
        entries[0][1].append(Text("BILLED"))
    for name, group in _ordered(groups):
        amounts = (group.listed.low, group.listed.high, group.listed.spot.high)
        cells = [Text(amount(float(value), prices.currency, signed=False)) for value in amounts]
        entries.append((line(name), [Text(str(group.clusters)), *cells, *_billed_cell(group, bool(times))]))
    lines, _ = fitted(entries, 2, console().width)
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
