"""What an artifact of a registry has: the first layer of its manifest, unpacked in memory as Flux unpacks it.

Source of the rules: ``selectLayer`` and ``tar.Untar`` with ``WithSkipSymlinks``, as source-controller v1.7.3
calls them (``internal/controller/ocirepository_controller.go``; fluxcd/pkg ``tar/tar.go``, v0.15.0). Flux has
no limits of size there. The app has: whoever may push an artifact is not who runs the app.
"""

from __future__ import annotations

import hashlib
import io
import json
import posixpath
import tarfile
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Self

from shared.frozen import dataclass
from shared.language.resolve.problems import printable
from shared.language.resolve.repository_layout import Files, blob_id
from shared.platform.source.tree import Tree

MAX_MANIFEST = 4 << 20
"""Bytes of a manifest; the distribution specification has registries take 4 MiB."""
MAX_LAYER = 16 << 20
"""Bytes of a layer, as it is downloaded."""
MAX_UNPACKED = 64 << 20
"""Bytes of a layer, unpacked."""
MAX_ENTRIES = 20_000
"""Files, folders and links of a layer."""
MAX_HEADER = 16 << 10
"""Bytes of a header with a long name, or with attributes."""
MAX_PARTS = 100
"""Parts in which a layer may be compressed; Flux writes one."""
_UNPACKS_TO_MORE = f"its layer unpacks to more than {MAX_UNPACKED} bytes; push what Flux applies alone"
_SHOWN = 80
_MALFORMED = (tarfile.TarError, ValueError, LookupError, OverflowError, EOFError, RecursionError)


class UnreadableArtifact(Exception):
    """What is in an artifact is not known here: it is malformed, or beyond the bounds. Flux may take it."""


@dataclass(frozen=True)
class ArtifactLayer:
    """The layer of an artifact that Flux unpacks: its digest, and how many bytes it is said to have."""

    digest: str
    size: int


def first_layer(manifest: bytes, digest: str) -> ArtifactLayer:
    """Return the first layer that a manifest with this digest names; raise UnreadableArtifact for none."""
    verified(manifest, digest)
    try:
        found = json.loads(manifest)
        layers = found.get("layers")
        layer = ArtifactLayer(str(layers[0]["digest"]), int(layers[0]["size"])) if layers else None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UnreadableArtifact("its manifest cannot be read") from None
    if layer is None:
        what = "names no layers" if "manifests" not in found else "is a list of manifests"
        raise UnreadableArtifact(f"its manifest {what}; push it with flux push artifact")
    if layer.size > MAX_LAYER:
        raise UnreadableArtifact(too_large(layer.size))
    return layer


def too_large(size: int) -> str:
    """Return what is said of a layer with more bytes than are read."""
    return f"its layer has {size} bytes, and at most {MAX_LAYER} are read; push what Flux applies alone"


def verified(content: bytes, digest: str) -> bytes:
    """Return a content; raise UnreadableArtifact for one that has another digest."""
    if digest != f"sha256:{hashlib.sha256(content).hexdigest()}":
        raise UnreadableArtifact(f"what the registry has as {printable(digest, _SHOWN)} has another digest")
    return content


def unpacked(layer: bytes) -> Tree:
    """Return the files of a layer; raise UnreadableArtifact.

    As with Flux, links are not in it, a hard link is an empty file, and of two files with one path the second
    counts.
    """
    archive = _inflated(layer)
    try:
        contents, links = dict[str, bytes](), set[str]()
        for path, content in _entries(archive):
            if content is None:
                links.add(path)
            else:
                contents[path] = content
    except _MALFORMED as error:
        raise UnreadableArtifact(f"its layer is no archive: {type(error).__name__}") from None
    if any(parent in contents for path in contents for parent in _parents(path)):
        raise UnreadableArtifact("its layer has a file and a folder with the same path")
    blobs = {path: blob_id(content) for path, content in contents.items()}
    return Tree(Files(blobs, frozenset(links - contents.keys())), contents)


def _inflated(layer: bytes) -> bytes:
    """Return what a gzip file has, which may have several parts."""
    found, rest = bytearray(), layer
    try:
        for _ in range(MAX_PARTS):
            member = zlib.decompressobj(wbits=31)
            found += member.decompress(rest, MAX_UNPACKED + 1 - len(found))
            if len(found) > MAX_UNPACKED:
                raise UnreadableArtifact(_UNPACKS_TO_MORE)
            if not member.eof:
                raise UnreadableArtifact("its layer is cut off")
            rest = member.unused_data
            if not rest:
                return bytes(found)
    except zlib.error:
        raise UnreadableArtifact("its layer is not compressed with gzip, and Flux takes no other") from None
    raise UnreadableArtifact(f"its layer is compressed in more than {MAX_PARTS} parts")


class _Header(tarfile.TarInfo):
    """The header of an entry; one with a negative size, or a very long one, is refused before it is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the header that a block has."""
        found = super().frombuf(buf, encoding, errors)
        extends = not (found.isreg() or found.isdir() or found.issym() or found.islnk() or found.isdev())
        if found.size < 0 or (extends and found.size > MAX_HEADER):
            raise UnreadableArtifact(f"its layer has a header of {found.size} bytes")
        return found


def _entries(content: bytes) -> Iterator[tuple[str, bytes | None]]:
    """Yield the files of an archive, each with its content, and the links, with None."""
    read = partial(tarfile.open, mode="r:", encoding="utf-8", errors="strict", tarinfo=_Header)
    with read(fileobj=io.BytesIO(content)) as archive:
        count = size = 0
        for member in archive:
            count, size = count + 1, size + member.size
            if count > MAX_ENTRIES:
                raise UnreadableArtifact(f"its layer has more than {MAX_ENTRIES} files; push fewer")
            if size > MAX_UNPACKED:  # as with a sparse file
                raise UnreadableArtifact(_UNPACKS_TO_MORE)
            path = _path(member.name, is_folder=member.isdir())
            if member.issym():
                yield path, None
            elif member.islnk():
                yield path, b""
            elif member.isreg():
                file = archive.extractfile(member)
                yield path, file.read() if file else b""
            elif not member.isdir():
                raise UnreadableArtifact(f"{printable(path, _SHOWN)} is neither a file nor a folder")
        if any(content[archive.offset : archive.offset + 2 * tarfile.BLOCKSIZE]):
            raise UnreadableArtifact(f"its layer is no archive after {count} files")


def _path(name: str, *, is_folder: bool) -> str:
    """Return the path of an entry; raise UnreadableArtifact for one that Flux refuses."""
    path = posixpath.normpath(name) if name else ""
    outside = path in (".", "..") and not is_folder
    if not name or "\\" in name or name.startswith("/") or "../" in name or outside:
        what = f"its layer has an entry {printable(name, _SHOWN)!r}"
        raise UnreadableArtifact(f"{what}, which leads out of it or has no name; Flux refuses it")
    return path


def _parents(path: str) -> Iterator[str]:
    parts = path.split("/")[:-1]
    yield from ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
