"""``roadstead replay``: starts failed jobs again, without a commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli.errors import ApiError, CommandError, NotFound, RequestRefused, UsageError
from cli.options import Address, Reason, cluster_name
from cli.terminal.output import echo
from cli.text import line
from shared.app.api import schema

if TYPE_CHECKING:
    from cli.fleet_api.client import Api


def replay(
    address: Address,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster whose job has failed.")] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="Every cluster whose job has failed.")] = False,
    error_class: Annotated[
        str,
        typer.Option(
            "--error-class", metavar="CLASS", help="Those that failed with this class, such as Unavailable."
        ),
    ] = "",
    override: Annotated[
        bool,
        typer.Option("--override", help="Also in a freeze and outside its change windows; needs a --reason."),
    ] = False,
    reason: Reason = "",
) -> None:
    """Start failed jobs again, without a commit."""
    if sum(map(bool, (name, everything, error_class))) != 1:
        raise UsageError("give a cluster, or --all, or --error-class CLASS")
    if error_class:
        _check_class(error_class)
    if override and not (name and reason):
        raise UsageError("--override is for one cluster, and needs a --reason: the audit shows it")
    with address.connect() as api:
        if name:
            _replay(api, cluster_name(name), reason, override=override)
        else:
            _replay_all(api, error_class, reason)


def _check_class(name: str) -> None:
    from shared.cluster.failures.errors import classes

    names = [error_class.__name__ for error_class in classes()]
    if name not in names:
        raise UsageError(f"there is no error class {name!r}; the classes are {', '.join(names)}")


def _replay_all(api: Api, error_class: str, reason: str) -> None:
    names = _failed(api.fleet(phase="Failed,Stalled")["clusters"], error_class)
    if names:
        replay_each(api, names, reason)
    else:
        echo("No cluster has failed" + (f" with {error_class}." if error_class else "."))


def replay_each(api: Api, names: Sequence[str], reason: str) -> None:
    """Start the jobs of clusters again, and say why one does not start; raise CommandError if none does."""
    started = 0
    for name in names:
        try:
            _replay(api, name, reason)
        except (
            NotFound,
            RequestRefused,
        ) as error:  # a freeze holds it, or it started or was deleted meanwhile
            echo(Text(line(str(error)), style="dim"))
        except ApiError as error:
            raise CommandError(f"{error}; started {started} of {len(names)}") from error
        else:
            started += 1
    if not started:
        raise CommandError(f"started none of {len(names)}")
    if started < len(names):
        echo(f"Started {started} of {len(names)}.")


def _failed(clusters: Sequence[schema.ClusterSummaryView], error_class: str) -> list[str]:
    """Return the clusters that failed, or are refused, which is a stall with a class of its own."""
    return [
        cluster["name"]
        for cluster in clusters
        if cluster["phase"] == "Failed" or _class_of(cluster) == "Refused"
        if error_class in ("", _class_of(cluster))
    ]


def _class_of(cluster: schema.ClusterSummaryView) -> str:
    failure = cluster.get("failure")
    return failure["class"] if failure else ""


def _replay(api: Api, name: str, reason: str, *, override: bool = False) -> None:
    api.replay(name, reason, override=override)
    echo(f"{name}: started again")
