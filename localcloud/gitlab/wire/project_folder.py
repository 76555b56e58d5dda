"""The projects of the local GitLab: bare repositories at ``root/group/subgroup/project.git``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from localcloud.git.wire.repository_folder import NAME, RepositoryStore
from localcloud.gitlab.world.project import Project
from shared.ports import Clock


class ProjectStore(RepositoryStore):
    """Opens each project once, by its path, which has groups in groups, or by its number."""

    def __init__(self, root: Path, clock: Clock) -> None:
        super().__init__(root, clock, Project)

    def project(self, name: str) -> tuple[str, Project] | None:
        """Return the path of a project and the project, by its path or its number."""
        for full_name in self.names() if name.isdecimal() else (name,):
            found = self.find(full_name)
            if isinstance(found, Project) and (not name.isdecimal() or str(found.id) == name):
                return full_name, found
        return None

    def names(self) -> Iterator[str]:
        """Yield the path of every project."""
        for path in sorted(self.root.rglob("*.git")):
            yield str(path.relative_to(self.root)).removesuffix(".git")

    def _path(self, full_name: str) -> Path | None:
        parts = full_name.split("/")
        if len(parts) < 2 or not all(NAME.match(part) for part in parts):
            return None
        return self.root.joinpath(*parts[:-1], f"{parts[-1]}.git")
