"""No Secret in plain text, and none encrypted that nobody decrypts. No message has a value, nor its base64.

Base64 is no encryption (kubernetes.io/docs/concepts/configuration/secret), and a value that was pushed stays
in the history. What counts as encrypted is what kustomize-controller decrypts: an object with the field
``sops``, and a value that is itself a file of SOPS (``IsEncryptedSecret``, ``sopsFormatToMarkerBytes`` in
``internal/decryptor/decryptor.go``). A Secret of SOPS, without ``spec.decryption``, it refuses
(``apply`` in ``kustomization_controller.go``).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import is_marked, mapping, objects_in
from shared.platform.credentials import credentials, is_named_secret
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import (
    ClusterPlatform,
    Files,
    Finding,
    OwnedObject,
    full_name,
    is_kind,
)
from shared.platform.source.places import best_document

_FIELDS = ("data", "stringData")
_MARKERS = ('"mac": "ENC[', "sops_mac=ENC[", "[sops]", "mac: ENC[")
_OF_DOTENV = "sops_"
"""How the names begin that SOPS adds to a file of variables (getsops/sops ``stores/dotenv``)."""
_MAC = f"{_OF_DOTENV}mac"
_PUBLIC = re.compile(r"(\s*-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----)+\s*")
_REFERENCE = re.compile(r"(vault|bao):[\w./-]+#.*")
"""What the webhook of bank-vaults replaces (bank-vaults.dev/docs/mutating-webhook/configuration)."""
_NAMES_OF_SECRETS = "pass|pwd|secret|token|key|pin|code|cred|auth"
_NO_SECRET: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(key, re.IGNORECASE), re.compile(value, re.IGNORECASE))
    for key, value in (
        (r".*id", r"[0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        (r".*", r"true|false"),
        (rf"(?!.*({_NAMES_OF_SECRETS})).*", r"[0-9.]{1,10}(ms|s|m|h)?"),
        (r"(.*[-_.])?(host|hostname|server|fqdn|domain|region|location|namespace)", r"[a-z0-9.-]+(:[0-9]+)?"),
        (r"(.*[-_.])?(user|username|login|email|db|dbname|database)", r"\S{1,100}"),
        (r"(.*[-_.])?type", r"[a-z]+"),
        (r"(.*[-_.])?(url|uri|endpoint|address)", r"(https?|oci|ssh|tcp|grpc)://[a-z0-9.-]+(:[0-9]+)?/?"),
    )
)
"""What many Secrets have and is none: an id, a switch, a port, a host, a user, by its key and its form."""
_HINT = (
    "encrypt it with SOPS (spec.decryption of the Kustomization), or write spec.bootstrapSecrets in the "
    "manifest of the cluster; replace the value too if it was ever pushed: the history keeps it"
)


def plain_secrets(platform: ClusterPlatform, files: Files) -> Iterator[Finding]:
    """Yield each field of a Secret that is in plain text."""
    for owned in platform.of_kind("", "Secret"):
        values = dict(_values(owned.manifest))
        if "sops" in owned.manifest and any(_is_encrypted(value) for value in values.values()):
            values = {path: value for path, value in values.items() if is_named_secret(str(path[-1]))}
        if any(path[-1] == _MAC and _is_encrypted(value) for path, value in values.items()):
            values = {
                path: value for path, value in values.items() if not str(path[-1]).startswith(_OF_DOTENV)
            }
        source = _source(owned, files)
        for path, value in values.items():
            if _is_plain(value, path) and not (owned.owner.spec.get("postBuild") and _is_open(source, path)):
                message = f"{owned.id} has the key {path[-1]} in plain text; {_HINT}"
                yield owned.finding(_place(source, owned.id, path), message)


def plain_credentials(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each credential in plain text outside of a Secret: everybody who reads the cluster reads it."""
    for owned in platform.objects:
        for path in credentials(owned.manifest):
            message = f"{owned.id} has a credential in plain text; put it into a Secret, and {_HINT}"
            yield owned.finding(path, message)
    for owner in platform.inventory.owners.values():
        for path in () if owner.file else credentials({"kind": owner.id.kind, "spec": owner.spec}):
            message = f"{owner.id} has a credential in plain text; put it into a Secret, and {_HINT}"
            yield Finding("", owner.id, path, message)


def undecrypted_secrets(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what is encrypted with SOPS in a Kustomization that does not decrypt.

    Flux itself refuses a Secret. It drops the field ``sops`` of another built-in object (``ssa/normalize``),
    and the API server refuses that of a custom one. What operators decrypt in the cluster has the field
    by its definition (isindir/sops-secrets-operator, peak-scale/sops-operator: SopsSecret).
    """
    for owned in platform.objects:
        owner, is_secret = owned.owner, is_kind(owned.id, "", "Secret")
        is_for_another = is_marked(owned.manifest, "decrypt", "disabled") or owned.id.kind.startswith("Sops")
        if owner.spec.get("decryption") or is_for_another:
            continue
        whole = isinstance(owned.manifest.get("sops"), Mapping)
        paths = [path for path, value in _values(owned.manifest) if is_secret and _is_encrypted(value)]
        if whole or paths:
            place = f" ({owner.file})" if owner.file else ""
            is_custom = "." in owned.id.group and not owned.id.group.endswith(".k8s.io")
            refusing = "the API server" if is_custom else "Flux"
            is_refused = whole and (is_secret or is_custom)
            effect = f"{refusing} refuses it" if is_refused else "the cluster gets the encrypted text"
            message = (
                f"{owned.id} is encrypted with SOPS, and Kustomization {full_name(owner.id)}{place} has no "
                f"spec.decryption, so {effect}; add decryption.provider: sops, with the Secret of its key"
            )
            yield owned.finding(("sops",) if whole else paths[0], message)


def _values(manifest: Json) -> Iterator[tuple[Path, Any]]:
    for field in _FIELDS:
        for key, value in mapping(manifest.get(field)).items():
            yield (field, str(key)), value


def _text(value: Any, path: Path) -> str:
    """Return a value as the cluster has it, "" for one that is no text."""
    if not isinstance(value, str):
        return "" if value is None else str(value)
    if path[0] == "stringData":
        return value
    try:
        return base64.b64decode("".join(value.split()), validate=True).decode("utf-8", "replace")
    except ValueError:
        return value


def _is_encrypted(value: Any) -> bool:
    texts = (str(value), _text(value, ("data",)))
    return any(text.startswith("ENC[") or any(marker in text for marker in _MARKERS) for text in texts)


def _is_plain(value: Any, path: Path) -> bool:
    text = _text(value, path).strip()
    if not text or _is_encrypted(value):
        return False
    if any(key.fullmatch(str(path[-1])) and form.fullmatch(text) for key, form in _NO_SECRET):
        return False
    return not (_PUBLIC.fullmatch(text) or _REFERENCE.fullmatch(text) or text.startswith("${"))


def _is_open(source: Mapping[str, Any], path: Path) -> bool:
    """Return whether the file has a variable in the place of a value: then the value is elsewhere."""
    values = [value for field in _FIELDS for value in [mapping(source.get(field)).get(str(path[-1]))]]
    return any("${" in _text(value, (field,)) for field, value in zip(_FIELDS, values, strict=True))


def _source(secret: OwnedObject, files: Files) -> Mapping[str, Any]:
    """Return the document that a Secret was built from, {} where none is found."""
    content = files(secret.built.file) if secret.built.file else None
    found = best_document(content, secret.id) if content else None
    return mapping(found.plain()) if found else {}


def _place(source: Mapping[str, Any], object_id: ObjectId, path: Path) -> Path:
    """Return where a value is written: a field of the Secret, or the generator that has it."""
    for number, generator in objects_in(source.get("secretGenerator")):
        if str(generator.get("name") or " ") in object_id.name:
            return ("secretGenerator", number)
    if source.get("kind") == "Secret" and path[-1] not in mapping(source.get(str(path[0]))):
        other = next((field for field in _FIELDS if path[-1] in mapping(source.get(field))), path[0])
        return (other, path[-1])
    return path
