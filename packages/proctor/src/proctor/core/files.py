"""Reading files with a size limit, as bytes, text, JSON or pydantic models; errors name the file and the location."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from proctor.core.errors import InputError
from proctor.core.field_problems import first_problem
from proctor.core.file_kinds import kind_of_bytes, kind_of_text

_LIMIT = "PROCTOR_MAX_FILE_MB"
_MAX_MB = 100

_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
Model = TypeVar("Model", bound=BaseModel)
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonError(ValueError):
    """Invalid JSON: `location` ("line 3, column 7", or ""), what was `found` there, and what was `expected`.

    >>> error = JsonError("line 3, column 7", "no value")
    >>> print(error)
    line 3, column 7: no value
    >>> error.expected
    'JSON'
    """

    def __init__(self, location: str, found: str, expected: str = "JSON") -> None:
        super().__init__(f"{location}: {found}" if location else found)
        self.location = location
        self.found = found
        self.expected = expected


def read_bytes(file: Path, most_mb: int = _MAX_MB) -> bytes:
    """The content of a regular file of at most `most_mb` MB (overridden by the environment variable
    PROCTOR_MAX_FILE_MB).

    Raises `OSError` with a short reason as `strerror`, also for larger files, invalid names, and pipes, devices and
    folders, which could block indefinitely.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.bin"
    ...     _ = file.write_bytes(b"abc")
    ...     print(read_bytes(file))
    ...     try:
    ...         read_bytes(Path(folder))
    ...     except OSError as error:
    ...         print(error.strerror)
    b'abc'
    Is a directory
    """
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a NUL or a lone surrogate in the name
        raise OSError(errno.EINVAL, "a name that no file can have") from error
    with open(opened, "rb") as stream:  # noqa: PTH123 - opens the descriptor, so that the checked file is the one read
        about = os.fstat(opened)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        limit = _max_bytes(most_mb)
        content = stream.read(min(about.st_size, limit) + 1)  # avoids a large buffer for a small file
        if len(content) > about.st_size:  # the file grows, or reports no size (/proc)
            content += stream.read(limit + 1 - len(content))
        if len(content) > limit:
            larger = f"{about.st_size:,} bytes, more than the {limit:,} that {_LIMIT} allows"
            raise OSError(errno.EFBIG, larger)
        return content


def read_text(file: Path, encoding: str = "utf-8") -> str:
    """The text of a file. Raises `OSError` as `read_bytes` does, and `UnicodeDecodeError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.txt"
    ...     _ = file.write_bytes("37 °C".encode("utf-8"))
    ...     read_text(file)
    '37 °C'
    """
    return read_bytes(file).decode(encoding)


def load_json(
    text: str | bytes, *, pairs: Callable[[list[tuple[str, Any]]], object] | None = None, halves: bool = False
) -> Any:
    """Parse JSON text in UTF-8. `pairs` makes objects from lists of pairs, as `object_pairs_hook` of `json.loads`.

    Raises `JsonError` for invalid JSON, too deep nesting, a number with thousands of digits, and, unless `halves` are
    allowed, lone surrogates, which can't be stored. Raises `UnicodeDecodeError` for bytes that are not UTF-8.

    >>> load_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> load_json('{"a": [1, 2}')
    Traceback (most recent call last):
    proctor.core.files.JsonError: line 1, column 12: no comma
    >>> load_json('["\\\\ud800"]')
    Traceback (most recent call last):
    proctor.core.files.JsonError: line 1, column 3: half a character (a lone surrogate)
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise JsonError(f"line {error.lineno}, column {error.colno}", _broken(error)) from None
    except RecursionError:
        raise JsonError("", "lists or objects nested too deep") from None
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise
        raise JsonError("", "a number of thousands of digits") from None
    half = None if halves else _SURROGATE.search(text) or _lone_escape(text)
    if half is not None:
        line = text.count("\n", 0, half.start()) + 1
        column = half.start() - text.rfind("\n", 0, half.start())
        raise JsonError(f"line {line}, column {column}", "half a character (a lone surrogate)")
    return value


_BROKEN = {
    "Expecting value": "no value",
    "Expecting property name enclosed in double quotes": "no name in double quotes",
    "Expecting ':' delimiter": "no colon",
    "Expecting ',' delimiter": "no comma",
    "Extra data": "more after the value",
    "Illegal trailing comma before end of object": "a comma before the end",
    "Illegal trailing comma before end of array": "a comma before the end",
}


def _broken(error: json.JSONDecodeError) -> str:
    """The problem of invalid JSON in words; a truncated file is named as such."""
    if not error.doc.strip():
        return "nothing"
    if error.msg.startswith("Unterminated string"):
        return "a text without an end: the file is cut off"
    if error.pos >= len(error.doc.rstrip()):
        return "the end of the file: it is cut off"
    return _BROKEN.get(error.msg, error.msg[:1].lower() + error.msg[1:])


def _lone_escape(text: str) -> re.Match[str] | None:
    """The first escape of a lone surrogate."""
    location = 0
    while (hit := _HALF.search(text, location)) is not None:
        before = hit.start()
        while before and text[before - 1] == "\\":
            before -= 1
        if (hit.start() - before) % 2:  # the backslash is itself escaped
            location = hit.end()
            continue
        low = _HALF.match(text, hit.end())
        if hit[0][3] in "89aAbB" and low is not None and low[0][3] in "cCdDeEfF":
            location = low.end()
            continue
        return hit
    return None


def _max_bytes(most_mb: int) -> int:
    raw = os.environ.get(_LIMIT, "")
    return (int(raw) if raw.isdecimal() and raw.isascii() and len(raw) < 10 else most_mb) * 2**20


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object from its pairs, for the parameter `pairs`. Raises `JsonError` for a duplicate key.

    >>> load_json('{"a": 1, "b": 2}', pairs=unique_keys)
    {'a': 1, 'b': 2}
    >>> load_json('{"a": 1, "a": 2}', pairs=unique_keys)
    Traceback (most recent call last):
    proctor.core.files.JsonError: the key 'a' twice
    """
    entries = dict(pairs)
    if len(entries) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise JsonError("", f"the key {twice[:40]!r} twice", "each key once")
    return entries


def near_path(path: Path) -> str:
    """A suggestion for a path that is not there: the file or folder beside it whose name is most alike; "" for none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "gemini-3-pro").mkdir()
    ...     near_path(Path(folder) / "gemini").replace(folder, ""), near_path(Path(folder) / "claude")
    ("; did you mean '/gemini-3-pro'?", '')
    """
    try:
        names = sorted(one.name for one in path.parent.iterdir() if one.suffix == path.suffix or not path.suffix)
    except (OSError, ValueError):
        return ""
    names = names[:_MOST_NAMES] if path.name else []
    begun = [name for name in names if len(path.stem) > 2 and name.casefold().startswith(path.stem.casefold())]
    near = begun[:1] or get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""


def existing(path: Path, expected: str) -> Path:
    """A path of a user where a file or a folder is. Raises `InputError` with what was `expected`, and a similar name.

    >>> existing(Path("absent"), "recorded answers")
    Traceback (most recent call last):
    proctor.core.errors.InputError: absent: found no such file or folder, expected recorded answers
    """
    try:
        there = path.exists()
    except (OSError, ValueError):  # a name that no file can have
        there = False
    if not there:
        raise InputError(path, found="no such file or folder", expected=f"{expected}{near_path(path)}")
    return path


_MOST_NAMES = 2_000


def input_bytes(file: Path, expected: str = "a readable file") -> bytes:
    """The content of a file, as `read_bytes`. Raises `InputError` with what was `expected`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.bin").write_bytes(b"abc")
    ...     input_bytes(Path(folder) / "a.bin")
    b'abc'
    >>> input_bytes(Path("absent.json"), "a JSON file")
    Traceback (most recent call last):
    proctor.core.errors.InputError: absent.json: found no such file, expected a JSON file
    """
    try:
        return read_bytes(file)
    except FileNotFoundError as error:
        raise InputError(file, found="no such file", expected=f"{expected}{near_path(file)}") from error
    except OSError as error:
        raise InputError(file, found=error.strerror or "an unreadable file", expected=expected) from error


def input_text(file: Path, expected: str = "a text file", *, encoding: str = "utf-8") -> str:
    """The text of a file in UTF-8 (or `utf-8-sig`). Raises `InputError`, with the first byte that is not UTF-8.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.txt"
    ...     _ = file.write_bytes(b"abc\\xff")
    ...     try:
    ...         input_text(file)
    ...     except InputError as error:
    ...         print(str(error).removeprefix(f"{file}: "))
    byte 3: found text that is not UTF-8, expected UTF-8
    """
    try:
        return input_bytes(file, expected).decode(encoding)
    except UnicodeDecodeError as error:
        raise _not_utf8(file, error) from error


def read_json(
    file: Path,
    expected: str = "a JSON file",
    *,
    pairs: Callable[[list[tuple[str, Any]]], object] | None = None,
    halves: bool = False,
) -> object:
    """The value in a JSON file in UTF-8; `pairs` and `halves` as in `load_json`. Raises `InputError` with the location.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.json"
    ...     _ = file.write_bytes(b'{"a": [1, 2]}')
    ...     read_json(file)
    {'a': [1, 2]}
    """
    return parse_json(file, input_bytes(file, expected), pairs=pairs, halves=halves)


def parse_json(
    file: Path,
    text: str | bytes,
    location: str = "",
    *,
    pairs: Callable[[list[tuple[str, Any]]], object] | None = None,
    halves: bool = False,
) -> Any:
    """`load_json` for text at a `location` in a file. Raises `InputError` with the location.

    >>> parse_json(Path("a.json"), '{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parse_json(Path("a.jsonl"), '{"a": [1, 2}', "line 3")
    Traceback (most recent call last):
    proctor.core.errors.InputError: a.jsonl: line 3, column 12: found no comma, expected JSON
    """
    try:
        return load_json(text, pairs=pairs, halves=halves)
    except JsonError as error:
        kind = "" if location else kind_of_text(text if isinstance(text, str) else text.decode("utf-8-sig"))
        if kind:
            expected = "one JSON value: a list of these objects" if kind == "JSON lines" else "JSON"
            raise InputError(file, found=kind, expected=expected) from error
        inside = error.location.removeprefix("line 1, ") if location else error.location
        where = ", ".join(part for part in (location, inside) if part)
        raise InputError(file, where, found=error.found, expected=error.expected) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(file, error) from error


def read_jsonl(
    file: Path,
    expected: str = "a file of JSON lines",
    *,
    pairs: Callable[[list[tuple[str, Any]]], object] | None = None,
    halves: bool = False,
) -> list[tuple[str, Any]]:
    """The location ("line 3") and value of each line that is not blank. Raises `InputError` with the location.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.jsonl"
    ...     _ = file.write_bytes(b'{"a": 1}\\n\\n{"a": 2}\\n')
    ...     read_jsonl(file)
    [('line 1', {'a': 1}), ('line 3', {'a': 2})]
    """
    lines = enumerate(input_text(file, expected, encoding="utf-8-sig").split("\n"), start=1)
    return [
        (f"line {number}", parse_json(file, line, f"line {number}", pairs=pairs, halves=halves))
        for number, line in lines
        if line.strip()
    ]


JSON_BREAKS = {"\u0085": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that JSON allows inside a text and many readers take for the end of a line, and their JSON escapes."""


def json_line(value: Any) -> str:
    """A value, or a pydantic model, as a line of JSON Lines with its line feed. Characters that some readers take for
    the end of a line (U+0085, U+2028, U+2029) are escaped, so that a line is one line for every reader. Raises
    `ValueError` for NaN and infinity.

    >>> json_line({"text": "7 °C\u2028warm"})
    '{"text": "7 °C\\\\u2028warm"}\\n'
    """
    model = isinstance(value, BaseModel)
    text = value.model_dump_json() if model else json.dumps(value, ensure_ascii=False, allow_nan=False)
    for character, escape in JSON_BREAKS.items():
        text = text.replace(character, escape)
    return text + "\n"


def read_model(file: Path, model: type[Model], expected: str = "a JSON file") -> Model:
    """A JSON file as a pydantic model. Raises `InputError` with the first invalid field.

    >>> class Frame(BaseModel):
    ...     number: int
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "frame.json"
    ...     _ = file.write_bytes(b'{"number": 3}')
    ...     read_model(file, Frame)
    Frame(number=3)
    """
    return parse_model(file, input_text(file, expected, encoding="utf-8-sig"), model)


def parse_model(file: Path, text: str | bytes, model: type[Model], location: str = "") -> Model:
    """JSON text at a `location` in a file as a pydantic model. Raises `InputError` with the first invalid field.

    >>> class Frame(BaseModel):
    ...     number: int
    >>> parse_model(Path("a.jsonl"), '{"number": 3}', Frame, "line 2")
    Frame(number=3)
    >>> parse_model(Path("a.jsonl"), "{}", Frame, "line 2")
    Traceback (most recent call last):
    proctor.core.errors.InputError: a.jsonl: line 2, field 'number': found nothing, expected a value
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise refusal(file, location, error, model) from error


def validated(model: type[Model], entry: object, file: Path | None, location: str = "") -> Model:
    """An entry of a file as a pydantic model. Raises `InputError` with the first invalid field.

    >>> class Frame(BaseModel):
    ...     number: int
    >>> validated(Frame, {"number": 3}, Path("a.json"))
    Frame(number=3)
    >>> validated(Frame, {}, Path("a.json"), "entry 2")
    Traceback (most recent call last):
    proctor.core.errors.InputError: a.json: entry 2, field 'number': found nothing, expected a value
    """
    try:
        return TypeAdapter(model).validate_python(entry)
    except ValidationError as error:
        raise refusal(file, location, error, model) from error


def refusal(
    file: str | Path | None, location: str, error: ValidationError, model: type[BaseModel] | None = None
) -> InputError:
    """The first problem of a validation error (of this `model`) as an error at a `location` in a file.

    >>> class Frame(BaseModel):
    ...     number: int
    >>> try:
    ...     Frame.model_validate({})
    ... except ValidationError as error:
    ...     print(refusal("a.json", "entry 2", error))
    a.json: entry 2, field 'number': found nothing, expected a value
    """
    problem = first_problem(error, model)
    where = ", ".join(part for part in (location, f"field {problem.field!r}" if problem.field else "") if part)
    return InputError(file, where, found=problem.found, expected=problem.expected)


def _not_utf8(file: Path, error: UnicodeDecodeError) -> InputError:
    kind = kind_of_bytes(error.object)
    if kind.endswith("archive"):
        return InputError(file, found=kind, expected="the file itself: unpack it first")
    if kind:
        return InputError(file, found=kind, expected="text in UTF-8")
    return InputError(file, f"byte {error.start}", found="text that is not UTF-8", expected="UTF-8")
