"""The repositories of a registry: blobs, manifests and tags, in memory."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

IDENTITY_USER = "00000000-0000-0000-0000-000000000000"
"""The user name of an identity of Azure."""
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class RegistryRefusal(Exception):
    """A refusal with the code of the distribution specification."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def digest_of_bytes(content: bytes) -> str:
    """Return the digest of a content."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class _Repository:
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


class RegistryStore:
    """A registry. Everybody may pull until ``readers`` says who: users with passwords, or client ids."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._repositories: dict[str, _Repository] = {}
        self.users: Mapping[str, str] | None = None
        self.identities: Collection[str] = ()
        self.tokens: set[str] = set()
        """What the registry has given to identities, or to everybody where it is ``public``."""
        self.public = False

    def admits(self, user: str, password: str) -> bool:
        """Return whether a user, or an identity, may use the registry."""
        if self.users is None:
            return True
        return password in self.identities if user == IDENTITY_USER else self.users.get(user) == password

    def put_blob(self, name: str, content: bytes, digest: str) -> None:
        """Store a blob; refuse another content than that of the digest."""
        if digest_of_bytes(content) != digest:
            raise RegistryRefusal(400, "DIGEST_INVALID", "provided digest did not match uploaded content")
        with self._lock:
            self._repositories.setdefault(name, _Repository()).blobs[digest] = content

    def blob(self, name: str, digest: str) -> bytes:
        """Return a blob."""
        found = self._repository(name).blobs.get(digest)
        if found is None:
            raise RegistryRefusal(404, "BLOB_UNKNOWN", "blob unknown to registry")
        return found

    def put_manifest(self, name: str, reference: str, kind: str, content: bytes) -> str:
        """Store a manifest under a tag or its digest; return the digest."""
        try:
            parts = json.loads(content)
            needed = [document["digest"] for document in (parts["config"], *parts["layers"])]
        except (ValueError, KeyError, TypeError) as error:
            raise RegistryRefusal(400, "MANIFEST_INVALID", "manifest invalid") from error
        digest = digest_of_bytes(content)
        with self._lock:
            repository = self._repositories.setdefault(name, _Repository())
            if any(document not in repository.blobs for document in needed):
                raise RegistryRefusal(
                    404, "MANIFEST_BLOB_UNKNOWN", "manifest references a blob unknown to registry"
                )
            if reference.startswith("sha256:"):
                if reference != digest:
                    raise RegistryRefusal(
                        400, "DIGEST_INVALID", "provided digest did not match uploaded content"
                    )
            else:
                repository.tags[reference] = digest
            repository.manifests[digest] = kind, content
        return digest

    def manifest(self, name: str, reference: str) -> tuple[str, bytes]:
        """Return the media type and the bytes of a manifest, by its tag or digest."""
        repository = self._repository(name)
        found = repository.manifests.get(repository.tags.get(reference, reference))
        if found is None:
            raise RegistryRefusal(404, "MANIFEST_UNKNOWN", f"manifest tagged by {reference!r} is not found")
        return found

    def untag(self, name: str, tag: str) -> None:
        """Remove a tag; its manifest stays."""
        with self._lock:
            del self._repository(name).tags[tag]

    def purge(self, name: str, *, tagged: bool = False) -> None:
        """Remove the manifests without a tag, as a retention policy does, or those that are tagged, too."""
        with self._lock:
            repository = self._repository(name)
            wanted = set() if tagged else {*repository.tags.values()}
            found = repository.manifests
            repository.manifests = {key: found[key] for key in found.keys() & wanted}

    def tags(self, name: str) -> list[str]:
        """Return the tags of a repository, in lexical order."""
        return sorted(self._repository(name).tags)

    def _repository(self, name: str) -> _Repository:
        found = self._repositories.get(name)
        if found is None:
            raise RegistryRefusal(404, "NAME_UNKNOWN", "repository name not known to registry")
        return found
