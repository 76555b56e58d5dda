"""A group of commands that imports a command's module when that command runs, and not to list it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
import typer.core
import typer.main


class Command(typer.core.TyperCommand):
    """A command whose help names arguments as other tools do: NAME, [NAME], NAME..."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options, without the types of Python."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                name, text = record
                shown = name.partition(" <")[0]
                records[parameter.param_type_name].append((shown, text.removesuffix("  [required]")))
        for title, rows in (("Arguments", records["argument"]), ("Options", records["option"])):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


@dataclass(frozen=True)
class Entry:
    """A command: "module:function", or "module:app" for a group; and its line in the list of commands."""

    target: str
    summary: str

    def load(self, name: str) -> Any:
        """Import the command."""
        from cli.options import with_address

        module, _, attribute = self.target.partition(":")
        found = getattr(import_module(module), attribute)
        if not isinstance(found, typer.Typer):
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            single.command(name, cls=Command)(with_address(found))
            found = single
        command = typer.main.get_command(found)
        command.name = name
        return command


Sections = Mapping[str, Mapping[str, Entry]]
"""Commands by the title of their section in the help."""


class LazyGroup(typer.core.TyperGroup):
    """The group of ``sections``; without arguments it prints its help and succeeds."""

    sections: ClassVar[Sections]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._entries = {name: entry for some in self.sections.values() for name, entry in some.items()}
        for name, entry in self._entries.items():
            self.add_command(typer.core.TyperCommand(name, help=entry.summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command itself and its arguments."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, self._entries[name].load(name) if name in self._entries else found, rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print the help when there is nothing to parse."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the sections."""
        width = max(len(name) for name in self._entries)
        for title, entries in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), entry.summary) for name, entry in entries.items()])
