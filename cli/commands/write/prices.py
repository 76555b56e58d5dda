"""``roadstead prices update``: the list prices of what the fleet uses, as a file of its repository."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

import httpx
import typer
from rich.console import Group
from rich.text import Text

from cli.errors import CommandError, UsageError
from cli.options import RepositoryPath
from cli.terminal.output import echo
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.plan.list_price import NAMED
from shared.prices.monthly import of_kind
from shared.prices.price_file import PRICE_FILE, Price, PriceFileProblem, Prices, read_prices, written
from shared.prices.retail import NoPrice, PriceNeed, filters_of, needs_of, price_of
from shared.sentences import many, some_of

ADDRESS = "https://prices.azure.com/api/retail/prices"
API_VERSION = "2023-01-01-preview"
MOST_PAGES = 20
"""Pages of one answer: a need has few entries."""
ATTEMPTS = 4
MOST_SECONDS = 60.0
"""How long one wait of a refusal by the service may be."""
_SECONDS = 30.0
_BUSY = (429, 500, 502, 503, 504)


class RetailPrices:
    """The list at an address, for which nobody signs in; a context manager.

    Its methods raise CommandError where it does not answer. Source:
    learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices (api-version, currencyCode,
    meterRegion, and ``NextPageLink`` of an answer that has more).
    """

    def __init__(self, address: str, currency: str, *, wait: Callable[[float], None]) -> None:
        self._address, self._currency, self._wait = address, currency, wait
        try:
            self._url = httpx.URL(address)
        except (httpx.InvalidURL, ValueError) as error:
            raise UsageError(f"{line(address)} is not an address") from error
        if self._url.scheme != "https" and self._url.host not in ("127.0.0.1", "localhost"):
            raise UsageError(f"{line(address)} does not begin with https://")
        self._client = httpx.Client(timeout=_SECONDS, headers={"Accept": "application/json"})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def prices(self, needs: Sequence[PriceNeed], day: date) -> tuple[Prices, Mapping[PriceNeed, str]]:
        """Return the prices of these needs, and why others have none."""
        found, missing = dict[tuple[object, ...], Price](), dict[PriceNeed, str]()
        for need in needs:
            try:
                price = self._price(need)
            except NoPrice as reason:
                missing[need] = str(reason)
            else:
                found[price.region, price.kind, price.name] = price
        public = self._url.copy_with(userinfo=b"", query=None)  # the file is for everybody
        source = f"{public}?api-version={API_VERSION}"
        return Prices(day, self._currency, source, tuple(found.values())), missing

    def _price(self, need: PriceNeed) -> Price:
        entries = list[Mapping[str, Any]]()
        for asked in filters_of(need):
            entries = list(self._entries(asked))
            if entries:
                break
        return price_of(need, entries, self._currency)

    def _entries(self, asked: str) -> Iterator[Mapping[str, Any]]:
        """Yield what the list has for a filter, page by page."""
        address = self._url.copy_merge_params(
            {
                "api-version": API_VERSION,
                "currencyCode": f"'{self._currency}'",
                "meterRegion": "'primary'",
                "$filter": asked,
            }
        )
        for _ in range(MOST_PAGES):
            page = self._page(address)
            items, following = page.get("Items"), page.get("NextPageLink")
            if not isinstance(items, list):
                raise CommandError(f"{line(self._address)} did not answer with a list of prices")
            yield from (item for item in items if isinstance(item, dict))
            if not following:
                return
            address = self._following(str(following))
        raise CommandError(f"{line(self._address)} has more than {MOST_PAGES} pages for: {line(asked)}")

    def _following(self, link: str) -> httpx.URL:
        """Return the address of a further page, which is one of the same service."""
        try:
            address = httpx.URL(link)
        except httpx.InvalidURL as error:
            raise CommandError(f"{line(self._address)} leads to {line(link)}, which is no address") from error
        if (address.scheme, address.host, address.port) != (self._url.scheme, self._url.host, self._url.port):
            raise CommandError(f"{line(self._address)} leads to another service, {line(address.host)}")
        return address

    def _page(self, address: httpx.URL) -> Mapping[str, Any]:
        reply = None
        for attempt in range(ATTEMPTS):
            try:
                reply = self._client.get(address)
            except httpx.HTTPError as error:
                problem = f"{line(self._address)} does not answer: {type(error).__name__}"
            else:
                if reply.status_code == httpx.codes.OK:
                    return self._document(reply)
                problem = f"{line(self._address)} answered {reply.status_code}: {line(reply.text, 200)}"
                if reply.status_code not in _BUSY:
                    break
            if attempt + 1 < ATTEMPTS:
                self._wait(_seconds(reply, attempt))
        raise CommandError(f"{problem}; the price file is as it was")

    def _document(self, reply: httpx.Response) -> Mapping[str, Any]:
        try:
            document = reply.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise CommandError(f"{line(self._address)} did not answer with JSON; the price file is as it was")
        return document


def _seconds(reply: httpx.Response | None, attempt: int) -> float:
    """Return how long to wait: what the service asks for, or twice as long each time."""
    asked = reply.headers.get("Retry-After", "") if reply is not None else ""
    return min(float(asked) if asked.isdecimal() else 2.0**attempt, MOST_SECONDS)


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
