"""`proctor fetch` against a scripted server: what is fetched is whole, known, bounded and stays in its folder."""

from __future__ import annotations

import io
import json
import socket
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

import proctor
from proctor.core import (
    BENCHMARKS,
    Benchmark,
    BenchmarkReader,
    InfrastructureError,
    InputError,
    Item,
    Reference,
    UsageError,
    reader_of,
)
from proctor.core.formats import BinaryFormat
from proctor.interchange import Downloader, content_sha256, unpack
from tests.support.file_server import FileServer, Served, file_server
from tests.support.program import proctor as shell

QUESTIONS = b"id,question,answer,theatre\nq1,Is lamp 1 on?,yes,A\nq2,Is lamp 2 on?,no,B\n"
FILES = {"top-1/data/questions.csv": QUESTIONS, "top-1/README.md": b"lamps", "top-1/code/run.py": b"import os"}


def tarred(files: dict[str, bytes], *members: tarfile.TarInfo, packed: bool = True) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz" if packed else "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for member in members:
            tar.addfile(member)
    return out.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


ARCHIVE = tarred(FILES)
TAGGED = {"ETag": '"one"'}


def _at_once(seconds: float) -> None:
    del seconds


class LampReader(BenchmarkReader):
    """Reads `questions.csv`, as another package's reader might."""

    name, summary = "lamps", "Lamps"

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        if not (data / "questions.csv").exists():
            raise InputError(data / "questions.csv", found="no such file", expected="questions")
        items = []
        for line in (data / "questions.csv").read_text().splitlines()[1:]:
            name, question, answer, theatre = line.split(",")
            right = Reference(answer=answer == "yes")
            items.append(Item(id=name, group=theatre, question=question, answer=BinaryFormat(), reference=right))
        return Benchmark("lamps", "Lamps", tuple(items), (proctor.ACCURACY,), "accuracy")


@pytest.fixture
def lamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A benchmark of another package whose entry in its file of sources is what the test says."""
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("proctor.interchange.download.time.sleep", _at_once)

    class Reader(LampReader):
        sources = tmp_path / "sources.yaml"

    monkeypatch.setitem(BENCHMARKS._known, "lamps", Reader())
    monkeypatch.setattr(BENCHMARKS, "_offered", {**BENCHMARKS._packages()})

    def declare(url: str, **more: Any) -> None:
        download = {"url": url, "most_mb": 1, "folders": {"data/questions.csv": "questions.csv"}} | more
        source = {
            "owner": "a hospital",
            "licence": "CC BY 4.0",
            "page": "https://example.org",
            "holds": "questions.csv",
        }
        Reader.sources.write_text(yaml.safe_dump({"lamps": source | {"download": download}}))

    return declare


def parts(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "downloads").glob("*"))


def test_an_archive_is_fetched_checked_and_unpacked(lamps: Any, tmp_path: Path) -> None:
    with file_server({"a.tar.gz": [Served(ARCHIVE, headers=TAGGED)]}) as server:
        lamps(server.url("a.tar.gz"), sha256=sha256(ARCHIVE).hexdigest())
        seen: list[tuple[int, int]] = []
        found = proctor.fetch("lamps", on_change=lambda done, of: seen.append((done, of)))
    assert sorted(one.name for one in found.out.iterdir()) == ["SOURCE.json", "questions.csv"]
    assert (found.out / "questions.csv").read_bytes() == QUESTIONS
    line = f"questions.csv {sha256(QUESTIONS).hexdigest()}\n"
    assert (found.files, found.content) == (1, sha256(line.encode()).hexdigest())
    record = json.loads((found.out / "SOURCE.json").read_text())
    assert (record["sha256"], record["licence"]) == (sha256(ARCHIVE).hexdigest(), "CC BY 4.0")
    assert "Data of a hospital. Licence: CC BY 4.0." in found.done
    assert seen[-1] == (0, 0)  # whole megabytes
    assert parts(tmp_path) == []  # nothing is left of the download
    assert len(proctor.load("lamps", found.out).items) == 2


def test_the_command_says_what_came_and_never_writes_over_anything(lamps: Any, tmp_path: Path) -> None:
    archive = zipped(FILES)
    with file_server({"a.zip": [Served(archive)]}) as server:
        lamps(server.url("a.zip"))
        done = shell("fetch", "lamps", "--out", tmp_path / "mine")
        assert done.returncode == 0, done.stderr
        assert f"1 file, 2 questions, 0.0 MB, in {tmp_path / 'mine'}; from {server.url('a.zip')}" in done.stdout
        assert f"SHA-256 of what was sent: {sha256(archive).hexdigest()}" in done.stdout
        again = shell("fetch", "lamps", "--out", tmp_path / "mine")
        assert (again.returncode, len(server.asked)) == (1, 1)  # it was not even asked again
        assert "found something there already, expected a new or an empty folder" in again.stderr
        told = json.loads(shell("fetch", "lamps", "--out", tmp_path / "other", "--format", "json").stdout)
    assert told["files"] == 1


def test_a_connection_that_breaks_is_gone_on_with(lamps: Any) -> None:
    cut = Served(ARCHIVE, headers=TAGGED, cut=100)
    with file_server({"a": [cut, Served(ARCHIVE, headers=TAGGED, cut=150), Served(ARCHIVE, headers=TAGGED)]}) as server:
        lamps(server.url("a"), sha256=sha256(ARCHIVE).hexdigest())
        proctor.fetch("lamps")
    ranges = [headers.get("range") for _, headers in server.asked]
    assert ranges[0] is None
    assert ranges[1:] == ["bytes=100-", "bytes=150-"]
    assert server.asked[1][1]["if-range"] == '"one"'


def test_a_server_that_ignores_ranges_sends_all_of_it_again(lamps: Any) -> None:
    cut = Served(ARCHIVE, headers=TAGGED, cut=100)
    with file_server({"a": [cut, Served(ARCHIVE, headers=TAGGED, ranges=False)]}) as server:
        lamps(server.url("a"), sha256=sha256(ARCHIVE).hexdigest())
        assert proctor.fetch("lamps").files == 1


def test_a_file_that_changed_meanwhile_is_not_joined(lamps: Any) -> None:
    """Without the same ETag the server sends the whole new file; without any, nothing is gone on with."""
    other = tarred({**FILES, "top-1/README.md": b"new"})
    with file_server(
        {"a": [Served(ARCHIVE, headers=TAGGED, cut=100), Served(other, headers={"ETag": '"two"'})]}
    ) as server:
        lamps(server.url("a"), sha256=sha256(other).hexdigest())
        proctor.fetch("lamps")
    with file_server({"a": [Served(ARCHIVE, cut=100), Served(ARCHIVE)]}) as server:
        lamps(server.url("a"))
        proctor.fetch("lamps", "second")
        assert "range" not in server.asked[1][1]


def test_what_a_killed_program_left_is_gone_on_with(lamps: Any, tmp_path: Path) -> None:
    class KilledError(BaseException):
        pass

    def killed(seconds: float) -> None:
        raise KilledError(seconds)

    with file_server({"a": [Served(ARCHIVE, headers=TAGGED, cut=100), Served(ARCHIVE, headers=TAGGED)]}) as server:
        lamps(server.url("a"), sha256=sha256(ARCHIVE).hexdigest())
        with pytest.raises(KilledError):
            Downloader(2**20, pause=killed).fetch(server.url("a"), tmp_path / "cache" / "downloads")
        assert [one.stat().st_size for one in parts(tmp_path) if one.suffix == ".part"] == [100]
        proctor.fetch("lamps")
        assert server.asked[-1][1]["range"] == "bytes=100-"


def test_a_wrong_checksum_leaves_nothing(lamps: Any, tmp_path: Path) -> None:
    with file_server({"a": [Served(ARCHIVE)]}) as server:
        lamps(server.url("a"), sha256="0" * 64)
        with pytest.raises(InputError, match=f"found a file with SHA-256 {sha256(ARCHIVE).hexdigest()}, expected 0000"):
            proctor.fetch("lamps")
        lamps(server.url("a"), content="0" * 64)
        with pytest.raises(InputError, match=r"found files with SHA-256 .*, expected 0000.*: others now"):
            proctor.fetch("lamps")
        found = proctor.fetch("lamps", url=server.url("a"))  # what a person names is said to be another one
        assert any(line.startswith("These are not the files of") for line in found.notes)
    assert parts(tmp_path) == []


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Served(status=404), "found status 404, expected a file; the address may have changed: --url"),
        (Served(status=403), "found status 403 (its owner lets only some people in), expected"),
        (Served(status=302, headers={"Location": "file:///etc/passwd"}), "found a redirect to file:///etc/passwd, expected one to https"),
        (Served(status=302, headers={"Location": "http://localhost/x"}), "found a redirect to another host, localhost, expected the same host; if you trust this one: --url http://localhost/x"),
        (Served(status=302, headers={"Location": "/a"}), "found more than 5 redirects, expected a file"),
        (Served(b"x" * (2**20 + 1)), "found 1.0 MB or more, expected at most 1 MB"),
        (Served(b"x" * (2**20 + 1), length=False), "found 1.0 MB or more, expected at most 1 MB"),
        (Served(b"no archive"), "found no archive (tar or zip), expected one with data/questions.csv"),
        (Served(ARCHIVE, headers={"Content-Encoding": "gzip"}), "found a compressed reply that nobody asked for"),
        (Served(ARCHIVE[:200]), "a broken archive"),
    ],
)  # fmt: skip
def test_what_no_further_try_mends_is_told_at_once(reply: Served, told: str, lamps: Any, tmp_path: Path) -> None:
    with file_server({"a": [reply]}) as server:
        lamps(server.url("a"))
        with pytest.raises(InputError) as caught:
            proctor.fetch("lamps")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "lamps").exists()


def test_a_redirect_to_a_known_host_is_followed(lamps: Any) -> None:
    with file_server({"b": [Served(ARCHIVE)]}) as other:
        elsewhere = other.url("b").replace("127.0.0.1", "localhost")
        with file_server({"a": [Served(status=302, headers={"Location": elsewhere})]}) as server:
            lamps(server.url("a"), hosts=["localhost"])
            assert proctor.fetch("lamps").files == 1


def test_a_server_that_fails_and_comes_back_is_asked_again(lamps: Any) -> None:
    busy = Served(status=503, headers={"Retry-After": "0"})
    with file_server({"a": [busy, busy, Served(ARCHIVE)]}) as server:
        lamps(server.url("a"))
        assert proctor.fetch("lamps").files == 1
        assert len(server.asked) == 3


def test_tries_wait_longer_and_longer_and_end(tmp_path: Path) -> None:
    waits: list[float] = []
    with file_server({"a": [Served(status=500)]}) as server:
        with pytest.raises(
            InfrastructureError, match=r"found no file after 5 tries \(status 500\), expected a connection"
        ):
            Downloader(2**20, pause=waits.append).fetch(server.url("a"), tmp_path)
        assert (waits, len(server.asked)) == ([1.0, 2.0, 4.0, 8.0], 5)
    with file_server({"a": [Served(status=429, headers={"Retry-After": "3600"})]}) as server:
        waits.clear()
        with pytest.raises(InfrastructureError):
            Downloader(2**20, pause=waits.append).fetch(server.url("a"), tmp_path)
        assert waits == [60.0] * 4


def test_without_a_network_the_message_names_proxy_and_mirror(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InfrastructureError) as caught:
        Downloader(2**20, pause=_at_once).fetch(f"http://127.0.0.1:{port}/a", tmp_path)
    assert "ConnectError" in str(caught.value)
    assert "look at the network and the proxy (HTTPS_PROXY), or name a mirror or a file with --url" in str(caught.value)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.org/a", "https://", "https://me:secret@example.org/a"]
)
def test_other_addresses_are_refused_and_no_password_is_printed(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Downloader(2**20).fetch(url, tmp_path)
    assert "secret" not in str(caught.value)


def device(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = tarfile.CHRTYPE
    return info


HOSTILE = {
    "climbs": (tarred({"top/../../evil": b"x"}), "found a member 'top/../../evil'"),
    "absolute": (tarred({"/etc/evil": b"x"}), "found a member '/etc/evil'"),
    "climbs in a zip": (zipped({"../evil": b"x"}), "found a member '../evil'"),
    "backslashes": (zipped({"a\\..\\..\\evil": b"x"}), "found a member"),
    "drive": (zipped({"C:evil": b"x"}), "found a member 'C:evil'"),
    "link": (
        tarred({"top/a": b"x"}, link("top/b", "/etc/passwd")),
        "found top/b, a link, expected plain files and folders",
    ),
    "device": (tarred({}, device("top/b")), "found top/b, a device or a pipe"),
    "twice": (tarred({"top/a": b"x"}, tarfile.TarInfo("top/a")), "found top/a twice"),
    "bomb": (zipped({"top/a": b"0" * (2**20)}), "bytes or more when unpacked, expected at most 1,000"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_archives_are_refused(case: str, tmp_path: Path) -> None:
    content, told = HOSTILE[case]
    (tmp_path / "a").write_bytes(content)
    folder = tmp_path / "in" / "out"
    folder.mkdir(parents=True)
    with pytest.raises(InputError) as caught:
        unpack(tmp_path / "a", folder, {}, 1_000)
    assert told in str(caught.value)
    assert [one for one in (tmp_path / "in").rglob("*") if one.name == "evil"] == []


def test_links_that_nobody_takes_do_not_matter_and_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tarred({"top/data/a.csv": b"x"}, link("top/README.md", "data/a.csv")))
    assert unpack(tmp_path / "a", tmp_path / "out", {"data": "."}, 1_000) == 1
    assert (tmp_path / "out" / "a.csv").read_bytes() == b"x"
    with pytest.raises(InputError, match="found no results, expected data, results"):
        unpack(tmp_path / "a", tmp_path / "more", {"data": "data", "results": "results"}, 1_000)


def test_the_content_has_one_hash_whatever_archive_it_came_in(tmp_path: Path) -> None:
    for name, content in (("a", tarred(FILES)), ("b", zipped(FILES))):
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"{name}-out").mkdir()
        assert unpack(tmp_path / name, tmp_path / f"{name}-out", {}, 10_000) == 3
    assert content_sha256(tmp_path / "a-out") == content_sha256(tmp_path / "b-out")
    assert (tmp_path / "a-out" / "data" / "questions.csv").is_file()  # without the archive's own top folder


@pytest.mark.parametrize("name", ["focus", "clinicalskillqa", "mediqa-eval"])
def test_data_that_are_not_to_be_had_are_told_in_one_message(name: str, tmp_path: Path) -> None:
    done = shell("fetch", name, "--out", tmp_path / "out")
    source = reader_of(name).source()
    assert (done.returncode, done.stdout, (tmp_path / "out").exists()) == (1, "", False)
    assert source is not None
    for part in (source.owner, source.licence, source.ask, source.page):
        assert part in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_benchmark_without_a_source_takes_an_archive_by_its_address(lamps: Any, tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text("{}")
    with pytest.raises(InputError, match="lamps: found no source of its data, expected --url with an archive"):
        proctor.fetch("lamps")
    (tmp_path / "mine.zip").write_bytes(zipped({"questions.csv": QUESTIONS}))
    found = proctor.fetch("lamps", url=str(tmp_path / "mine.zip"))
    assert (found.files, (tmp_path / "mine.zip").exists()) == (1, True)  # a person's own file stays
    (tmp_path / "other.zip").write_bytes(zipped({"a.txt": b"x"}))
    found = proctor.fetch("lamps", "other", url=str(tmp_path / "other.zip"))
    assert any("These files are not read as lamps: questions.csv" in line for line in found.notes)


@pytest.mark.parametrize("content", ["[1]", "lamps: {owner: x}", "lamps: ["])
def test_a_broken_file_of_sources_is_told(content: str, lamps: Any, tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text(content)
    with pytest.raises(InputError, match=r"sources\.yaml"):
        proctor.fetch("lamps")


def test_rexsonovqa_is_laid_out_as_its_reader_wants_it(data: Path, tmp_path: Path) -> None:
    """The repository's own layout, made of the real files: they come out as they lie in the folder of real data."""
    own, source = data / "rexsonovqa", reader_of("rexsonovqa").source()
    assert source is not None
    assert source.download is not None
    files = {"README.md": b"x", "seed_result/scores_mcq/a.json": b"{}", "seed_result/scores_free/a.json": b"{}"}
    for inside, location in source.download.folders.items():
        for one in [own / location] if (own / location).is_file() else sorted((own / location).rglob("*")):
            if one.is_file():
                files[f"{inside}{one.as_posix().removeprefix((own / location).as_posix())}"] = one.read_bytes()
    (tmp_path / "a.tar.gz").write_bytes(
        tarred({f"RexSonoVQA-c2b931f/{name}": content for name, content in files.items()}, packed=False)
    )
    found = proctor.fetch("rexsonovqa", tmp_path / "out", url=str(tmp_path / "a.tar.gz"))
    for one in own.rglob("*"):
        if one.is_file():
            assert (found.out / one.relative_to(own)).read_bytes() == one.read_bytes()
    assert len(proctor.load("rexsonovqa", found.out).counted()) == 514
    lines = (found.out / "videos.txt").read_text().splitlines()
    assert sum("https://www.youtube.com/watch" in line for line in lines) == 47
    assert any("videos.txt has a command for each of the 47." in note for note in found.notes)


def test_the_server_of_these_tests_is_the_only_one_that_was_asked(lamps: Any) -> None:
    """An address that a mirror names stands for the benchmark's own, which nobody asks then."""
    with file_server({"own": [Served(status=500)], "mirror": [Served(ARCHIVE)]}) as server:
        lamps(server.url("own"))
        proctor.fetch("lamps", url=server.url("mirror"))
    assert [path for path, _ in server.asked] == ["/mirror"]
    assert isinstance(server, FileServer)
