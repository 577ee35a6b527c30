"""Recognise columns by their names in several languages, ignoring case, spaces and punctuation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proctor.core import TableFault, one_of
from proctor.core import plain_column as plain

FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": (
        "id", "item id", "question id", "qid", "uid", "item", "nr", "no", "#", "n°", "nummer", "question no",
        "question nr", "question number", "item no", "item number", "frage nr", "frage id", "fragen id", "fragennummer",
        "fragennr", "identifiant", "numéro", "número", "numero", "编号", "序号", "题号", "編號", "序號", "題號", "番号", "رقم",
    ),
    "question": (
        "question", "question text", "query", "prompt", "stem", "frage", "fragetext", "fragestellung", "énoncé", "intitulé",
        "question posée", "pregunta", "domanda", "pergunta", "vraag", "fråga", "spørgsmål", "pytanie", "вопрос", "问题",
        "题目", "题干", "問題", "題目", "問", "質問", "질문", "سؤال", "السؤال", "שאלה",
    ),
    "answer": (
        "answer", "correct answer", "right answer", "reference", "reference answer", "gold", "gold answer", "ground truth",
        "solution", "target", "answer key", "correct option", "correct choice", "antwort", "lösung", "referenz", "réponse",
        "solution correcte", "respuesta", "risposta", "resposta", "antwoord", "svar", "odpowiedź", "ответ", "答案", "回答",
        "정답", "إجابة", "الجواب", "الإجابة", "תשובה",
    ),
    "options": (
        "options", "choices", "answer options", "answer choices", "candidates", "optionen", "antwortoptionen", "auswahl",
        "antwortmöglichkeiten", "choix", "propositions", "opciones", "opzioni", "opções", "opties", "варианты", "选项",
        "選項", "選択肢", "خيارات", "אפשרויות",
    ),
    "media": (
        "media", "medium", "video", "videos", "clip", "image", "images", "picture", "pictures", "photo", "frames",
        "frame folder", "scan", "file", "files", "path", "filename", "bild", "bilder", "foto", "datei", "dateiname", "vidéo",
        "photographie", "fichier", "cliché", "imagen", "archivo", "immagine", "imagem", "bestand", "видео", "视频", "影片", "影像", "视像",
        "图片", "图像", "圖片", "圖像", "文件", "檔案", "動画", "画像", "فيديو", "صورة", "סרטון", "תמונה",
    ),
    "audio": (
        "audio", "audio file", "audio path", "sound", "sound file", "recording", "narration", "speech", "ton", "tonspur",
        "aufnahme", "enregistrement", "sonido", "grabación", "fichier audio", "音频", "录音", "音声", "صوت",
    ),
    "start": (
        "start", "from", "begin", "beginn", "beginning", "anfang", "von", "début", "inicio", "inizio", "início", "начало",
        "开始", "開始", "起始", "بداية", "התחלה",
    ),
    "end": (
        "end", "ending", "stop", "to", "until", "ende", "bis", "fin", "fine", "fim", "einde", "конец", "结束", "結束", "终止",
        "終了", "نهاية", "סוף",
    ),
    "window": ("window", "window level", "window centre width", "window center width", "fenster", "fenêtre", "ventana"),
    "group": (
        "group", "cluster", "patient", "subject", "case", "procedure", "study", "video id", "participant", "gruppe",
        "patientin", "fall", "paciente", "paziente", "cas", "sujet", "groupe", "grupo", "gruppo", "пациент", "患者", "病例",
        "病人", "病患", "分组", "مريض", "מטופל",
    ),
    "format": (
        "format", "answer format", "answer type", "antwortformat", "antworttyp", "antwortart", "format de réponse",
        "type de réponse", "答案格式", "题型", "題型",
    ),
    "accepted": (
        "accepted", "accepted answers", "also accepted", "also right", "alternative answers", "aliases", "synonyms",
        "auch richtig", "synonyme", "autres réponses", "其他答案",
    ),
    "tolerance": ("tolerance", "allowed error", "toleranz", "tolérance", "tolerancia", "tolleranza", "tolerância", "容差", "公差", "允许误差"),
    "unit": ("unit", "units", "einheit", "unité", "unidad", "unità", "unidade", "единица", "单位", "單位"),
    "criteria": ("criteria", "rubric", "rubrics", "kriterien", "critères", "barème", "criterios", "criteri", "评分标准", "評分標準"),
    "evidence windows": ("evidence windows", "evidence window", "evidence times", "evidence time", "evidence span"),
    "evidence boxes": ("evidence boxes", "evidence box", "evidence regions", "evidence region"),
    "rationale": (
        "rationale", "explanation", "reasoning", "begründung", "erklärung", "explication", "justification", "explicación",
        "spiegazione", "解析", "解释", "解釋",
    ),
}  # fmt: skip
"""The fields, with the names by which their columns are recognised, the most specific first; all other columns are
facets."""

MEANING: Mapping[str, str] = {
    "id": "the question's own name, each once",
    "question": "what is asked (needed)",
    "answer": "the right answer; for a choice the letter, or the option's text",
    "options": 'the options of a choice: "A; B; C", a list, or one column for each (option A, option B, … or A, B, …)',
    "media": 'a video, an image, several ("a.png; b.png"), a folder of frames, or [medical images](#medical-images), by path',
    "audio": "an [audio file](#sound), alone or beside the other media (a facet where it holds anything else)",
    "start": "where the clip begins in its video: seconds, 1:05 (a minute and five seconds) or 1:05:03",
    "end": "where it ends",
    "window": "centre and width of the window of DICOM and NIfTI files: 40/400 (a facet where there are none)",
    "group": "what must be resampled together: a patient, a procedure, a video",
    "format": "the answer's format, where it is not to be guessed",
    "accepted": "further answers that count as right",
    "tolerance": "how far off the answer may be: in its own unit, or of a number a share of it (5 %)",
    "unit": "the unit of a number (a facet where no cell is a unit)",
    "criteria": 'what a judge scores free text by, "5: names the spleen", one a line, or JSON (a facet where no cell is that)',
    "evidence windows": 'when the answer is visible: "12-15.5; 1:05-1:10" ([evidence](#evidence)); never shown to a system',
    "evidence boxes": 'where it is visible: "x, y, width, height @ 12-15.5" in fractions of the picture',
    "rationale": "why the answer is right; shown to judges and people, never to a model",
}
"""A description of each field."""

_DATED = "clip|video|segment|time|timeof|zeit|temps|tempsde|heure|heurede|tiempode|tempodi"
_TIMED = "time|timestamp|stamp|clip|s|sec|secs|second|seconds|in|sek|sekunden|zeit|zeitpunkt|时间|時間|时刻|点|秒"
_NAMED = "file|filename|name|path|datei|dateiname|pfad|文件|文件名|名称|名|名稱|路径|路徑|檔案|檔名"
_AROUND: Mapping[str, tuple[str, str]] = {
    "answer": (
        "correct|right|gold|true|expected|richtige|korrekte|erwartete|muster|bonne|正确|正確|标准|標準|参考|參考",
        "correcte|attendue|correcta|corretta|correta|esperada",
    ),
    "media": (
        f"video|clip|image|media|picture|bild|frame|nomdu|nom|fichier|chemin|chemindu|{_NAMED}|视频|图片|影像",
        _NAMED,
    ),
    "start": (_DATED, _TIMED),
    "end": (_DATED, _TIMED),
    "group": ("", "id|ids|en|n|nr|no|number|nummer|code|编号|編號|号|號"),
}
"""Words before and after a field's names that do not change its meaning."""
_WEAK: Mapping[str, tuple[str, ...]] = {"answer": ("correct", "richtig", "label"), "question": ("text", "aufgabe")}
"""Names that count only without a better one."""

_SHARED = ("id", "group", "media", "audio")
"""Fields that one column may serve together, since each tells which one it is: a column that somebody names for one of
them is recognised for the others, too."""
_NEAR = ("media", "start", "end")  # systems see the wrong thing, or nothing, if one is missed
_ALONE = {"question", "answer", "options"}  # never guess between two columns
_NUMBERS = [str(number) for number in range(1, 100)]  # more than letters: rows report too many options
_OPTION = re.compile(
    r"(?:option|choice|opt|answer|antwort|antwortoption|antwortmoglichkeit|auswahl|choix|proposition|reponse|opcion|opzione"
    r"|选项|選項|選択肢)?([a-z]|[0-9]{1,2})"
)
_PICTURE = re.compile(r"(?:image|picture|photo|frame|video|bild|图片|图像)[0-9]{1,2}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass
class ColumnMap:
    """The columns of each field; `options` are columns with one option each, in order; `facets` are all others."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    facets: list[str] = field(default_factory=list)
    faults: list[TableFault] = field(default_factory=list)

    def one(self, name: str) -> str:
        """The first column of a field; empty without one."""
        return next(iter(self.fields.get(name, ())), "")

    @property
    def marks(self) -> list[str]:
        """The numbers in the names of the options' columns, in order; none if they have letters."""
        numbers = [re.sub(r"\D", "", plain(column)) for column in self.options]
        return numbers if all(numbers) else []

    @property
    def near_line(self) -> str:
        """A note on facets with names similar to a field without a column; empty without any."""
        near = [
            f"{column!r} ({name}?)"
            for column in self.facets
            for name in _NEAR
            if not self.fields.get(name) and _near(name, column)
        ]
        return f"Kept as facets: {', '.join(near)}; if it is that, say so: --map FIELD=COLUMN" if near else ""

    @property
    def line(self) -> str:
        """A note with the mapping."""
        parts = [f"{name} = {' + '.join(map(repr, columns))}" for name, columns in self.fields.items() if columns]
        if self.options:
            parts.append(f"options = {' + '.join(map(repr, self.options))}")
        facets = f"; facets: {', '.join(map(repr, self.facets))}" if self.facets else ""
        return f"Columns: {', '.join(parts)}{facets}"


_KNOWN = {name: {plain(word): row for row, word in enumerate(words)} for name, words in FIELDS.items()}
_DECORATED = {
    name: re.compile(rf"(?:{before})?(?:{'|'.join(sorted(_KNOWN[name], key=len, reverse=True))})(?:{after})*")
    for name, (before, after) in _AROUND.items()
}


def _surety(name: str, column: str) -> int | None:
    """How well a column's name fits a field, 0 the best; None if it does not."""
    folded = plain(column)
    if folded in _KNOWN[name]:
        return _KNOWN[name][folded]
    pattern = _DECORATED.get(name)
    return None if pattern is None or not pattern.fullmatch(folded) else len(_KNOWN[name])


def _near(name: str, column: str) -> bool:
    """Whether a column's name begins or ends with a name of the field."""
    words = [plain(word) for word in re.split(r"[^\w]|_", column) if word]
    return bool(words) and bool({words[0], words[-1]} & {*_KNOWN[name]})


def recognise(columns: Sequence[str], given: Mapping[str, Sequence[str]]) -> ColumnMap:
    """The mapping of a file's columns; `given` fixes it for some fields. A column given as the group stays the id, if it
    is called so (see `_SHARED`).

    >>> recognise(["ID", "Frage", "Antwort", "Video", "ward"], {}).line
    "Columns: id = 'ID', question = 'Frage', answer = 'Antwort', media = 'Video'; facets: 'ward'"
    """
    found = ColumnMap()
    _take_given(found, columns, given)
    taken = {column for used in found.fields.values() for column in used}
    shared = {column for name in _SHARED for column in found.fields.get(name, ())}
    rest = [column for column in columns if column not in taken]
    for name in _KNOWN:
        if name not in given:
            free = [column for column in columns if column in {*rest, *(shared if name in _SHARED else ())}]
            _take_recognised(found, name, free, rest)
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


def _take_recognised(found: ColumnMap, name: str, free: Sequence[str], rest: Sequence[str]) -> None:
    """Takes the columns of a field: among the `free` ones by their names, else among the `rest` by a weak name."""
    sure = {column: hit for column in free if (hit := _surety(name, column)) is not None}
    named = sorted(sure, key=sure.__getitem__)
    named = named or [column for column in rest if plain(column) in _WEAK.get(name, ())]
    if name == "media":
        numbered = [column for column in free if _PICTURE.fullmatch(plain(column))]
        found.fields[name] = [column for column in free if column in {*named, *numbered}]
    elif len(named) > 1 and name in _ALONE:
        shown = " and ".join(map(repr, named))
        expected = f"which of them is the {name}: --map {name}=COLUMN"
        found.faults.append(TableFault(1, "", f"the columns {shown}", expected))
    elif named:
        found.fields[name] = named[:1]


def _option_columns(columns: Sequence[str]) -> list[str]:
    """Two or more columns with one option each: lettered from A, or numbered from 0 or 1."""
    marked: dict[str, dict[str, str]] = {}
    for column in columns:
        hit = _OPTION.fullmatch(plain(column))
        if hit is not None and plain(column) != hit[1] * hit[1].isdigit():  # a bare number is no option
            marked.setdefault(plain(column).removesuffix(hit[1]), {})[hit[1]] = column
    for marks in marked.values():
        for order in (_LETTERS, _NUMBERS, ["0", *_NUMBERS]):
            kept = [marks[mark] for mark in order[: len(marks)] if mark in marks]
            if len(kept) == len(marks) >= 2:
                return kept
    return []
