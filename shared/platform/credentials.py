"""Credentials that a manifest has in plain text outside of a Secret: where they are, and a text without them.

A value is one by its shape, wherever it is (``shared.masking``: private keys, tokens, keys of storage,
addresses with a password; and addresses of a chat), or by its name where people write configuration:
variables of containers, data of a ConfigMap, values of a HelmRelease, variables of ``postBuild``. Sources of
what leaked so: digitalocean/Kubernetes-Starter-Kit-Developers#53, goauthentik/helm#217; kubernetes.io, "Good
practices for Kubernetes Secrets".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.masking import without_secrets

HIDDEN = "(secret)"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORDS = frozenset(("password", "passwd", "passphrase", "pwd"))
_KEYS = ("api", "access", "account", "private", "master", "encryption", "signing")
_SECRETS = ("client", "shared", "app", "webhook", "jwt", "session", "cookie", "signing")
_OTHERS = frozenset(
    (
        *("token", "apikey", "accesskey", "clientsecret", "secretkey"),
        *(f"{word} key" for word in _KEYS),
        *(f"{word} secret" for word in _SECRETS),
    )
)
"""The last words of names whose value is a secret if it looks like one."""
_NAMING = re.compile(r"(?i)(ref|refs|keys|mapping|selector)$")
"""Fields below which names of keys stand, and not their values."""
_ELSEWHERE = re.compile(
    r"(?i)(vault|bao|op|secret|secretref|keyvault|akv|akvs|env|file|ref\+\w+):|\$|<.*>$|\{\{|%\(|/|ENC\["
)
"""What begins a reference to a value, and not a value."""
_NAME = r"[\w.-]*?(?:pass(?:word|wd|phrase)|pwd|token|api[_-]?key|access[_-]?key|client[_-]?secret)"
_ASSIGNED = re.compile(rf"(?i)(\b{_NAME}[\"']?\s*[:=]\s*[\"']?)([^\s\"',;&}}]+)")
_LISTED = re.compile(
    rf"(?i)(name[\"']?\s*:\s*[\"']?{_NAME}[\"']?,?\s+[\"']?value[\"']?\s*:\s*[\"']?)([^\s\"',}}]+)"
)
_WEBHOOK = re.compile(
    r"(https://hooks\.slack\.com/(?:services|workflows|triggers)/|https://discord(?:app)?\.com/api/webhooks/"
    r"|https://[\w.-]{1,200}\.webhook\.office\.com/webhookb2/)([\w@/.-]{40,})"
)
"""Addresses by which anybody may post in a chat: docs.github.com, "Supported secret scanning patterns"."""
_LETTERS_OF_EXAMPLES = 5
"""So few letters does a part of an example have, such as T00000000, or X for each letter of the token."""
_PUBLIC = re.compile(r"LS0tLS1CRUdJTiBDRVJU[\w+/=]*|\$\([^)]*\)|\$\{[^}]*\}")
"""What looks like a credential and is none: a certificate in base64, as of a webhook, and references."""
_CLASSES = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]", "[^a-zA-Z0-9]")))
_SHORTEST = 8


def without_values(value: Any, name: str = "") -> Any:
    """Return a value of a manifest with ``(secret)`` for what names say is one; ``name`` is its own."""
    if isinstance(value, Mapping):
        own = str(value.get("name") or "")
        return {
            key: without_values(inner, own if key == "value" and own else str(key))
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [without_values(item, name) for item in value]
    if not isinstance(value, str):
        return value
    if is_named_secret(name) and not _is_elsewhere(value):
        return HIDDEN
    return _WEBHOOK.sub(rf"\1{HIDDEN}", _LISTED.sub(rf"\1{HIDDEN}", _ASSIGNED.sub(_hidden, value)))


def credentials(manifest: Json) -> Iterator[Path]:
    """Yield the places of the credentials that an object has in plain text; a Secret has rules of its own."""
    kind = manifest.get("kind")
    if kind == "Secret" or "sops" in manifest:
        return
    for path, name, value in _texts(manifest, (), ""):
        own = _PUBLIC.sub("", value)
        shaped = without_secrets(own) != own or any(map(_posts, _WEBHOOK.finditer(own)))
        if shaped or (_is_configured(kind, path) and _is_credential(name, value)):
            yield path


def _posts(address: re.Match[str]) -> bool:
    """Return whether the address of a chat has a token, and no example of one: api.slack.com, webhooks."""
    return any(
        len(set(part)) > _LETTERS_OF_EXAMPLES
        and sum(kind.search(part) is not None for kind in _CLASSES[:3]) > 1
        for part in address[2].split("/")
    )


def _texts(value: Any, path: Path, name: str) -> Iterator[tuple[Path, str, str]]:
    if isinstance(value, Mapping):
        own = str(value.get("name") or "")
        for key, inner in value.items():
            if not (isinstance(inner, Mapping | list) and _NAMING.search(str(key))):
                yield from _texts(inner, (*path, str(key)), own if key == "value" and own else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*path, number), name)
    elif isinstance(value, str):
        yield path, name, value


_CONFIGURED: Mapping[Any, tuple[tuple[str, ...], ...]] = {
    "ConfigMap": (("data",),),
    "HelmRelease": (("spec", "values"),),
    "Kustomization": (("spec", "postBuild", "substitute"), ("spec", "patches")),
}


def _is_configured(kind: Any, path: Path) -> bool:
    """Return whether a place is one where people write configuration."""
    starts = _CONFIGURED.get(kind, ())
    return any(path[: len(start)] == start for start in starts) or ("env" in path and path[-1:] == ("value",))


def _is_credential(name: str, value: str) -> bool:
    words = _words(name)
    if words[-1:] and words[-1] in _PASSWORDS:
        return _is_value(name, value)
    if is_named_secret(name):
        return _is_value(name, value) and _is_strong(value)
    found = (*_ASSIGNED.finditer(value), *_LISTED.finditer(value))
    return any(_is_value("", match[2]) and _is_strong(match[2]) for match in found)


def is_named_secret(name: str) -> bool:
    """Return whether a name says that its value is a secret."""
    words = _words(name)
    last = words[-1] if words else ""
    return last in _PASSWORDS or last in _OTHERS or " ".join(words[-2:]) in _OTHERS


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _is_value(name: str, value: str) -> bool:
    """Return whether a text is a value itself: no reference, no sentence, no switch, no name of a key."""
    text = value.strip()
    plain = text.lower()
    if not text or _is_elsewhere(text) or any(letter.isspace() for letter in text):
        return False
    return (
        plain not in ("true", "false", "null", "none") and not is_named_secret(text) and plain != name.lower()
    )


def _is_elsewhere(value: str) -> bool:
    return _ELSEWHERE.match(value.strip()) is not None or "${" in value


def _is_strong(value: str) -> bool:
    """Return whether a text looks like what nobody is to guess."""
    kinds = sum(pattern.search(value) is not None for pattern in _CLASSES)
    return len(value) >= _SHORTEST and kinds >= 3


def _hidden(found: re.Match[str]) -> str:
    return found[0] if _is_elsewhere(found[2]) else f"{found[1]}{HIDDEN}"
