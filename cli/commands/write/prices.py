"""``roadstead prices update``: the list prices of what the fleet uses, as a file of its repository."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from cli.errors import CommandError, UsageError
from cli.options import RepositoryPath
from cli.retail_prices import ADDRESS, RetailPrices
from cli.terminal.output import echo
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.plan.list_price import NAMED
from shared.prices.monthly import of_kind
from shared.prices.price_file import PRICE_FILE, Price, PriceFileProblem, Prices, read_prices, written
from shared.prices.retail import needs_of
from shared.sentences import many, some_of


def update(
    path: RepositoryPath = Path(),
    *,
    currency: Annotated[
        str,
        typer.Option(metavar="CODE", help="The currency, such as EUR (default: that of the file, or USD)."),
    ] = "",
    address: Annotated[
        str,
        typer.Option(
            metavar="URL", envvar="ROADSTEAD_PRICES_URL", help="Address of the list.", show_envvar=False
        ),
    ] = ADDRESS,
) -> None:
    """Write the list prices of what the fleet uses to prices.yaml.

    Asks Azure's public list of retail prices, once for each size, tier, disk and address in each region.
    """
    tree = open_worktree(path)
    before = _before(tree)
    wanted = currency or (before.currency if before else "USD")
    if not (len(wanted) == 3 and wanted.isascii() and wanted.isupper()):
        raise UsageError(f"{line(wanted)} is no currency; give its three letters, such as EUR")
    fleet = tree.resolve()
    if fleet.invalid and not fleet.clusters:
        raise CommandError("no cluster is valid, and no price is needed; see roadstead validate")
    needs = needs_of(cluster.spec for cluster in fleet.clusters.values())
    with RetailPrices(address, wanted, wait=time.sleep) as service:
        prices, missing = service.prices(needs, datetime.now(UTC).date())
    (tree.root / PRICE_FILE).write_text(_readable(prices))
    summary = f"{many(len(prices.entries), 'price')} of {prices.day} in {wanted}; review and commit it"
    parts = [Text(f"Wrote {tree.shown(PRICE_FILE)}: {summary}.")]
    if fleet.invalid:
        names = line(some_of(sorted(fleet.invalid), NAMED))
        parts.append(Text(f"  without what is not valid: {names}; see roadstead validate", "yellow"))
    parts += [Text(f"  {text}") for text in _changes(before, prices, {str(need) for need in missing})]
    parts += [
        Text(f"  no price for {line(str(need))}: {line(why)}", "yellow") for need, why in missing.items()
    ]
    echo(Group(*parts))


def _before(tree: Worktree) -> Prices | None:
    """Return the prices of the file that is written over, None where nobody can read it."""
    if PRICE_FILE not in tree.files.blobs:
        return None
    try:
        return read_prices(tree.read(PRICE_FILE))
    except PriceFileProblem:
        return None


def _readable(prices: Prices) -> str:
    """Return the text of a price file; raise CommandError where nobody could read it."""
    text = written(prices)
    try:
        read_prices(text.encode())
    except PriceFileProblem as problem:
        raise CommandError(f"the list has what no price file takes: {line(str(problem))}") from problem
    return text


def _changes(before: Prices | None, now: Prices, missing: Collection[str]) -> Iterator[str]:
    """Yield which prices have changed, which are new, and which the fleet no longer needs.

    ``missing`` are those that it needs, and that the list has not.
    """
    if before is None or before.currency != now.currency:
        return
    earlier = {_what(price): price for price in before.entries}
    for price in now.entries:
        former = earlier.pop(_what(price), None)
        if former is None:
            yield f"new: {_what(price)}, {price.price} for {price.unit}"
        elif (former.price, former.unit) != (price.price, price.unit):
            yield f"changed: {_what(price)}, {former.price} to {price.price} for {price.unit}"
    yield from (f"no longer used: {what}" for what in earlier if what not in missing)


def _what(price: Price) -> str:
    return f"{of_kind(price.kind)}{price.name} in {price.region}"
