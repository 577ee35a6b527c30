"""Media in object storage: S3 and what speaks its protocol, Google Cloud Storage, Azure, and plain HTTP. The one module
that imports obstore.

A file is known by the hash of its whole content, so an object is fetched whole when it is first needed: in ranges,
several at a time, all of one version, into the media cache. Everything else reads the file there. Credentials come from
the environment alone, by the names that each provider's own tools use.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from proctor.core import ConfigurationError, InputError, content_hash, load_json, pip_install, read_bytes, replacing

_URL = re.compile(r"(s3|gs|az|https?):/+(?=[^/])")
OBJECTS = "objects"
"""The folder of a cache in which the copies of objects lie, each in a folder of its version."""

_PLACE = "place.json"
_PART = 4 * 2**20
_PARTS_AT_ONCE, _FILES_AT_ONCE = 4, 4
_TRIES = 3  # of a range, each with its own retries of what the server refuses
_RETRIES: Any = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=5), "base": 2},
}
_HOSTS = ("core.windows.net", "fabric.microsoft.com", "amazonaws.com", "r2.cloudflarestorage.com")
_ENDPOINTS = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT")
_NOISE = re.compile(r"Generic \w+ error: |Error performing \w+ \S+ in .*? - |Object at location .* not found: ")
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """One version of an object: its key below the folder, its size in bytes and what tells versions apart."""

    key: str
    size: int
    version: str


@dataclass(frozen=True, slots=True)
class FetchedObject:
    """An object's copy in the cache, and the SHA-256 of what arrived; '' where the copy was there already."""

    path: Path
    sha256: str


def media_folder(place: str | Path, cache: Path) -> Path:
    """The folder of media at a place: a path as it is; for a URL (s3://, gs://, az://, https://, http://) a folder in
    the `cache` that stands for it, which `remote_at` knows.

    Raises `InputError` for a URL that carries credentials or a query, and `ConfigurationError` where the cache can't be
    written to.
    """
    url = _URL.match(str(place))
    if url is None:
        return Path(place)
    # A path has lost the second slash.
    whole = f"{url[1]}://{str(place)[url.end() :].rstrip('/')}"
    parts = urlsplit(whole)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(
            f"{url[1]}://{parts.netloc.rpartition('@')[2]}{parts.path}",
            found="a URL with credentials, a query or a fragment",
            expected="the address of the folder alone; credentials belong into the environment",
        )
    folder = cache.resolve() / "places" / content_hash(whole)[:16]
    try:
        with replacing(folder / _PLACE) as draft:
            draft.write_text(json.dumps({"url": whole}), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the media cache {cache} can't be written to ({error.strerror or error}): "
            "choose another with the environment variable PROCTOR_CACHE"
        ) from error
    return folder


def place_of(folder: Path) -> str:
    """What `media_folder` was given: the URL that a folder stands for, or the whole path of any other folder."""
    remote = remote_at(folder)
    return str(folder.resolve()) if remote is None else remote.url


@lru_cache(maxsize=64)
def remote_at(folder: Path) -> RemoteFolder | None:
    """The folder in object storage that this one stands for; None for every other folder. One for each in a process,
    so that an object is looked at once."""
    if folder.parent.name != "places":
        return None
    try:
        url = load_json(read_bytes(folder / _PLACE))["url"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return RemoteFolder(url, folder.parent.parent) if isinstance(url, str) and _URL.match(url) else None


class RemoteFolder:
    """A folder in object storage, whose objects are kept below `cache`/objects while they are the newest version."""

    def __init__(self, url: str, cache: Path) -> None:
        self.url = url
        self.cache = cache
        self._store: Any = None
        self._seen: dict[str, RemoteObject | None] = {}
        self._guard = threading.Lock()
        self._fetching: dict[str, threading.Lock] = {}
        self._slots = threading.Semaphore(_FILES_AT_ONCE)

    def look(self, keys: Sequence[str]) -> RemoteObject | None:
        """The first of these keys that is an object, remembered for the process's life; None where none is.

        Raises `InputError` where the storage refuses or does not answer after retries, and `ConfigurationError` without
        the extra `cloud`.
        """
        return next((found for key in keys if (found := self._head(key)) is not None), None)

    def fetch(self, found: RemoteObject) -> FetchedObject:
        """The object's copy in the cache, made where there is none of this version yet. A copy is whole or not there.

        Raises `InputError` where it does not arrive whole and of one version, after retries.
        """
        path = (
            self.cache
            / OBJECTS
            / content_hash([self.url, found.key, found.version])[:32]
            / found.key.rpartition("/")[2]
        )
        with self._guard:
            alone = self._fetching.setdefault(found.key, threading.Lock())
        with alone, self._slots:
            if path.is_file() and (state := path.stat()).st_size == found.size:
                os.utime(path, ns=(time.time_ns(), state.st_mtime_ns))  # read now, and the same as before
                return FetchedObject(path, "")
            with replacing(path) as draft:
                return FetchedObject(path, self._written(found, draft))

    def _head(self, key: str) -> RemoteObject | None:
        with self._guard:
            if key in self._seen:
                return self._seen[key]
        obstore, errors = _obstore()
        try:
            told = obstore.head(self._opened(), key)
        except FileNotFoundError:
            found = None
        except (errors.BaseError, OSError) as error:
            raise self._refused(key, error) from error
        else:
            version = str(told["e_tag"] or told["version"] or told["last_modified"])
            found = RemoteObject(key, int(told["size"]), version)
        with self._guard:
            return self._seen.setdefault(key, found)

    def _opened(self) -> Any:
        """The store, opened when it is first asked."""
        with self._guard:
            if self._store is None:
                self._store = _store(self.url)
            return self._store

    def _written(self, found: RemoteObject, draft: Path) -> str:
        """Writes the object's ranges in order; a few are under way at a time, so that it is never in memory as a whole."""
        starts = range(0, found.size, _PART)
        digest = hashlib.sha256()
        with draft.open("wb") as out, ThreadPoolExecutor(_PARTS_AT_ONCE, "object") as threads:
            for first in range(0, len(starts), _PARTS_AT_ONCE):
                window = starts[first : first + _PARTS_AT_ONCE]
                for part in threads.map(lambda start: self._range(found, start), window):
                    out.write(part)
                    digest.update(part)
        return digest.hexdigest()

    def _range(self, found: RemoteObject, start: int) -> bytes:
        obstore, errors = _obstore()
        end = min(start + _PART, found.size)
        why: Exception = OSError("no try")
        for _ in range(_TRIES):
            try:
                reply = obstore.get(self._opened(), found.key, options={"range": (start, end)})
                version = str(reply.meta["e_tag"] or reply.meta["version"] or reply.meta["last_modified"])
                part = bytes(reply.bytes())
            except (errors.BaseError, OSError) as error:
                why = error
                continue
            if (version, int(reply.meta["size"])) != (found.version, found.size):
                changed = "an object that is replaced while it is read"
                raise InputError(self._shown(found.key), found=changed, expected="one version")
            if len(part) == end - start:
                return part
            why = OSError(f"{len(part)} bytes instead of {end - start}")
        raise self._refused(found.key, why) from why

    def _refused(self, key: str, error: Exception) -> InputError:
        why = _NOISE.sub("", " ".join(str(error).split("Debug source")[0].split()))[:_SHOWN].strip()
        return InputError(self._shown(key), found=f"no reply that can be used ({why})", expected="the object")

    def _shown(self, key: str) -> str:
        return f"{self.url}/{key}"


def _store(url: str) -> Any:
    _, errors = _obstore()
    from obstore.store import HTTPStore, from_url

    parts = urlsplit(url)
    plain = parts.scheme == "http" or any(os.environ.get(name, "").startswith("http://") for name in _ENDPOINTS)
    options: Any = {"connect_timeout": timedelta(seconds=10), "timeout": timedelta(seconds=60), "allow_http": plain}
    try:
        if parts.scheme in {"http", "https"} and not parts.hostname.endswith(_HOSTS):  # type: ignore[union-attr]
            return HTTPStore.from_url(url, client_options=options, retry_config=_RETRIES)
        return from_url(url, client_options=options, retry_config=_RETRIES)
    except (errors.BaseError, ValueError) as error:
        raise InputError(url, found=str(error).splitlines()[0][:_SHOWN], expected="the address of a folder") from error


def _obstore() -> tuple[Any, Any]:
    try:
        import obstore
        from obstore import exceptions
    except ImportError as error:
        raise ConfigurationError(f"media in object storage need obstore: {pip_install('cloud')}") from error
    return obstore, exceptions
