"""``roadstead versions``: writes the file with what an environment with a channel has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cli import templates
from cli.errors import CommandError, UsageError
from cli.options import RepositoryPath
from cli.terminal.output import echo
from cli.worktree import open_worktree
from shared.kubernetes_versions import image_version, numbers
from shared.language.resolve.problems import nearest
from shared.language.resolve.repository_layout import ENVIRONMENTS, versions_path


def versions(
    environment: Annotated[str, typer.Argument(metavar="ENVIRONMENT", help="The environment's name.")],
    version: Annotated[
        str, typer.Argument(metavar="VERSION", help="The version of Kubernetes: 1.36.3.")
    ] = "",
    *,
    image: Annotated[str, typer.Option(metavar="IMAGE", help="The oldest node image: 202511.01.0.")] = "",
    extension: Annotated[
        str, typer.Option(metavar="VERSION", help="That of Microsoft's extension of Flux: 1.19.5.")
    ] = "",
    flux: Annotated[
        str, typer.Option(metavar="VERSION", help="That of the Flux that the operator installs: 2.8.8.")
    ] = "",
    path: RepositoryPath = Path(),
) -> None:
    """Write what an environment has of its channels: of Kubernetes, node images and Flux.

    Write what its clusters have now. From then on, the app proposes newer ones.
    """
    given = {
        "kubernetesVersion": version,
        "minNodeImageVersion": image,
        "flux.extension.version": extension,
        "flux.instance.distribution.version": flux,
    }
    fields = {field: value for field, value in given.items() if value}
    if not fields:
        raise UsageError(
            "give a version of Kubernetes such as 1.36.3, a node image with --image, or a version of Flux "
            "with --extension or --flux"
        )
    if extension and flux:
        raise UsageError("give --extension or --flux: a file has one version of Flux")
    for wrong in (value for value in (extension, flux) if value and len(numbers(value)) != 3):
        raise UsageError(f"{wrong} is no whole version; write one such as 1.19.5")
    if version and len(numbers(version)) not in (2, 3):
        raise UsageError(f"{version} is no version of Kubernetes; write one such as 1.36.3")
    if image and not image_version(f"AKS-{image}"):
        raise UsageError(f"{image} is no node image; write its version, such as 202511.01.0")
    tree, file = open_worktree(path), versions_path(environment)
    known = tree.files.of(ENVIRONMENTS)[0]
    if environment not in known:
        near = nearest(environment, known)
        hint = f"; did you mean {near}?" if near else ""
        raise CommandError(f"there is no environment {environment}: environments/{environment}.yaml{hint}")
    if file in tree.files.blobs:
        own = " and ".join(map(_flow, fields.items()))
        raise CommandError(f"{tree.shown(file)} is there already; write {own} below its spec")
    body = "".join((f"metadata: {{name: {environment}}}\nspec:\n", *map(_lines, fields.items())))
    try:
        (tree.root / file).write_text(templates.head("Versions", file) + body)
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be written: {error.strerror}") from error
    done = f"Wrote {tree.shown(file)}. The app changes it by pull requests."
    echo(Text(f"{done}\nSee what changes: roadstead plan"), soft_wrap=True)


def _flow(field: tuple[str, str]) -> str:
    """Return a field with its value as a person adds it to a file, in a line."""
    first, *steps = field[0].split(".")
    value = f'"{field[1]}"'
    for step in reversed(steps):
        value = f"{{{step}: {value}}}"
    return f"{first}: {value}"


def _lines(field: tuple[str, str]) -> str:
    """Return a field with its value, each step of its path in a line of its own."""
    path, value = field
    *above, last = path.split(".")
    found = [f"{'  ' * depth}{step}:\n" for depth, step in enumerate(above, 1)]
    return "".join((*found, f'{"  " * (len(above) + 1)}{last}: "{value}"\n'))
