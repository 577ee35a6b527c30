"""Your own questions as people of several countries write them: columns, formats and letters, and what is doubted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import Benchmark, InputError, VideoClip
from proctor.core.formats import BoxesFormat, ChoicesFormat, IntervalsFormat, PointFormat, QuantityFormat
from proctor.tasks.questions.columns import recognise

HEADERS = {
    "German": "Nr.;Frage;Antwort;Antwort A;Antwort B;Videodatei;Startzeit;Endzeit;Patienten-ID;Thema",
    "German, as an examiner": "Fragennummer;Fragestellung;Musterlösung;Auswahl A;Auswahl "
    "B;Dateiname;von;bis;Fallnummer;Thema",
    "French": "N°;Question;Bonne réponse;Choix A;Choix B;Fichier vidéo;Début;Fin;Patient;Thème",
    "French, as an examiner": "Identifiant;Énoncé;Réponse correcte;Proposition A;Proposition B;Nom du fichier;Temps de "
    "début;Temps de fin;Cas;Thème",
    "Chinese": "序号;题目;正确答案;选项A;选项B;视频文件;开始时间;结束时间;病人编号;主题",
    "Chinese, traditional": "題號;問題;答案;選項A;選項B;影片;開始時間;結束時間;病患;主題",
    "English": "Question No.;Question;Correct;Choice A;Choice B;Filename;Start (s);End time;Case ID;Topic",
    "English, numbered": "#;Question;Answer;Option 1;Option 2;Video name;Clip start;Clip end;Procedure;Topic",
}


def read(folder: Path, text: str, settings: str = "") -> Benchmark:
    """The questions of a table beside one clip."""
    (folder / "a.mp4").write_bytes(b"")
    (folder / "questions.csv").write_text(text, encoding="utf-8")
    if settings:
        (folder / "benchmark.yaml").write_text(settings)
    return proctor.load(folder)


@pytest.mark.parametrize("language", HEADERS)
def test_columns_are_recognised_as_people_name_them(language: str, tmp_path: Path) -> None:
    names = HEADERS[language].split(";")
    benchmark = read(tmp_path, f"{HEADERS[language]}\nq1;Was?;B;Teller;Becher;a.mp4;0:01;0:03;P1;x\n")
    (item,) = benchmark.items
    assert (item.id, item.question, item.group, item.options) == ("q1", "Was?", "P1", ("Teller", "Becher"))
    assert item.media == (VideoClip(source="a.mp4", start=1.0, end=3.0),)
    assert item.reference is not None
    assert item.reference.answer == "B"
    assert item.tags == {names[-1]: "x"}


def test_names_that_come_near_a_field_are_asked_about(tmp_path: Path) -> None:
    """A clip's start in frames was a facet without a word, and the whole video shown."""
    benchmark = read(tmp_path, "id,question,answer,video,start frame,end_ms,tool\nq1,On?,yes,a.mp4,12,900,hook\n")
    said = "Kept as facets: 'start frame' (start?), 'end_ms' (end?); if it is that, say so: --map FIELD=COLUMN"
    assert said in benchmark.reading
    assert recognise(["question", "answer", "video", "endoscope", "topic", "image quality"], {}).near_line == ""
    columns = recognise(["question", "answer", "video", "endpoint", "number", "patient age", "procedure type"], {})
    assert columns.facets == ["endpoint", "number", "patient age", "procedure type"]  # none is a time, an id or a group


def test_a_column_of_file_names_is_the_media_whatever_it_is_called(tmp_path: Path) -> None:
    text = "id,question,answer,Video ID,recording\nq1,On?,yes,v1,a.mp4\nq2,On?,no,v1,a.mp4\n"
    benchmark = read(tmp_path, text)
    assert [item.media for item in benchmark.items] == [(VideoClip(source="a.mp4"),)] * 2
    assert "media = 'recording'" in benchmark.reading[1]
    assert {item.group for item in benchmark.items} == {"v1"}


NUMBERED = "id,question,answer,{columns},patient\nq1,Which?,{answer},liver,spleen,p\n"


@pytest.mark.parametrize(("columns", "answer"), [("option 1,option 2", "2"), ("option 0,option 1", "1")])
def test_options_in_numbered_columns_are_named_by_their_numbers(columns: str, answer: str, tmp_path: Path) -> None:
    (item,) = read(tmp_path, NUMBERED.format(columns=columns, answer=answer)).items
    assert item.reference is not None
    assert item.reference.answer == "B"


MEASURED = """id,question,answer,format,unit,tolerance,patient
q1,How wide?,8,,cm,0.5,p
q2,How wide?,8 cm,number,,5 %,p
q3,How wide?,8 ± 0.5 cm,,,,p
q4,How many?,3,,,1,p
q5,When?,0:10,time,,2 s,p
q6,Share?,40 %,,,5,p
q7,How good?,4,rating,,1,p
q8,Where?,"500, 500",point,,20,p
q9,When?,0:10-0:12; 0:20-0:25,interval,,,p
q10,Where?,"100,100,200,200; 300,300,400,400",boxes,,,p
"""


def test_units_and_tolerances_stand_in_columns(tmp_path: Path) -> None:
    answers: list[Any] = [item.answer for item in read(tmp_path, MEASURED).items]
    assert answers[0] == QuantityFormat(unit="cm", tolerance=0.5)
    assert answers[1] == QuantityFormat(unit="cm", relative=0.05)
    assert answers[2] == QuantityFormat(unit="cm", tolerance=0.5)
    assert [(one.kind, one.tolerance) for one in answers[3:8]] == [
        *(("quantity", 1), ("timestamps", 2), ("percentage", 5), ("scale", 1), ("point", 20))
    ]
    assert answers[8] == IntervalsFormat(several=True)
    assert answers[9] == BoxesFormat(several=True)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("q1,Wide?,8,number,furlong,,p", "column 'unit': found 'furlong', expected"),
        ("q1,Wide?,8,number,cm,wide,p", "column 'tolerance': found 'wide', expected a number, such as"),
        ("q1,Wide?,8,number,cm,2 kg,p", "column 'tolerance': found '2 kg', expected a number, such as"),
        ("q1,On?,N/A,,,,p", "column 'answer': found 'N/A', expected the right answer"),
        ('q1,Where?,"0.1,0.2,0.5,0.6",box,,,p', "expected x from 0 to 1000 and y from 0 to 1000"),
        ('q1,Where?,"1200,300,1400,500",box,,,p', "for pixels or shares of 1: width and height under formats"),
        ('q1,Where?,"0.5,0.5",point,,,p', "expected x from 0 to 1000 and y from 0 to 1000"),
    ],
)
def test_what_a_row_can_not_mean_is_a_fault(row: str, told: str, tmp_path: Path) -> None:
    other = "q2,Wide?,8,number,cm,1,p"  # the columns are a unit and a tolerance
    with pytest.raises(InputError) as caught:
        read(tmp_path, f"id,question,answer,format,unit,tolerance,patient\n{row}\n{other}\n")
    assert told in str(caught.value)


def test_free_text_that_may_be_meant_otherwise_is_named_with_its_rows(tmp_path: Path) -> None:
    text = (
        "id,question,answer,patient\nq1,Drink?,coffee,p\nq2,Where?,\"400, 300, 700, 800\",p\nq3,Which is better?,A,p\n"
        "q4,What happens?,The cup is moved.,p\nq5,How wide?,8-9 cm,p\n"
    )  # fmt: skip
    said = (
        "Read as free text, which a judge must score: rows 2, 3, 4, 6. If that is wrong, a column 'format' says so: "
        "short text (row 2), boxes (row 3), number (row 6). If row 4 is a choice, add columns for the options."
    )
    assert said in read(tmp_path, text).reading


OPTIONS = "id,question,answer,format,A,B,C,patient\nq1,Which?,{answer},{kind},liver,spleen,aorta,p\n"


@pytest.mark.parametrize(
    ("answer", "kind", "read_as"),
    [
        ("A and C", "", ["A", "C"]),
        ("AC", "", ["A", "C"]),
        ("A、C", "多选题", ["A", "C"]),
        ("A B C", "choices", ["A", "B", "C"]),
        ("BAC", "order", ["B", "A", "C"]),
        ("C > A > B", "", ["C", "A", "B"]),
        ("B", "单选题", "B"),
    ],
)
def test_letters_of_several_options_in_any_form(answer: str, kind: str, read_as: Any, tmp_path: Path) -> None:
    (item,) = read(tmp_path, OPTIONS.format(answer=f'"{answer}"', kind=kind)).items
    assert item.reference is not None
    assert item.reference.answer == read_as
    assert isinstance(item.answer, ChoicesFormat) == (answer[0] == "A")


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        ("A, B, C", "", "the format order or choices in a column 'format'"),
        ("A, C", "choice", "where all of several are right 'A, C' as format choices, any of them 'A | C'"),
        ("1,3,2", "order", "found '1,3,2', expected all of A, B, C in their order, such as C > B > A"),
        ("all of the above", "choices", "expected all right options, such as A, C"),
    ],
)
def test_letters_that_may_mean_two_things_say_what_to_write(answer: str, kind: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, OPTIONS.format(answer=f'"{answer}"', kind=kind))
    assert told in str(caught.value)


def test_a_file_in_another_encoding_is_one_fault(tmp_path: Path) -> None:
    """Excel's plain CSV in Chinese was 21 faults."""
    (tmp_path / "questions.csv").write_bytes("题干,答案,选项A,选项B\n什么,杯子,盘子,杯子\n".encode("gb18030"))
    with pytest.raises(
        InputError, match=r"row 1: found '.*' and 6 more names and cells, which are not UTF-8"
    ) as caught:
        proctor.load(tmp_path)
    assert not getattr(caught.value, "__notes__", [])


def test_places_read_in_thousandths_are_said_to_be(tmp_path: Path) -> None:
    rows = 'id,question,answer,format,patient\nq1,Where?,"1,2,300,400",{kind},p\n'
    assert any(
        line.startswith("Boxes: x and y run from 0 to 1000") for line in read(tmp_path, rows.format(kind="box")).reading
    )
    pixels = read(tmp_path, rows.format(kind="px"), "formats: {px: {kind: point, width: 1280, height: 720}}")
    assert pixels.items[0].answer == PointFormat(width=1280, height=720)
    assert not any("0 to 1000" in line for line in pixels.reading)
