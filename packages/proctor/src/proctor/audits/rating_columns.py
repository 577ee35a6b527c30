"""Which column of a table of ratings holds what: items, systems, raters, dimensions, values, answers.

A table is long (a row for each rating, with a column of values) or wide (a column for each dimension, or for each rater).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from proctor.core import HUMAN, Sheet, TableFault, cell_text, is_empty, one_of, plain_column, read_safe_cell
from proctor.core import cell_number as number_in

RATING_FIELDS: Mapping[str, tuple[str, ...]] = {
    "item": (
        "item", "item id", "id", "question id", "qid", "question no", "question nr", "question number", "case", "case id",
        "case no", "nr", "no", "#", "n°", "question", "frage id", "fragen id", "frage nr", "fragennummer", "frage", "fall",
        "fall id", "fall nr", "nummer", "cas", "cas id", "identifiant", "numéro", "question posée", "caso", "id caso",
        "caso id", "pergunta", "id pergunta", "questão", "pregunta", "id pregunta", "número", "numero", "domanda",
        "id domanda", "vraag", "vraag id", "fråga", "spørgsmål", "pytanie", "przypadek", "вопрос", "случай", "номер", "题目",
        "题号", "编号", "序号", "病例", "問題", "題號", "質問", "症例", "番号", "질문", "문항", "رقم", "سؤال", "السؤال", "الحالة", "שאלה",
    ),
    "system": (
        "system", "system id", "system name", "model", "model id", "model name", "systemname", "modell", "modellname",
        "système", "modèle", "sistema", "modelo", "modello", "systeem", "systém", "система", "модель", "系统", "系統", "模型",
        "システム", "モデル", "시스템", "모델", "نظام", "النظام", "نموذج", "النموذج", "מערכת", "מודל",
    ),
    "rater": (
        "rater", "rater id", "rater name", "annotator", "annotator id", "reviewer", "reviewer id", "reader", "reader id",
        "evaluator", "assessor", "expert", "expert id", "clinician", "clinician id", "physician", "physician id", "doctor",
        "grader", "scored by", "rated by", "bewerter", "bewerterin", "bewertende", "gutachter", "gutachterin", "prüfer",
        "prüferin", "ärztin", "arzt", "évaluateur", "évaluatrice", "annotateur", "annotatrice", "expertise par", "médecin",
        "avaliador", "avaliadora", "avaliado por", "revisor", "revisora", "médico", "médica", "evaluador", "evaluadora",
        "experto", "experta", "valutatore", "valutatrice", "revisore", "esperto", "medico", "beoordelaar", "bedömare",
        "oceniający", "оценщик", "эксперт", "врач", "评分者", "评分人", "评审", "评审员", "评价者", "评估者", "专家", "医生", "評分者", "評審",
        "評価者", "評定者", "평가자", "의사", "المقيم", "مقيم", "الطبيب", "מעריך", "מדרג",
    ),
    "dimension": (
        "dimension", "dimension name", "criterion", "aspect", "metric", "scale", "kriterium", "aspekt", "skala", "critère",
        "dimensão", "critério", "aspecto", "dimensión", "criterio", "dimensione", "aspetto", "dimensie", "измерение",
        "критерий", "аспект", "维度", "指标", "评分项", "評分項目", "維度", "指標", "評価項目", "観点", "차원", "평가항목", "البعد", "المعيار", "ממד",
    ),
    "value": (
        "value", "rating", "score", "grade", "mark", "stars", "likert", "wert", "bewertung", "punkte", "punktzahl", "valeur",
        "notation", "valor", "avaliação", "pontuação", "calificación", "puntuación", "puntaje", "valore", "punteggio",
        "valutazione", "voto", "waarde", "beoordeling", "betyg", "ocena", "оценка", "балл", "значение", "评分", "分数", "得分", "分值",
        "評分", "分數", "評点", "評価", "スコア", "점수", "평점", "الدرجة", "التقييم", "ציון", "דירוג", "note", "nota", "notes", "notas",
    ),
    "candidate": (
        "candidate", "candidate text", "answer", "answer text", "system answer", "model answer", "response", "reply", "output",
        "prediction", "generated answer", "text", "antwort", "antworttext", "réponse", "texte", "resposta", "texto da resposta",
        "texto", "respuesta", "risposta", "testo", "antwoord", "svar", "odpowiedź", "ответ", "текст", "回答", "答案", "答复", "候选答案",
        "文本", "回答文", "답변", "응답", "الإجابة", "إجابة", "الجواب", "תשובה",
    ),
    "lower_is_better": ("lower_is_better", "lower is better", "lower better"),
    "group": ("group", "cluster", "gruppe", "groupe", "grupo", "gruppo", "группа", "分组", "組"),
    "condition": ("condition",),
    "dataset": ("dataset",),
    "language": ("language", "lang", "sprache", "langue", "idioma", "língua", "lingua", "язык", "语言", "語言", "言語"),
}  # fmt: skip
"""The fields of a table of ratings, with the names by which their columns are recognised, the most specific first."""

NEEDED = ("item", "system", "rater", "value")
_WEAK = {plain_column(name) for name in ("note", "nota", "notes", "notas", "scale", "skala")}
"""Names that count only for a column of numbers: elsewhere they mean remarks."""

_ASIDE = {
    plain_column(name)
    for name in (
        *("status", "reason", "comment", "comments", "kommentar", "commentaire", "comentário", "comentario"),
        *(
            "date",
            "time",
            "timestamp",
            "datum",
            "zeit",
            "data",
            "hora",
            "duration",
            "seconds",
            "latency_s",
            "row",
            "index",
        ),
        *("age", "year", "confidence", "extra", "parsed"),
    )
}
"""Columns that are no dimension, although they may hold numbers."""

_KNOWN = {
    name: {plain_column(word): position for position, word in enumerate(words)} for name, words in RATING_FIELDS.items()
}
_RATER_COLUMN = re.compile(rf"(?:{'|'.join(sorted(_KNOWN['rater'], key=len, reverse=True))})(?:[0-9]{{1,2}}|[a-z])")


@dataclass(frozen=True)
class RatingColumns:
    """The column of each field ("" for none). A wide table has `dimensions`, a column for each, or `raters`, a column
    for each, instead of a value's. `lower` are names of dimensions that are better low, and `unread` the columns that
    are not read."""

    item: str = ""
    system: str = ""
    rater: str = ""
    dimension: str = ""
    value: str = ""
    candidate: str = ""
    lower_is_better: str = ""
    group: str = ""
    condition: str = ""
    dataset: str = ""
    language: str = ""
    dimensions: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    faults: tuple[TableFault, ...] = field(default=())

    @property
    def valued(self) -> tuple[str, ...]:
        """The columns that hold ratings."""
        return self.dimensions or self.raters or ((self.value,) if self.value else ())

    @property
    def plain(self) -> bool:
        """Whether all columns are called as their fields, and all are read."""
        called = all(getattr(self, name) in {"", name} for name in RATING_FIELDS)
        return called and not (self.dimensions or self.raters or self.unread)

    @property
    def line(self) -> str:
        """A note on how the columns are read."""
        parts = [f"{name} = {getattr(self, name)!r}" for name in RATING_FIELDS if getattr(self, name)]
        parts += [f"dimensions = {', '.join(map(repr, self.dimensions))}"] if self.dimensions else []
        parts += [f"raters = {', '.join(map(repr, self.raters))}"] if self.raters else []
        unread = f"; not read: {', '.join(map(repr, self.unread))}" if self.unread else ""
        return f"Columns: {', '.join(parts)}{unread}"


def is_rating_table(columns: Collection[str], given: Collection[str] = ()) -> bool:
    """Whether a table with these columns holds ratings: somebody named its column of raters, values or dimensions
    (`given` are the fields with a named column), or there are columns of items and of raters.

    >>> is_rating_table(["caso", "sistema", "avaliador", "clareza"]), is_rating_table(["item", "answer", "model"])
    (True, False)
    """
    if {"rater", "value", "dimension", "lower_is_better"} & {*given}:
        return True
    known = {name for name in ("item", "rater") if any(plain_column(column) in _KNOWN[name] for column in columns)}
    several = sum(_RATER_COLUMN.fullmatch(plain_column(column)) is not None for column in columns) > 1
    return ("item" in known or "item" in given) and ("rater" in known or several)


def rating_columns(
    sheet: Sheet,
    given: Mapping[str, Sequence[str]],
    *,
    known_items: Collection[str] = (),
    facets: Collection[str] = (),
    one_system: bool = False,
) -> RatingColumns:
    """The columns of a table of ratings. `given` names the columns of some fields (several of `dimension`, or of
    `rater`, are those of a wide table). Of several columns that may hold items, the one with the most `known_items`
    counts. Columns called as a facet of the items are no dimensions. With `one_system` no column of systems is needed. Its `faults` say which columns are missing, or
    may be meant in two ways.

    >>> from pathlib import Path
    >>> from proctor.core import SheetRow
    >>> cells = {"caso": "c1", "sistema": "alfa", "avaliador": "ana", "clareza": 4, "obs": "boa"}
    >>> rating_columns(Sheet(Path("r.csv"), list(cells), [SheetRow(2, cells)]), {}).line
    "Columns: item = 'caso', system = 'sistema', rater = 'avaliador', dimensions = 'clareza'; not read: 'obs'"
    """
    found = _Search(sheet, given, {*map(plain_column, facets)})
    found.take_given()
    found.take("item", known_items)
    for name in ("system", "rater", "candidate", "lower_is_better", "group", "condition", "dataset", "language"):
        found.take(name)
    if not found.dimensions and not found.raters:
        found.take("value")
    if found.fields.get("value") or not found.dimensions:
        found.take("dimension")
    found.take_wide()
    return found.result(one_system)


class _Search:
    """The search for the columns of one table."""

    def __init__(self, sheet: Sheet, given: Mapping[str, Sequence[str]], facets: set[str]) -> None:
        self.sheet, self.given, self.facets = sheet, given, facets
        self.fields: dict[str, str] = {}
        self.dimensions: tuple[str, ...] = ()
        self.raters: tuple[str, ...] = ()
        self.lower: tuple[str, ...] = ()
        self.faults: list[TableFault] = []

    @property
    def rest(self) -> list[str]:
        """The columns without a field."""
        taken = {*self.fields.values(), *self.dimensions, *self.raters}
        return [column for column in self.sheet.columns if column not in taken]

    def take_given(self) -> None:
        for name, wanted in self.given.items():
            if name not in RATING_FIELDS:
                self.faults.append(TableFault(0, "", f"the field {name!r} in the mapping", one_of(RATING_FIELDS, name)))
                continue
            matches = [self._named(column) for column in wanted]
            if name == "lower_is_better" and not all(match in self.sheet.columns for match in matches):
                self.lower = tuple(wanted)  # names of dimensions in rows
                continue
            missing = next((column for column, match in zip(wanted, matches, strict=True) if not match), None)
            if missing is not None:
                expected = one_of(self.sheet.columns, missing)
                self.faults.append(TableFault(1, "", f"no column {missing!r} for {name}", expected))
            elif name == "lower_is_better" and all(self.is_numeric(match) for match in matches):
                self.lower = tuple(matches)  # dimensions of a wide table
            elif name == "dimension" and self._is_wide(matches):
                self.dimensions = tuple(matches)
            elif name == "rater" and len(matches) > 1:
                self.raters = tuple(matches)
            elif len(matches) > 1:
                shown = " and ".join(map(repr, matches))
                self.faults.append(TableFault(1, "", f"{shown} as the {name}", "one column"))
            else:
                self.fields[name] = matches[0]

    def _is_wide(self, columns: Sequence[str]) -> bool:
        """Whether columns that somebody named as dimensions hold ratings, and not a dimension's name in each row."""
        values = (one for one in self.sheet.columns if plain_column(one) in _KNOWN["value"] and one not in columns)
        alone = len(columns) > 1 or next(values, None) is None
        return alone and "value" not in self.given and all(map(self.is_numeric, columns))

    def _named(self, column: str) -> str:
        same = [one for one in self.sheet.columns if one == column]
        same = same or [one for one in self.sheet.columns if plain_column(one) == plain_column(column)]
        return same[0] if same else ""

    def take(self, name: str, known: Collection[str] = ()) -> None:
        """Find the column of a field by its names; of several the one with the most `known` cells, or the best name."""
        if name in self.given or (name == "rater" and self.raters):
            return
        known = {*known}
        hits = []
        for column in self.rest:
            location = _KNOWN[name].get(plain_column(column))
            if location is None or (plain_column(column) in _WEAK and not self.is_numeric(column)):
                continue
            there = sum(text in known for text in self.sheet.texts(column)) if known else 0
            hits.append((-there, location, column))
        if hits:
            self.fields[name] = min(hits)[2]

    def take_wide(self) -> None:
        """Without a column of values: the columns of raters, or of dimensions."""
        if self.fields.get("value") or self.dimensions or self.raters:
            self._refuse_both()
            return
        apart = [
            column for column in self.rest if _RATER_COLUMN.fullmatch(plain_column(column)) and self.is_numeric(column)
        ]
        if "rater" not in self.fields and len(apart) > 1:
            self.raters = tuple(apart)
            return
        self.dimensions = tuple(column for column in self.rest if self._may_be_dimension(column))

    def _refuse_both(self) -> None:
        value = self.fields.get("value", "")
        if not value or "value" in self.given or self.fields.get("dimension"):
            return
        others = [column for column in self.rest if self._may_be_dimension(column)]
        if others:
            shown = ", ".join(map(repr, others[:5]))
            expected = f"one meaning: --map value={value}, or --map dimension={value} --map dimension={others[0]} …"
            self.faults.append(TableFault(1, "", f"the values of {value!r} beside numbers in {shown}", expected))

    def _may_be_dimension(self, column: str) -> bool:
        return plain_column(column) not in {*_ASIDE, *self.facets} and self.is_numeric(column)

    def is_numeric(self, column: str) -> bool:
        """Whether at least half of the filled cells, and one of them, are numbers."""
        cells = [row.cells.get(column) for row in self.sheet.rows if not is_empty(row.cells.get(column))]
        count = sum(rated_number(cell, decimal_comma=self.sheet.decimal_comma) is not None for cell in cells)
        return bool(cells) and 2 * count >= len(cells)

    def result(self, one_system: bool) -> RatingColumns:
        missing = [name for name in NEEDED if name not in self.fields and name not in self.given]
        if self.dimensions or self.raters:
            missing = [name for name in missing if name != "value" and not (name == "rater" and self.raters)]
        missing = [] if self.faults else [name for name in missing if name != "system" or not one_system]
        faults = [*self.faults, *(self._lacking(name) for name in missing)]
        own = {name: column for name, column in self.fields.items() if name in RATING_FIELDS}
        unread = tuple(self.rest)
        return RatingColumns(
            **own, dimensions=self.dimensions, raters=self.raters, lower=self.lower, unread=unread, faults=tuple(faults)
        )

    def _lacking(self, name: str) -> TableFault:
        what = {"item": "the questions' ids", "value": "the ratings", "system": "the systems", "rater": "the raters"}
        listed = ", ".join(map(repr, self.sheet.columns))
        more = " (wide: --map dimension=COLUMN for each dimension)" if name == "value" else ""
        return TableFault(1, "", f"no column of {what[name]} among {listed}", f"one, or --map {name}=COLUMN{more}")


def rated_number(cell: object, *, decimal_comma: bool = False) -> float | None:
    """The finite number in a cell; a truth value is 1 or 0. None for anything else.

    >>> rated_number(4), rated_number("3,5", decimal_comma=True), rated_number(True), rated_number("good")
    (4.0, 3.5, 1.0, None)
    """
    text = cell_text(float(cell) if isinstance(cell, bool) else cell)
    return number_in(text.replace(",", ".") if decimal_comma else text)


def plain_text(cell: object) -> str:
    """The text of an answer in a cell, as it was before `safe_cell`.

    >>> plain_text("'=1+1"), plain_text(" two "), plain_text(3.0)
    ('=1+1', ' two ', '3')
    """
    return str(read_safe_cell(cell if isinstance(cell, str) else cell_text(cell)))


def person_in(scorer: str) -> str:
    """The rater's name in the name of a scorer that is a person; "" for another scorer.

    >>> person_in("human:ana"), person_in("rouge-l-best")
    ('ana', '')
    """
    return scorer.removeprefix(HUMAN) if scorer.startswith(HUMAN) else ""
