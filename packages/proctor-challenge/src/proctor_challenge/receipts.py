"""Receipts: signed records of what a team was shown of a submission, which anybody can verify without the server.

The signature is Ed25519 (RFC 8032) over the canonical JSON of the receipt. A key inside a receipt proves nothing.
Verify it with the challenge's public key from its page, or from `public/receipt-key.txt`.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue, StringConstraints
from sqlalchemy import Connection, insert, select

from proctor.core import (
    ConfigurationError,
    FrozenModel,
    InputError,
    PluginReport,
    UsageError,
    ValidationRequest,
    input_text,
    parse_model,
    pip_install,
    write_whole,
)
from proctor_challenge.boards import Figures
from proctor_challenge.challenge import Challenge, SealedPart
from proctor_challenge.schema import receipts, results, scorers, submissions, teams
from proctor_challenge.settings import Phase, read_challenge
from proctor_web import utc_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_FILE = "public/receipt-key.txt"
"""The file with the public key in hexadecimal, in a challenge's folder."""

_KEY = "receipt.key"
_Hex64 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class Receipt(FrozenModel):
    """The phase with the commitment to its questions, references and rules; the submission with the hashes of its
    upload; the version of the scorer; and the means with intervals, rounded as the team saw them (none when the ladder
    held them back)."""

    receipt: int = 1
    challenge: str
    phase: str
    commitment: str
    team: str
    submission: int
    upload: str
    image: str
    scorer: int
    fingerprint: str
    boards: tuple[dict[str, JsonValue], ...]
    statuses: dict[str, int]
    at: str

    def lines(self) -> dict[str, str]:
        """The receipt as labelled lines of text."""
        names = ("challenge", "phase", "team", "submission", "scorer", "at")
        lines = {name: str(getattr(self, name)) for name in names}
        for board in self.boards:
            lines[str(board["name"])] = (
                f"{board['mean']} ({board['low']} to {board['high']}), questions: {board['questions']}"
            )
        return lines | {"upload": self.upload, "image": self.image or "none", "commitment": self.commitment}


class SignedReceipt(FrozenModel):
    """A receipt as a file: its content, the claimed public key, and the signature."""

    content: Receipt
    key: _Hex64
    signature: Annotated[str, Field(pattern="^[0-9a-f]{128}$")]

    def text(self) -> str:
        """The text of the file."""
        return self.model_dump_json(indent=1) + "\n"


def issue_receipts(connection: Connection, challenge: Challenge, sealed: SealedPart, phase: str) -> int:
    """Signs a receipt for each result of a phase without one; returns their number. Needs the private key, so it runs
    in the scorer's process."""
    scored = (results.c.figures, scorers.c.version, scorers.c.fingerprint)
    query = (
        select(submissions, teams.c.name.label("team_name"), *scored)
        .join(teams, teams.c.id == submissions.c.team)
        .join(results, results.c.submission == submissions.c.id)
        .join(scorers, scorers.c.version == results.c.scorer)
        .outerjoin(receipts, (receipts.c.submission == results.c.submission) & (receipts.c.scorer == results.c.scorer))
        .where(submissions.c.phase == phase, receipts.c.submission.is_(None))
    )
    rows = connection.execute(query).mappings().all()
    rules, key = challenge.phase(phase), _private(sealed)
    for row in rows:
        figures = Figures.model_validate(row["figures"])
        content = Receipt(
            challenge=challenge.settings.title or challenge.name,
            phase=phase,
            commitment=sealed.commitment(phase),
            team=row["team_name"],
            submission=row["number"],
            upload=row["upload"],
            image=row["image_digest"],
            scorer=row["version"],
            fingerprint=row["fingerprint"],
            boards=tuple(_shown_boards(figures, rules)),
            statuses=figures.statuses,
            at=utc_text(challenge.now()),
        ).model_dump(mode="json")
        kept = {"submission": row["id"], "scorer": row["version"], "content": content}
        connection.execute(insert(receipts).values(kept | {"signature": key.sign(_canonical(content)).hex()}))
    return len(rows)


def receipt_of(connection: Connection, submission: int, key: str) -> SignedReceipt | None:
    """The newest receipt of a submission, with the challenge's public key; None without a receipt."""
    query = select(receipts).where(receipts.c.submission == submission).order_by(receipts.c.scorer.desc()).limit(1)
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    return SignedReceipt.model_validate({"content": row["content"], "key": key, "signature": row["signature"]})


def public_key(folder: Path) -> str:
    """The challenge's public key, from its public part. Raises `InputError` when there is none yet."""
    text = input_text(folder / KEY_FILE, "the public key of receipts (proctor challenge phase open writes it)").strip()
    return _checked_key(text, folder / KEY_FILE)


def write_public_key(sealed: SealedPart) -> str:
    """Writes the public key into the public part unless it is there, and returns it. The key is created on first use."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    text = _private(sealed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    file = sealed.folder / KEY_FILE
    if not file.is_file() or file.read_bytes() != f"{text}\n".encode():
        write_whole(file, text + "\n")
    return text


def verify_receipt(file: Path, key: str | Path) -> Receipt:
    """The content of a receipt that was signed with this key (hexadecimal, a file with it, or a challenge's folder).
    Raises `InputError` when it was changed, or signed with another key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    trusted = _named_key(key)
    found = parse_model(file, input_text(file, "a receipt"), SignedReceipt)
    if found.key != trusted:
        raise InputError(file, "key", found=f"{found.key[:16]}…", expected=f"{trusted[:16]}…, the challenge's")
    try:
        known = Ed25519PublicKey.from_public_bytes(bytes.fromhex(trusted))
        known.verify(bytes.fromhex(found.signature), _canonical(found.content.model_dump(mode="json")))
    except InvalidSignature as error:
        expected = "the signature of its content: it was changed"
        raise InputError(file, "signature", found="another one", expected=expected) from error
    return found.content


def verify_commitment(found: Receipt, folder: Path) -> None:
    """Verifies that the questions, references and rules of a challenge, published with its sealed part, are those that
    a receipt names. Raises `InputError` when they are not, and without the key of commitments."""
    sealed = SealedPart(folder, read_challenge(folder, sealed=True))
    if not sealed.commitment_key.is_file():
        raise InputError(
            sealed.commitment_key, found="no such file", expected="the key of commitments, published with it"
        )
    if sealed.commitment(found.phase) != found.commitment:
        expected = f"questions, references and rules of {found.phase} as the receipt names them"
        raise InputError(folder, found="others", expected=expected)


def validate_receipt(file: Path, request: ValidationRequest) -> PluginReport:
    """`proctor check receipt`: the signature by the option `key` (its digits, a file, or the challenge's folder), and
    by `published` also the questions, references and rules. Works offline. Raises `InputError` for what differs."""
    if find_spec("cryptography") is None:
        raise ConfigurationError(f"receipts need cryptography: {pip_install('challenge')}")
    options = request.known_options("key", "published")
    if "key" not in options:
        raise UsageError(
            "--option key=KEY is missing. Give the challenge's public key: its digits, a file, or its folder."
        )
    found = verify_receipt(file, str(options["key"]))
    told = ["Signed by this challenge, and unchanged."]
    if "published" in options:
        verify_commitment(found, Path(str(options["published"])))
        told.append("Questions, references and rules are those that it was scored by.")
    lines = [f"{name}: {value}" for name, value in found.lines().items()]
    return PluginReport(found.model_dump(mode="json"), (*told, *lines))


def _named_key(key: str | Path) -> str:
    path = Path(key)
    if path.is_dir():
        return public_key(path)
    return _checked_key(input_text(path, "a public key").strip() if path.is_file() else str(key), path)


def _checked_key(text: str, location: Path) -> str:
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise InputError(location, found=f"{text[:40]!r}", expected="a public key, 64 hexadecimal digits")
    return text


def _private(sealed: SealedPart) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(sealed.secret(_KEY))


def _shown_boards(figures: Figures, phase: Phase) -> list[dict[str, Any]]:
    """The boards as the team saw them."""
    boards: list[dict[str, Any]] = []
    for board in figures.boards if figures.shown else ():
        ends = {name: getattr(board, name) for name in ("mean", "low", "high")}
        rounded = {name: None if value is None else round(value, phase.results.digits) for name, value in ends.items()}
        boards.append({"name": board.name, "questions": board.questions, "groups": board.groups} | rounded)
    return boards


def _canonical(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
