"""A browser without scripts: it opens pages, presses buttons of forms and follows redirects, as people do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx


@dataclass
class Form:
    """A form of a page: where it goes, its fields, and its buttons with their names and values by label."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: dict[str, tuple[str, str]] = field(default_factory=dict)


class Browser:
    """Shows one page at a time: its address, its status and its text. ``visiting`` hears where it goes."""

    def __init__(self) -> None:
        self.visiting: Callable[[str], object] = lambda _: None
        hooks = {"request": [lambda request: self.visiting(str(request.url))]}
        self._client = httpx.Client(follow_redirects=True, trust_env=False, timeout=30, event_hooks=hooks)
        self.url, self.status, self.text = "", 0, ""

    def open(self, url: str) -> None:
        """Go to an address."""
        self._show(self._client.get(url))

    def press(self, label: str, **typed: str) -> None:
        """Press the button whose label has this text, after something was typed into fields of its form."""
        (form, button) = next(
            (form, form.buttons[shown])
            for form in _Forms(self.text).forms
            for shown in form.buttons
            if label in shown
        )
        fields = {**form.fields, **typed, **({button[0]: button[1]} if button[0] else {})}
        assert form.method == "post", "no form of ours is another"
        self._show(self._client.post(urljoin(self.url, form.action), data=fields))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _show(self, answer: httpx.Response) -> None:
        self.url, self.status, self.text = str(answer.url), answer.status_code, answer.text


class _Forms(HTMLParser):
    """Reads the forms of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._button: tuple[str, str] | None = None
        self._label = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get")))
        elif tag == "input":
            self.forms[-1].fields[given["name"]] = given.get("value", "")
        elif tag == "button":
            self._button, self._label = (given.get("name", ""), given.get("value", "")), ""

    def handle_data(self, data: str) -> None:
        self._label += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "button" and self._button is not None:
            self.forms[-1].buttons[self._label.strip()] = self._button
            self._button = None
