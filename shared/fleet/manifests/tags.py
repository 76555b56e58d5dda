"""Azure tags (learn.microsoft.com/azure/azure-resource-manager/management/tag-resources)."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StrictStr

MOST = 47
"""Azure takes 50; three are Roadstead's."""


def _tags(value: dict[str, str]) -> dict[str, str]:
    if len(value) > MOST:
        raise ValueError(f"has {len(value)} tags; at most {MOST} beside Roadstead's own three")
    seen: dict[str, str] = {}
    for key, text in value.items():
        if key.lower().startswith("roadstead-"):
            raise ValueError(f"{key} is reserved; Roadstead marks what it owns with roadstead-*")
        if not 1 <= len(key) <= 512 or set(key) & set("<>%&\\?/"):
            raise ValueError(f"{key[:60]} is no tag name: 1 to 512 characters without <>%&\\?/")
        if len(text) > 256:
            raise ValueError(f"{key}: the value has {len(text)} characters; at most 256")
        first = seen.setdefault(key.lower(), key)
        if first != key:
            raise ValueError(f"{first} and {key} are one tag: Azure does not tell their case apart; keep one")
    return value


Tags = Annotated[dict[StrictStr, StrictStr], AfterValidator(_tags)]
