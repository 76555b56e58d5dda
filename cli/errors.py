"""How the command ends: the exit codes, and the errors that become one line on stderr."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes, the same for every command."""

    OK = 0
    """The command did what it was asked to do."""
    FAILED = 1
    """The command failed: invalid manifests, an unknown cluster, a timeout, an API that does not answer."""
    USAGE = 2
    """The command line is wrong: an unknown option, a malformed value, a PATH without a fleet."""
    CHANGES = 3
    """``plan --exit-code``: there are changes."""
    INTERRUPTED = 130
    """Ctrl-C, as shells report it."""


class CommandError(Exception):
    """The command cannot continue; the message has the reason and the remedy."""

    exit_code = ExitCode.FAILED


class UsageError(CommandError):
    """The command line is wrong; nothing was done."""

    exit_code = ExitCode.USAGE


class ApiError(CommandError):
    """The API did not answer, or rejected the request."""


class NoAnswer(ApiError):
    """The app cannot be reached, or it or a service that it needs has failed: it may answer soon."""


class NotFound(ApiError):
    """The API does not know the object."""


class RequestRefused(ApiError):
    """The API understood the request and refuses it in the present state."""
