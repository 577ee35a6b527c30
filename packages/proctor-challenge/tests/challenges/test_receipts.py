"""Receipts: what a team was told, signed; checked without the server, and refused where a byte is another one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proctor.core import InputError
from proctor_challenge.board_pages import publish
from proctor_challenge.challenge import SealedPart
from proctor_challenge.receipts import KEY_FILE, receipt_of, verify_receipt, write_public_key
from tests.support.hosted import team
from tests.support.program import proctor
from tests.support.scored_challenge import PHASE, Hosted


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    found = Hosted(
        tmp_path_factory.mktemp("receipts") / "c", videos=4, baseline=None, more="  results: {rule: ladder}\n"
    )
    of = team(found.challenge)
    for skill in (0.8, 0.5):
        found.submit(of, skill)
    write_public_key(found.challenge.sealed)
    publish(found.challenge, PHASE)
    yield found
    found.challenge.close()


def key_of(hosted: Hosted) -> str:
    return (hosted.challenge.folder / KEY_FILE).read_text().strip()


@pytest.fixture
def receipt(hosted: Hosted, tmp_path: Path) -> Path:
    with hosted.challenge.reading() as connection:
        found = receipt_of(connection, 1, key_of(hosted))
    assert found is not None
    file = tmp_path / "receipt.json"
    file.write_text(found.text())
    return file


def test_a_receipt_says_what_was_told_and_is_signed(hosted: Hosted, receipt: Path) -> None:
    found = verify_receipt(receipt, key_of(hosted))
    assert (found.team, found.phase, found.submission, found.scorer) == ("Hand Surgeons", PHASE, 1, 1)
    assert found.commitment == hosted.challenge.sealed.commitment(PHASE)
    (upload,) = [one.name for one in hosted.challenge.uploads.iterdir() if one.name == found.upload]
    assert len(upload) == 64
    board: Any = found.boards[0]
    assert board["low"] < board["mean"] < board["high"]
    assert all(round(board[name], 3) == board[name] for name in ("low", "mean", "high"))
    assert verify_receipt(receipt, hosted.challenge.folder) == verify_receipt(
        receipt, hosted.challenge.folder / KEY_FILE
    )


def test_what_the_ladder_held_back_is_in_no_receipt(hosted: Hosted) -> None:
    with hosted.challenge.reading() as connection:
        found = receipt_of(connection, 2, key_of(hosted))
    assert found is not None
    assert found.content.boards == ()
    assert found.content.statuses == {"readable": 80}


@pytest.mark.parametrize(
    ("row", "value", "told"),
    [
        (("content", "boards", 0, "mean"), 0.999, "signature: found another one"),
        (("content", "team"), "Others", "signature: found another one"),
        (("content", "scorer"), 2, "signature: found another one"),
        (("signature",), "0" * 128, "signature: found another one"),
        (("signature",), "0", "signature"),
        (("key",), "0" * 64, "key: found 0000000000000000…"),
    ],
)
def test_a_changed_receipt_is_refused(
    hosted: Hosted, receipt: Path, row: tuple[Any, ...], value: Any, told: str
) -> None:
    content = json.loads(receipt.read_text())
    part = content
    for name in row[:-1]:
        part = part[name]
    assert part[row[-1]] != value
    part[row[-1]] = value
    receipt.write_text(json.dumps(content))
    with pytest.raises(InputError, match=told):
        verify_receipt(receipt, key_of(hosted))


def test_a_receipt_signed_by_somebody_else_is_refused(hosted: Hosted, receipt: Path) -> None:
    other = Ed25519PrivateKey.from_private_bytes(b"o" * 32)
    content = json.loads(receipt.read_text())
    plain = json.dumps(content["content"], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    content |= {"key": other.public_key().public_bytes_raw().hex(), "signature": other.sign(plain).hex()}
    receipt.write_text(json.dumps(content))
    verify_receipt(receipt, content["key"])  # it is a receipt, of another challenge
    with pytest.raises(InputError, match="the challenge's"):
        verify_receipt(receipt, key_of(hosted))


def test_the_key_is_kept_and_its_owner_s_alone(hosted: Hosted) -> None:
    first = key_of(hosted)
    assert write_public_key(SealedPart(hosted.challenge.folder, hosted.challenge.settings)) == first
    private = hosted.challenge.folder / "sealed/receipt.key"
    assert private.stat().st_mode & 0o777 == 0o600
    assert private.read_bytes().hex() not in first


def test_who_has_the_sealed_part_can_check_what_was_scored(hosted: Hosted, receipt: Path, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    shutil.copytree(hosted.challenge.folder, folder)
    command = ("check", "receipt", receipt, "--option", f"key={key_of(hosted)}", "--option", f"published={folder}")
    good = proctor(*command)
    assert good.stdout.splitlines()[1] == "Questions, references and rules are those that it was scored by."
    keys = folder / f"sealed/{PHASE}/references.json"
    right = keys.read_text()
    keys.write_text(right.replace('"answer": "no"', '"answer": "yes"', 1))
    bad = proctor(*command)
    assert (bad.returncode, "found others, expected questions, references and rules" in bad.stderr) == (1, True)
    keys.write_text(right)
    (folder / "sealed/commitment.key").unlink()
    assert "found no such file, expected the key of commitments" in proctor(*command).stderr


def test_receipts_are_issued_once(hosted: Hosted) -> None:
    def rows() -> list[Any]:
        with hosted.challenge.reading() as connection:
            return list(connection.exec_driver_sql("select submission, scorer, signature from receipts"))

    before = rows()
    publish(hosted.challenge, PHASE)
    assert rows() == before
    assert len(before) == 2


def test_the_command(hosted: Hosted, receipt: Path) -> None:
    good = proctor("check", "receipt", receipt, "--option", f"key={hosted.challenge.folder / KEY_FILE}")
    assert (good.returncode, good.stdout.splitlines()[0]) == (0, "Signed by this challenge, and unchanged.")
    receipt.write_text(receipt.read_text().replace("Hand Surgeons", "Hand surgeons"))
    bad = proctor("check", "receipt", receipt, "--option", f"key={key_of(hosted)}")
    assert bad.returncode == 1
    assert "it was changed" in bad.stderr
    assert proctor("check", "receipt", receipt, "--option", "key=abc").returncode == 1
