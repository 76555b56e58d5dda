"""A git server that lacks, lies, floods or has gone: each answer is an error of ours, without a secret."""

from __future__ import annotations

import errno
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from dulwich.errors import ApplyDeltaError, ChecksumMismatch, ObjectFormatException
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Tree
from dulwich.pack import write_pack_header
from dulwich.repo import Repo

from localcloud.git.world.git_commands import run_git
from localcloud.git.world.git_repository import GitRepository
from shared.adapters.git import GitServerHost, host, transfer
from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
)
from shared.ports.git_host import Capability, CommitStatus, GitHost
from shared.ports.pull_requests import Check, NewCommit, PullText
from tests.support.git_hosts import PLAIN, Case, git_host_case

pytestmark = pytest.mark.lives

SECRET = "canary-password"


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    """A repository on a git server."""
    with git_host_case(PLAIN, tmp_path) as served:
        yield served


@contextmanager
def answering(status: int, body: bytes = b"", pause: float = 0, /, **headers: str) -> Iterator[GitServerHost]:
    """Serve one answer to everything, with a pause before each byte; yield a host that asks there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                for part in [bytes([byte]) for byte in body] if pause else [body]:
                    time.sleep(pause)
                    self.wfile.write(part)
            except OSError:
                """The host has left."""

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    found = GitServerHost(f"http://127.0.0.1:{server.server_port}/team/fleet.git", "roadstead", SECRET)
    try:
        yield found
    finally:
        found.close()
        server.shutdown()
        server.server_close()
        thread.join()


SMART = "application/x-git-upload-pack-advertisement"


@pytest.mark.parametrize(
    ("status", "headers", "kind", "says"),
    [
        (401, {}, Unauthenticated, "GIT_USERNAME and GIT_PASSWORD"),
        (403, {}, Unauthorized, "403"),
        (404, {}, Dependency, "no such repository"),
        (410, {}, Dependency, "no such repository"),
        (301, {"Location": "https://elsewhere.example/fleet.git"}, Dependency, "set GIT_URL"),
        (302, {"Location": "http://169.254.169.254/info/refs"}, Dependency, "no redirect is followed"),
        (429, {"Retry_After": "7"}, Throttled, "429"),
        (500, {}, Unavailable, "500"),
        (200, {"Content_Type": "text/html"}, Unavailable, "smart protocol"),
        (200, {"Content_Type": SMART}, Unavailable, "no readable answer"),
    ],
)
def test_what_a_server_answers_says_what_comes_next_and_shows_no_secret(
    status: int, headers: dict[str, str], kind: type[ReconcileError], says: str
) -> None:
    with answering(status, b"", **headers) as asked, pytest.raises(kind, match=says) as refused:
        asked.read_head("main")
    assert SECRET not in repr(refused.value) + str(refused.value.__context__)


@pytest.mark.parametrize("body", [b"0000", b"001e# service=git-upload-pack\n0000", b"zzzz", b"\xff" * 5000])
def test_an_answer_that_is_no_git_is_an_error_of_ours(body: bytes) -> None:
    with answering(200, body, Content_Type=SMART) as asked, pytest.raises((Unavailable, Dependency)):
        asked.read_head("main")


def test_a_server_that_is_away_is_unavailable() -> None:
    away = GitServerHost("http://127.0.0.1:9/team/fleet.git", "roadstead", SECRET)
    with pytest.raises(Unavailable) as refused:
        away.read_head("main")
    assert SECRET not in str(refused.value)
    away.close()


def test_a_wrong_password_is_refused(case: Case) -> None:
    case.git.commit({"a.yaml": b"1"})
    assert case.server is not None
    wrong = GitServerHost(case.server.clone_url("acme/fleet"), "operator", SECRET)
    with pytest.raises(Unauthenticated):
        wrong.read_head("main")
    wrong.close()


def test_a_branch_that_is_forced_or_deleted_shows_what_is_there_now(case: Case) -> None:
    first = case.git.commit({"a.yaml": b"1"})
    second = case.git.commit({"a.yaml": b"2"})
    assert case.host.read_head("main").commit == second
    case.git.reset(first, "main")
    forced = case.git.commit({"a.yaml": b"3"})
    assert case.host.read_head("main").commit == forced
    assert not case.host.is_descendant(forced, second)
    assert case.host.is_descendant(second, first), "what was read stays"
    fresh = GitServerHost(case.server.clone_url("acme/fleet") if case.server else "")
    assert not fresh.is_descendant(forced, second), "nobody shows the lost commit to a new instance"
    with pytest.raises(Dependency):
        fresh.tree(second)
    fresh.close()


def test_a_push_to_another_branch_and_many_pushes_are_fetched_as_they_come(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_PACKS", 3)
    for number in range(8):
        commit = case.git.commit({"a.yaml": str(number).encode() * 2000}, branch="main")
        assert case.host.read_head("main").commit == commit
        assert [case.host.blob(entry.sha) for entry in case.host.tree(commit)] == [
            str(number).encode() * 2000
        ]
    assert isinstance(case.host, GitServerHost)
    assert len(list(Path(case.host._folder.name).iterdir())) == 1, "what was emptied takes no room"


def test_threads_read_what_they_asked_for_while_others_fetch(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_PACKS", 2)
    commits = [case.git.commit({f"{n}/{m}.yaml": b"%d" % (n * m) for m in range(30)}) for n in range(12)]

    def read(commit: str) -> bool:
        case.host.read_head("main")
        found = case.host.tree(commit)
        assert case.host.is_descendant(commits[-1], commit)
        assert case.host.changes(commit, "", 3)
        return all(
            case.host.archive(commit, [entry.path])[entry.path] == case.host.blob(entry.sha)
            for entry in found
        )

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, commits * 3))


def test_another_beginning_has_another_id(case: Case) -> None:
    case.git.commit({"a.yaml": b"1"})
    before = case.host.read_head("main").repository
    case.git.commit({"a.yaml": b"2"})
    assert case.host.read_head("main").repository == before
    other = case.another("acme/other").commit({"a.yaml": b"other"})
    assert case.host.other("acme/other").read_head("main").repository != before
    assert case.host.other("acme/other") is case.host.other("acme/other")
    with pytest.raises(Dependency):
        case.host.tree(other)


def test_what_is_too_large_is_not_read_and_says_so(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = case.git.commit({f"{n}.yaml": b"%d" % n for n in range(20)})
    monkeypatch.setattr(host, "MOST_ENTRIES", 19)
    with pytest.raises(Unavailable, match="more than 19 files"):
        case.host.tree(commit)
    monkeypatch.setattr(transfer, "MOST_SENT", 100)
    big = case.git.commit({"big": bytes(range(256)) * 4})
    with pytest.raises(Unavailable, match="larger than"):
        case.host.tree(big)
    monkeypatch.setattr(transfer, "MOST_SENT", 1 << 20)
    monkeypatch.setattr(transfer, "MOST_UNPACKED", 1000)
    with pytest.raises(Unavailable, match="objects are larger"):
        case.host.tree(big)
    monkeypatch.undo()
    assert [entry.path for entry in case.host.tree(big) if entry.path == "big"] == ["big"]


def test_folders_with_nothing_in_them_count_too(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "MOST_ENTRIES", 1000)
    assert isinstance(case.git, GitRepository)
    with Repo(str(case.git.path)) as repo:
        tree = Tree()
        for _ in range(10):
            repo.object_store.add_object(tree)
            above = Tree()
            for name in b"0123456789":
                above.add(b"%c" % name, 0o040000, tree.id)
            tree = above
        repo.object_store.add_object(tree)
        case.git.commit({"a.yaml": b"1"})
        commit = run_git(case.git.path, "commit-tree", "-m", "bomb", tree.id.decode()).decode().strip()
    run_git(case.git.path, "update-ref", "refs/heads/main", commit)
    with pytest.raises(Unavailable, match="files and folders"):
        case.host.tree(case.host.read_head("main").commit)


def test_a_server_that_sends_a_byte_now_and_then_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "MOST_SECONDS", 0.5)
    slow = answering(200, b"fde8" + b"x" * 200, 0.05, Content_Type=SMART)
    began = time.monotonic()
    with slow as asked, pytest.raises(Unavailable, match="takes longer"):
        asked.read_head("main")
    assert time.monotonic() - began < 5


def test_an_instance_without_room_says_so_and_keeps_no_half_of_a_pack(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(store: DiskObjectStore, *_: object, **__: object) -> None:
        (Path(store.path) / "tmp_pack_half").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    commit = case.git.commit({"a.yaml": b"1"})
    with monkeypatch.context() as patched:
        patched.setattr(DiskObjectStore, "add_thin_pack", full)
        with pytest.raises(Unavailable, match="has no room"):
            case.host.read_head("main")
    assert isinstance(case.host, GitServerHost)
    assert not list(Path(case.host._folder.name).rglob("tmp_pack_*"))
    assert case.host.read_head("main").commit == commit


@pytest.mark.parametrize("error", [ApplyDeltaError, ChecksumMismatch, ObjectFormatException])
def test_what_dulwich_finds_wrong_in_a_pack_is_an_error_of_ours(error: type[Exception]) -> None:
    wrong = error("a", "b") if error is ChecksumMismatch else error("a")
    with pytest.raises(Unavailable, match="no readable answer"), transfer.git_errors():
        raise wrong


def packed(*objects: bytes) -> BytesIO:
    """Return a pack of these encoded objects."""
    pack = BytesIO()
    write_pack_header(pack.write, len(objects))
    pack.write(b"".join(objects))
    return pack


def blob(size: int, content: bytes) -> bytes:
    """Return an object that says a size and has a content."""
    head, rest = bytearray(), size >> 4
    byte = (3 << 4) | (size & 15)
    while rest:
        head.append(byte | 128)
        byte, rest = rest & 127, rest >> 7
    return bytes([*head, byte]) + zlib.compress(content)


@pytest.mark.parametrize(
    ("pack", "kind"),
    [
        (packed(blob(2 << 30, b"small")), Unavailable),
        (packed(blob(4, b"more than it says")), ValueError),
        (packed(blob(1000, bytes(1000))[:-3]), EOFError),
        (packed(b""), IndexError),
        (packed(b"\xbf" + b"\xff" * 20), ValueError),
        (packed(blob((100 << 20) + 1, b"small")), Unavailable),
        (BytesIO(b"PACK" + (2).to_bytes(4, "big") + (1_000_001).to_bytes(4, "big")), Unavailable),
        (BytesIO(b"no pack at all"), ValueError),
    ],
)
def test_a_pack_that_lies_is_refused_before_anything_is_kept(pack: BytesIO, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        transfer.require_bounded(pack)


def test_objects_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "MOST_UNPACKED", 2500)
    transfer.require_bounded(packed(*[blob(1000, bytes(1000))] * 2))
    with pytest.raises(Unavailable):
        transfer.require_bounded(packed(*[blob(1000, bytes(1000))] * 3))


WRITES: dict[Capability, Callable[[GitHost], Any]] = {
    Capability.STATUSES: lambda found: found.set_status("a" * 40, CommitStatus("success", "", "c")),
    Capability.PULLS: lambda found: found.write_comment(1, "text", over=None),
    Capability.CHECKS: lambda found: found.conclusions("a" * 40, "ci"),
    Capability.WRITTEN_CHECKS: lambda found: found.write_check("a" * 40, Check("c", "success", "t", "s")),
    Capability.REVIEWS: lambda found: found.reviews(1),
    Capability.PROPOSALS: lambda found: found.move_branch("b", None, "a" * 40),
    Capability.AUTO_MERGE: lambda found: found.enable_auto_merge(1, "a" * 40),
    Capability.ISSUES: lambda found: found.open_issue("title", "body"),
    Capability.FORMS: lambda found: found.newest_issues(),
}


@pytest.mark.parametrize("capability", WRITES)
def test_what_it_lacks_it_refuses_and_says(case: Case, capability: Capability) -> None:
    assert not case.host.capabilities
    with pytest.raises(Unauthorized, match=capability.value.partition(":")[0]):
        WRITES[capability](case.host)


def test_what_would_write_is_refused_and_what_would_read_finds_nothing(case: Case) -> None:
    found = case.host
    for write in (
        lambda: found.tip("main"),
        lambda: found.branches("pins/"),
        lambda: found.is_guarded("main"),
        lambda: found.add_commit(NewCommit({"a": b""}, "m", ())),
        lambda: found.delete_branch("b"),
        lambda: found.open_pull("b", "main", PullText("t", "b")),
        lambda: found.edit_pull(1, PullText("t", "b")),
        lambda: found.close_pull(1),
        lambda: found.team_members("a/b"),
        lambda: found.find_issue("m"),
        lambda: found.comment_issue(1, "b"),
        lambda: found.close_issue(1),
    ):
        with pytest.raises(Unauthorized):
            write()
    assert (found.permissions(), found.deliveries(), found.pull(1)) == (None, None, None)
    assert (found.comment(1, "m"), found.removed_files(1)) == (None, None)
    assert [*found.open_pulls("main"), *found.merged_as("a" * 40)] == []
    assert not found.pull_authors(1).complete
