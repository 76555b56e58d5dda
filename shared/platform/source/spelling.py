"""What somebody probably meant by a path that is not there, or whose case is another."""

from __future__ import annotations

from shared.language.resolve.problems import nearest
from shared.platform.source.tree import Tree


def misspelt(path: str) -> str:
    """Return what is wrong with a kustomization file whose name is written in another case."""
    name = path.rpartition("/")[2]
    right = "kustomization.yml" if name.lower().endswith(".yml") else "kustomization.yaml"
    return f"{path} is no kustomization file to kustomize; rename it to {right}"


def meant(tree: Tree, target: str) -> str:
    """Return a hint with the file or folder that was probably meant."""
    near = near_path(tree, target)
    return f"; did you mean {near}?" if near else ""


def near_path(tree: Tree, target: str) -> str:
    """Return the file or folder that was probably meant by a path, "" when none is similar."""
    parent, _, name = target.rpartition("/")
    while parent and not tree.is_folder(parent):
        parent, _, name = parent.rpartition("/")
    prefix = f"{parent}/" if parent else ""
    names = list(dict.fromkeys(path[len(prefix) :].split("/")[0] for path in tree.below(parent)))
    near = nearest(name, names)
    return prefix + near if near else ""
