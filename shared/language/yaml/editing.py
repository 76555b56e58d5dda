"""Changes single values of a YAML file, and leaves every other character of it as it is.

Values are replaced where the parser found them, so comments, order and formatting stay. A caller reads the
result again and compares it: what cannot be changed in this way raises ``NotEditable``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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


_ENDLESS = 10**9


class NotEditable(Exception):
    """A value has no place in the file where it can be written; the message says why."""


def with_value(text: str, path: Sequence[str], value: Any) -> str:
    """Return a file with a value at a path; a step ``[name]`` is the item of a list that has this name."""
    return _Edit(text).put(path, value)


def without(text: str, path: Sequence[str]) -> str:
    """Return a file without the entry at a path, and without objects above it that have no other one."""
    return _Edit(text).removed(path)


class _Edit:
    """One change of a file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._starts[0] = len(text) - len(text.removeprefix("\ufeff"))  # no column counts a byte order mark
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
        if not isinstance(root, yaml.MappingNode):
            raise NotEditable("the file has no object")
        self._root: yaml.Node = root

    def put(self, path: Sequence[str], value: Any) -> str:
        """Replace the value at a path, or add it below the nearest object that exists."""
        node = self._root
        for depth, step in enumerate(path):
            below = _child(node, step)
            if below is None or _is_null(below):
                wanted = _nested(path[depth + 1 :], value)
                return self._added(node, step, wanted) if below is None else self._replaced(below, wanted)
            node = below
        return self._replaced(node, value)

    def removed(self, path: Sequence[str]) -> str:
        """Remove the entry at a path, or the highest object above it that has nothing else."""
        above: list[tuple[yaml.MappingNode, int]] = []
        node = self._root
        for step in path:
            entries = _entries(node, step)
            position = next((n for n, (key, _) in enumerate(entries) if key == step), None)
            if position is None:
                raise NotEditable("the file does not have it")
            if isinstance(node, yaml.MappingNode) and (not above or len(node.value) > 1):
                above.append((node, position))
            node = entries[position][1]
        return self._without(*above[-1])

    def _replaced(self, node: yaml.Node, value: Any) -> str:
        start, end = self._at(node.start_mark), self._end(node)
        if isinstance(node, yaml.SequenceNode) and not node.flow_style and isinstance(value, list):
            return self._with_items(node, value)
        if not isinstance(node, yaml.ScalarNode) and "#" in self._text[start:end]:
            raise NotEditable("the value has comments that a change would lose")
        style = node.style if isinstance(node, yaml.ScalarNode) else None
        written = _flow(value, style if style in ("'", '"') else None)
        if _is_null(node) and start == end:
            written = f" {written}"
        return self._spliced(start, end, written)

    def _with_items(self, node: yaml.SequenceNode, value: list[Any]) -> str:
        """Remove the lines of the items that go, and add those that come after the last one."""
        if not all(isinstance(item, yaml.ScalarNode) for item in node.value):
            raise NotEditable("a list of objects is changed by hand")
        before = [yaml.safe_load(self._text[self._at(i.start_mark) : self._end(i)]) for i in node.value]
        if not any(item in value for item in before):
            raise NotEditable("no item of the list remains")
        dash = " " * node.start_mark.column + "- "
        first, last = node.value[0].start_mark.line, self._last_line(node)
        kept: list[str] = []
        lines = {item.start_mark.line: old for item, old in zip(node.value, before, strict=True)}
        for number in range(first, last + 1):
            if number not in lines or lines[number] in value:
                kept.append(self._line(number))
        new = [f"{dash}{_flow(item, None)}{self._newline}" for item in value if item not in before]
        body = "".join(kept)
        body += "" if not new or body.endswith("\n") else self._newline
        return self._spliced(self._starts[first], self._starts[last + 1], body + "".join(new))

    def _added(self, node: yaml.Node, step: str, value: Any) -> str:
        if step.startswith("["):
            if not isinstance(node, yaml.SequenceNode):
                raise NotEditable(f"the file has no list with an item {step}")
            return self._appended(node, [_item(step, value)])
        if not isinstance(node, yaml.MappingNode):
            raise NotEditable(f"the file has no object with a key {step}")
        return self._appended(node, {step: value})

    def _appended(self, node: yaml.CollectionNode, entry: Any) -> str:
        """Add an entry, or an item, behind the last one."""
        if node.flow_style:
            inner = _flow(entry, None)[1:-1]
            if not node.value:
                at = self._at(node.start_mark) + 1
                return self._spliced(at, at, inner)
            at = self._end(_last(node))
            return self._spliced(at, at, f", {inner}")
        indent = " " * node.start_mark.column
        block = yaml.dump(
            entry,
            Dumper=ManifestDumper,
            default_flow_style=False,
            sort_keys=False,
            allow_unicode=True,
            width=_ENDLESS,
        )
        lines = "".join(f"{indent}{line}{self._newline}" for line in _dedented(block))
        at = self._starts[self._last_line(node) + 1]
        missing = "" if self._text[:at].endswith("\n") else self._newline
        return self._spliced(at, at, missing + lines)

    def _without(self, parent: yaml.MappingNode, position: int) -> str:
        entries = parent.value
        key, value = entries[position]
        start = self._at(key.start_mark)
        if parent.flow_style:
            if len(entries) == 1:
                return self._spliced(start, self._end(value), "")
            if position + 1 < len(entries):
                return self._spliced(start, self._at(entries[position + 1][0].start_mark), "")
            return self._spliced(self._end(entries[position - 1][1]), self._end(value), "")
        line = key.start_mark.line
        if self._text[self._starts[line] : start].strip():
            raise NotEditable("the entry begins in the line of another one")
        last = max(line, self._last_line(value))
        return self._spliced(self._starts[line], self._starts[last + 1], "")

    def _end(self, node: yaml.Node) -> int:
        """Return where the text of a value ends, without what follows it."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style:
            return self._end(_last(node)) if node.value else self._at(node.start_mark)
        end = self._at(node.end_mark)
        return len(self._text[:end].rstrip()) if end > self._at(node.start_mark) else end

    def _last_line(self, node: yaml.Node) -> int:
        end = self._end(node)
        return max(n for n, start in enumerate(self._starts[:-1]) if start <= max(end - 1, 0))

    def _at(self, mark: yaml.Mark) -> int:
        return self._starts[min(mark.line, len(self._starts) - 1)] + mark.column

    def _line(self, number: int) -> str:
        return self._text[self._starts[number] : self._starts[number + 1]]

    def _spliced(self, start: int, end: int, written: str) -> str:
        return self._text[:start] + written + self._text[end:]


def _child(node: yaml.Node, step: str) -> yaml.Node | None:
    return next((value for key, value in _entries(node, step) if key == step), None)


def _entries(node: yaml.Node, step: str) -> list[tuple[str, yaml.Node]]:
    """Return the entries of an object by key, or the items of a list by ``[name]``, as the step asks."""
    if isinstance(node, yaml.MappingNode) and not step.startswith("["):
        return [(str(key.value), value) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode) and step.startswith("["):
        return [(f"[{_name(item)}]", item) for item in node.value]
    return []


def _name(item: yaml.Node) -> str:
    found = _child(item, "name")
    return str(found.value) if isinstance(found, yaml.ScalarNode) else ""


def _last(node: yaml.CollectionNode) -> yaml.Node:
    last = node.value[-1]
    found: yaml.Node = last[1] if isinstance(last, tuple) else last
    return found


def _is_null(node: yaml.Node) -> bool:
    plain = isinstance(node, yaml.ScalarNode) and not node.style
    return plain and node.value in ("", "~", "null", "Null", "NULL")


def _nested(path: Sequence[str], value: Any) -> Any:
    for step in reversed(path):
        value = [_item(step, value)] if step.startswith("[") else {step: value}
    return value


def _item(step: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise NotEditable("an item of a list is an object")
    return {"name": step[1:-1], **value}


def _flow(value: Any, style: str | None) -> str:
    """Return a value in one line."""
    scalar = isinstance(value, str)
    dumped: str = yaml.dump(
        [value],
        Dumper=ManifestDumper,
        default_flow_style=True,
        default_style=style if scalar else None,
        sort_keys=False,
        allow_unicode=True,
        width=_ENDLESS,
    )
    return dumped.strip()[1:-1]


def _dedented(block: str) -> list[str]:
    """Return the lines of a block, whose lists the dumper indents also at the top."""
    lines = block.rstrip("\n").split("\n")
    margin = min(len(line) - len(line.lstrip(" ")) for line in lines)
    return [line[margin:] for line in lines]
