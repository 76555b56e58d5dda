"""A text that somebody else wrote stays as it is, but for whole secrets and the shapes of credentials."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared import masking
from shared.masking import Masker
from tests.support.written_texts import (
    SECRETS,
    each_secret,
    masker,
)

PIECES = st.one_of(st.text(max_size=20), st.sampled_from([*SECRETS.values(), "***", "{}", "/", "…", "..."]))


def in_base64(secret: str) -> str:
    return base64.b64encode(secret.encode()).decode()


def in_url(secret: str) -> str:
    return quote(secret, safe="")


def in_json(secret: str) -> str:
    return json.dumps(secret)[1:-1]


ENCODINGS: Sequence[Callable[[str], str]] = (str, in_base64, quote, in_url, in_json)


@st.composite
def texts_around(draw: st.DrawFn, secrets: Sequence[str]) -> str:
    """Return a text of parts of secrets in any encoding, and of other pieces."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        secret = draw(st.sampled_from(secrets))
        encoded = draw(st.sampled_from(ENCODINGS))(secret)
        start, end = sorted((draw(st.integers(0, len(encoded))), draw(st.integers(0, len(encoded)))))
        parts += [draw(PIECES), encoded[start:end]]
    return "".join(parts)


@given(st.data(), st.lists(st.text(min_size=1, max_size=40), max_size=3))
def test_a_text_without_a_whole_secret_and_without_a_shape_stays_as_it_is(
    data: st.DataObject, more: list[str]
) -> None:
    secrets = [*more, *SECRETS.values()]
    text = data.draw(texts_around(secrets))
    whole = [secret for secret in secrets if len(secret) >= 16]
    assume(not any(encode(secret) in text for secret in whole for encode in ENCODINGS))
    assume(Masker([])(text) == text)
    mask = Masker(secrets)
    assert mask.of_others(text) == text
    masking.use(mask)
    for limit in (0, 5, 17, 300):
        assert masking.cut(text, limit) == text[:limit]


@each_secret
@pytest.mark.parametrize("encode", ENCODINGS)
def test_a_whole_secret_is_masked_in_a_text_of_others_too(secret: str, encode: Callable[[str], str]) -> None:
    assert masker().of_others(f"they wrote <{encode(secret)}>") == "they wrote <***>"


def test_a_short_secret_and_a_part_of_an_address_are_masked_in_what_services_say_alone() -> None:
    mask = Masker(["short-secret", SECRETS["NOTIFY_OPS"]])
    for part in ("short-secret", "T024BE7LD", "x9Zk2LmPq7RtVw3YbNc5Df8G"):
        assert mask(f"the status 500 at {part}") == "the status 500 at ***"
        assert mask.of_others(f"I guess {part}") == f"I guess {part}"


@given(st.integers(0, 120), st.integers(3, 120), st.text(max_size=40))
def test_no_cut_leaves_a_part_of_a_secret(before: int, limit: int, after: str) -> None:
    mask = Masker(["Zq7-Xw9-Kv3-Jp5-" * 4])
    masking.use(mask)
    text = f"{'.' * before}{'Zq7-Xw9-Kv3-Jp5-' * 4}{after}"
    shown = masking.cut(text, limit, "...")
    assert "Zq" not in mask.of_others(shown)
    assert len(shown) <= limit


def test_a_long_text_is_cut_where_no_secret_is_cut_although_much_before_it_was_masked() -> None:
    secret = "Zq7-Xw9-Kv3-Jp5-" * 200
    masking.use(Masker([secret]))
    for gap in range(0, 9000, 700):
        shown = masking.cut(f"{secret}{'.' * gap}{secret}{'.' * 20_000}", 9000)
        assert "Zq7" not in shown
        assert shown.startswith("***")
