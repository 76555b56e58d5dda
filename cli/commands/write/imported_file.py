"""A manifest of a cluster that exists, as it is written into a fleet repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from cli.text import line
from cli.worktree import Worktree
from shared.app.api import schema
from shared.azure.importer import minimal_spec
from shared.language.resolve.manifest_file import Placeholders
from shared.language.yaml.editing import ManifestDumper
from shared.language.yaml.nodes import plain_value


def own_part(tree: Worktree, found: schema.Imported, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return what the file of a cluster says over the fleet and its ``class`` and ``environment``."""
    name = str(found["manifest"]["metadata"]["name"])
    layers = _layers(tree, {**chosen, "name": name, "location": found["spec"]["location"]})
    own: dict[str, Any] = {key: value for key, value in chosen.items() if value}
    return own | minimal_spec(found["spec"], found["manifest"]["spec"], layers)


def _layers(tree: Worktree, values: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the merged fields of the fleet, a class and an environment, placeholders filled in."""
    base = tree.layers().base(values["class"], values["environment"])
    merged = plain_value(base.node, Placeholders(values).fill, {})
    return merged if isinstance(merged, dict) else {}


def comments_of(left: Sequence[str], changes: Sequence[str]) -> str:
    """Return what a manifest cannot express, and what an adoption would write, as comments of YAML."""
    comments = [f"# Left out: {line(name)}\n" for name in left]
    comments += [f"# Differs from the cluster: {line(change)}\n" for change in changes]
    return "".join(comments)


def text_of(document: Mapping[str, Any]) -> str:
    """Return a document as YAML, in its own order."""
    return yaml.dump(dict(document), Dumper=ManifestDumper, sort_keys=False, allow_unicode=True, width=100)
