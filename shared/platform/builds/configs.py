"""The ConfigMaps and Secrets that Flux reads values of variables from, as Kustomizations own them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping

from shared.json_tree import Json
from shared.platform.inventory import Owner

Place = tuple[str, str, str]
"""Kind, namespace and name of a ConfigMap or Secret."""
Values = Mapping[str, str | None]
"""Variables with their values; None is a value that only the cluster has."""
_ENCRYPTED = "sops"


def configs_in(owners: Iterable[Owner]) -> Iterator[tuple[Place, Values]]:
    """Yield the ConfigMaps and Secrets that Kustomizations own, with their values."""
    for owner in owners:
        for name, built in owner.objects.items():
            if name.group == "" and name.kind in ("ConfigMap", "Secret"):
                place = name.kind, name.namespace, name.name
                yield place, dict(_values_in(built.manifest, secret=name.kind == "Secret"))


def _values_in(manifest: Json, *, secret: bool) -> Iterator[tuple[str, str | None]]:
    for key, value in (manifest.get("data") or {}).items():
        if _ENCRYPTED in manifest:
            yield key, None
        elif not secret:
            yield key, str(value)
        else:
            try:
                yield key, base64.b64decode(str(value), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                yield key, None
    for key, value in (manifest.get("stringData") or {}).items() if secret else ():
        yield key, None if _ENCRYPTED in manifest else str(value)
