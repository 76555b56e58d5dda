"""How values are written into a manifest."""

from __future__ import annotations

import re
from typing import Any

import yaml

_NUMBERLIKE = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")


class ManifestDumper(yaml.SafeDumper):
    """Writes YAML that 1.1 and 1.2 parse alike: it quotes strings that could be numbers, such as ``1e5``."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Indent the items of lists below their key, as people do."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, _data: Any) -> bool:
        """Write no aliases: a manifest has none."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if not value.isprintable() else "'" if _NUMBERLIKE.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


ManifestDumper.add_representer(str, _text)
