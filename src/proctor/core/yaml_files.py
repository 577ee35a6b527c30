"""YAML files: settings that people write by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from proctor.core.errors import InputError
from proctor.core.files import input_text

if TYPE_CHECKING:
    import yaml

_MOST_CHARS = 1_000_000


def read_yaml(file: Path, expected: str = "a YAML file") -> dict[str, Any]:
    """The fields of a YAML file in UTF-8; none of an empty one. Only plain values are read: no tags, and no references
    from one place to another, which can make a small file large. A key given twice is refused.

    Raises `InputError` with the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.yaml"
    ...     _ = file.write_text("title: Abdomen\\nseed: 3\\n")
    ...     read_yaml(file)
    {'title': 'Abdomen', 'seed': 3}
    """
    text = input_text(file, expected, encoding="utf-8-sig")
    if len(text) > _MOST_CHARS:
        raise InputError(file, found=f"{len(text):,} characters", expected=f"at most {_MOST_CHARS:,}")
    import yaml

    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                place = "" if event.start_mark is None else f"line {event.start_mark.line + 1}"
                raise InputError(file, place, found="an alias (*name)", expected="each value where it belongs")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None:
            _no_key_twice(file, node)
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f"line {mark.line + 1}"
        raise InputError(
            file, place, found=str(getattr(error, "problem", "") or "broken YAML"), expected="YAML"
        ) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(file, found=f"a {type(content).__name__}", expected="fields with values")
    return content


def _no_key_twice(file: Path, node: yaml.Node) -> None:
    """Raises `InputError` where one mapping has a key twice: YAML's reader would take the last without a word."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                place = f"line {key.start_mark.line + 1}"
                raise InputError(file, place, found=f"{name!r} twice", expected="each field once")
            seen.add(name)
            _no_key_twice(file, value)
    elif isinstance(node, yaml.SequenceNode):
        for one in node.value:
            _no_key_twice(file, one)


def problem_texts(error: ValidationError) -> list[str]:
    """All that pydantic says of settings, each problem with its place, counted from 1.

    >>> from pydantic import BaseModel
    >>> class Study(BaseModel):
    ...     readers: list[int]
    >>> try:
    ...     Study.model_validate({"readers": [1, "x"]})
    ... except ValidationError as error:
    ...     print(problem_texts(error))
    ['readers 2: Input should be a valid integer, unable to parse string as an integer']
    """
    return [
        _problem_text(one["loc"], one["type"], one["msg"].removeprefix("Value error, "))
        for one in error.errors(include_url=False)
    ]


def _problem_text(place: tuple[int | str, ...], kind: str, message: str) -> str:
    words: list[str] = []
    for part in place:
        if isinstance(part, int) and words:
            words[-1] += f" {part + 1}"
        else:
            words.append(str(part))
    message = "no field of this name is expected" if kind == "extra_forbidden" else message
    return f"{', '.join(words)}: {message}" if words else message
