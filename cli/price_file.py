"""The price file of a fleet repository on disk."""

from __future__ import annotations

from cli.worktree import Worktree
from shared.plan.list_price import NO_FILE
from shared.prices.price_file import PRICE_FILE, PriceFileProblem, Prices, read_prices


def prices_in(tree: Worktree) -> Prices | str:
    """Return the prices that a repository has, or why there are none."""
    if PRICE_FILE not in tree.files.blobs:
        return NO_FILE
    try:
        return read_prices(tree.read(PRICE_FILE))
    except PriceFileProblem as problem:
        return f"not known: {problem}"
