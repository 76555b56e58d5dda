"""The git protocol, over HTTPS by dulwich: references, and packs that are counted before they are stored.

A server that is taken over may answer anything. So no redirect is followed, nothing but the origin of the
repository is asked, and the credential goes nowhere else. An answer ends in time, and has a size. A pack is
counted twice: as it comes, and unpacked, object by object, before anything is stored (gitformat-pack: a delta
begins with the size that it makes).
"""

from __future__ import annotations

import errno
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Self

import urllib3
from dulwich.client import FetchPackResult, GitClient, Urllib3HttpGitClient
from dulwich.errors import (
    ApplyDeltaError,
    ChecksumMismatch,
    FileFormatException,
    GitProtocolError,
    HangupException,
)
from dulwich.object_store import (
    DiskObjectStore,
    MaxTreeDepthExceeded,
    ObjectStoreGraphWalker,
    PackInputTooLarge,
)
from dulwich.objects import ObjectID
from dulwich.pack import UnresolvedDeltas

from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
)
from shared.cluster.failures.retry import retry_after

TIMEOUT = 30.0
"""Seconds to connect, and between two chunks."""
MOST_SECONDS = 120.0
"""For one answer: a server that sends a byte now and then keeps nobody."""
MOST_SENT = 256 << 20
"""Bytes of an answer; the history of a fleet repository is a fraction of that."""
MOST_UNPACKED = 1 << 30
"""Bytes of all objects of a pack."""
MOST_OF_OBJECT = 100 << 20
"""Bytes of one of them, which is in memory as a whole, a delta with its base: GitHub takes no larger file
(docs.github.com/repositories/working-with-files/managing-large-files)."""
MOST_OBJECTS = 1_000_000
"""Objects of a pack: its index is in memory while it is written."""
_CHUNK = 1 << 16
_DELTAS = (6, 7)
_LONGEST = 60
_MALFORMED = (
    GitProtocolError,
    HangupException,
    FileFormatException,
    ChecksumMismatch,
    ApplyDeltaError,
    UnresolvedDeltas,
    zlib.error,
    ValueError,
    LookupError,
    AssertionError,
    EOFError,
)


class GitServer(GitClient, ABC):
    """One repository of a git server, whatever carries the protocol: the client that derives from it.

    ``said_at`` is when the server answered last, ``credential`` the setting with which it is read.
    """

    credential = "GIT_PASSWORD"
    said_at = datetime.fromtimestamp(0, UTC)
    path: Any = ""
    """What dulwich names the repository by: nothing where the address of each request has it."""

    @abstractmethod
    def at(self, url: str) -> Self:
        """Return the repository at another address of the server, with the same credential."""

    def references(self) -> Mapping[str, str]:
        """Return the branches, each with its commit."""
        with git_errors():
            found = self.get_refs(self.path, ref_prefix=[b"refs/heads/"])
            self._require_smart()
            return _branches(found.refs)

    def _require_smart(self) -> None:
        """Raise Unavailable for a server that gives files instead of answers."""

    def fetch_branches(self, store: DiskObjectStore, known: set[bytes]) -> Mapping[str, str]:
        """Bring all branches into the store; return them as ``references`` does.

        ``known`` are commits that the store has with their history.
        """
        with git_errors():
            return _branches(self._fetched(store, known, None).refs)

    def fetch_commit(self, store: DiskObjectStore, known: set[bytes], commit: str) -> None:
        """Bring a commit into the store that no branch has; the server may refuse that."""
        with git_errors():
            self._fetched(store, known, commit.encode())

    def _fetched(self, store: DiskObjectStore, known: set[bytes], one: bytes | None) -> FetchPackResult:
        with TemporaryFile() as pack:
            answer = self._received(store, known, one, pack)
            if pack.tell():
                require_bounded(pack)
                pack.seek(0)
                try:
                    store.add_thin_pack(pack.read, None, max_input_size=MOST_SENT)
                finally:
                    for left in Path(store.path).glob("tmp_pack_*"):
                        left.unlink()
            return answer

    def _received(
        self, store: DiskObjectStore, known: set[bytes], one: bytes | None, pack: IO[bytes]
    ) -> FetchPackResult:
        def wanted(refs: Mapping[bytes, bytes], **_: Any) -> list[bytes]:
            self._require_smart()
            if one is not None:
                return [one]
            heads = {commit for ref, commit in refs.items() if ref.startswith(b"refs/heads/")}
            return sorted(heads - known)

        def parents(commit: bytes) -> list[bytes]:
            found: Any = store[ObjectID(commit)]
            return list(found.parents)

        walker: Any = ObjectStoreGraphWalker(sorted(known), parents)  # type: ignore[arg-type]
        return self.fetch_pack(self.path, wanted, walker, pack.write, ref_prefix=[b"refs/heads/"])  # type: ignore[arg-type]


class HttpsGitServer(GitServer, Urllib3HttpGitClient):
    """One repository of a git server over HTTPS; ``said_at`` is by the server's clock."""

    def __init__(self, url: str, username: str, password: str) -> None:
        once = urllib3.Retry(0, redirect=False)
        self._url, self._sign_in = url, (username, password)
        super().__init__(
            url,
            pool_manager=urllib3.PoolManager(retries=once, timeout=urllib3.Timeout(TIMEOUT)),
            username=username or None,
            password=password or None,
            quiet=True,
        )

    def at(self, url: str) -> Self:
        """Return the repository at another address of the server, with the same credential."""
        return type(self)(url, *self._sign_in)

    def _http_request(
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,  # noqa: ARG002 - every status is judged here
    ) -> tuple[Any, Callable[[int], bytes]]:
        """Send a request to the repository; raise what its status means."""
        if self._origin(url) != self._origin(self._url):
            raise Unavailable("the git server leads to another host, which is not asked")
        until = time.monotonic() + MOST_SECONDS
        response: Any
        response, _ = super()._http_request(url, headers, data, raise_for_status=False)
        if response.status != 200:
            response.close()
            raise self.refused(response.status, response.headers)
        if "date" in response.headers:
            self.said_at = parsedate_to_datetime(response.headers["date"]).astimezone(UTC)
        return response, bounded(response.read1, until)

    def refused(self, status: int, headers: Mapping[str, str]) -> ReconcileError:
        """Return what an answer means that is not 200."""
        return _refused(status, headers)

    def _require_smart(self) -> None:
        if self.dumb:
            raise Unavailable("the server does not speak git's smart protocol over HTTP")


def bounded(some: Callable[[int], bytes], until: float) -> Callable[[int], bytes]:
    """Return what reads an answer, from what reads the next bytes of it.

    It raises Unavailable for an answer that is too long, or takes too long.
    """
    left = MOST_SENT

    def read(count: int) -> bytes:
        nonlocal left
        found = bytearray()
        while len(found) < count:
            data = some(count - len(found))
            if time.monotonic() > until:
                raise Unavailable(f"the git server takes longer than {MOST_SECONDS:g} seconds for an answer")
            if not data:
                break
            found += data
        left -= len(found)
        if left < 0:
            raise _too_long()
        return bytes(found)

    return read


def _too_long() -> Unavailable:
    return too_large(f"its history is larger than {MOST_SENT >> 20} MiB")


def too_large(what: str) -> Unavailable:
    """Return the error of a repository that is not read."""
    return Unavailable(f"the repository is not read: {what}; keep large files out of it")


@contextmanager
def git_errors() -> Iterator[None]:
    """Turn what dulwich raises into what the caller does next; no message has an address or a credential."""
    try:
        yield
    except ReconcileError:
        raise
    except PackInputTooLarge:
        raise _too_long() from None
    except MaxTreeDepthExceeded:
        raise too_large("its folders are too deep") from None
    except _MALFORMED as error:
        raise Unavailable(f"the git server gave no readable answer: {type(error).__name__}") from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable(
                "the temporary folder of this instance has no room for the repository"
            ) from None
        raise Unavailable(f"the git server does not answer: {type(error).__name__}") from None


def _refused(status: int, headers: Mapping[str, str]) -> ReconcileError:
    if status in (301, 302, 303, 307, 308):
        return Dependency(
            "the repository has moved, and no redirect is followed: set GIT_URL to its new address"
        )
    if status == 401:
        return Unauthenticated("the git server refuses the credential of GIT_USERNAME and GIT_PASSWORD (401)")
    if status == 403:
        return Unauthorized("the git server does not let the credential read the repository (403)")
    if status in (404, 410):
        return Dependency(f"there is no such repository, or the credential does not see it ({status})")
    if status == 429:
        wait = retry_after(headers)
        return Throttled("the git server throttles (429)", retry_after=60.0 if wait is None else wait)
    return Unavailable(f"the git server answered {status}")


def _branches(refs: Mapping[Any, bytes | None]) -> dict[str, str]:
    prefix = b"refs/heads/"
    return {
        ref[len(prefix) :].decode(errors="replace"): commit.decode()
        for ref, commit in refs.items()
        if ref.startswith(prefix) and commit is not None
    }


def require_bounded(pack: IO[bytes]) -> None:
    """Raise Unavailable for a pack whose objects are too large together; none of them is stored."""
    pack.seek(0)
    head = pack.read(12)
    if head[:4] != b"PACK" or int.from_bytes(head[4:8], "big") not in (2, 3):
        raise ValueError("not a pack")
    left, count = MOST_UNPACKED, int.from_bytes(head[8:12], "big")
    if count > MOST_OBJECTS:
        raise too_large(f"its history has more than {MOST_OBJECTS:,} objects")
    for _ in range(count):
        left -= _size_of_next(pack, left)
    pack.seek(0, 2)


def _size_of_next(pack: IO[bytes], most: int) -> int:
    """Return how large the next object is unpacked, with what a delta makes; go on to the one after it."""
    first, shift = _byte(pack), 4
    kind, size, more = (first >> 4) & 7, first & 15, first & 128
    while more:
        if shift > _LONGEST:
            raise ValueError("a size of more than 64 bits")
        byte = _byte(pack)
        size |= (byte & 127) << shift
        more, shift = byte & 128, shift + 7
    if kind == 6:
        while _byte(pack) & 128:
            pass
    elif kind == 7:
        pack.read(20)
    _require_room(size, most)
    inflate, beginning, count = zlib.decompressobj(), b"", 0
    while not inflate.eof:
        data = inflate.unconsumed_tail or pack.read(_CHUNK)
        if not data:
            raise EOFError
        out = inflate.decompress(data, _CHUNK)
        beginning, count = (beginning + out)[:32], count + len(out)
        if count > size:
            raise ValueError("an object is larger than it says")
    pack.seek(-len(inflate.unused_data), 1)
    made = _made_by(beginning) if kind in _DELTAS else 0
    _require_room(made, most - size)
    return size + made


def _require_room(size: int, most: int) -> None:
    if size > MOST_OF_OBJECT:
        raise too_large(f"an object is larger than {MOST_OF_OBJECT >> 20} MiB")
    if size > most:
        raise too_large(f"its objects are larger than {MOST_UNPACKED >> 20} MiB")


def _byte(pack: IO[bytes]) -> int:
    return pack.read(1)[0]


def _made_by(delta: bytes) -> int:
    """Return the size of what a delta makes: the second number at its beginning."""
    numbers, value, shift = list[int](), 0, 0
    for byte in delta:
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            numbers.append(value)
            value, shift = 0, 0
        if len(numbers) == 2:
            return numbers[1]
    raise ValueError("not a delta")
