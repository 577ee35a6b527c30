"""The options that a recorded model saw: found in a record, and its letters read by them.

A letter means nothing without the list that it points into. Other programs shuffle options (Inspect's
`shuffle_choices`), or hold another version of the questions, so a recorded letter becomes the text that stood behind it,
and that text the item's own option."""

from __future__ import annotations

import ast
import html
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from pydantic import JsonValue

from proctor import core
from proctor.core.formats import MOST_OPTIONS, ChoiceFormat, option_letters

_MARKUP = re.compile(r"</?[A-Za-z][^<>]{0,40}>|[*`$_\\]")
_LETTER = re.compile(r"^\s*[(\[]?(?P<letter>[A-Za-z])[)\].:]+\s+")
_MARKER = re.compile(r"(?<![^\W_])[(\[]?(?P<letter>[a-z])\s?[)\].:-]+\s")
_LINE = re.compile(r"^[ \t>*-]{0,6}[(\[]?\**(?P<letter>[A-Z])\**[)\].:]+\**[ \t]+(?P<text>\S.*)$", re.MULTILINE)
_LISTS = ("options", "choices", "candidates", "option", "choice", "index2ans")
_LIST = re.compile(r".*[\W_](?:options|choices|candidates)", re.IGNORECASE)  # answer_options, multi-choice options
_INLINE = re.compile(r"(?:^|(?<=[\s;,|]))\(?(?P<letter>[A-Z])[).:]\s*")
_COLUMN = re.compile(
    r"(?:options?|choices?|opt?|candidate|ending|选项|選項|opci[óo]n|opç[ãa]o)[ _.-]?(?P<mark>[A-Z]|\d{1,2})|a(?P<number>\d)",
    re.IGNORECASE,
)
_AS_WRITTEN = {"free_text", "ordering", "preference", "ratings"}  # formats whose letters are no options
_MOST_CHARS = 32_767
_SHOWN = 60


def exact_text(text: str) -> str:
    """An option's text without differences in white space and character width.

    >>> exact_text("left  kidney "), exact_text("Liver")
    ('left kidney', 'Liver')
    """
    return " ".join(unicodedata.normalize("NFKC", text).split())


def plain_text(text: str) -> str:
    """An option's text without case, white space, markup and a final full stop.

    >>> plain_text("<b>Left</b>  **kidney**."), plain_text("a &lt; b")
    ('left kidney', 'a < b')
    """
    return exact_text(_MARKUP.sub("", html.unescape(text))).casefold().removesuffix(".").rstrip()


def option_order(shown: Sequence[str], options: Sequence[str]) -> tuple[int, ...]:
    """The index in `options` of each option in the order in which it was shown.

    Texts are compared as they stand, then without case and markup, and then without letters before them ("A. liver").
    Raises `ParseError` for other texts, and where the order is another and two options have the same text.

    >>> option_order(["Spleen", "liver"], ["liver", "spleen"])
    (1, 0)
    >>> option_order(["A. liver", "B. spleen"], ["liver", "spleen"])
    (0, 1)
    >>> option_order(["liver", "aorta"], ["liver", "spleen"])
    Traceback (most recent call last):
    proctor.core.errors.ParseError: expected the options liver; spleen, found 'other options: liver; aorta'
    """
    for texts in (list(shown), _unlettered(shown)):
        for kind in (exact_text, plain_text):
            left, right = list(map(kind, texts)), list(map(kind, options))
            if left == right:
                return tuple(range(len(right)))
            if sorted(left) != sorted(right):
                continue
            twice = next((text for text in right if right.count(text) > 1), None)
            if twice is not None:
                raise core.ParseError(
                    expected="options that differ, since they were shown in another order", found=f"{twice} twice"
                )
            return tuple(right.index(text) for text in left)
    raise core.ParseError(expected=f"the options {_listed(options)}", found=f"other options: {_listed(shown)}")


def _listed(options: Sequence[str]) -> str:
    return "; ".join(core.clean(exact_text(option))[:_SHOWN] for option in options)


def _unlettered(shown: Sequence[str]) -> list[str]:
    """The texts without their letters, if each has its own."""
    hits = [_LETTER.match(text) for text in shown]
    letters = [hit["letter"].upper() for hit in hits if hit is not None]
    if len(shown) > MOST_OPTIONS or letters != option_letters(len(shown)):
        return list(shown)
    return [text[hit.end() :] for text, hit in zip(shown, hits, strict=True) if hit is not None]


def options_in_fields(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The options in a record: in the columns A, B, C …, `option_a` … or `option1` …, or in a list, an object by
    letters or numbers, or a text of lettered parts or JSON, named `options`, `choices`, `answer_options` … Empty if there
    are fewer than two.

    >>> options_in_fields({"index": 1, "A": "liver", "B": "spleen", "C": None})
    ('liver', 'spleen')
    >>> options_in_fields({"options": '{"A": "liver", "B": "spleen"}'})
    ('liver', 'spleen')
    """
    plain = {name.strip(): cell for name, cell in fields.items()}
    letters: dict[int, Any] = {}
    numbers: dict[int, Any] = {}
    for name, cell in plain.items():
        hit = _COLUMN.fullmatch(name)
        mark = (hit["mark"] or hit["number"]) if hit is not None else name
        if mark.isdecimal() and hit is not None:
            numbers.setdefault(int(mark), cell)
        elif len(mark) == 1 and "A" <= (mark.upper() if hit is not None else mark) <= "Z":
            letters.setdefault(ord(mark.upper()) - ord("A"), cell)
    for marked, first in ((letters, 0), (numbers, 0), (numbers, 1)):
        texts: list[str] = []
        while first + len(texts) in marked:
            texts.append(_cell(marked[first + len(texts)]))
        while texts and not texts[-1]:
            texts.pop()
        if len(texts) > 1:
            return tuple(texts)
    lower = {name.casefold(): cell for name, cell in plain.items()}
    names = [*_LISTS, *(name for name in lower if _LIST.fullmatch(name))]
    return next((found for name in names if len(found := _options_of(lower.get(name))) > 1), ())


def _cell(value: Any) -> str:
    """A cell's text; "" for the NaN that data frames write for an empty one."""
    return "" if isinstance(value, float) and math.isnan(value) else core.cell_text(value)


def _options_of(value: Any) -> tuple[str, ...]:
    """The options in one cell: a list, an object by letters, or the same as JSON, as Python writes it (MMMU), or in
    parts separated by bars or lines."""
    if isinstance(value, str):
        value = _structure(value) or _lettered(value) or _parts(value)
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):  # {"text": […], "label": […]}, as in ARC
        value = value["text"]
    elif isinstance(value, Mapping):
        by_name = {str(name).upper(): entry for name, entry in value.items()}
        names = sorted(by_name)
        known = [
            [*ascii_uppercase[: len(names)]],
            *([str(n) for n in range(first, first + len(names))] for first in (0, 1)),
        ]
        value = [by_name[name] for name in names] if names in known else []
    if not isinstance(value, list):
        return ()
    found = [entry.get("text", entry.get("value")) if isinstance(entry, Mapping) else entry for entry in value]
    texts = tuple(map(core.cell_text, found)) if all(isinstance(entry, str | int | float) for entry in found) else ()
    return () if texts == tuple(ascii_uppercase[: len(texts)]) else texts  # only their letters


def _lettered(text: str) -> list[str]:
    """The parts of a text after the letters A, B, C … in their order; none if there are fewer than two."""
    hits: list[re.Match[str]] = []
    for hit in _INLINE.finditer(text[:_MOST_CHARS]):
        if hit["letter"] == ascii_uppercase[min(len(hits), len(ascii_uppercase) - 1)]:
            hits.append(hit)
    if len(hits) < 2 or text[: hits[0].start()].strip():
        return []
    ends = [*(hit.start() for hit in hits[1:]), len(text)]
    return [text[hit.end() : end].strip(" \t\n;,|") for hit, end in zip(hits, ends, strict=True)]


def _parts(text: str) -> list[str]:
    """The parts of a text between bars or lines, or else between semicolons."""
    split = re.split(r"[\n|]", text) if re.search(r"[\n|]", text.strip()) else text.split(";")
    return [part.strip() for part in split if part.strip()]


def _structure(text: str) -> Any:
    """The list or object in a text; None for any other text."""
    if not text.lstrip().startswith(("[", "{")) or len(text) > _MOST_CHARS:
        return None
    for read in (core.load_json, ast.literal_eval):
        try:
            return read(text.strip())
        except (core.JsonError, ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def options_in_prompt(prompt: str, item: core.Item) -> tuple[str, ...]:
    """The options that a recorded prompt lists by letters, in that order: the last complete list of the item's own
    options, else the last list of others outside the question. Empty if it lists none.

    >>> item = core.Item(id="q", group="g", question="Which?", answer=ChoiceFormat(), options=("liver", "spleen"))
    >>> options_in_prompt("Which? A) spleen B) liver Answer with a letter.", item)
    ('spleen', 'liver')
    """
    if not prompt or len(item.options) < 2:
        return ()
    text = plain_text(prompt) + " "
    known = sorted(((plain_text(option), option) for option in item.options), key=lambda one: -len(one[0]))
    run: list[str] = []
    found: tuple[str, ...] = ()
    for hit in _MARKER.finditer(text):
        named = next((option for plain, option in known if _stands_at(text, hit.end(), plain)), None)
        location = ord(hit["letter"]) - ord("a")
        if named is None:
            continue
        run = [*run, named] if location == len(run) else [named] if location == 0 else []
        if len(run) == len(item.options) and sorted(run) == sorted(item.options):
            found, run = tuple(run), []
    return found or _other_list(prompt.replace(item.question, " "), len(item.options))


def _stands_at(text: str, slot: int, option: str) -> bool:
    end = slot + len(option)
    return text.startswith(option, slot) and not text[end : end + 1].isalnum()


def _other_list(prompt: str, least: int) -> tuple[str, ...]:
    """The last list of lines "A. …", "B. …" with at least as many options."""
    run: list[str] = []
    found: list[str] = []
    for hit in _LINE.finditer(prompt):
        location = ord(hit["letter"]) - ord("A")
        run = [*run, hit["text"].rstrip()] if location == len(run) else [hit["text"].rstrip()] if location == 0 else []
        if len(run) >= least:
            found = run
    return tuple(found)


def shown_to_model(item: core.Item, options: Sequence[str], prompt: str) -> tuple[str, ...]:
    """The options that the model saw: as the recorded prompt lists the item's own, else the record's field `options`,
    else other options in the prompt. Empty if the record has none."""
    listed = options_in_prompt(prompt, item)
    return listed if not options or (listed and set(listed) == set(item.options)) else tuple(options)


def value_by_shown(
    item: core.Item, text: str, shown: Sequence[str], read: Callable[[str, Sequence[str]], JsonValue]
) -> JsonValue:
    """The value that `read` (the format's `parse` or `from_cell`) gives for a text whose letters point into the options
    `shown`, in the item's own letters. For an item without options, a letter alone becomes the option's text.

    Raises `ParseError` for an unreadable text, and what `option_order` raises.

    >>> item = core.Item(id="q", group="g", question="Which?", answer=ChoiceFormat(), options=("liver", "spleen"))
    >>> value_by_shown(item, "Answer: A", ["spleen", "liver"], item.answer.parse)
    'B'
    """
    if not _is_lettered(item):
        return read(_text_behind(item, text, shown), item.options)
    order = option_order(shown, item.options)
    letters = option_letters(len(order))
    to_item = {letter: letters[slot] for letter, slot in zip(letters, order, strict=True)}
    value = read(text, [item.options[slot] for slot in order])
    if isinstance(value, list):
        named: list[JsonValue] = [to_item.get(str(one), one) for one in value]
        return named if item.answer.kind == "ordering" else sorted(named, key=str)
    return to_item.get(str(value), value)


def _is_lettered(item: core.Item) -> bool:
    """Whether the item's values are letters of its options."""
    labels = getattr(item.answer, "labels", None)
    letters = option_letters(len(item.options))
    return bool(letters) and (item.answer.kind in {"choice", "choices"} or list(labels or ()) == letters)


def _text_behind(item: core.Item, text: str, shown: Sequence[str]) -> str:
    """The text of the option that a bare letter names; any other text is unchanged."""
    if item.answer.kind in _AS_WRITTEN or not 1 < len(shown) <= MOST_OPTIONS:
        return text
    texts = _unlettered(shown)
    try:
        letter = ChoiceFormat(strict=True).parse(text, texts)
    except core.ParseError:
        return text
    return texts[option_letters(len(texts)).index(str(letter))]


def reads_by_letter(item: core.Item, text: str) -> bool:
    """Whether the value of a reply depends on the order of the item's options: it names a letter, not a text.

    >>> item = core.Item(id="q", group="g", question="Which?", answer=ChoiceFormat(), options=("liver", "spleen"))
    >>> reads_by_letter(item, "A"), reads_by_letter(item, "the spleen")
    (True, False)
    """
    if len(set(item.options)) < 2 or not _is_lettered(item):
        return False
    turned = (*item.options[1:], item.options[0])
    try:
        return item.answer.parse(text, item.options) != value_by_shown(item, text, turned, item.answer.parse)
    except core.ParseError:
        return False
