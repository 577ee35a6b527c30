"""Media and frames in object storage: S3 and compatible servers, Google Cloud Storage, Azure, and plain HTTP. The one
module that imports obstore.

Files are identified by a hash of their content, so an object is fetched whole when it is first needed: in ranges,
several at a time, all of one version, into the media cache. Credentials come from the environment alone, under the names
that each provider's own tools use.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from proctor.core import ConfigurationError, InputError, content_hash, load_json, pip_install, read_bytes, replacing

T = TypeVar("T")

_URL = re.compile(r"(s3|gs|az|https?):/+(?=[^/])")
_OTHER_URL = re.compile(r"[a-z][a-z0-9+.-]+:/")
OBJECTS = "objects"
"""The folder of a cache in which the copies of objects lie, each in a folder of its version."""

_POSITION = "place.json"
_PART = 16 * 2**20
_PARTS_AT_ONCE, _FILES_AT_ONCE = 4, 4
_TRIES = 3  # of a range, each with its own retries of what the server refuses
_RETRIES: Any = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=5), "base": 2},
}
_HOSTS = ("core.windows.net", "fabric.microsoft.com", "amazonaws.com", "r2.cloudflarestorage.com")
_ENDPOINTS = (
    "AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT",
    "GOOGLE_BASE_URL",
)  # fmt: skip
_NOISE = re.compile(
    r"Generic \w+ error: |Error performing \w+ \S+ in .*? - |Object at location .* not found: |<[^<>]*>| for path \S+(?=:)"
)
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """One version of an object: its key below the folder, its size in bytes, and the version."""

    key: str
    size: int
    version: str


@dataclass(frozen=True, slots=True)
class ReadObject:
    """A small object's content, and its version as the storage names it."""

    data: bytes
    version: Any


def unwritable(folder: Path, error: OSError) -> ConfigurationError:
    """The error for a cache folder that can't be written to."""
    return ConfigurationError(
        f"the media cache {folder} can't be written to ({error.strerror or error}): "
        "choose another with the environment variable PROCTOR_CACHE"
    )


def url_of(location: str | Path) -> str | None:
    """The URL (s3://, gs://, az://, https://, http://) that a location is; None for a path. Raises `InputError` for a URL
    of another kind, and for one that carries credentials or a query."""
    url = _URL.match(str(location))
    if url is None:
        if _OTHER_URL.match(str(location)):
            raise InputError(
                str(location), found="another kind of URL", expected="s3://, gs://, az://, https:// or http://"
            )
        return None
    # A path has lost the second slash.
    whole = f"{url[1]}://{str(location)[url.end() :].rstrip('/')}"
    parts = urlsplit(whole)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(
            f"{url[1]}://{parts.netloc.rpartition('@')[2]}{parts.path}",
            found="a URL with credentials, a query or a fragment",
            expected="the address of the folder alone; credentials belong into the environment",
        )
    return whole


def media_folder(location: str | Path, cache: Path) -> Path:
    """The folder of media at a location: a path as it is; for a URL (see `url_of`) a folder in the `cache` that stands for
    it, which `remote_at` knows.

    Raises `InputError` as `url_of`, and `ConfigurationError` where the cache can't be written to.
    """
    whole = url_of(location)
    if whole is None:
        return Path(location)
    folder = cache.resolve() / "locations" / content_hash(whole)[:16]
    try:
        with replacing(folder / _POSITION) as draft:
            draft.write_text(json.dumps({"url": whole}), encoding="utf-8")
    except OSError as error:
        raise unwritable(cache, error) from error
    return folder


def location_of(folder: str | Path) -> str:
    """A folder as another process can name it: the URL that it is or stands for, or its absolute path."""
    path = Path(folder)
    remote = remote_at(path)
    return url_of(folder) or (str(path.resolve()) if remote is None else remote.url)


@lru_cache(maxsize=64)
def remote_at(folder: Path) -> RemoteFolder | None:
    """The folder in object storage that this one stands for; None for every other folder. One object for each folder
    in a process, so that metadata are requested once."""
    if folder.parent.name != "locations":
        return None
    try:
        url = load_json(read_bytes(folder / _POSITION))["url"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return RemoteFolder(url, folder.parent.parent) if isinstance(url, str) and _URL.match(url) else None


class ObjectFolder:
    """A folder in object storage, in which objects are read and written under keys. Nothing is listed.

    All methods raise `InputError` that names the object where the storage refuses, does not answer or answers wrongly
    after retries, and `ConfigurationError` without the extra `cloud`.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._store: Any = None
        self._guard = threading.Lock()

    def read(self, key: str, known: Any = None) -> ReadObject | None:
        """A whole object, without its data where it is still the `known` version; None where there is none."""
        obstore, errors = _obstore()
        options = {"if_none_match": known["e_tag"]} if known and "e_tag" in known else {}

        def get() -> ReadObject:
            reply = obstore.get(self._opened(), key, options=options)
            data = bytes(reply.bytes())
            if len(data) != int(reply.meta["size"]):
                raise OSError(f"{len(data)} bytes instead of {reply.meta['size']}")
            return ReadObject(data, _version(reply.meta))

        try:
            return self._retried(key, get, FileNotFoundError, errors.NotModifiedError)
        except FileNotFoundError:
            return None
        except errors.NotModifiedError:
            return ReadObject(b"", known)

    def ranges(self, key: str, spans: Sequence[tuple[int, int]], wrong: Callable[[int, bytes], str]) -> Iterator[bytes]:
        """The bytes of these spans in order, a few requests at a time. A span is requested again while `wrong`, given
        its number and its bytes, returns a problem. Raises `FileNotFoundError` where there is no object."""
        with ThreadPoolExecutor(_PARTS_AT_ONCE, "object") as threads:
            for first in range(0, len(spans), _PARTS_AT_ONCE):
                window = range(first, min(first + _PARTS_AT_ONCE, len(spans)))
                yield from threads.map(
                    lambda number: self._range(key, spans[number], lambda _, part: wrong(number, part)), window
                )

    def write(self, key: str, data: bytes, instead_of: Any) -> Any:
        """Writes an object to replace the version that was read (None: of none), and returns its version; None where
        another version has appeared meanwhile. Raises `PermissionError` where the account may not write."""
        mode: Any = "create" if instead_of is None else instead_of or "overwrite"
        put = self._sent(key, lambda obstore, store: obstore.put(store, key, data, mode=mode, use_multipart=False))
        return None if put is None else _version(put)

    def upload(self, key: str, file: Path) -> None:
        """Writes a file's content under a key that nothing else is written under. Raises `PermissionError` as `write`,
        and `FileNotFoundError` where the file is gone."""
        with file.open("rb") as content:

            def put(obstore: Any, store: Any) -> Any:
                content.seek(0)
                return obstore.put(store, key, content, mode="overwrite")

            self._sent(key, put)

    def _sent(self, key: str, send: Callable[[Any, Any], Any]) -> Any:
        """The reply to a write; None where another version is there than the one to be replaced."""
        obstore, errors = _obstore()
        changed = (errors.AlreadyExistsError, errors.PreconditionError, FileExistsError)
        denied = (errors.PermissionDeniedError, errors.UnauthenticatedError, PermissionError)
        try:
            return self._retried(key, lambda: send(obstore, self._opened()), *changed, *denied)
        except changed:
            return None
        except denied as error:
            raise PermissionError(str(self._refused(key, error))) from error

    def _retried(self, key: str, attempt: Callable[[], T], *final: type[Exception]) -> T:
        """The result of an attempt, which is repeated after errors other than the `final` ones. Raises these, and
        `InputError` where no attempt succeeds."""
        _, errors = _obstore()
        why: Exception = OSError("no try")
        for _ in range(_TRIES):
            try:
                return attempt()
            except final:
                raise
            except (errors.BaseError, OSError) as error:
                why = error
        raise self._refused(key, why) from why

    def _opened(self) -> Any:
        """The store, opened at its first use."""
        with self._guard:
            if self._store is None:
                self._store = _store(self.url)
            return self._store

    def _range(self, key: str, span: tuple[int, int], wrong: Callable[[Any, bytes], str]) -> bytes:
        """The bytes of one span, requested again while `wrong` returns a problem, given the object's metadata and the
        bytes. Raises `FileNotFoundError` where there is no object."""
        obstore, _ = _obstore()

        def get() -> bytes:
            reply = obstore.get(self._opened(), key, options={"range": span})
            part = bytes(reply.bytes())
            problem = wrong(reply.meta, part)
            if problem or len(part) != span[1] - span[0]:
                raise OSError(problem or f"{len(part)} bytes instead of {span[1] - span[0]}")
            return part

        return self._retried(key, get, FileNotFoundError)

    def _refused(self, key: str, error: Exception) -> InputError:
        why = _NOISE.sub("", " ".join(str(error).split("Debug source")[0].split()))[:_SHOWN].strip()
        return InputError(self._shown(key), found=f"no reply that can be used ({why})", expected="the object")

    def _shown(self, key: str) -> str:
        return f"{self.url}/{key}"


def _version(told: Any) -> dict[str, str]:
    """The names of a version, by which the storage can compare it."""
    return {name: told[name] for name in ("e_tag", "version") if told[name] is not None}


def _version_text(meta: Any) -> str:
    return str(meta["e_tag"] or meta["version"] or meta["last_modified"])


class RemoteFolder(ObjectFolder):
    """A folder of media, whose objects are kept below `cache`/objects while they are the newest version."""

    def __init__(self, url: str, cache: Path) -> None:
        super().__init__(url)
        self.cache = cache
        self._seen: dict[str, RemoteObject | None] = {}
        self._fetching: dict[str, threading.Lock] = {}
        self._slots = threading.Semaphore(_FILES_AT_ONCE)

    def look(self, keys: Sequence[str]) -> RemoteObject | None:
        """The first of these keys that is an object, remembered for the process's life; None where none is."""
        return next((found for key in keys if (found := self._head(key)) is not None), None)

    def address_of(self, found: RemoteObject) -> str:
        """A hash that identifies this version of this object."""
        return content_hash([self.url, found.key, found.version])[:32]

    def copy_of(self, found: RemoteObject) -> Path:
        """Where the object's copy lies once it is fetched."""
        return self.cache / OBJECTS / self.address_of(found) / found.key.rpartition("/")[2]

    def fetch(self, found: RemoteObject) -> tuple[Path, str]:
        """The object's copy in the cache, made if necessary (a copy is whole or not there), and the SHA-256 of what
        arrived; "" if the copy was there already.

        Raises `InputError` where it does not arrive whole and of one version, after retries.
        """
        path = self.copy_of(found)
        with self._guard:
            alone = self._fetching.setdefault(found.key, threading.Lock())
        with alone, self._slots:
            if path.is_file() and (state := path.stat()).st_size == found.size:
                os.utime(path, ns=(time.time_ns(), state.st_mtime_ns))  # read now, and the same as before
                return path, ""
            with replacing(path) as draft:
                return path, self._written(found, draft)

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
            found = RemoteObject(key, int(told["size"]), _version_text(told))
        with self._guard:
            return self._seen.setdefault(key, found)

    def _written(self, found: RemoteObject, draft: Path) -> str:
        """Writes the object's ranges in order, a few at a time, so that it is never in memory as a whole; its SHA-256."""
        spans = [(start, min(start + _PART, found.size)) for start in range(0, found.size, _PART)]
        digest = hashlib.sha256()
        with draft.open("wb") as out, ThreadPoolExecutor(_PARTS_AT_ONCE, "object") as threads:
            for first in range(0, len(spans), _PARTS_AT_ONCE):
                window = spans[first : first + _PARTS_AT_ONCE]
                for part in threads.map(lambda span: self._part(found, span), window):
                    out.write(part)
                    digest.update(part)
        return digest.hexdigest()

    def _part(self, found: RemoteObject, span: tuple[int, int]) -> bytes:
        def replaced(meta: Any, _: bytes) -> str:
            if (_version_text(meta), int(meta["size"])) != (found.version, found.size):
                changed = "an object that is replaced while it is read"
                raise InputError(self._shown(found.key), found=changed, expected="one version")
            return ""

        try:
            return self._range(found.key, span, replaced)
        except FileNotFoundError as error:
            raise self._refused(found.key, error) from error


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
