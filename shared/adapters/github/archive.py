"""Files of a commit on GitHub, by the hundred: its tarball, and those that stay in memory.

GitHub redirects to another host, with a URL that is itself a credential for five minutes
(docs.github.com/rest/repos/contents, "Download a repository archive"), so our token is not sent there. The
reader takes only the requested plain files, by their path inside the archive's one folder; nothing is
unpacked to disk.
"""

from __future__ import annotations

import tarfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from typing import IO, Any, cast

import requests

from shared.cluster.failures.errors import Dependency, ReconcileError, Throttled, Unavailable
from shared.cluster.failures.retry import retry_after

MAX_BYTES = 512 << 20
"""Limit on the unpacked size of an archive, all files of the repository together."""
MAX_FILE_BYTES = 1 << 20
"""A larger file is skipped; a manifest has at most 256 KiB."""
_CHUNK = 1 << 16
_MALFORMED = (tarfile.TarError, zlib.error, ValueError, LookupError, OverflowError, EOFError)


def read_archive(
    link: str, paths: Collection[str], *, timeout: float, limit: int = MAX_BYTES
) -> Mapping[str, bytes]:
    """Return the plain files at these paths; raise Unavailable for an incomplete archive.

    ``timeout`` is in seconds, to connect and between two chunks of the response. No error contains the link.
    """
    try:
        with requests.get(
            link,
            headers={"User-Agent": "roadstead", "Accept-Encoding": "identity"},
            auth=_anonymous,
            stream=True,
            timeout=timeout,
            allow_redirects=False,
        ) as response:
            if response.status_code != 200:
                raise _refused(response)
            return _files(_TarStream(response.iter_content(_CHUNK), limit), frozenset(paths))
    except requests.RequestException as error:
        # Not chained, here and below: the cause could contain the link.
        raise Unavailable(f"the archive could not be downloaded: {type(error).__name__}") from None


def _anonymous(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Send no credential; without this, requests searches the user's .netrc for one."""
    return request


def _refused(response: requests.Response) -> ReconcileError:
    message = f"GitHub returned {response.status_code} for its archive link"
    wait = retry_after(response.headers)
    if response.status_code == 404:
        return Dependency(message)
    if response.status_code == 429:
        return Throttled(message, retry_after=60.0 if wait is None else wait)
    return Unavailable(message)


def _files(stream: _TarStream, paths: frozenset[str]) -> Mapping[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|", encoding="utf-8") as archive:
            while (member := archive.next()) is not None:
                cast(Any, archive).members.clear()  # tarfile keeps an entry for every file
                path = member.name.partition("/")[2]
                if member.isreg() and member.size <= MAX_FILE_BYTES and path in paths:
                    content = archive.extractfile(member)
                    files[path] = content.read() if content else b""
        stream.drain()
    except _MALFORMED as error:
        raise Unavailable(f"the archive is malformed: {type(error).__name__}") from None
    return files


class _TarStream:
    """The tar stream inside the gzip, as a readable file; raises Unavailable when truncated or too large."""

    def __init__(self, chunks: Iterator[bytes], limit: int) -> None:
        self._chunks, self._left = chunks, limit
        self._gzip = zlib.decompressobj(wbits=31)  # verifies length and checksum at the end
        self._buffer = bytearray()

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer only at the end."""
        while len(self._buffer) < size and not self._gzip.eof:
            self._buffer += self._more()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def drain(self) -> None:
        """Read to the end, which detects a truncated archive."""
        while self.read(_CHUNK):
            pass

    def _more(self) -> bytes:
        compressed = self._gzip.unconsumed_tail or next(self._chunks, b"")
        if not compressed:
            raise Unavailable("the archive is truncated")
        data = self._gzip.decompress(compressed, _CHUNK)
        self._left -= len(data)
        if self._left < 0:
            raise Unavailable(
                f"the repository's archive unpacks to more than {MAX_BYTES >> 20} MiB; keep large files "
                "out of the fleet repository"
            )
        return data


class BlobCache:
    """The most recently used blobs, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._lock = threading.Lock()
        self._blobs: OrderedDict[str, bytes] = OrderedDict()

    def get(self, sha: str) -> bytes | None:
        """Return a blob, None for one that is not here."""
        with self._lock:
            if sha in self._blobs:
                self._blobs.move_to_end(sha)
            return self._blobs.get(sha)

    def put(self, sha: str, data: bytes) -> None:
        """Keep a blob, and drop those that nobody has used for longest."""
        with self._lock:
            self._size += len(data) - len(self._blobs.pop(sha, b""))
            self._blobs[sha] = data
            while self._size > self._limit:
                self._size -= len(self._blobs.popitem(last=False)[1])
