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
    path: RepositoryPath = Path(),
) -> None:
    """Write the version, or the node image, that an environment has of its channel.

    Write what its clusters have now. From then on, the app proposes newer ones.
    """
    if not (version or image):
        raise UsageError("give a version of Kubernetes such as 1.36.3, a node image with --image, or both")
    if version and len(numbers(version)) not in (2, 3):
        raise UsageError(f"{version} is no version of Kubernetes; write one such as 1.36.3")
    if image and not image_version(f"AKS-{image}"):
        raise UsageError(f"{image} is no node image; write its version, such as 202511.01.0")
    tree, file = open_worktree(path), versions_path(environment)
    fields = {"kubernetesVersion": version, "minNodeImageVersion": image}
    known = tree.files.of(ENVIRONMENTS)[0]
    if environment not in known:
        near = nearest(environment, known)
        hint = f"; did you mean {near}?" if near else ""
        raise CommandError(f"there is no environment {environment}: environments/{environment}.yaml{hint}")
    if file in tree.files.blobs:
        own = " and ".join(f'{field}: "{given}"' for field, given in fields.items() if given)
        raise CommandError(f"{tree.shown(file)} is there already; write {own} below its spec")
    lines = [f'  {field}: "{given}"\n' for field, given in fields.items() if given]
    body = "".join((f"metadata: {{name: {environment}}}\nspec:\n", *lines))
    try:
        (tree.root / file).write_text(templates.head("Versions", file) + body)
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be written: {error.strerror}") from error
    done = f"Wrote {tree.shown(file)}. The app changes it by pull requests."
    echo(Text(f"{done}\nSee what changes: roadstead plan"), soft_wrap=True)
