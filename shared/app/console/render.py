"""Pages as HTML: every text of the fleet on one line, bounded, without credentials, and escaped."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from shared.app.console.visit import Page
from shared.language.model.base import shown
from shared.language.pin import short_revision

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
ASSETS = HERE / "assets"
MAX_TEXT = 2000
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy of all pages: nothing from elsewhere, and nothing inline."""
_CODE, _WORD = re.compile(r"`([^`]+)`"), re.compile(r"[a-z]+[ :]")


def rendered(page: Page, shared: Mapping[str, Any]) -> str:
    """Return a page as HTML; ``shared`` are the values that every page has: see ``base.html``."""
    values = {**shared, **page.values, "title": page.title, "live": page.live}
    return _environment().get_template(page.template).render(values)


def dated(body: str, now: datetime) -> str:
    """Return a page with the time at which it was read, which is no part of what it shows."""
    return body.replace('<span id="read"></span>', f'<span id="read">Read {_when(now)}.</span>', 1)


def asset(name: str) -> tuple[bytes, str] | None:
    """Return a file that pages refer to, and its type; None for no such file."""
    return _assets().get(name)


@cache
def _assets() -> Mapping[str, tuple[bytes, str]]:
    files = [path for path in sorted(ASSETS.iterdir()) if path.suffix in TYPES]
    return {path.name: (path.read_bytes(), TYPES[path.suffix]) for path in files}


@cache
def _environment() -> Environment:
    """Return the templates; the library is imported for the first page, and by no other function."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([HERE / "pages", HERE / "templates"]),
        autoescape=True,
        finalize=_inert,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "when": _when,
        "age": partial(_when, kind="age"),
        "short": _short,
        "revision": short_revision,
        "phase_class": _phase_class,
        "told": _told,
    }
    environment.globals |= {"link": _link, "external": _external, "asset": _address_of_asset}
    return environment


def _inert(value: Any) -> Any:
    """Return a value as a page may show it: whatever is not HTML of ours already is a text of somebody."""
    if value is None:
        return ""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else shown(value, MAX_TEXT)


def _when(moment: datetime | str | None, otherwise: str = "", kind: str = "moment") -> Any:
    """Return a time in UTC; the browser then shows it in the viewer's zone, or of an "age" how long ago."""
    from markupsafe import Markup

    if not moment:
        return otherwise
    try:
        at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return _inert(moment)
    text = f"{at:%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time class="{}" datetime="{}" title="{}">{}</time>').format(
        kind, at.isoformat(), text, text
    )


def _short(commit: str) -> str:
    return commit[:8]


def _told(sentence: str | None) -> Any:
    """Return a sentence that stands alone: its first word begins large, and what is in `` is code."""
    from markupsafe import Markup, escape

    text = capital(str(escape(_inert(sentence))))
    return Markup(_CODE.sub(r"<code>\1</code>", text))  # noqa: S704, it is escaped


def capital(sentence: str) -> str:
    """Return a sentence whose first word begins large, unless that is a name with more than letters."""
    return sentence[:1].upper() + sentence[1:] if _WORD.match(sentence) else sentence


_PHASES: Mapping[str, str] = {
    **dict.fromkeys(("Ready", "Completed"), "good"),
    **dict.fromkeys(("Failed", "Stalled", "Aborted", "NotCreated"), "bad"),
    **dict.fromkeys(("Suspended", "Sleeping", "Exempt", "Deleted", "Released"), "dim"),
}


def _phase_class(phase: str) -> str:
    """Return the class of a phase, or of a state that begins with one: what is at work is "work"."""
    return _PHASES.get(phase.partition(" ")[0], "work")


def _link(*parts: str, **query: str) -> Any:
    """Return an address of the console: the first part as it is, the others as one part of the path each."""
    from markupsafe import Markup, escape

    path = "/".join([parts[0], *(quote(part, safe="") for part in parts[1:])])
    left = {name: value for name, value in query.items() if value}
    return Markup(escape(f"{path}?{urlencode(left)}" if left else path))  # noqa: S704, it is escaped here


def _external(address: str) -> Any:
    """Return an address of another site for a link, "" unless it is one of the web without credentials."""
    from markupsafe import Markup, escape

    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    fits = parts.scheme == "https" and parts.hostname and not parts.username and address.isprintable()
    return Markup(escape(address)) if fits else ""  # noqa: S704, it is escaped here


@cache
def _address_of_asset(name: str) -> Any:
    """Return the address of a file, with its digest: browsers keep it for good."""
    from markupsafe import Markup

    body, _ = _assets()[name]
    return Markup("/assets/{}?{}").format(name, hashlib.sha256(body).hexdigest()[:12])
