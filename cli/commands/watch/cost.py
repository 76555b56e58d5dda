"""``roadstead cost``: what the clusters of the fleet are listed at for a month, in groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.text import Text

from cli.errors import CommandError
from cli.fleet_api.recorded import recorded
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, RepositoryPath, Timeout, Url, connect
from cli.price_file import prices_in
from cli.terminal.cluster_table import indented
from cli.terminal.columns import fitted
from cli.terminal.output import Output, OutputOption, console, show
from cli.text import line
from cli.worktree import Worktree, open_worktree
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
    clusters = tree.resolve().clusters if files else _accepted(tree, url, key_file, timeout)
    listed, invalid = dict[str, list[Monthly]](), list[str]()
    for name, cluster in sorted(clusters.items()):
        try:
            listed.setdefault(_group(name, cluster, by), []).append(monthly(cluster.spec, prices))
        except ValidationError:
            invalid.append(f"{name}, whose accepted spec is not valid by the rules of today")
    groups = {group: (len(found), together(found)) for group, found in listed.items()}
    show(
        _as_json(groups, prices, by, invalid),
        output,
        table=lambda wide: _table(groups, prices, by, invalid, wide=wide),
        names=lambda: (f"{by}/{group}" for group in groups),
    )


def _accepted(tree: Worktree, url: str, key_file: Path | None, timeout: str) -> Mapping[str, Desired]:
    with connect(url, key_file, timeout) as api:
        known = recorded(tree, api).clusters or {}
    return {name: StoredCluster(found.document) for name, found in known.items() if not found.deleting}


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


_Groups = Mapping[str, tuple[int, Monthly]]


def _as_json(groups: _Groups, prices: Prices, by: str, invalid: Sequence[str]) -> Mapping[str, Any]:
    whole = together(found for _, found in groups.values())
    return {
        "by": by,
        "currency": prices.currency,
        "day": prices.day.isoformat(),
        "listPrice": _amounts(whole),
        "groups": [
            {"name": name, "clusters": count, "listPrice": _amounts(found)}
            for name, (count, found) in _ordered(groups)
        ],
        "missing": list(whole.missing),
        "leftOut": [*invalid, *whole.left_out],
    }


def _amounts(found: Monthly) -> Mapping[str, float]:
    spot = found.spot
    amounts = {"low": found.low, "high": found.high, "spotLow": spot.low, "spotHigh": spot.high}
    return {name: round(float(value), 2) for name, value in amounts.items()}


def _ordered(groups: _Groups) -> list[tuple[str, tuple[int, Monthly]]]:
    return sorted(groups.items(), key=lambda group: (-group[1][1].low, group[0]))


def _table(groups: _Groups, prices: Prices, by: str, invalid: Sequence[str], *, wide: bool) -> RenderableType:
    whole = together(found for _, found in groups.values())
    low, high = (amount(float(value), prices.currency, signed=False) for value in (whole.low, whole.high))
    most = f", at most {high} by the autoscaler" if whole.low != whole.high else ""
    head = f"List price: {low} a month{most}, {price_day(prices.day.isoformat(), datetime.now(UTC).date())}"
    entries: list[tuple[str, Sequence[Text]]] = [
        (by.upper(), [Text("CLUSTERS"), Text("A MONTH"), Text("AT MOST"), Text("SPOT AT MOST")])
    ]
    for name, (count, found) in _ordered(groups):
        amounts = (found.low, found.high, found.spot.high)
        cells = [Text(amount(float(value), prices.currency, signed=False)) for value in amounts]
        entries.append((line(name), [Text(str(count)), *cells]))
    lines, _ = fitted(entries, 2, console().width)
    notes = [*_notes(whole, invalid)] if wide or whole.missing or invalid else []
    return Group(Text(head, "bold"), *lines, *(indented(Text(line(note), "yellow"), 2) for note in notes))


def _notes(whole: Monthly, invalid: Sequence[str]) -> Iterator[str]:
    if whole.missing:
        yield f"{some_of(whole.missing, NAMED, between='; ')}: not counted"
    yield f"not counted: {'; '.join((*invalid, *whole.left_out[:NAMED], ALWAYS_LEFT_OUT))}"
