"""Which column holds what: names in English and a few other languages, without regard to case, spaces and signs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proctor.core import TableFault, one_of

FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "item id", "question id", "qid", "uid", "item", "nr", "nummer", "identifiant", "编号", "رقم"),
    "question": (
        "question", "question text", "query", "prompt", "stem", "frage", "fragetext", "pregunta", "domanda", "pergunta",
        "vraag", "fråga", "spørgsmål", "pytanie", "вопрос", "问题", "问", "質問", "질문", "سؤال", "السؤال", "שאלה",
    ),
    "answer": (
        "answer", "correct answer", "right answer", "reference", "reference answer", "gold", "gold answer", "ground truth",
        "solution", "target", "answer key", "correct option", "antwort", "richtige antwort", "lösung", "réponse",
        "respuesta", "respuesta correcta", "risposta", "resposta", "antwoord", "svar", "odpowiedź", "ответ", "答案", "回答",
        "정답", "إجابة", "الجواب", "الإجابة", "תשובה",
    ),
    "options": (
        "options", "choices", "answer options", "answer choices", "candidates", "optionen", "antwortoptionen",
        "antwortmöglichkeiten", "opciones", "opzioni", "opções", "opties", "варианты", "选项", "選択肢", "خيارات", "אפשרויות",
    ),
    "media": (
        "media", "medium", "video", "videos", "clip", "video file", "video path", "image", "images", "image file",
        "image path", "picture", "pictures", "photo", "frames", "frame folder", "file", "files", "file name", "path", "bild",
        "bilder", "datei", "vidéo", "fichier", "imagen", "archivo", "immagine", "imagem", "bestand", "видео", "视频", "图片",
        "图像", "動画", "画像", "فيديو", "صورة", "סרטון", "תמונה",
    ),
    "start": (
        "start", "start time", "start s", "start seconds", "time start", "from", "begin", "beginn", "anfang", "von", "début",
        "inicio", "inizio", "início", "начало", "开始", "開始", "بداية", "התחלה",
    ),
    "end": (
        "end", "end time", "end s", "end seconds", "time end", "stop", "to", "until", "ende", "bis", "fin", "fine", "fim",
        "einde", "конец", "结束", "終了", "نهاية", "סוף",
    ),
    "window": ("window", "window level", "window centre width", "window center width", "fenster", "fenêtre", "ventana"),
    "group": (
        "group", "cluster", "patient", "patient id", "subject", "subject id", "case", "case id", "procedure",
        "procedure id", "study", "study id", "video id", "gruppe", "patientin", "fall", "paciente", "paziente", "groupe",
        "grupo", "gruppo", "пациент", "患者", "病例", "مريض", "מטופל",
    ),
    "format": ("format", "answer format", "answer type", "antwortformat"),
    "accepted": (
        "accepted", "accepted answers", "also accepted", "also right", "alternative answers", "aliases", "auch richtig",
    ),
    "tolerance": ("tolerance", "allowed error", "toleranz", "tolérance", "tolerancia", "tolleranza"),
    "unit": ("unit", "units", "einheit", "unité", "unidad", "unità", "unidade", "единица", "单位"),
    "criteria": ("criteria", "rubric", "rubrics", "kriterien", "critères", "criterios", "criteri", "评分标准"),
    "rationale": (
        "rationale", "explanation", "reasoning", "begründung", "erklärung", "explication", "explicación", "spiegazione",
        "解析", "解释",
    ),
}  # fmt: skip
"""What a column may be, with the names by which it is recognised, the most telling first; every other one is a facet."""

MEANING: Mapping[str, str] = {
    "id": "the question's own name, each once",
    "question": "what is asked (needed)",
    "answer": "the right answer; for a choice the letter, or the option's text",
    "options": 'the options of a choice: "A; B; C", a list, or one column for each (option A, option B, … or A, B, …)',
    "media": 'a video, an image, several ("a.png; b.png"), a folder of frames, or [medical images](#medical-images), by path',
    "start": "where the clip begins in its video: seconds, 1:05 (a minute and five seconds) or 1:05:03",
    "end": "where it ends",
    "window": "centre and width of the window of DICOM and NIfTI files: 40/400 (a facet where there are none)",
    "group": "what must be resampled together: a patient, a procedure, a video",
    "format": "the answer's format, where it is not to be guessed",
    "accepted": "further answers that count as right",
    "tolerance": "how far off the answer may be: in its own unit, or of a number a share of it (5 %)",
    "unit": "the unit of a number (a facet where no cell is a unit)",
    "criteria": 'what a judge marks free text by, "5: names the spleen", one a line, or JSON (a facet where no cell is that)',
    "rationale": "why the answer is right; shown to judges and people, never to a model",
}
"""What each field is."""

_ALONE = {"question", "answer", "options"}  # which of two columns is meant, nobody should guess
_NUMBERS = [str(number) for number in range(1, 100)]  # more than there are letters are told row by row
_OPTION = re.compile(r"(?:option|choice|opt|antwort|opción|opcion|opzione|选项)?([a-z]|[1-9][0-9]?)")
_PICTURE = re.compile(r"(?:image|picture|photo|frame|video|bild|图片|图像)[0-9]{1,2}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass
class ColumnMap:
    """Which columns stand for which field; `options` are columns of one option each, in order; `facets` are all others."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    facets: list[str] = field(default_factory=list)
    faults: list[TableFault] = field(default_factory=list)

    def one(self, name: str) -> str:
        """The column of a field that has one; empty where it has none."""
        return next(iter(self.fields.get(name, ())), "")

    @property
    def line(self) -> str:
        """The mapping in one line."""
        parts = [f"{name} = {' + '.join(map(repr, columns))}" for name, columns in self.fields.items() if columns]
        if self.options:
            parts.append(f"options = {' + '.join(map(repr, self.options))}")
        facets = f"; facets: {', '.join(map(repr, self.facets))}" if self.facets else ""
        return f"Columns: {', '.join(parts)}{facets}"


def plain(name: str) -> str:
    """A name without case, accents, spaces and signs.

    >>> plain("Start-Time (s)"), plain("RÉPONSE"), plain("Frage")
    ('starttimes', 'reponse', 'frage')
    """
    apart = unicodedata.normalize("NFKD", name.casefold())
    return "".join(one for one in apart if one.isalnum())


_KNOWN = {name: {plain(word): place for place, word in enumerate(words)} for name, words in FIELDS.items()}


def recognise(columns: Sequence[str], given: Mapping[str, Sequence[str]]) -> ColumnMap:
    """The mapping of a file's columns. `given` says it for some fields; a field that is given is not looked for.

    >>> recognise(["ID", "Frage", "Antwort", "Video", "ward"], {}).line
    "Columns: id = 'ID', question = 'Frage', answer = 'Antwort', media = 'Video'; facets: 'ward'"
    """
    found = ColumnMap()
    _take_given(found, columns, given)
    taken = {column for used in found.fields.values() for column in used}
    rest = [column for column in columns if column not in taken]
    for name, known in _KNOWN.items():
        if name in given:
            continue
        hits = sorted(
            (known[plain(column)], place, column) for place, column in enumerate(rest) if plain(column) in known
        )
        named = [column for _, _, column in hits]
        if name == "media":
            numbered = [column for column in rest if _PICTURE.fullmatch(plain(column))]
            found.fields[name] = [column for column in rest if column in {*named, *numbered}]
        elif len(named) > 1 and name in _ALONE:
            shown = " and ".join(map(repr, named))
            expected = f"which of them is the {name}: --map {name}=COLUMN"
            found.faults.append(TableFault(1, "", f"the columns {shown}", expected))
        elif named:
            found.fields[name] = named[:1]
        rest = [column for column in rest if column not in found.fields.get(name, ())]
    if not found.fields.get("options"):
        found.options = _option_columns(rest)
    found.facets = [column for column in rest if column not in found.options]
    if not found.fields.get("question") and not found.faults:
        listed = ", ".join(map(repr, columns)) or "none"
        found.faults.append(
            TableFault(1, "", f"no column for the question among {listed}", "one, or --map question=COLUMN")
        )
    return found


def _take_given(found: ColumnMap, columns: Sequence[str], given: Mapping[str, Sequence[str]]) -> None:
    for name, wanted in given.items():
        if name not in FIELDS:
            found.faults.append(TableFault(0, "", f"the field {name!r} in the mapping", one_of(FIELDS, name)))
            continue
        for column in wanted:
            match = [one for one in columns if one == column] or [one for one in columns if plain(one) == plain(column)]
            if match:
                found.fields.setdefault(name, []).append(match[0])
            else:
                found.faults.append(TableFault(1, "", f"no column {column!r} for {name}", one_of(columns, column)))


def _option_columns(columns: Sequence[str]) -> list[str]:
    """Two or more columns that hold one option each: lettered from A on, or numbered from 0 or 1 on."""
    marked: dict[str, dict[str, str]] = {}
    for column in columns:
        hit = _OPTION.fullmatch(plain(column))
        if hit is not None and plain(column) != hit[1] * hit[1].isdigit():  # a bare number is no option
            marked.setdefault(plain(column).removesuffix(hit[1]), {})[hit[1]] = column
    for marks in marked.values():
        for order in (_LETTERS, _NUMBERS):
            kept = [marks[mark] for mark in order[: len(marks)] if mark in marks]
            if len(kept) == len(marks) >= 2:
                return kept
    return []
