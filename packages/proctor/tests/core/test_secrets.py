"""The scrubber: a secret is hidden in every form that one could turn back into it, and no other text is changed."""

from __future__ import annotations

import base64
import html
import string
from pathlib import Path
from urllib.parse import quote

import pytest

from proctor.core import Scrubber, environment_scrubber, generator, without_keys
from proctor.core.secrets import secrets_in
from tests.support.paths import ROOT

KEYS = (
    "sk-proj-THISIsSECRET0123456789_abXY",
    "0123456789abcdef0123456789abcdef",
    "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCY+EXAMPLE==",
    "p4ss&w<ö>rd 42!",
    "hunter22hunter",
)


def forms(key: str) -> dict[str, str]:
    """The key as servers and loggers write it."""
    raw = key.encode()

    def each(write: str, between: str = "") -> str:
        return between.join(write.format(byte) for byte in raw)

    def encoded(before: bytes = b"", after: bytes = b"") -> str:
        return base64.b64encode(before + raw + after).decode()

    whole = encoded()
    return {
        "as it is": key,
        "upper": key.upper(),
        "lower": key.lower(),
        "swapped": key.swapcase(),
        "reversed": key[::-1],
        "bearer": f"Bearer {key}",
        "repr": repr(list(key)),
        "lines": "\n".join(key),
        "one break": f"{key[:7]}\n{key[7:]}",
        "one break and an indent": f"{key[:9]}\r\n\t {key[9:]}",
        "blanks": " ".join(key),
        "nul": "\0".join(key),
        "zero width": "\u200b".join(key),
        "dashes": "-".join(key),
        "markup": "**".join(key),
        "base64": whole,
        "base64, url": base64.urlsafe_b64encode(raw).decode(),
        "base64, unpadded": whole.rstrip("="),
        "base64, lines": "\n".join(whole[start : start + 10] for start in range(0, len(whole), 10)),
        "basic": "Basic " + encoded(b"user:"),
        "basic, without a user": "Basic " + encoded(b":"),
        "basic, another user": "Basic " + encoded(b"me:", b"\n"),
        "in longer base64": encoded(b"Authorization: Bearer ", b"\r\nHost: x"),
        "percent": each("%{:02X}"),
        "quoted": quote(key, safe=""),
        "quoted, lower": quote(key, safe="").lower(),
        "hex": raw.hex(),
        "HEX": raw.hex().upper(),
        "hex, colons": raw.hex(":"),
        "hex, blanks": raw.hex(" "),
        "0x": each("0x{:02x}", ", "),
        "entities": "".join(f"&#{ord(letter)};" for letter in key),
        "entities, hex": "".join(f"&#x{ord(letter):x};" for letter in key),
        "entities, padded": "".join(f"&#{ord(letter):03d};" for letter in key),
        "escaped for html": html.escape(key),
        "entities of marks": "".join(one if one.isalnum() else f"&#{ord(one)};" for one in key),
        "escapes": each("\\x{:02x}"),
        "octal": each("\\{:03o}"),
        "unicode escapes": "".join(f"\\u{ord(letter):04x}" for letter in key),
        "numbers": str([*raw]),
        "quoted-printable": each("={:02X}"),
    }


ASCII = [key for key in KEYS if key.isascii()]


@pytest.mark.parametrize("key", ASCII)
@pytest.mark.parametrize("form", forms("x"))
def test_every_form_is_hidden(key: str, form: str) -> None:
    said = forms(key)[form]
    hidden = Scrubber([key]).text(f"Answer: A. Your header was {said}, thank you.")
    assert hidden.startswith("Answer: A. Your header was "), hidden
    assert hidden.endswith("thank you."), hidden
    assert "***" in hidden
    left = "".join(filter(str.isalnum, hidden.removeprefix("Answer: A. Your header was ").removesuffix(", thank you.")))
    # What may be left: the name of the scheme and of the user, and the two characters of base64 around the key.
    assert len(left) <= {"basic": 16, "in longer base64": 48}.get(form, 14 if "basic" in form else 8), hidden


@pytest.mark.parametrize("form", ["as it is", "upper", "blanks", "percent", "base64", "quoted"])
def test_letters_of_other_alphabets_are_hidden_too(form: str) -> None:
    hidden = Scrubber([KEYS[4]]).text(f"it is {forms(KEYS[4])[form]} now")
    assert "***" in hidden
    assert KEYS[4] not in hidden


@pytest.mark.parametrize("key", KEYS[:4])
def test_pieces_are_hidden(key: str) -> None:
    """Without its first or last characters, and from twelve letters and digits on anywhere in it."""
    hide = Scrubber([key])
    plain = "".join(filter(str.isalnum, key))
    for piece in (key[3:], key[:-3], key[5:-4], *(plain[start : start + 12] for start in range(len(plain) - 11))):
        assert hide.text(f"<{piece}>").strip("<>*-_/+=") == "", piece
    assert hide.text(f"key ...{plain[-4:]}") == f"key ...{plain[-4:]}"


def test_the_places_of_letters_that_fold_to_two_are_right() -> None:
    key = KEYS[0]
    assert Scrubber([key]).text(f"Straße ßß İ {key} ß") == "Straße ßß İ *** ß"
    assert Scrubber([key]).text(f"{key}{key} and {key}") in {"*** and ***", "****** and ***"}


@pytest.mark.parametrize(
    "text", ["", "A", "Answer: B", "The Veress needle is inserted.", "0123456789", "sk-proj", "***"]
)
def test_other_texts_stay_the_same_object(text: str) -> None:
    hide = Scrubber(KEYS)
    assert hide.text(text) is text


def test_no_page_of_the_documentation_is_changed() -> None:
    """A quarter of a million words that hold no secret, against a hundred random keys of every usual make."""
    draw = generator(0, "secrets")
    alphabets = (
        string.ascii_letters + string.digits,
        "0123456789abcdef",
        string.ascii_lowercase + string.digits + "-_",
    )
    keys = [
        "".join(draw.choice([*letters], size=int(draw.integers(10, 60)))) for letters in alphabets for _ in range(34)
    ]
    hide = Scrubber(keys)
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text()
        assert hide.text(text) is text, page


@pytest.mark.parametrize(
    "value",
    [
        "x",
        "EMPTY",
        "none",
        "not-needed",
        "anything",
        "Password",
        "api-key-not-set",
        "1234567",
        "100000",
        "20251128120000"[:11],
    ],
)
def test_what_may_stand_in_any_answer_is_no_secret(value: str) -> None:
    """`OPENAI_API_KEY=not-needed`, for a server that needs none, must not change an answer."""
    text = f"It says {value}, or {value.upper()}."
    assert Scrubber([value]).text(text) is text


def test_a_phrase_is_hidden_whole() -> None:
    hide = Scrubber(["correct-horse-battery"])
    assert hide.text("it is correct horse battery.") == "it is ***."
    assert hide.text("the correct horse bats") == "the correct horse bats"


def test_values_are_read_through() -> None:
    key = KEYS[0]
    said = {"model": key, "n": [1, {"a": f"x {key}", key: None}], "none": None, "yes": True}
    assert Scrubber([key]).value(said) == {
        "model": "***",
        "n": [1, {"a": "x ***", "***": None}],
        "none": None,
        "yes": True,
    }
    assert Scrubber([]).value(said) is said


def test_which_variables_hold_secrets(tmp_path: Path) -> None:
    secret, plain = "a1b2c3d4e5f6", str(tmp_path)
    named = (
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD",
        "MY_CREDENTIALS",
        "DB_PASS",
        "x_passphrase",
    )
    assert secrets_in(dict.fromkeys(named, secret)) == (secret,) * len(named)
    for name in ("PATH", "TOKENIZERS_PARALLELISM", "KEY_FILE", "SSH_KEY_PATH", "MY_HOME"):
        assert secrets_in({name: secret}) == ()
    assert secrets_in({"GNOME_KEYRING_CONTROL": plain, "EMPTY_KEY": ""}) == ()
    assert secrets_in({"HTTPS_PROXY": "http://me:pa55word@host:1", "DATABASE_URL": "postgresql://u:s3cret99@h/d"}) == (
        "pa55word",
        "s3cret99",
    )
    assert secrets_in({"HTTP_PROXY": "http://host", "STORE_URL": "http://[::1"}) == ()


def test_the_environment_is_read_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    said = f"It was {KEYS[0]}."
    monkeypatch.delenv("SOME_KEY", raising=False)
    assert environment_scrubber().text(said) == said
    monkeypatch.setenv("SOME_KEY", KEYS[0])
    assert environment_scrubber().text(said) == "It was ***."
    monkeypatch.setenv("SOME_KEY", "swordfish")
    assert environment_scrubber().text("a swordfish") == "a swordfish"
    assert without_keys("no access for swordfish, nor for sk-abc12345678") == "no access for ***, nor for ***"
