"""Your own questions, read as they are: what each kind of file and cell becomes, by hand."""

from __future__ import annotations

import datetime as dt
import io
import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import proctor
from proctor.core import Benchmark, Image, InputError, VideoClip
from proctor.core.formats import (
    EVERY_KIND,
    BinaryFormat,
    ChoiceFormat,
    ChoicesFormat,
    FreeTextFormat,
    IntervalsFormat,
    OrderingFormat,
    QuantityFormat,
    TimestampsFormat,
)
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor as shell

GERMAN = """ID;Frage;Antwort;Option A;Option B;Option C;Video;Start;Ende;Station
q1;Was wird gehalten?;A;Tasse;Teller;Messer;cups.mp4;0,5;0:04;A
q2;Was ist zu sehen?;Kaffee;Tee;Kaffee;Wasser;coffee.mp4;;1:05:03;B
q3;Wie viele Tassen?;3;;;;cups.mp4;;;A
q4;Sieht man eine Hand?;ja;;;;coffee.mp4;;;B
q5;Was geschieht?;Kaffee wird eingegossen.;;;;coffee.mp4;;;B
"""


def written(folder: Path, name: str, text: str | bytes, *media: str) -> Path:
    """A folder with one file of questions and empty media files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for one in media:
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
        (folder / one).write_bytes(b"")
    return folder


def only(benchmark: Benchmark) -> Any:
    (item,) = benchmark.items
    return item


def test_questions_that_are_asked_twice_are_noted(tmp_path: Path) -> None:
    """Options may have another order; another file is another question."""
    rows = ["q1,What is it?,a cat,a dog,A,g1,", "q2,what  IS it?,a dog,a cat,A,g2,", "q3,What is it?,a cat,a dog,A,g3,",
            "q4,Where?,here,there,A,g1,", "q5,Where?,here,there,A,g4,", "q6,Where?,here,there,A,g4,a.png"]  # fmt: skip
    text = "\n".join(["id,question,A,B,answer,group,media", *rows]) + "\n"
    found = proctor.check(written(tmp_path, "q.csv", text, "a.png"), out=None)
    (note,) = [one for one in found.notes if one.startswith("Asked more than once")]
    assert note == (
        "Asked more than once, with the same media: 2 questions: rows 2, 3, 4, with different answers ('What is it?'); "
        "rows 5, 6 ('Where?')"
    )
    once = "\n".join(["id,question,A,B,answer,group,media", rows[0], rows[3], rows[5]]) + "\n"
    assert not any("more than once" in one for one in proctor.check(written(tmp_path, "q.csv", once), out=None).notes)


def test_a_point_before_three_digits_is_ambiguous_beside_decimal_commas(tmp_path: Path) -> None:
    head, file = "id;question;answer;patient\n", tmp_path / "q.csv"
    file.write_text(head + "q1;How long?;3,5 cm;p1\nq2;How long?;1.000;p1\nq3;How long?;0.125 cm;p2\n")
    found = proctor.check(file)
    assert [(row["row"], row["found"]) for row in found.rows] == [(3, "'1.000'")]
    assert str(found.rows[0]["expected"]).startswith(
        "a number (1000 or 1.0: a point before three digits may mean either"
    )
    file.write_text(head + "q1;How long?;3.5 cm;p1\nq2;How long?;1.000;p1\n")
    assert [item.reference and item.reference.answer for item in proctor.load(file).items] == [3.5, 1.0]


def test_a_german_file_with_semicolons_and_decimal_commas_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "küche", "questions.csv", GERMAN, "media/cups.mp4", "media/coffee.mp4")
    benchmark = proctor.load(str(folder))
    assert (benchmark.name, benchmark.media_root) == ("küche", folder / "media")
    first, second, third, fourth, fifth = benchmark.items
    assert first.media == (VideoClip(source="cups.mp4", start=0.5, end=4.0),)
    assert second.media == (VideoClip(source="coffee.mp4", end=3903.0),)
    assert (first.reference.answer, second.reference.answer) == ("A", "B")  # type: ignore[union-attr]
    assert second.options == ("Tee", "Kaffee", "Wasser")
    assert [item.answer.kind for item in (third, fourth, fifth)] == ["count", "binary", "free_text"]
    assert [item.group for item in benchmark.items] == [
        "cups.mp4",
        "coffee.mp4",
        "cups.mp4",
        "coffee.mp4",
        "coffee.mp4",
    ]
    assert first.tags == {"Station": "A", "format": "choice"}
    assert benchmark.facets == ("format", "Station")
    assert benchmark.reading[1:] == (
        "questions.csv: columns separated by ';'",
        (
            "Columns: id = 'ID', question = 'Frage', answer = 'Antwort', media = 'Video', start = 'Start', end = "
            "'Ende', "
            "options = 'Option A' + 'Option B' + 'Option C'; facets: 'Station'"
        ),
        (
            "Answer formats: choice 2 (row 2: 'A'), whole number 1 (row 4: '3'), yes or no 1 (row 5: 'ja'), free text "
            "1 "
            "(row 6: 'Kaffee wird eingegossen.'), guessed from the references; a column 'format' declares them"
        ),
        "Groups: 2, from the media: questions on one file belong together",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("questions.csv", "\ufeffquestion,answer,patient\nIs it on?,yes,p1\n".encode()),
        ("questions.csv", "question\tanswer\tpatient\nIs it on?\tyes\tp1\n".encode("utf-16")),
        ("questions.csv", b"sep=;\nquestion;answer;patient\nIs it on?;yes;p1\n"),
        ("anything.tsv", b"Question\tAnswer\tPatient\nIs it on?\tYES\tp1\n"),
        ("q.jsonl", b'{"question": "Is it on?", "answer": true, "patient": "p1"}\n\n'),
        ("q.json", b'{"questions": [{"question": "Is it on?", "answer": "yes", "patient": "p1"}]}'),
        ("q.json", b'[{"Question": "Is it on?", "reference": "true", "case id": "p1"}]'),
    ],
)
def test_every_text_form_gives_the_same_item(tmp_path: Path, name: str, text: bytes) -> None:
    item = only(proctor.load(written(tmp_path / "mine", name, text)))
    assert (item.question, item.group, item.answer) == ("Is it on?", "p1", BinaryFormat())
    assert item.reference.answer is True


def test_times_are_read_as_they_are_written(tmp_path: Path) -> None:
    rows = [("1:05", 65.0), ("1:05:03", 3903.0), ("65", 65.0), ("65.5 s", 65.5), ("0:00.5", 0.5), ("١:٠٥", 65.0)]
    lines = [f"q{n},Is it on?,yes,a.mp4,{text},2:00:00" for n, (text, _) in enumerate(rows)]
    text = "id,question,answer,video,start,end\n" + "\n".join(lines)
    benchmark = proctor.load(written(tmp_path, "questions.csv", text, "a.mp4"))
    assert [item.media[0].start for item in benchmark.items] == [seconds for _, seconds in rows]  # type: ignore[union-attr]


def test_several_images_a_folder_of_frames_and_an_order(tmp_path: Path) -> None:
    text = (
        "id,question,answer,media\n"
        "q1,In which order?,C > A > B,a.png; b.png; c.png\n"
        "q2,Is it on?,no,frames/v1\n"
        'q3,Is it on?,no,"[""a.png"", ""d.png""]"\n'
    )
    media = ("a.png", "b.png", "c.png", "d.png", "frames/v1/f2.jpg", "frames/v1/f10.jpg", "frames/v1/notes.txt")
    first, second, third = proctor.load(written(tmp_path, "questions.csv", text, *media)).items
    assert first.media == tuple(Image(source=f"{name}.png", label=name.upper()) for name in "abc")
    assert first.answer == OrderingFormat(labels=("A", "B", "C"))
    assert first.reference is not None
    assert first.reference.answer == ["C", "A", "B"]
    assert [medium.source for medium in second.media] == ["frames/v1/f2.jpg", "frames/v1/f10.jpg"]
    assert [first.group, second.group, third.group] == ["a.png", "frames/v1", "a.png"]  # a.png joins two of them


@pytest.mark.parametrize("where", ["", "media/", "clips/"])
def test_media_are_found_beside_the_questions_or_in_a_folder_there(where: str, tmp_path: Path) -> None:
    text = "id,question,answer,video\nq1,Is it on?,yes,a.mp4\nq2,Is it on?,no,b.mp4\n"
    folder = written(tmp_path, "questions.csv", text, f"{where}a.mp4", f"{where}b.mp4", "other/a.mp4")
    benchmark = proctor.load(folder)
    assert benchmark.media_root == (folder / where if where else folder)
    assert [item.media[0].source for item in benchmark.items] == ["a.mp4", "b.mp4"]


def test_a_link_to_another_folder_is_no_place_for_media(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.mp4").write_bytes(b"")
    text = "id,question,answer,video\nq1,Is it on?,yes,a.mp4\n"
    folder = written(tmp_path / "mine", "questions.csv", text)
    (folder / "clips").symlink_to(tmp_path / "elsewhere")
    assert proctor.load(folder).media_root == folder


def test_options_in_one_cell_and_references_by_text_letter_or_both(tmp_path: Path) -> None:
    text = (
        "id,question,options,answer,patient\n"
        "q1,Which?,liver; spleen; aorta,spleen,p\n"
        "q2,Which?,A) liver B) spleen C) aorta,B) spleen,p\n"
        'q3,Which?,"[""liver"", ""spleen""]",b,p\n'
        "q4,Which ones?,liver; spleen; aorta,A; C,p\n"
        "q5,Which?,liver; spleen; aorta,A | C,p\n"
        "q6,When?,,0:30; 1:05,p\n"
        "q7,How long?,,3.5 cm,p\n"
        "q8,How much?,,2.5,p\n"
        "q9,From when to when?,,0:10-0:25; 1:00 - 1:05,p\n"
        "q10,What?,,3 shapes,p\n"
    )
    items = proctor.load(written(tmp_path, "questions.csv", text)).items
    references = [item.reference for item in items if item.reference is not None]
    assert [item.answer for item in items[:3]] == [ChoiceFormat()] * 3
    assert [one.answer for one in references] == [
        "B",
        "B",
        "B",
        ["A", "C"],
        "A",
        [30.0, 65.0],
        3.5,
        2.5,
        [[10.0, 25.0], [60.0, 65.0]],
        "3 shapes",
    ]
    assert items[3].answer == ChoicesFormat()
    assert references[4].accepted == ("C",)
    assert items[5].answer == TimestampsFormat(several=True)
    assert [item.answer for item in items[6:8]] == [QuantityFormat(unit="cm"), QuantityFormat()]
    assert [item.answer for item in items[8:]] == [IntervalsFormat(several=True), FreeTextFormat()]


@pytest.mark.parametrize("one_cell", [False, True])
def test_more_options_than_letters_are_a_fault_with_row_and_column(one_cell: bool, tmp_path: Path) -> None:
    """27 numbered columns were taken for facets, and the choice for free text."""
    options = [f"option {number}" for number in range(1, 28)]
    columns = "options" if one_cell else ",".join(options)
    cells = "; ".join(options) if one_cell else ",".join(f"the {one}" for one in options)
    folder = written(tmp_path, "questions.csv", f"id,group,question,answer,{columns}\nq1,g,Which?,C,{cells}\n")
    with pytest.raises(
        InputError, match=r"questions.csv: row 2, column 'option.*': found 27 options, expected 2 to 26"
    ):
        proctor.load(folder)


DECLARED = """id,question,options,answer,format,patient
q1,Which?,a; b; c,B,multiple choice,p
q2,Which ones?,a; b; c,A; C,choices,p
q3,On?,,Yes,yes/no,p
q4,How many?,,3,count,p
q5,Share?,,40 %,percentage,p
q6,Length?,,3.5 cm,length,p
q7,When?,,1:05,time,p
q8,From when?,,0:10-0:25,interval,p
q9,Where?,,100 200 500 600,bounding box,p
q10,Point?,,500; 500,point,p
q11,Name?,,liver | hepar,short text,p
q12,Describe,,It moves.,free text,p
q13,Order?,a; b; c,C > A > B,order,p
q14,Level?,,3,scale,p
q15,Better?,,A,preference,p
q16,Code?,,2/3,code,p
q17,Rate,,accuracy: 0.5,rated,p
q18,What?,,sponge,objects,p
"""
FORMATS = """
formats:
  length: {kind: quantity, unit: mm, tolerance: 2}
  code: {kind: pattern, pattern: "[1-4]/[1-4]"}
  rated: {kind: ratings, dimensions: [accuracy]}
  objects: {kind: classes, classes: [clip, sponge]}
"""


def test_every_answer_format_can_be_declared(tmp_path: Path) -> None:
    folder = written(tmp_path, "questions.csv", DECLARED)
    (folder / "benchmark.yaml").write_text(FORMATS)
    benchmark = proctor.load(folder)
    references = [item.reference for item in benchmark.items if item.reference is not None]
    assert {item.answer.kind for item in benchmark.items} == set(EVERY_KIND)
    assert [one.answer for one in references] == [
        *(
            "B",
            ["A", "C"],
            True,
            3,
            40.0,
            35.0,
            [65.0],
            [[10.0, 25.0]],
            [[100.0, 200.0, 500.0, 600.0]],
            [500.0, 500.0],
            "liver",
        ),
        *("It moves.", ["C", "A", "B"], 3, "A", "2/3", {"accuracy": 0.5}, ["sponge"]),
    ]
    assert references[10].accepted == ("hepar",)
    table = proctor.run(benchmark, "random", store=":memory:").results().to_pandas()
    assert {"accuracy", "pairwise_accuracy", "iou", "jaccard_index", "scale_error"} <= set(table["metric"])


def test_right_to_left_text_is_read(tmp_path: Path) -> None:
    text = "معرف,السؤال,الجواب,خيارات,مريض\n\u200fq1\u200f,ما هذا؟,\u200fB\u200f,كبد; طحال,م١\n"
    item = only(proctor.load(written(tmp_path, "questions.csv", text), columns={"id": "معرف"}))
    assert (item.id, item.question, item.options) == ("q1", "ما هذا؟", ("كبد", "طحال"))
    assert (item.reference.answer, item.group) == ("B", "م1")


def test_columns_can_be_named_and_are_remembered_by_the_store(tmp_path: Path) -> None:
    text = "nummer,was,soll,wer\nn1,Is it on?,yes,p1\nn2,Is it off?,no,p2\n"
    folder, store = written(tmp_path / "mine", "questions.csv", text), tmp_path / "runs.db"
    with pytest.raises(InputError, match="no column for the question among 'nummer', 'was', 'soll', 'wer'"):
        proctor.load(folder)
    columns: dict[str, str | list[str]] = {"question": "was", "answer": "soll", "group": ["wer"]}
    proctor.run(folder, "random", columns=columns, store=store)
    answers = tmp_path / "answers.csv"
    answers.write_text("id,answer\nn1,yes\nn2,yes\n")
    made = proctor.import_answers("mine", answers, name="me", store=store)  # by its name alone
    (row,) = [row for row in made.results().to_pandas().to_dict("records") if row["system"] == "me"]
    assert (row["value"], row["n"], row["groups"]) == (0.5, 2, 2)
    assert proctor.results(store, str(folder)).to_pandas().equals(proctor.results(store, "mine").to_pandas())


def test_a_folder_is_read_as_the_store_remembers_it(tmp_path: Path) -> None:
    """Named by its path again, without its columns and media."""
    text = "nummer,was,soll,wer,bild\nn1,Is it on?,yes,p1,a.png\n"
    folder, store = written(tmp_path / "mine", "questions.csv", text), tmp_path / "runs.db"
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    PIL.Image.new("RGB", (8, 8)).save(pictures / "a.png")
    columns = {"question": "was", "answer": "soll", "group": "wer", "media": "bild"}
    proctor.run(folder, "random", columns=columns, media=pictures, store=store, conditions="text-only")
    shown: list[int] = []

    def looks(question: str, frames: list[Any]) -> str:
        shown.append(len(frames))
        return "yes"

    again = proctor.run(folder, looks, store=store, conditions="video", baselines=False)
    assert (shown, again.results(draws=100).rows[0]["value"]) == ([1], 1.0)


def test_settings_beside_the_questions_are_taken(tmp_path: Path) -> None:
    text = (
        "id,question,answer,ward,patient,form\nq1,When?,0:30,A,p1,when\nq2,How much?,40 %,B,p2,\nq3,Is it "
        "on?,yes,B,p2,\n"
    )
    settings = {
        "name": "wards-2026",
        "title": "Two wards",
        "licence": "CC BY 4.0",
        "columns": {"format": "form"},
        "formats": {"when": {"kind": "timestamps", "tolerance": 5}},
        "tolerances": {"percentage": 2},
        "buckets": ["ward"],
        "facets": ["ward"],
        "budget_s": 2.5,
        "conditions": ["video", "black"],
        "prompt": "ask.txt.j2",
    }
    folder = written(tmp_path / "mine", "questions.csv", text)
    (folder / "benchmark.yaml").write_text(json.dumps(settings))  # YAML, too
    (folder / "ask.txt.j2").write_text("{% block system %}{% endblock %}{% block user %}{{ question }}{% endblock %}")
    benchmark = proctor.load(folder)
    assert (benchmark.name, benchmark.title, benchmark.budget_s) == ("wards-2026", "Two wards", 2.5)
    assert (benchmark.facets, benchmark.buckets, benchmark.conditions) == (("ward",), ("ward",), ("video", "black"))
    assert benchmark.notes == ("Licence: CC BY 4.0", *benchmark.reading[1:])
    assert benchmark.prompt == folder / "ask.txt.j2"
    assert benchmark.items[0].answer == TimestampsFormat(tolerance=5)
    assert benchmark.items[1].answer.match(40.0, 42.0)
    assert "time 1 (declared)" in " ".join(benchmark.reading)


@pytest.mark.parametrize("by_name", [False, True])
def test_a_prompt_beside_the_questions_is_what_models_get(tmp_path: Path, by_name: bool) -> None:
    folder = written(tmp_path / "mine", "questions.csv", "id,question,answer,patient\nq1,Is it on?,yes,p1\n")
    (folder / "benchmark.yaml").write_text("prompt: ask.txt.j2\n")
    (folder / "ask.txt.j2").write_text(
        "{% block system %}You are in a theatre.{% endblock %}{% block user %}{{ question }}{% endblock %}"
    )
    with FaultyServer(lambda _request: "Answer: yes") as server:
        named = ("own-questions", "--data", folder) if by_name else (folder,)
        done = shell("run", *named, "--model", "m", "--base-url", server.url, "--store", tmp_path / "runs.db")
        assert done.returncode == 0, done.stderr
        (request,) = server.requests
    assert "You are in a theatre." in request.text
    assert proctor.results(tmp_path / "runs.db", systems="m").to_pandas()["value"].tolist() == [1.0]


def test_clips_beyond_their_video_and_broken_files_are_faults(tmp_path: Path) -> None:
    folder, cache = tmp_path / "mine", {"PROCTOR_CACHE": str(tmp_path / "cache")}
    shell("new", folder)
    (folder / "media" / "broken.png").write_bytes(b"no picture")
    rows = (
        "id,question,answer,media,start,end\nq1,Is it on?,yes,disc.mp4,4,5\nq2,Is it on?,yes,disc.mp4,7,9\nq3,Is it "
        "on?,no,broken.png,,\n"
    )
    (folder / "questions.csv").write_text(rows)
    (folder / "benchmark.yaml").unlink()
    done = shell("check", folder, "--format", "json", **cache)
    found = [(one["row"], one["column"]) for one in json.loads(done.stdout)["faults"]]
    assert (done.returncode, sorted(found)) == (1, [(3, "media"), (4, "media")])


def test_a_name_of_an_installed_benchmark_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "focus", "questions.csv", "question,answer,patient\nIs it on?,yes,p1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"--data is missing\. Give the folder with the files of focus"):
        proctor.load("focus")
    with pytest.raises(InputError, match="the name of an installed benchmark"):
        proctor.load("./focus")


def test_the_example_is_whole_and_runs_the_whole_way(tmp_path: Path) -> None:
    folder, store, cache = tmp_path / "mine", tmp_path / "runs.db", {"PROCTOR_CACHE": str(tmp_path / "cache")}
    assert shell("new", folder).stdout == f"10 questions, 2 videos and 3 images in {folder}\n"
    assert shell("new", folder).returncode == 1  # never over something
    done = shell("check", folder, "--out", tmp_path / "preview.html", **cache)
    assert done.stdout == f"10 questions in 3 groups, no faults; 10 of them in {tmp_path / 'preview.html'}\n", (
        done.stderr
    )
    page = (tmp_path / "preview.html").read_text()
    assert page.count("<article>") == 10
    assert page.count("data:image/jpeg") == 8 * 6 + 2 * 3  # eight questions on videos, two on three images
    assert shell("run", folder, "--system", "random", "--store", store, **cache).returncode == 0
    assert shell("run", folder, "--system", "random", "--dry-run", "--store", store, **cache).returncode == 0
    proved = shell("reproduce", "my-questions", "--system", "random", "--store", store)
    assert (proved.returncode, "unknown" in proved.stderr) == (0, False), proved.stderr
    answers = tmp_path / "answers.jsonl"
    said = {
        "disc-1": "A",
        "disc-2": "C",
        "disc-3": "no",
        "disc-4": "At 0:03",
        "box-1": "There are 3.",
        "size-1": "B > C > A",
        "box-3": "Boxes.",
    }
    answers.write_text("".join(json.dumps({"id": name, "response": text}) + "\n" for name, text in said.items()))
    made = shell("import", folder, answers, "--name", "me", "--store", store, **cache)
    assert made.stdout.startswith("7 answers and 0 judgements as me / video"), made.stderr
    assert "3 items of my-questions without an answer" in made.stderr
    for command in (["results"], ["compare"], ["show"], ["audit", "items"]):
        item = ["disc-2"] if command == ["show"] else []
        done = shell(*command, str(folder), *item, "--store", store)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert shell("score", folder, "--metric", "rouge-l-best", "--store", store).returncode == 0
    assert shell("report", folder, "--store", store, "--out", tmp_path / "report.html").returncode == 0
    assert "Answer formats: choice 2" in (tmp_path / "report.html").read_text()
    moved = folder.rename(tmp_path / "moved")
    assert shell("run", moved, "--system", "random", "--store", store, **cache).returncode == 0
    by_format = proctor.results(store, "my-questions", systems="me", by="topic").to_pandas()
    assert set(by_format["topic"]) == {"what", "where", "when", "how many", "order"}


def workbook(file: Path, *rows: tuple[Any, ...], formats: dict[str, str] | None = None) -> None:
    import openpyxl

    made = openpyxl.Workbook()
    page: Any = made.active
    for row in rows:
        page.append(row)
    for cell, form in (formats or {}).items():
        page[cell].number_format = form
    made.create_sheet("Sheet2")
    made.save(file)


def test_a_workbook_is_read_as_it_is_shown(tmp_path: Path) -> None:
    workbook(
        tmp_path / "questions.xlsx",
        ("Nr", "Frage", "Antwort", "Video", "Start", "Ende", None),
        (1, "Wie viele?", 3, "a.mp4", 2.5, dt.time(1, 5, 3), None),
        (None,) * 7,
        (2, "Wie viel?", 0.4, "a.mp4", dt.timedelta(seconds=65), None, None),
        (3, "ما هذا؟", True, "a.mp4", "1:05", 3904.0, None),
        formats={"C4": "0%", "F2": "h:mm:ss", "E4": "[h]:mm:ss"},
    )
    (tmp_path / "a.mp4").write_bytes(b"")
    first, second, third = proctor.load(tmp_path).items
    assert [item.id for item in (first, second, third)] == ["1", "2", "3"]
    assert [item.media[0] for item in (first, second, third)] == [
        VideoClip(source="a.mp4", start=2.5, end=3903.0),
        VideoClip(source="a.mp4", start=65.0),
        VideoClip(source="a.mp4", start=65.0, end=3904.0),
    ]
    assert [item.reference.answer for item in (first, second, third)] == [3, 40.0, True]  # type: ignore[union-attr]


def picture(colour: str) -> bytes:
    from PIL import Image as Pictures

    out = io.BytesIO()
    Pictures.new("RGB", (32, 32), colour).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("form", ["repository", "saved"])
def test_a_hugging_face_dataset_on_disk_is_read(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "vqa"
    rows = [
        {
            "question": "Which colour?",
            "choices": ["red", "blue"],
            "answer": number,
            "image": {"bytes": picture(colour), "path": None},
        }
        for number, colour in enumerate(("red", "blue"))
    ]
    features = {"answer": {"_type": "ClassLabel", "names": ["red", "blue"]}}
    table = pa.Table.from_pylist(rows).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    if form == "repository":
        (folder / "data").mkdir(parents=True)
        pq.write_table(table, folder / "data" / "test-00000-of-00001.parquet")
        pq.write_table(table, folder / "data" / "train-00000-of-00001.parquet")
    else:
        (folder / "test").mkdir(parents=True)
        with pa.ipc.new_stream(folder / "test" / "data-00000-of-00001.arrow", table.schema) as writer:
            writer.write_table(table)
        (folder / "dataset_dict.json").write_text('{"splits": ["test"]}')
    benchmark = proctor.load(folder)
    assert benchmark.reading[1] == (
        "Split: test (also there: train; `split: NAME` in benchmark.yaml)" if form == "repository" else "Split: test"
    )
    assert [item.reference.answer for item in benchmark.items] == ["A", "B"]  # type: ignore[union-attr]
    assert benchmark.media_root is not None
    assert [(benchmark.media_root / item.media[0].source).read_bytes() for item in benchmark.items] == [
        picture("red"),
        picture("blue"),
    ]
