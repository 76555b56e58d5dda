"""Flux's own definitions of its kinds, in place of the short ones of the examples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from shared.platform.schemas import published

FILE = "flux/gotk-components.yaml"


def real_definitions() -> tuple[Mapping[str, Any], ...]:
    """Return the definitions that ``flux install --export`` writes."""
    return published.flux_definitions()


def with_real_definitions(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a fleet whose components have Flux's own definitions, of every kind."""
    documents = [document for document in yaml.safe_load_all(files[FILE]) if document]
    others = [document for document in documents if document["kind"] != "CustomResourceDefinition"]
    text = "".join(
        f"---\n{json.dumps(document)}\n" for document in (*others[:1], *real_definitions(), *others[1:])
    )
    return {**files, FILE: text.encode()}
