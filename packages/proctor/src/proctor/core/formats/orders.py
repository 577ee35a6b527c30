"""Reading orders of labels: runs of labels between signs, parts between arrows, lists, tables, JSON and prose.

An order that is stated with words beside its labels ("B (a rescuer kneels) > D - pads") is read by its parts. Text in
which labels stand that belong to no order is ambiguous and states none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from pydantic import JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.order_words import (
    ABOUT_ORDER,
    ANY_ORDER,
    ASKS,
    BACKWARDS,
    BEGINS,
    CARDINALS,
    DENIED,
    GOES_ON,
    NAMES,
    ORDINALS,
    POSITION,
    POSITIONED,
    PREFIX,
    RELATES,
    THING,
    TURNS,
    WORD,
    counts_up,
    follows,
    kind_of,
    position_in,
    position_named_in,
    with_numbers,
)
from proctor.core.formats.reply import Statement, by_plain_name, json_values
from proctor.core.text import deferred

ORDER_KEYS = (
    "order",
    "ordering",
    "sequence",
    "predicted_order",
    "correct_order",
    "chronological_order",
    "ranking",
    "labels",
    "frames",
)
_NOT_APPLICABLE = deferred(r"\bn/a\b", re.IGNORECASE)
_FILE = deferred(r"\.(?:jpe?g|png|webp)$", re.IGNORECASE)
_LONGEST = 120  # characters between two labels of a sequence
_ASIDE = deferred(r"\s?[(\[]([^()\[\]]{0,300})[)\]]")
_WORDS = deferred(r"\s*[^\W\d_]")
_TAG = deferred(r"</?[a-z][\w-]{0,20}>", re.IGNORECASE)
_MOST_ORDERS = 8  # looked at in a text without a cue
_DEEPEST = 3  # parentheses within parentheses, and JSON within JSON
# Blanks before a sign are taken from the first on: tried at each of them, a long run would be read once for each.
_ARROW = deferred(r"(?:(?<!\s)\s+)?(?:(?:-{1,3}|={1,2})?>{1,2})\s*")
_LESS = deferred(r"(?:(?<!\s)\s+)?<{1,2}-{0,2}\s*")
_ON_ITS_LINE = deferred(
    r"(?<!\s)[^\S\n]*\n\s*(?:(?:-{1,3}|={1,2})?>{1,2})[ \t]*(?:\n\s*|(?=\S))"
    r"|(?:(?<![ \t])[ \t]+)?>{1,2}[ \t]*\n\s*"
)
_SENTENCES = deferred(r"[.!?]\s+(?=[A-Z])")
_RULE = deferred(r"[\s|:+=-]+")
_LABEL_KEYS = ("label", "letter", "frame", "image", "picture", "photo", "option", "id", "name", "item")


@lru_cache(maxsize=256)
def order_reader(labels: tuple[str, ...]) -> OrderReader:
    """The reader for these labels; its patterns are compiled once."""
    return OrderReader(labels)


def _table_rows(text: str) -> list[list[str]]:
    """The cells of the lines with bars, without rules between them."""
    rows = [line.strip().strip("|").split("|") for line in text.split("\n") if line.count("|") > 0]
    return [[cell.strip(" \"'`.*") for cell in row] for row in rows if not _RULE.fullmatch("|".join(row))]


class OrderReader:
    """Reads orders of `labels` in statements and JSON."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self._known = {label.casefold(): label for label in labels}
        short = all(len(label) == 1 for label in labels)
        single = short and all(label.isalpha() for label in labels)
        names = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
        capital = "(?-i:[A-Z])"  # a small letter is mostly an article, see `_runs`
        label = (
            (capital if all(one.isupper() for one in labels) else f"(?:{names}|{capital})")
            if single
            else f"(?:{names})"
        )
        joined = rf"[{''.join(map(re.escape, labels))}]{{{len(labels)}}}" if short else "(?!)"
        ends = r"(?:\.(?:jpe?g|png|webp))?(?!'?[A-Za-z0-9])"
        said, number = rf"(?P<label>{label})", r"(?P<n>\d{1,2})(?:st|nd|rd|th)?\s?"
        self._token = _compiled(rf"(?<![A-Za-z0-9])(?:(?P<joined>{joined})|{said}){ends}")
        self._small = _compiled(rf"(?<![A-Za-z0-9])(?P<joined>(?!))?(?P<label>(?-i:[a-z])){ends}" if single else "(?!)")
        self._head = _compiled(
            rf"\W{{0,6}}(?:\d{{1,2}}[.):]\s{{0,3}})?{THING}\W{{0,3}}{said}{ends}"
            r"(?P<rest>[\"'\])}*]{0,3}\s*(?:\Z|[-:=(,.;]|(?:is|as|where|because|since)\b)|)"
        )
        self._item = _compiled(
            rf"(?:^|(?<=[\s(,;]))\W{{0,3}}{POSITION}{number}(?:[.):=>-]{{1,3}}\s{{0,3}}\W{{0,3}}|\(){THING}\W{{0,3}}{said}"
            r"(?![A-Za-z0-9])"
        )
        self._line = _compiled(rf"^[^\S\n]*\W{{0,4}}{POSITION}{number}[.):=>-](?P<rest>[^\n]*)$")
        self._shown = _compiled(rf"(?:\b(?:{NAMES})\s|[(\[](?:{NAMES})?\s?){said}\b")
        self._bullet = _compiled(
            rf"^[^\S\n]*[-*•]?[^\S\n]{{0,3}}{THING}[*\"'(\[]{{0,3}}{said}[*\"')\]]{{0,3}}"
            r"(?:\s?[:.)-]|[^\S\n]?$|\s\(|[^\S\n](?=[a-z]))"
        )
        nth = rf"(?P<nth>{'|'.join(ORDINALS)}|last)"
        is_nth = rf"(?<![A-Za-z0-9]){said}\W{{0,3}}\s(?:is|comes|goes|must be|should be) (?:the )?{nth}\b"
        nth_is = rf"\b{nth}(?: (?:{NAMES}|one))? is {THING}{said}(?![A-Za-z0-9])"
        self._nth = (_compiled(is_nth), _compiled(nth_is))
        digits = r"(?:position |place |rank |step )?[1-9](?:st|nd|rd|th)|(?:position|place|rank|step) [1-9]"
        loose = rf"(?P<nth>{'|'.join(ORDINALS)}|last|{digits})"
        counted = rf"(?P<nth>(?:step )?(?:{'|'.join(CARDINALS)})|{'|'.join(ORDINALS)}|last|\d{{1,2}})"
        self._loose = (
            _compiled(rf"(?<![A-Za-z0-9]){said}\s?(?:[:=>-]\s?|\s)(?:is |at )?(?:the )?{loose}\b"),
            _compiled(
                rf"\b{counted}(?: (?:{NAMES}))?(?:\s?[.:=)]|\s(?:is|comes|->?)\b)\s?{THING}{said}(?![A-Za-z0-9])"
            ),
        )
        self._located = _compiled(rf"(?<![A-Za-z0-9]){said}\s?\((?P<n>\d{{1,2}})\)")
        self._either = _compiled(rf"(?<![A-Za-z0-9]){label}\W{{0,3}}\sor\s{{1,2}}{THING}{label}(?![A-Za-z0-9])")

    def read(self, statement: Statement) -> list[JsonValue] | None:
        """The order in a statement. Raises `ParseError` for several, one from last to first, and labels that belong to
        none."""
        value = statement.value
        given = self.of_json(value) if isinstance(value, list | dict) else None
        if given is None and "[" in statement.text:  # a list inside text, as long as its brackets close
            lists = (found for found in json_values(statement.text) if isinstance(found, list) and len(found) > 1)
            given = self.of_json(next(lists, None))
        if given is not None:
            return [*given]
        if BACKWARDS.search(statement.text) or ANY_ORDER.search(first_sentence(statement.text)):
            raise ParseError(expected="an order from first to last", found=statement.text)
        plain = _TAG.sub(" ", _NOT_APPLICABLE.sub("   ", statement.text))
        text = self._without_asides(_ON_ITS_LINE.sub(" > ", with_numbers(plain)))
        found = self._stated(text) if statement.sure else self._only(text)
        if found is not None and self._is_denied(found, text):
            raise ParseError(expected="one order", found=statement.text)
        return None if found is None else [*found]

    # -------------------------------------------------------------------------------------------------------- text

    def _is_denied(self, found: Sequence[str], text: str) -> bool:
        """Whether a text says of a label in an order of all that it is at another position ("C is last, D is first")."""
        hits = [hit for pattern in self._nth for hit in pattern.finditer(text)] if self._is_whole(found) else []
        return any(found.index(self._name(hit["label"])) + 1 != self._nth_position(hit["nth"]) for hit in hits)

    def _stated(self, text: str) -> list[str] | None:
        """The order after a cue: the first one, which whatever follows explains."""
        if (ranked := self._ranked(text)) is not None:
            return ranked
        block = text.split("\n\n", 1)[0]
        start = first_sentence(block)
        if self._either.search(start):
            raise ParseError(expected="one order", found=text)
        runs = self._runs(text)
        first = runs[0] if runs else None
        if first and self._is_whole(first) and self._begins(text, first):
            return first
        for found in (*self._arrows(block), *self._lists(text), *self._described(text), self._told(text)):
            if found and (self._is_whole(found) or (found != first and self._is_clean(block))):
                return found
        if first and not self._misses(start, first):
            return first
        if first:
            raise ParseError(expected="one order", found=text)
        return None

    def _only(self, text: str) -> list[str] | None:
        """The only order in a text without a cue; the only one with all labels, if there is one."""
        if self._either.search(text):
            raise ParseError(expected="one order", found=text)
        if (ranked := self._ranked(text)) is not None:
            return ranked
        orders = self._orders(text)
        whole = [found for found in orders if self._is_whole(found)]
        if not whole and (told := self._told(text)):
            return told
        if not whole and orders and any(self._named_in(text) - set(found) for found in orders[:_MOST_ORDERS]):
            raise ParseError(expected="one order", found=text)
        whole = whole or orders
        if len({tuple(found) for found in whole}) > 1:
            raise ParseError(expected="one order", found=text)
        return whole[0] if whole else None

    def _orders(self, text: str) -> list[list[str]]:
        """All orders in a text: in runs of labels, between arrows, in lists, by descriptions."""
        runs = self._runs(text, only=True)
        lists = [found for found in self._lists(text) if found != [*self.labels] or not any(map(self._is_whole, runs))]
        lists += [found for found in self._described(text) if found != [*self.labels]]  # else the pictures as shown
        return [*runs, *(found for line in text.split("\n") for found in self._arrows(line)), *lists]

    def _is_whole(self, found: Sequence[str]) -> bool:
        return sorted(found) == sorted(self.labels)

    def _begins(self, text: str, run: Sequence[str]) -> bool:
        """Whether a run stands at the start of a statement, and not in what explains an order with words."""
        hit = self._token.search(text)
        return hit is None or bool(hit["joined"]) or self._name(hit["label"]) == run[0]

    def _misses(self, sentence: str, run: Sequence[str]) -> bool:
        """Whether a sentence has labels of the item that a run without them leaves out."""
        return bool(self._named_in(sentence) - set(run))

    def _named_in(self, text: str) -> set[str]:
        """The labels of the item that stand in a text."""
        hits = [hit for hit in self._token.finditer(text) if hit["label"] and not _is_article(hit, text)]
        return {self._name(hit["label"]) for hit in hits} & {*self.labels}

    def _is_clean(self, text: str) -> bool:
        """Whether every part between arrows begins with a label and a sign, or is one."""
        parts = _ARROW.split(text.split("\n", 1)[0])
        heads = [self._head.match(part) for part in parts]
        return len(parts) > 1 and all(hit and hit["rest"] for hit in heads)

    def _name(self, said: str) -> str:
        return self._known.get(said.casefold(), said.upper())

    def _without_asides(self, text: str) -> str:
        """Text without parentheses that describe, so that no letter in them is a label."""
        for _ in range(_DEEPEST):
            text = _ASIDE.sub(self._aside, text)
        return text

    def _aside(self, hit: re.Match[str]) -> str:
        bare = re.sub(rf"\b(?:{NAMES}|{WORD})\b", " ", self._token.sub(" ", hit[1]), flags=re.IGNORECASE)
        return "" if re.search(r"[^\W\d_]", bare) and not self._small_run(hit[1]) else hit[0]

    def _small_run(self, text: str) -> bool:
        return len(self._small.findall(text)) > 1 and not re.search(r"[A-Za-z]{2}", text)

    def _runs(self, text: str, *, only: bool = False) -> list[list[str]]:
        """The sequences of two or more labels that are separated only by signs and words of order. Small letters are
        labels among small letters alone. `only`: without a cue, sentences that only name the pictures state none."""
        found = self._runs_of(self._token, text) or self._runs_of(self._small, text)
        if only:
            found = [run for run in found if not self._only_names(run, text)]
        return [run.names for run in found]

    def _runs_of(self, token: re.Pattern[str], text: str) -> list[_Run]:
        runs: list[_Run] = []
        last, kind, missing = 0, "", set(self.labels)
        for hit in token.finditer(text):
            if hit["joined"]:
                if self._is_joined(hit["joined"]):
                    names = [self._known[char.casefold()] for char in hit["joined"]]
                    runs.append(_Run(names, ">", hit.start(), hit.end()))
                continue
            name = self._name(hit["label"])
            between = text[last : hit.start()] if last else ""
            joint = kind_of(between) if last and len(between) <= _LONGEST else ""
            joint = "" if joint == "1" and not _goes_on(between, len(runs[-1].names)) else joint
            if joint and follows(kind, joint, whole=not missing) and (joint != " " or hit["label"] == name):
                if joint != "w" or runs[-1].names[-1] != name:  # "D comes first: D, B"
                    runs[-1].names.append(name)
                runs[-1].end, runs[-1].kind = hit.end(), joint
                kind = joint
            else:
                runs.append(_Run([name], "", hit.start(), hit.end()))
                kind, missing = "", set(self.labels)
            missing.discard(name)
            last = hit.end()
        least = 1 if token is self._token else min(2, len(self.labels) - 1)
        relates = RELATES.search(text) is not None
        return [run for run in runs if self._is_run(run, text, least, relates=relates)]

    def _is_run(self, run: _Run, text: str, least: int, *, relates: bool) -> bool:
        """Whether a run is an order: of more than `least` labels, not denied, and no list of pairs ("A precedes B"),
        where a text `relates` labels to one another."""
        if relates:  # "B before A, A before C" is a chain
            run.names = [one for one, _ in groupby(run.names)]
            if len(set(run.names)) < len(run.names):
                return False
        known = sum(one in self.labels for one in run.names)
        return known > least and not DENIED.search(text, max(0, run.start - 24), run.start)

    def _only_names(self, run: _Run, text: str) -> bool:
        """Whether a run names the pictures as they were shown, in a sentence that says nothing of their order."""
        if run.names != [*self.labels] or run.kind in {">", "1", "<"}:
            return False
        before, after = text[max(0, run.start - _LONGEST) : run.start], text[run.end : run.end + _LONGEST]
        begin = max(before.rfind(mark) for mark in (". ", "\n", "? ", "! ")) + 1
        rest = f"{before[begin:]} {first_sentence(after or ' ')}"
        words = re.sub(rf"\b(?:{NAMES}|{WORD})\b", " ", rest, flags=re.IGNORECASE)
        asked = ASKS.search(f"{rest}{text[run.end : run.end + 24].split(chr(10), maxsplit=1)[0]}")
        return bool(re.search(r"[^\W\d_]{2}", words)) and bool(asked or not ABOUT_ORDER.search(rest))

    def _is_joined(self, text: str) -> bool:
        return len({char.casefold() for char in text} & self._known.keys()) == len(text) and text == text.upper()

    def _arrows(self, text: str) -> Iterator[list[str]]:
        """The labels of the parts between arrows; nothing if a part has none."""
        line = next((one for one in text.split("\n") if _ARROW.search(one) or _LESS.search(one)), "")
        parts = (_ARROW if _ARROW.search(line) else _LESS).split(line)
        parts = [part for part in parts if part.strip()]
        if not 1 < len(parts) <= 3 * len(self.labels):
            return
        if (first := self._token.search(parts[0])) and DENIED.search(parts[0], 0, first.start()):
            return
        parts[-1] = first_sentence(parts[-1])
        found = [self._of_part(part, first=not position) for position, part in enumerate(parts)]
        if all(found) and sum(name in self.labels for name in found) > 1:
            yield found

    def _of_part(self, part: str, *, first: bool) -> str:
        """The label at the start of a part, or else its only one; "" for none, and for two sentences."""
        if _SENTENCES.search(part) and not first:
            return ""
        whole = part.strip(" .\"'*()[]")
        if whole.casefold() in self._known:
            return self._known[whole.casefold()]
        hits = [hit["label"] for hit in self._token.finditer(part) if hit["label"]]
        if first and len(hits) > 1:
            part = re.split(r"[.:]\s", part)[-1]
        head = self._head.match(part)
        if head and (head["rest"] or len(hits) == 1 or not first):
            return self._name(head["label"])
        names = {self._name(label) for label in hits} & {*self.labels}
        return names.pop() if len(names) == 1 else ""

    def _lists(self, text: str) -> list[list[str]]:
        """The orders of numbered lines and of table rows."""
        located = [int(hit["n"]) for hit in self._located.finditer(text)]
        if len(located) == len(self.labels) and located != sorted(located):
            raise ParseError(expected="labels from first to last", found=text)
        return [*self._table(text), *self._numbered(text)]

    def _described(self, text: str) -> list[list[str]]:
        """The orders of lines that begin with a label, and of parts with a label and words; all labels, each once."""
        lines = [self._name(hit["label"]) for hit in self._bullet.finditer(text)]
        parts = re.split(r",\s", first_sentence(text.replace(";", ",")))
        begins = [self._head.search(parts[0]), *map(self._head.match, parts[1:])]  # words may lead to the first label
        heads = [(hit, part[hit.end() :]) for hit, part in zip(begins, parts, strict=True) if hit]
        said = [
            self._name(hit["label"]) for hit, words in heads if re.search(r"[-:=]", hit["rest"]) and _WORDS.match(words)
        ]
        return [found for found in (lines, said) if self._is_whole(found)]

    def _numbered(self, text: str) -> list[list[str]]:
        """The labels of a numbered list: at the start of its items, or else the only picture that an item names."""
        items = [*self._item.finditer(text)]
        hits = [(int(hit["n"]), self._name(hit["label"])) for hit in items]
        names = [name for _, name in hits]
        if counts_up(hits) and (self._is_whole(names) or not any(_is_article(hit, text) for hit in items)):
            return [names]
        lines = [(int(hit["n"]), self._in_line(hit["rest"])) for hit in self._line.finditer(text)]
        whole = counts_up(lines) and self._is_whole([name for _, name in lines])
        return [[name for _, name in lines]] if whole else []

    def _in_line(self, line: str) -> str:
        head = self._head.match(line)
        if head and head["rest"]:
            return self._name(head["label"])
        names = {self._name(hit["label"]) for hit in self._shown.finditer(line)}
        return names.pop() if len(names) == 1 else ""

    def _table(self, text: str) -> list[list[str]]:
        """The order in a table of positions and labels; positions after the labels need a heading that says so."""
        rows = _table_rows(text)
        labels = [[self._of_cell(cell) for cell in row] for row in rows]
        body = [position for position, row in enumerate(labels) if any(row)]
        if len(body) != len(self.labels) or len({len(row) for row in rows}) != 1:
            return []
        column = next((at for at in range(len(rows[0])) if self._is_whole([labels[row][at] for row in body])), None)
        if column is None:
            return []
        for at in range(len(rows[0])):
            counted = [position_in(rows[row][at]) for row in body]
            heading = rows[body[0] - 1][at] if body[0] else "?"
            if sorted(counted) == [*range(1, len(body) + 1)] and (at < column or POSITIONED.search(heading)):
                ranked = sorted(zip(counted, (labels[row][column] for row in body), strict=True))
                return [[name for _, name in ranked]]
        return []

    def _of_cell(self, cell: str) -> str:
        return self._known.get(_FILE.sub("", PREFIX.sub("", cell)).strip(" .()\"'").casefold(), "")

    def _ranked(self, text: str) -> list[str] | None:
        """The order of labels whose positions are stated, in any sequence: "D is first", "Last: C", "3. A"."""
        told = [hit for pattern in self._nth for hit in pattern.finditer(text)]
        for hits in (told, *([*pattern.finditer(text)] for pattern in self._loose)):
            positions = {self._name(hit["label"]): self._nth_position(hit["nth"]) for hit in hits}
            found = sorted(positions, key=positions.__getitem__)
            if self._is_whole(found) and sorted(positions.values()) == [*range(1, len(self.labels) + 1)]:
                return found
        return None

    def _nth_position(self, told: str) -> int:
        words = told.casefold().split()
        if words[-1] == "last":
            return len(self.labels)
        return position_in(words[-1]) or CARDINALS.get(words[-1], 0)

    def _told(self, text: str) -> list[str] | None:
        """The order of sentences: "C comes first, since … Then A, … Finally D"; all labels, each once."""
        order: list[str] = []
        for turn in TURNS.split(text):
            hits = [hit for hit in self._token.finditer(turn) if hit["label"] and not _is_article(hit, turn)]
            names = [*dict.fromkeys(name for hit in hits if (name := self._name(hit["label"])) in self.labels)]
            if len(names) > 1 and self._runs(turn) != [names]:
                return None
            if names and not (GOES_ON if order else BEGINS).search(turn):
                return None
            order += names
        return order if self._is_whole(order) else None

    # -------------------------------------------------------------------------------------------------------- JSON

    def of_json(self, value: JsonValue, depth: int = 0) -> list[str] | None:
        """The order in a JSON value: a list of labels, of texts that begin with one, or of objects with one, with or
        without their positions; or an object of labels by position."""
        if depth > _DEEPEST or not value:
            return None
        if isinstance(value, list):
            return self._of_list(value)
        if isinstance(value, dict):
            locations = [(position_in(str(name)), self._of_entry(entry)) for name, entry in value.items()]
            if len(locations) > 1 and counts_up(sorted(locations)) and all(name for _, name in locations):
                return [name for _, name in sorted(locations)]
            named = by_plain_name(value)
            inner = next(
                (named[key] for key in ("final_answer", "answer", "result", *ORDER_KEYS) if key in named), None
            )
            return self.of_json(inner, depth + 1) or self._only_in(value, depth)
        return None

    def _only_in(self, value: dict[str, JsonValue], depth: int) -> list[str] | None:
        """The order in the only field of an object that holds one, whatever its name."""
        held = [entry for entry in value.values() if isinstance(entry, list | dict)]
        found = [order for entry in held if (order := self.of_json(entry, depth + 1)) is not None]
        return found[0] if len(found) == 1 and self._is_whole(found[0]) else None

    def _of_list(self, value: list[JsonValue]) -> list[str] | None:
        if all(isinstance(entry, str | int) for entry in value):
            names = [_FILE.sub("", PREFIX.sub("", str(entry).strip())).strip(" .()\"'") for entry in value]
            if len(value) > 1 and any(name.casefold() in self._known for name in names):
                return [self._known.get(name.casefold(), name) for name in names]
        found = [self._of_entry(entry) for entry in value]
        if len(found) < 2 or not all(found):
            return None
        counted = [position_named_in(entry) for entry in value]
        if sorted(counted) in ([*range(1, len(found) + 1)], [*range(len(found))]) and all(
            isinstance(entry, dict) for entry in value
        ):
            return [name for _, name in sorted(zip(counted, found, strict=True))]
        return found

    def _of_entry(self, entry: JsonValue) -> str:
        """The label of an entry: a text that is one or begins with one, or the only one in an object."""
        if isinstance(entry, str):
            head = self._head.match(entry)
            return self._of_cell(entry.strip()) or (self._name(head["label"]) if head and head["rest"] else "")
        if isinstance(entry, dict):
            cells = {
                str(key).strip().lower(): self._of_cell(one.strip())
                for key, one in entry.items()
                if isinstance(one, str)
            }
            named = {name for key in _LABEL_KEYS if (name := cells.get(key))}
            names = named or {name for name in cells.values() if name}
            return names.pop() if len(names) == 1 else ""
        return ""


@dataclass
class _Run:
    """Labels one after another in a text, the kind of their last separator, and where they stand."""

    names: list[str]
    kind: str
    start: int
    end: int


def _goes_on(between: str, count: int) -> bool:
    """Whether the number of a list's next item follows on `count` items: counted from 0, from 1, or by 1 alone."""
    numbers = re.findall(r"\d+", between)
    return not numbers or int(numbers[-1]) in {count, count + 1, 1}


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def _is_article(hit: re.Match[str], text: str) -> bool:
    start = hit.start("label")
    before = text[max(0, start - 9) : start]
    named = re.search(rf"(?:{NAMES})\s?$", before, re.IGNORECASE)
    verb = r"\s(?!(?:and|or|ends?|is|was|comes?|shows?|goes|follows?|must|should|first|second|third|last|then|next|as|where)\b)[a-z]"
    return hit["label"] in {"A", "I"} and not named and bool(re.match(verb, text[hit.end() : hit.end() + 12]))
