"""Quantities have one canonical form, whose value is that of the text."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from localcloud.kubernetes.schema.quantities import canonical, rounded_up

UNITS = {
    **{"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)},
    **{"k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12)},
    **{"P": Fraction(10**15), "E": Fraction(10**18)},
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)},
}
UNIT = st.sampled_from([unit for unit in UNITS if unit not in ("P", "E", "Pi", "Ei")] + ["e3", "e-3", "E6"])
TEXTS = st.builds(
    lambda whole, fraction, unit: f"{whole}{fraction}{unit}",
    st.integers(0, 10**6).map(str),
    st.sampled_from(["", ".5", ".25", ".125", ".500", ".001"]),
    UNIT,
)


def value(text: str) -> Fraction:
    number = text.rstrip("numkKMGTPEi")
    if len(number) == len(text):
        return Fraction(text)
    return Fraction(number) * UNITS[text[len(number) :]]


@given(TEXTS.filter(lambda text: not text.endswith("i")))  # 2531.25Ki is 2592000, which alone is 2592k
def test_the_canonical_form_of_a_decimal_text_is_canonical(text: str) -> None:
    form = canonical(text)
    assert form is not None
    assert canonical(form) == form


@given(TEXTS)
def test_a_canonical_form_has_the_value_of_the_text_to_a_billionth_rounded_up(text: str) -> None:
    form = canonical(text)
    assert form is not None
    assert 0 <= value(form) - value(text) < Fraction(1, 10**9)


@given(TEXTS)
def test_an_amount_is_rounded_up_to_whole_thousandths(text: str) -> None:
    form = canonical(text)
    assert form is not None
    amount = value(rounded_up(form))
    assert amount * 1000 == int(amount * 1000)
    assert 0 <= amount - value(form) < Fraction(1, 1000)
