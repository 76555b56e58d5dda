"""Many files of a commit in one answer: GitHub's tarball, read as it comes and never unpacked to a disk.

GitHub redirects to another host with an address that carries its own permission for five minutes
(docs.github.com/rest/repos/contents, "Download a repository archive"), so our token stays at home. Only
plain files that are asked for are taken, by their path inside the archive's one folder: what a name or a
link in the archive points to does not matter, for nothing is written anywhere.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import IO, Any, cast

import requests

from shared.jobs.errors import Dependency, ReconcileError, Throttled, Unavailable
from shared.jobs.retry import retry_after

MAX_BYTES = 512 << 20
"""The most that an archive may unpack to, all files of the repository together."""
MAX_FILE_BYTES = 1 << 20
"""A larger file is left out; the largest manifest has 256 KiB."""
_CHUNK = 1 << 16
_BROKEN = (tarfile.TarError, zlib.error, ValueError, LookupError, OverflowError, EOFError)


def read_archive(
    link: str, paths: Collection[str], *, timeout: float, limit: int = MAX_BYTES
) -> Mapping[str, bytes]:
    """Return the plain files at these paths; raise Unavailable for an archive that is not whole.

    ``timeout`` is in seconds, to connect and between two pieces of the answer. No error names the link.
    """
    try:
        with requests.get(
            link,
            headers={"User-Agent": "roadstead", "Accept-Encoding": "identity"},
            auth=_as_nobody,
            stream=True,
            timeout=timeout,
            allow_redirects=False,
        ) as answer:
            if answer.status_code != 200:
                raise _refused(answer)
            return _files(_Inflated(answer.iter_content(_CHUNK), limit), frozenset(paths))
    except requests.RequestException as error:
        # Not chained, here and below: the cause could quote the link.
        raise Unavailable(f"the archive did not come through: {type(error).__name__}") from None


def _as_nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Send no credential; without this, requests would look for one in the user's .netrc."""
    return request


def _refused(answer: requests.Response) -> ReconcileError:
    message = f"GitHub answers {answer.status_code} where it said that the archive is"
    wait = retry_after(answer.headers)
    if answer.status_code == 404:
        return Dependency(message)
    if answer.status_code == 429:
        return Throttled(message, retry_after=60.0 if wait is None else wait)
    return Unavailable(message)


def _files(stream: _Inflated, paths: frozenset[str]) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|", encoding="utf-8") as archive:
            while (member := archive.next()) is not None:
                cast(Any, archive).members.clear()  # or it would remember every file of the repository
                path = member.name.partition("/")[2]
                if member.isreg() and member.size <= MAX_FILE_BYTES and path in paths:
                    content = archive.extractfile(member)
                    found[path] = content.read() if content else b""
        stream.drain()
    except _BROKEN as error:
        raise Unavailable(f"the archive is broken: {type(error).__name__}") from None
    return found


class _Inflated:
    """The tar inside the gzip, as a file to read from; complains when it is cut off or too large."""

    def __init__(self, chunks: Iterator[bytes], limit: int) -> None:
        self._chunks, self._left = chunks, limit
        self._gzip = zlib.decompressobj(wbits=31)  # checks length and checksum at its end
        self._buffer = bytearray()

    def read(self, size: int) -> bytes:
        """Return so many bytes, fewer only at the end."""
        while len(self._buffer) < size and not self._gzip.eof:
            self._buffer += self._more()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def drain(self) -> None:
        """Read to the end, so that an archive that was cut off is known."""
        while self.read(_CHUNK):
            pass

    def _more(self) -> bytes:
        compressed = self._gzip.unconsumed_tail or next(self._chunks, b"")
        if not compressed:
            raise Unavailable("the archive was cut off")
        data = self._gzip.decompress(compressed, _CHUNK)
        self._left -= len(data)
        if self._left < 0:
            raise Unavailable(
                f"the repository's archive unpacks to more than {MAX_BYTES >> 20} MiB; keep large files "
                "somewhere else than in the fleet repository"
            )
        return data
