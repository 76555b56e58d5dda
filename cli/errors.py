"""What the command cannot do, told in one line."""

from __future__ import annotations


class UsageError(Exception):
    """The command was asked for something that is not there; the message says what to do. Exit status 2."""


class CommandFailed(Exception):
    """The command did not do what was asked; the message says why. Exit status 1."""
