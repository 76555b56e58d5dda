"""Text from manifests in comments on pull requests: it has no effect on GitHub."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from shared.app.pull_requests.markdown import code, prose, table

HOSTILE = [
    *(
        "@team",
        "a@b.example",
        "#12",
        "GH-12",
        "gh-7",
        "owner/name#12",
        "owner/name@deadbeef",
        "www.example.com",
    ),
    *("https://example.com", "<https://example.com>", "mailto:a@b.example", "[a](https://example.com)"),
    *(
        "![a](https://example.com/a.png)",
        "[a]: https://example.com",
        "<img src=https://example.com>",
        "<!-- x",
    ),
    *(":tada:", ":+1:", "$x^2$", "$$x$$", "$`x`$", "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3", "deadbee"),
    *(
        "```math\nx\n```",
        "# a",
        "- a",
        "1. a",
        "> a",
        "| a |",
        "a\n---",
        "~~a~~",
        "**a** _a_",
        "\\",
        "`a`",
        "&amp;",
    ),
    "[!WARNING]",
]
GITHUBS_OWN = re.compile(
    r"@\w|#\d|\bGH-\d|://\w|\bwww\.\w|:[\w+-]+:|\$\S[^$]*\$|\b[0-9a-f]{7,40}\b|\bmailto:\w", re.IGNORECASE
)
"""What GitHub looks for in a rendered text: docs.github.com/get-started/writing-on-github, "Basic writing and
formatting syntax", "Autolinked references and URLs" and "Writing mathematical expressions"."""


def rendered(text: str) -> tuple[str, set[str]]:
    """Return the text outside of code of a Markdown cell, and the names of its other parts."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = [part for token in parser.parse(text) for part in (token, *(token.children or ()))]
    html = {token.content for token in tokens if token.type.startswith("html")} - {"<span>", "</span>"}
    shown = "".join(
        token.content if token.type == "text" else "\N{OBJECT REPLACEMENT CHARACTER}"
        for token in tokens
        if not token.type.startswith(("table", "tr", "td", "th", "tbody", "inline"))
    )
    kinds = {token.type for token in tokens} | html
    # GitHub takes a dollar sign in an element of its own for no delimiter.
    return shown.replace("\N{OBJECT REPLACEMENT CHARACTER}$\N{OBJECT REPLACEMENT CHARACTER}", " "), kinds


PLAIN_PARTS = {"inline", "text", "code_inline", "html_inline"} | {
    f"{name}_{end}" for name in ("table", "thead", "tbody", "tr", "td", "th") for end in ("open", "close")
}


@pytest.mark.parametrize("escape", [prose, code])
@pytest.mark.parametrize("text", [*HOSTILE, " ".join(HOSTILE)])
def test_text_from_a_manifest_is_inert_on_github(text: str, escape: Callable[[str], str]) -> None:
    shown, parts = rendered(table(("", ""), [("", escape(text))]))
    assert parts <= PLAIN_PARTS
    assert not GITHUBS_OWN.search(shown)


@given(st.lists(st.sampled_from([*HOSTILE, " ", "\\", "`", "|", "$", "a"]), max_size=8).map("".join))
def test_no_mixture_of_hostile_text_is_live_on_github(text: str) -> None:
    for escape in (prose, code):
        shown, parts = rendered(table(("", ""), [("", escape(text))]))
        assert parts <= PLAIN_PARTS
        assert not GITHUBS_OWN.search(shown)


@pytest.mark.parametrize("text", ["$x$", ":tada:", "deadbeef01"])
def test_the_search_for_live_text_finds_what_is_not_escaped(text: str) -> None:
    assert GITHUBS_OWN.search(rendered(text)[0])
