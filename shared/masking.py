"""Secrets in texts: what is masked before a text is logged, stored or published.

Two things are masked: the values of this app's secrets, and what has the shape of a credential, whosever it
is. How much of a secret is looked for depends on who wrote the text:

- *A service, or this app*, may repeat what it was sent, whole or in part: each form of a secret is masked
  from six characters on, and each part that a client library may show by itself.
- *Others* choose what they write, and see what becomes of it: whether it is masked answers a question about
  a secret. So only whole secrets are masked there that nobody can guess. Whoever sees that has the secret.

No mask finds what something has cut, escaped or broken: each text is masked before that.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from urllib.parse import quote, unquote

Mask = Callable[[str], str]
"""Returns a text without secrets."""

MASKED = "***"
SHORTEST, SHORTEST_OF_PLATFORM = 6, 8
"""Values that are shorter are ordinary words."""
UNGUESSABLE = 16
"""In texts of others, secrets with fewer characters are not masked: somebody could try them all."""
LEARNED = 200
"""How many secrets are remembered that were read while the app runs."""
REMEMBERED, LONGEST_REMEMBERED = 2000, 500
"""So many of the last texts are remembered as they were masked, if they have no more characters."""
_REACH = 8192
"""A credential by its shape has at most so many characters."""
_LONG = 20
"""A part of an address with so many characters is no word."""
_SCHEME = re.compile(r"(?i)[a-z][a-z0-9+.-]*")
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
        # GitLab: docs.gitlab.com/security/tokens, "Token prefixes"; and a key of Standard Webhooks.
        (r"\bgl(?:pat|dt|oas|soat|rt|cbt|ptt)-[\w-]{20,}(?:\.[\w-]+)*", MASKED),
        (r"\bwhsec_[\w+/]{32,}={0,2}", MASKED),
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
        own = tuple(secrets)
        self._own = _longest_first(own, _forms), _longest_first(own, _whole)
        self._learned: dict[str, None] = {}
        self._lock = threading.Lock()
        self._know(())

    def learn(self, secret: str) -> None:
        """Mask a secret from now on that was read meanwhile; of more than ``LEARNED`` the last ones."""
        if secret in self._learned:
            return
        with self._lock:
            self._learned = dict.fromkeys([*self._learned, secret][-LEARNED:])
            self._know(tuple(self._learned))

    def _know(self, learned: Sequence[str]) -> None:
        forms = (*self._own[0], *_longest_first(learned, _forms))
        whole = (*self._own[1], *_longest_first(learned, _whole))
        self._reach = max([_REACH, *map(len, whole)])
        # Most texts of a record are those of its last version, and are masked again with every save.
        self._of_service, self._of_others = _remembering(forms), _remembering(whole)

    def __call__(self, text: str) -> str:
        """Return a text of a service, or of this app, with ``***`` in place of every secret."""
        return self._of_service(text)

    def of_others(self, text: str) -> str:
        """Return a text that others wrote, or may have written, with ``***`` in place of whole secrets."""
        return self._of_others(text)

    def beginning(self, text: str, limit: int) -> str:
        """Return the first ``limit`` characters of a text of others, or a little more, without secrets.

        No more is read than a secret may have that begins there: the rest of it is no rest of a secret.
        """
        reach = limit + self._reach
        if len(text) <= reach:
            return self.of_others(text)
        return self.of_others(text[:reach])[: -self._reach] + "..."


def platform_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the environment variables whose names say that they are secrets."""
    values = (value for name, value in environment.items() if _PLATFORM.match(name))
    return tuple(value for value in values if len(value) >= SHORTEST_OF_PLATFORM)


def _address_parts(address: str) -> Iterator[str]:
    """Yield the parts of an address that a client library may show by themselves, none of another text.

    A part that looks like a word, such as "services" in a path, is no secret: it would be masked in every
    text. Nor is who sends, receives or logs in to e-mail: the record of an act has that person by name. A
    password is one whatever it looks like, and a value whose name says so.
    """
    scheme, found, rest = address.partition("://")
    if not found or not _SCHEME.fullmatch(scheme):
        return
    yield rest
    place, _, query = rest.partition("?")
    authority, *segments = place.split("/")
    credentials, _, host = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    tokens = host.split(":") if "." not in host else ()  # some schemes of Apprise have a token there
    values = [pair.partition("=") for pair in query.split("&")]
    named = (value for name, _, value in values if _NAMED.search(name))
    if scheme.lower() in _MAIL:
        values = [pair for pair in values if pair[0].lower() not in _PEOPLE]
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


def _remembering(secrets: Sequence[str]) -> Mask:
    """Return what masks these forms of secrets, and remembers the last texts."""

    def masked(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, MASKED)
        for shape, replacement in _SHAPES:
            text = shape.sub(replacement, text)
        return text

    remembered = lru_cache(REMEMBERED)(masked)
    return lambda text: remembered(text) if len(text) <= LONGEST_REMEMBERED else masked(text)


def _longest_first(secrets: Iterable[str], forms: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    found = {form for secret in secrets for form in forms(secret)}
    return tuple(sorted(found, key=len, reverse=True))


def _whole(secret: str) -> Iterator[str]:
    """Yield a secret that nobody guesses as it may appear whole."""
    if len(secret) >= UNGUESSABLE:
        yield from _encoded(secret)


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it may appear: whole, by its lines, or by the parts of an address or a connection."""
    lines = (line for line in re.split(r"\n|\\n", secret) if len(line) > 20 and "-----" not in line)
    for part in (secret, *lines, *_PARTS.findall(secret), *_address_parts(secret)):
        if len(part) >= SHORTEST:
            yield from _encoded(part)


def _encoded(text: str) -> Iterator[str]:
    yield from (text, quote(text), quote(text, safe=""), json.dumps(text)[1:-1])
    yield base64.b64encode(text.encode()).decode()


class _Process:
    masker = Masker(())


def use(masker: Masker) -> None:
    """Mask with this from now on, in this process, what is cut or escaped before it reaches a port."""
    _Process.masker = masker


def without_secrets(text: str, limit: int = sys.maxsize) -> str:
    """Return a text of others without secrets, for whatever escapes it; ``limit`` as ``cut`` has it."""
    return _Process.masker.beginning(text, limit)


def cut(text: str, limit: int, end: str = "") -> str:
    """Return a text; of one with more characters than ``limit`` the first, without secrets, and ``end``."""
    if len(text) <= limit:
        return text
    safe = without_secrets(text, limit)
    return safe if len(safe) <= limit else safe[: limit - len(end)] + end
