"""The price file: what is written is read, and what is wrong in it says where."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.prices.price_file import (
    Kind,
    Price,
    PriceFileProblem,
    Prices,
    Unit,
    in_order,
    read_prices,
    written,
)

NAMES = st.text("abcdefghijklmnopqrstuvwxyzABCDEFXYZ0123456789_- ", min_size=1, max_size=40)
ENTRIES = st.builds(
    Price,
    region=st.sampled_from(["eastus", "westeurope", "on"]),
    kind=st.sampled_from(Kind),
    name=NAMES,
    price=st.decimals("0", "9999", places=6),
    unit=st.sampled_from(Unit),
)


@given(st.lists(ENTRIES, max_size=20, unique_by=lambda entry: entry.key))
def test_what_is_written_is_read_in_order(entries: list[Price]) -> None:
    prices = Prices(date(2026, 9, 23), "USD", "https://prices.example.com/list?api-version=1", tuple(entries))
    read = read_prices(written(prices).encode())

    assert (read.day, read.currency, read.source) == (prices.day, prices.currency, prices.source)
    assert list(read.entries) == in_order(entries)
    assert written(read) == written(prices)


def test_a_price_stands_on_one_line() -> None:
    price = Price("eastus", Kind.SPOT_NODE, "Standard_D4s_v5", Decimal("0.016806"), Unit.HOUR)
    text = written(Prices(date(2026, 9, 23), "USD", "https://prices.example.com", (price,)))

    assert text.splitlines()[-1] == (
        '  - {region: eastus, kind: spot node, name: "Standard_D4s_v5", price: "0.016806", unit: "1 Hour"}'
    )


GOOD = written(
    Prices(
        date(2026, 9, 23),
        "USD",
        "https://prices.example.com",
        (Price("eastus", Kind.NODE, "Standard_D4s_v5", Decimal("0.192"), Unit.HOUR),),
    )
)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('"0.192"', '"-1"', "prices.yaml:8:"),
        ('"0.192"', '"NaN"', "prices.yaml:8:"),
        ('"1 Hour"', '"10K"', "prices.yaml:8:"),
        ("kind: node", "kind: pony", "prices.yaml:8:"),
        ('"2026-09-23"', "soon", "day: "),
        ("USD", "dollars", "currency: "),
        ("kind: Prices", "kind: Price", "kind: "),
        ("prices:", "prices: [", "prices.yaml:"),
        ("prices:", "more: 1\nprices:", "more: "),
    ],
)
def test_what_is_wrong_says_where_and_what_to_do(old: str, new: str, where: str) -> None:
    with pytest.raises(PriceFileProblem) as raised:
        read_prices(GOOD.replace(old, new, 1).encode())

    assert where in str(raised.value)
    assert str(raised.value).endswith("; write the file again with roadstead prices update")


def test_two_prices_for_the_same_thing_are_a_problem_in_any_letter_case() -> None:
    again = '  - {region: East US, kind: node, name: STANDARD_d4s_v5, price: "0.2", unit: "1 Hour"}\n'
    with pytest.raises(
        PriceFileProblem, match=r"prices\.yaml:9:5: there are two prices for node STANDARD_d4s_v5"
    ):
        read_prices((GOOD + again).encode())


@pytest.mark.parametrize("key", ["k" * 200_000, '"\\e[2J"', "https://user:word@example.com"])
def test_a_key_that_nobody_knows_makes_a_short_printable_problem(key: str) -> None:
    with pytest.raises(PriceFileProblem) as raised:
        read_prices(f"{GOOD}? {key}\n: 1\n".encode())

    assert len(str(raised.value)) < 300
    assert str(raised.value).isprintable()
    assert "word" not in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"- 1", b"a: &x [*x]", b"x" * 300_000])
def test_any_other_file_is_a_problem(content: bytes) -> None:
    with pytest.raises(PriceFileProblem):
        read_prices(content)
