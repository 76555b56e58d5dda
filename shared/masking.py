"""Secrets in texts: what is masked before a text is logged, stored or published.

A text of a service may repeat what it was sent. Two things are masked: the values of this app's secrets, and
what has the shape of a credential, whosever it is.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import quote, unquote

Mask = Callable[[str], str]
"""Returns a text without secrets."""

MASKED = "***"
SHORTEST, SHORTEST_OF_PLATFORM = 6, 8
"""Values that are shorter are ordinary words."""
LEARNED = 200
"""How many secrets are remembered that were read while the app runs."""
REMEMBERED, LONGEST_REMEMBERED = 2000, 500
"""So many of the last texts are remembered as they were masked, if they have no more characters."""
_CUT = 8
"""So many characters of a secret at the end of a text, where something cut it, are masked."""
_LONG = 20
"""A part of an address with so many characters is no word."""
_NAMED = re.compile("(?i)sig|token|key|secret|pass|code|auth")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MAILBOX = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_MAIL = frozenset(("mailto", "mailtos"))
_PEOPLE = frozenset(("to", "cc", "bcc", "from", "reply", "name"))
"""What the address of an e-mail route calls its recipients and its sender: appriseit.com/services/email."""
_PLATFORM = re.compile(
    r"(?i)^(IDENTITY_HEADER|AzureWebJobsStorage|AzureWebJobsDashboard|(CUSTOM|SQL|SQLAZURE|MYSQL)CONNSTR_.+"
    r"|.*(_KEY|SECRET|TOKEN|PASSWORD|CONNECTION_?STRING))$"
)
"""Variables that Azure Functions, or whoever configures the app, sets: learn.microsoft.com, "App settings
reference for Azure Functions" and "Environment variables and app settings in Azure App Service"."""
_PARTS = re.compile(r"(?i)(?:AccountKey|SharedAccessKey|SharedAccessSignature|Password)=([^;]+)")
"""The secret parts of a connection string."""

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
        # Private keys, and the base64 of PEM as in a kubeconfig.
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", MASKED),
        (r"\bLS0tLS1CRUdJTi[\w+/=]{20,}", MASKED),
        # GitHub: github.blog, "Behind GitHub's new authentication token formats".
        (r"\b(?:gh[pousr]_\w{16,}(?:\.[\w-]+)*|github_pat_\w{20,})", MASKED),
        # A JSON Web Token (RFC 7519): its header is the base64 of an object.
        (r"\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}", MASKED),
        # The keys of Functions, Storage and Service Bus: github.com/microsoft/security-utilities.
        (r"[\w-]{44}AzFu[\w-]{5}[AQgw]==", MASKED),
        (r"[\w+/]{76}\+ASt[\w+/]{5}[AQgw]==", MASKED),
        (r"[\w+/]{33}\+ASb[A-P][\w+/]{5}=", MASKED),
        (r"(?i)\b((?:Account|SharedAccess)(?:Key|Signature)=)[^;\s\"']+", rf"\1{MASKED}"),
        (r"(?i)([?&;\s\"']|\b)(sig=)[^&\s\"']{8,}", rf"\1\2{MASKED}"),
        # RFC 3986 and RFC 9110: credentials in a URL and in a header.
        (r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)", MASKED),
        (r"(?i)\b(basic|bearer)(\s+)(?=\S*\d)[\w.~+/=-]{20,}", rf"\1\2{MASKED}"),
    )
)


class Masker:
    """Masks some secrets, and what has the shape of one. Safe to share between threads."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._known = _longest_first(form for secret in secrets for form in _forms(secret))
        self._learned: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()
        # Most texts of a record are those of its last version, and are masked again with every save.
        self._remembered = lru_cache(REMEMBERED)(self._masked)

    def learn(self, secret: str) -> None:
        """Mask a secret from now on that was read meanwhile; of more than ``LEARNED`` the last ones."""
        if secret in self._learned:
            return
        forms = _longest_first((*_forms(secret), *_base64_forms(secret)))
        with self._lock:
            learned = {**self._learned, secret: forms}
            self._learned = dict(list(learned.items())[-LEARNED:])
            self._remembered = lru_cache(REMEMBERED)(self._masked)

    def __call__(self, text: str) -> str:
        """Return the text with ``***`` in place of every secret."""
        return self._remembered(text) if len(text) <= LONGEST_REMEMBERED else self._masked(text)

    def _masked(self, text: str) -> str:
        for secret in (*self._known, *(form for forms in self._learned.values() for form in forms)):
            text = _without_end(text.replace(secret, MASKED), secret)
        for shape, replacement in _SHAPES:
            text = shape.sub(replacement, text)
        return text


def platform_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the environment variables whose names say that they are secrets."""
    values = (value for name, value in environment.items() if _PLATFORM.match(name))
    return tuple(value for value in values if len(value) >= SHORTEST_OF_PLATFORM)


def address_parts(address: str) -> Iterator[str]:
    """Yield an address, and the parts of it that a client library may show by themselves.

    A part that looks like a word, such as "services" in a path, is no secret: it would be masked in every
    text. Nor is who sends, receives or logs in to e-mail: the record of an act has that person by name. A
    password is one whatever it looks like, and a value whose name says so.
    """
    yield address
    scheme, found, rest = address.partition("://")
    if not found:
        return
    yield rest
    place, _, query = rest.partition("?")
    authority, *segments = place.split("/")
    credentials, _, host = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    tokens = host.split(":") if "." not in host else ()  # some schemes of Apprise have a token there
    values = [each.partition("=") for each in query.split("&")]
    named = (value for name, _, value in values if _NAMED.search(name))
    if scheme.lower() in _MAIL:
        values = [each for each in values if each[0].lower() not in _PEOPLE]
        user, credentials = "", credentials if password else ""
    parts = [rest.partition("/")[2], user, *tokens, *segments, *(value for _, _, value in values)]
    for part in (credentials, password, *named, *filter(_looks_secret, parts)):
        yield part
        yield unquote(part)


def _looks_secret(part: str) -> bool:
    """Return whether a part of an address is more than a word, an e-mail address or the date of a version."""
    if _MAILBOX.fullmatch(unquote(part)):
        return False
    return not _DATE.match(part) and (len(part) >= _LONG or any(map(str.isdigit, part)))


def _longest_first(forms: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({form for form in forms if len(form) >= SHORTEST}, key=len, reverse=True))


def _base64_forms(secret: str) -> Iterator[str]:
    """Yield a secret as the data of a Kubernetes Secret has it."""
    yield base64.b64encode(secret.encode()).decode()


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it may appear: whole, encoded, by its lines, by the parts of a connection string."""
    for part in (secret, *_PARTS.findall(secret)):
        yield from (part, quote(part, safe=""), json.dumps(part)[1:-1])
    yield from (line for line in re.split(r"\n|\\n", secret) if len(line) > 20 and "-----" not in line)


def _without_end(text: str, secret: str) -> str:
    """Return the text without the beginning of a secret at its end, where a limit cut the text."""
    at = text.rfind(secret[:_CUT]) if len(secret) > _CUT else -1
    cut = at >= 0 and secret.startswith(text[at:].rstrip(".…"))
    return text[:at] + MASKED if cut else text
