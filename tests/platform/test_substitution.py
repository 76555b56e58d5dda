"""Variables of ``postBuild``, as Flux replaces them (fluxcd/pkg ``envsubst``, whose results these are)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.platform.builds.substitution import BadSubstitution, substituted

VALUES = {"a": "abcabc/x", "b": "", "x": "Xy"}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${a}", "abcabc/x"),
        ("$a $(date) ${x}", "$a $(date) Xy"),
        ("$${a} $$$${a} $$${x}", "${a} $${a} $Xy"),
        ("${b:=no} ${c:-no} ${c=no} ${c:=}", "no no no "),
        ("${c:=${a}-${x}}", "abcabc/x-Xy"),
        ("${a:1} ${a:1:2} ${a:-3}", "bcabc/x bc abcabc/x"),
        ("${a#a} ${a##*/} ${a%/x} ${a%%b*}", "bcabc/x x abcabc a"),
        ("${a/b/_} ${a//b/_} ${a/#a/_} ${a/%x/_}", "a_cabc/x a_ca_c/x _bcabc/x abcabc/_"),
        ("${x,} ${x,,} ${x^} ${x^^} ${#x}", "xy xy Xy XY 2"),
        ("echo ${c}.", "echo ."),
    ],
)
def test_variables_are_replaced_as_flux_replaces_them(text: str, result: str) -> None:
    assert substituted(text, VALUES, lambda _: False).text == result


@pytest.mark.parametrize(
    "text", ["${", "${}", "${a", "${a[@]}", "${ a}", "${a:}", "${a^^x}", "${!a}", "${a.b}"]
)
def test_what_flux_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(BadSubstitution, match="Flux cannot read this"):
        substituted(f"x\n{text}\ny", VALUES, lambda _: False)


def test_a_variable_without_value_is_missing_unless_it_has_a_default_or_the_cluster_may_have_it() -> None:
    found = substituted("${a} ${c} ${d:=x} ${e##*/} ${f:=${g}}", VALUES, lambda name: name == "e")
    assert found.text == "abcabc/x  x ${e##*/} "
    assert found.missing == {"c", "g"}
    assert found.used == {"a", "c", "d", "e", "f", "g"}


@given(st.text(alphabet="${}ab:=-#%/,^\\*?[]() \n", max_size=40))
def test_any_text_is_replaced_or_refused(text: str) -> None:
    try:
        found = substituted(text, VALUES, lambda _: False)
    except BadSubstitution:
        return
    assert "$" in text or found.text == text


def test_hostile_texts_take_no_long_time() -> None:
    for text in ("${" * 5000, "${a:=" * 5000, "${a/" + "x" * 100_000, "$" * 100_000):
        try:
            substituted(text, VALUES, lambda _: False)
        except BadSubstitution:
            continue
