"""Read the files of a commit in as few calls as possible, and verify each by its blob id.

The content of a blob never changes, so the state caches each blob by its id: the shared files that every plan
needs, invalid manifests, the files of pull requests. Many unknown files are read as one archive; a file
that the archive lacks, or has in another form, is read by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from shared.fleet.resolve.repository_layout import blob_id
from shared.ports import Ports

log = logging.getLogger(__name__)

ARCHIVE_FROM = 20
"""More unknown files than this are read as one archive: two calls, and a download of the whole repository."""
MAX_LOOKUPS = 1000
"""At most this many blobs are looked up in the cache: each lookup is a read of the state, and an archive is
faster than thousands of them."""
MAX_CACHED_BYTES = 60_000
"""The largest blob that an entity of the state can hold."""
_BATCH = 100


def read_blobs(
    commit: str, wanted: Mapping[str, str], ports: Ports, *, check: Callable[[], None] = lambda: None
) -> Mapping[str, bytes]:
    """Return the content of files of a commit by blob id; ``wanted`` has the id of each path.

    Reads the cache when the files are few, then the archive or single blobs. A read that fails raises; the
    blobs that were read before it stay cached. ``check`` is called before each read, and may raise too.
    """
    check()
    ids = dict.fromkeys(wanted.values())
    contents = _verified(ports.state.blobs(ids), ids) if ids and len(ids) <= MAX_LOOKUPS else {}
    missing = {path: sha for path, sha in wanted.items() if sha not in contents}
    if len({*missing.values()}) > ARCHIVE_FROM:
        check()
        contents |= _cached(_from_archive(commit, missing, ports), ports)
    remaining = [sha for sha in dict.fromkeys(missing.values()) if sha not in contents]
    for batch in _batches(remaining):
        contents |= _cached({sha: _blob(sha, check, ports) for sha in batch}, ports)
    return contents


def _blob(sha: str, check: Callable[[], None], ports: Ports) -> bytes:
    check()
    return ports.repository.blob(sha)


def _verified(blobs: Mapping[str, bytes], ids: Iterable[str]) -> dict[str, bytes]:
    return {sha: blobs[sha] for sha in ids if sha in blobs and blob_id(blobs[sha]) == sha}


def _from_archive(commit: str, wanted: Mapping[str, str], ports: Ports) -> dict[str, bytes]:
    """Return, by blob id, the files that a commit's archive has at these paths."""
    files = ports.repository.archive(commit, wanted.keys())
    log.info("the archive of %s has %d of %d files", commit[:8], len(files), len(wanted))
    contents: dict[str, bytes] = {}
    for path, content in files.items():
        # An archive has the line ends that .gitattributes sets, the blob those that git stores.
        for form in (content, content.replace(b"\r\n", b"\n")):
            if blob_id(form) == wanted.get(path):
                contents[blob_id(form)] = form
                break
    return contents


def _cached(blobs: dict[str, bytes], ports: Ports) -> dict[str, bytes]:
    """Cache the blobs that are small enough, and return all."""
    small = {sha: content for sha, content in blobs.items() if len(content) <= MAX_CACHED_BYTES}
    if small:
        ports.state.save_blobs(small)
    return blobs


def _batches(ids: Sequence[str]) -> Iterator[tuple[str, ...]]:
    rest = iter(ids)
    while batch := tuple(islice(rest, _BATCH)):
        yield batch
