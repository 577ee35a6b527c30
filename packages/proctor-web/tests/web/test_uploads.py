"""A form with a file, read as it comes: what is kept, what is refused, and that nothing is left."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from proctor_web.site import Site
from tests.support.web_open import MOST, open_site
from tests.support.web_site import browser, csrf_of

BYTES = bytes(range(256)) * 5_000


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = open_site(tmp_path)
    yield made
    made.engine.dispose()


@pytest.fixture
def client(site: Site) -> TestClient:
    return browser(site)


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    described = f'form-data; name="{name}"' + ("" if filename is None else f'; filename="{filename}"')
    return b"--edge\r\nContent-Disposition: " + described.encode() + b"\r\n\r\n" + content + b"\r\n"


def sent(client: TestClient, *parts: bytes, end: bytes = b"--edge--\r\n", headers: dict[str, str] | None = None) -> Any:
    kind = {"content-type": "multipart/form-data; boundary=edge"} | (headers or {})
    return client.post("/send", content=b"".join(parts) + end, headers=kind)


def left(site: Site) -> list[str]:
    return [one.name for one in site.folder.iterdir() if one.name.startswith(".incoming")]


def test_a_file_comes_whole_with_its_hash_and_fields(site: Site, client: TestClient) -> None:
    fields = {"csrf": csrf_of(client.get("/login")), "note": "first one, ä"}
    answer = client.post("/send", data=fields, files={"file": ("answers.json", BYTES)})
    said = answer.json()
    assert len(said.pop("kept")) == 1
    digest = hashlib.sha256(BYTES).hexdigest()
    assert said == {"name": "answers.json", "size": len(BYTES), "sha256": digest, "fields": fields}
    assert left(site) == []


def test_the_token_is_asked_for_before_the_file(site: Site, client: TestClient) -> None:
    csrf = csrf_of(client.get("/login")).encode()
    file = part("file", BYTES, "a.json")
    assert sent(client, file).status_code == 403
    assert sent(client, part("csrf", b"x" * 40), file).status_code == 403
    assert sent(client, file, part("csrf", csrf)).status_code == 403
    assert sent(client, part("note", b"no file, no token")).status_code == 403
    assert sent(client, part("csrf", csrf), file, headers={"origin": "https://evil.example"}).status_code == 403
    assert sent(client, part("csrf", csrf), file).status_code == 200
    assert sent(client, file, headers={"x-csrf-token": csrf.decode()}).status_code == 200
    assert left(site) == []


BROKEN: dict[str, tuple[tuple[bytes, ...], bytes, dict[str, str], int]] = {
    "it breaks off": ((part("file", BYTES, "a"),), b"", {}, 400),
    "two files": ((part("file", b"1", "a"), part("file", b"2", "b")), b"--edge--\r\n", {}, 400),
    "no form": ((), b"hello", {"content-type": "text/plain"}, 400),
    "no edge": ((), b"hello", {"content-type": "multipart/form-data"}, 400),
    "a long edge": ((), b"hello", {"content-type": f"multipart/form-data; boundary={'e' * 500}"}, 400),
    "another edge": ((part("file", b"1", "a"),), b"--edge--", {"content-type": "multipart/form-data; boundary=x"}, 400),
    "long fields": ((part("note", b"x" * 200_000),), b"--edge--\r\n", {}, 413),
    "many fields": (tuple(part(f"n{i}", b"x") for i in range(100)), b"--edge--\r\n", {}, 413),
    "a long header": ((part("n" * 10_000, b"x"),), b"--edge--\r\n", {}, 400),
    "a body that is too long": ((part("file", b"x" * MOST, "a"),), b"--edge--\r\n", {}, 413),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_whole_form_is_refused_and_leaves_nothing(site: Site, client: TestClient, case: str) -> None:
    parts, end, headers, status = BROKEN[case]
    csrf = csrf_of(client.get("/login"))
    assert sent(client, part("csrf", csrf.encode()), *parts, end=end, headers=headers).status_code == status
    assert left(site) == []


def test_a_body_without_a_length_ends_at_the_limit(site: Site, client: TestClient) -> None:
    """It would go on for ever."""
    csrf, asked = csrf_of(client.get("/login")), 0

    def endless() -> Iterator[bytes]:
        nonlocal asked
        yield part("csrf", csrf.encode()) + part("file", b"", "a")[:-2]
        while asked < 100:
            asked += 1
            yield bytes(100_000)

    kind = {"content-type": "multipart/form-data; boundary=edge"}
    assert client.post("/send", content=endless(), headers=kind).status_code == 413
    assert left(site) == []


NAMES = {"../../etc/passwd": "passwd", "C:\\dir\\a.json": "a.json", "..": "", "a\u202eb.json": "ab.json", "": ""}


@pytest.mark.parametrize("given", NAMES)
def test_a_files_name_is_a_name_alone(client: TestClient, given: str) -> None:
    csrf = csrf_of(client.get("/login"))
    said = sent(client, part("csrf", csrf.encode()), part("file", b"1", given.replace("\\", "\\\\"))).json()
    assert said["name"] == NAMES[given]
