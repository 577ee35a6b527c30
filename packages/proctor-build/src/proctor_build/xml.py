"""Read untrusted XML safely: document types, and with them entities and external files, are errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from proctor.core import InputError

_DEEPEST = 32
_WELL_FORMED = "well-formed XML"


@dataclass(slots=True)
class Node:
    """An element: its file, its name, the line on which it starts, its attributes, its text, and its children."""

    file: Path
    tag: str
    line: int
    attributes: dict[str, str]
    text: str = ""
    children: list[Node] = field(default_factory=list)

    def error(self, found: str, expected: str) -> InputError:
        """An error at this element."""
        return InputError(self.file, f"line {self.line}, <{self.tag}>", found=found, expected=expected)

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    def find(self, tag: str) -> Node | None:
        """The first child of this name."""
        return next((child for child in self.children if child.tag == tag), None)

    def all(self, tag: str) -> Iterator[Node]:
        return (child for child in self.children if child.tag == tag)


Ended = Callable[[Node, Sequence[Node]], bool]
"""Called with every element that ends and its ancestors, the root first; returns whether the element can be dropped."""


class _Handler:
    def __init__(self, file: Path, parser: expat.XMLParserType, ended: Ended | None) -> None:
        self._file, self._parser = file, parser
        self._ended = ended
        self.top = Node(file, "", 0, {})
        self._open = [self.top]
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.StartDoctypeDeclHandler = self._doctype

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) > _DEEPEST:
            raise self._refused(f"elements {len(self._open)} deep", f"at most {_DEEPEST}")
        node = Node(self._file, tag, self._parser.CurrentLineNumber, attributes)
        self._open[-1].children.append(node)
        self._open.append(node)

    def _end(self, tag: str) -> None:
        del tag  # expat has checked it
        node = self._open.pop()
        if self._ended is not None and self._ended(node, self._open[1:]):
            self._open[-1].children.pop()

    def _data(self, text: str) -> None:
        if not self._open[-1].children:  # text between children is white space
            self._open[-1].text += text

    def _doctype(self, *parts: object) -> None:
        del parts
        raise self._refused("a document type (<!DOCTYPE …>)", "XML without one: it may hide entities")

    def _refused(self, found: str, expected: str) -> InputError:
        return InputError(self._file, f"line {self._parser.CurrentLineNumber}", found=found, expected=expected)


def read_xml(file: Path, content: bytes, ended: Ended | None = None) -> Node:
    """The root element of `content`, without the elements that `ended` drops: a large file read element by element
    needs little memory.

    Raises `InputError` with the line for invalid XML, a document type, and elements nested too deep; and whatever
    `ended` raises.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    handler = _Handler(file, parser, ended)
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        location = f"line {error.lineno}, column {error.offset + 1}"
        raise InputError(file, location, found=expat.ErrorString(error.code), expected=_WELL_FORMED) from error
    except (ValueError, LookupError) as error:  # an unknown encoding
        raise InputError(file, found=str(error), expected=_WELL_FORMED) from error
    return handler.top.children[0]
