"""Many files in one answer: GitHub's tarball is read whole or not at all, and does no harm."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from localcloud.common.clock import ManualClock, system_clock
from localcloud.common.front_door import ScriptedFault
from localcloud.git.world.git_repository import GitRepository
from localcloud.github.wire.github_server import GitHubServer
from shared.adapters.github import GitHubHost, github_auth
from shared.adapters.github.archive import MAX_FILE_BYTES, read_archive
from shared.cluster.failures.errors import Dependency, ReconcileError, Throttled, Unavailable, Withheld

pytestmark = pytest.mark.lives

FILES = {f"clusters/c{number}/cluster.yaml": b"name: c%d\n" % number * 50 for number in range(200)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitHubServer]:
    with GitHubServer(tmp_path / "host", token="local", webhook_secret="s") as served:
        served.create_repository("acme/fleet")
        yield served


@pytest.fixture
def adapter(server: GitHubServer) -> Iterator[GitHubHost]:
    made = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    yield made
    made.close()


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Return a tarball of any members, also of such as no good tool makes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def serving(git: GitRepository, change: Callable[[bytes], bytes]) -> None:
    """Let the host give out the tarball in another form."""
    pack = git.tarball
    git.tarball = lambda commit, folder: change(pack(commit, folder))  # type: ignore[method-assign]


def test_an_archive_is_two_calls_and_only_the_first_has_the_token(
    server: GitHubServer, adapter: GitHubHost
) -> None:
    commit = server.repository("acme/fleet").commit(FILES)
    adapter.tree(commit)  # a plan has read it
    server.door.requests.clear()
    assert adapter.archive(commit, FILES) == FILES
    assert [(r["path"], r["status"], r.get("authorized")) for r in server.door.requests] == [
        (f"/repos/acme/fleet/tarball/{commit}", 302, None),
        (f"/acme/fleet/legacy.tar.gz/{commit}", 200, None),
    ]


def test_a_link_to_an_archive_ends_after_five_minutes(tmp_path: Path) -> None:
    clock = ManualClock(system_clock())
    with GitHubServer(tmp_path, token="local", webhook_secret="s", clock=clock) as server:
        commit = server.create_repository("acme/fleet").commit(FILES)
        headers = {"Authorization": "Bearer local"}
        answer = httpx.get(f"{server.url}/repos/acme/fleet/tarball/{commit}", headers=headers)
        link = answer.headers["location"]
        assert httpx.get(link).status_code == 200
        assert httpx.get(link.partition("?")[0]).status_code == 404
        clock.advance(timedelta(minutes=5).total_seconds())
        with pytest.raises(Dependency, match="404") as ended:
            read_archive(link, FILES, timeout=5)
        assert "token" not in str(ended.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-4],
        lambda _: b"",
        lambda _: b"no archive at all",
        lambda data: data[:-8] + bytes(8),
        lambda _: gzip.compress(b"no tar" * 1000),
    ],
    ids=["half", "end missing", "empty", "no gzip", "wrong checksum", "no tar"],
)
def test_a_truncated_or_corrupt_archive_is_an_error(
    server: GitHubServer, adapter: GitHubHost, change: Callable[[bytes], bytes]
) -> None:
    git = server.repository("acme/fleet")
    commit = git.commit(FILES)
    serving(git, change)
    with pytest.raises(Unavailable):
        adapter.archive(commit, FILES)


def test_an_archive_that_unpacks_to_too_much_is_refused(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    commit = git.commit({"bomb": bytes(8 << 20), "a.yaml": b"1"})
    headers = {"Authorization": "Bearer local"}
    answer = httpx.get(f"{server.url}/repos/acme/fleet/tarball/{commit}", headers=headers)
    with pytest.raises(Unavailable, match="keep large files out of"):
        read_archive(answer.headers["location"], ["a.yaml"], timeout=5, limit=4 << 20)
    assert read_archive(answer.headers["location"], ["a.yaml", "bomb"], timeout=5) == {"a.yaml": b"1"}
    assert MAX_FILE_BYTES < 8 << 20


def test_names_and_links_inside_an_archive_cannot_leave_it(
    server: GitHubServer, adapter: GitHubHost, tmp_path: Path
) -> None:
    named = dict.fromkeys(("a.yaml", "link", "hard", "device"), b"another content")
    commit = server.repository("acme/fleet").commit(FILES | named)
    link, hard, device = (tarfile.TarInfo(f"f/{name}") for name in ("link", "hard", "device"))
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    hard.type, hard.linkname = tarfile.LNKTYPE, "f/../../etc/passwd"
    device.type = tarfile.CHRTYPE
    names = ["/etc/x", "f/../../up", "f/a.yaml"]
    serving(
        server.repository("acme/fleet"),
        lambda _: packed(
            *((tarfile.TarInfo(name), b"content") for name in names),
            *((member, b"") for member in (link, hard, device)),
        ),
    )
    before = sorted(tmp_path.iterdir())
    asked = ["link", "hard", "device", "a.yaml", "/etc/passwd"]
    assert adapter.archive(commit, asked) == {"a.yaml": b"content"}
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (ScriptedFault("/tarball/", 301, headers={"Location": "https://example.com"}), Withheld),
        (ScriptedFault("/tarball/", 302, headers={"Location": "ftp://example.com/x"}), Unavailable),
        (ScriptedFault("/tarball/", 302), Unavailable),
        (ScriptedFault("/tarball/", 404), Dependency),
        (ScriptedFault("/tarball/", 502), Unavailable),
        (ScriptedFault("legacy.tar.gz", 502), Unavailable),
        (ScriptedFault("legacy.tar.gz", 302, headers={"Location": "https://example.com"}), Unavailable),
        (ScriptedFault("legacy.tar.gz", 429, headers={"Retry-After": "7"}), Throttled),
    ],
)
def test_a_failed_archive_raises_an_error_of_the_port(
    server: GitHubServer, adapter: GitHubHost, fault: ScriptedFault, kind: type[ReconcileError]
) -> None:
    commit = server.repository("acme/fleet").commit(FILES)
    server.door.faults = [fault]
    with pytest.raises(kind):
        adapter.archive(commit, FILES)
    assert adapter.archive(commit, FILES) == FILES


def test_an_archive_omits_files_that_are_not_exported(server: GitHubServer, adapter: GitHubHost) -> None:
    attributes = b"clusters/c1/** export-ignore\n*.md export-subst\n"
    files = FILES | {".gitattributes": attributes, "a.md": b"$Format:%H$"}
    commit = server.repository("acme/fleet").commit(files)
    found = adapter.archive(commit, files)
    assert files.keys() - found.keys() == {"clusters/c1/cluster.yaml"}
    assert found["a.md"] == commit.encode()
