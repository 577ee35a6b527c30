"""Keys of choices that stand unevenly: what is said of them, and options that are shuffled by the seed."""

from __future__ import annotations

import base64
import re
from collections import Counter
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

import proctor
from proctor.core import Benchmark, UsageError
from tests.support.program import proctor as shell

HEAD = "id,question,answer,A,B,C,D,patient"


def read(folder: Path, keys: str, settings: str = "", more: str = "", seed: int = 0) -> Benchmark:
    """Choices with these keys."""
    folder.mkdir(exist_ok=True)
    rows = [f"q{n},Which?,{key},liver {n},spleen {n},aorta {n},kidney {n},p{n}" for n, key in enumerate(keys)]
    (folder / "questions.csv").write_text("\n".join([HEAD, *rows, *([more] if more else [])]))
    (folder / "benchmark.yaml").write_text(settings)
    return proctor.load(folder, seed=seed)


@pytest.mark.parametrize(
    ("keys", "told"), [("A" * 20, "20 of 20"), ("A" * 11 + "BCD" * 3, "11 of 20"), ("A" * 10 + "BCD" * 3 + "B", "")]
)
def test_a_letter_that_is_right_too_often_is_named(keys: str, told: str, tmp_path: Path) -> None:
    """Of 20 choices among four 5 are right at A on average, with a standard deviation of 1.94: from 11 on it is
    told."""
    lines = [line for line in read(tmp_path, keys).reading if line.startswith("Keys:")]
    assert bool(lines) is bool(told)
    assert all(f"A is right in {told} choices" in line and "shuffle_options: true" in line for line in lines)


def test_a_few_choices_say_nothing(tmp_path: Path) -> None:
    assert not any(line.startswith("Keys:") for line in read(tmp_path, "A" * 7).reading)


def test_options_are_shuffled_by_the_seed_and_keys_go_with_them(tmp_path: Path) -> None:
    plain = read(tmp_path / "a", "A" * 200)
    first = read(tmp_path / "b", "A" * 200, "shuffle_options: true")
    again, other = (read(tmp_path / "b", "A" * 200, "shuffle_options: true", seed=seed) for seed in (0, 1))
    assert first.items == again.items != other.items
    assert (plain.seeds, first.seeds, other.seeds) == ({}, {"options": 0}, {"options": 1})
    for before, after in zip(plain.items, first.items, strict=True):
        assert after.reference is not None
        assert sorted(after.options) == sorted(before.options)
        assert after.options["ABCD".index(str(after.reference.answer))] == before.options[0]
    counts = Counter(str(item.reference.answer) for item in first.items if item.reference)
    assert all(30 <= counts[letter] <= 70 for letter in "ABCD"), counts  # 50 each, about three standard deviations
    assert "Options: those of 200 questions shuffled by seed 0" in first.reading


def test_the_written_order_plays_no_part(tmp_path: Path) -> None:
    text = f"{HEAD}\nq0,Which?,liver,liver,spleen,aorta,kidney,p\n"
    for name, row in (("a", "liver,spleen,aorta,kidney"), ("b", "kidney,aorta,liver,spleen")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "questions.csv").write_text(text.replace("liver,spleen,aorta,kidney", row))
        (tmp_path / name / "benchmark.yaml").write_text("shuffle_options: true")
    assert proctor.load(tmp_path / "a").items == proctor.load(tmp_path / "b").items


def test_options_that_point_to_others_stay_and_several_keys_are_carried_over(tmp_path: Path) -> None:
    more = 'fixed,Which?,D,liver,spleen,aorta,none of the above,p\nset,Which?,"A, C",one,two,three,four,p'
    benchmark = read(tmp_path, "AB", "shuffle_options: true", more)
    found = {item.id: item for item in benchmark.items}
    fixed, several = found["fixed"], found["set"]
    assert fixed.options == ("liver", "spleen", "aorta", "none of the above")
    assert several.reference is not None
    keys = several.reference.answer
    assert isinstance(keys, list)
    assert {several.options["ABCD".index(str(key))] for key in keys} == {"one", "three"}
    assert keys == sorted(map(str, keys))
    assert any(line.endswith("; 1 kept as written, since an option points to others") for line in benchmark.reading)


def test_recorded_letters_are_doubted_where_options_were_shuffled_or_all_are_right(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    read(folder, "ABCDAB", "shuffle_options: true")
    letters = tmp_path / "letters.csv"
    letters.write_text("id,answer\n" + "".join(f"q{number},{key}\n" for number, key in enumerate("ABCDAB")))
    done = shell("import", folder, letters, "--name", "me", "--store", tmp_path / "s.db")
    told = "the file does not say which options were shown: read in the order here, shuffled by seed 0"
    assert f"6 answers name options by letters, and {told}" in done.stderr
    # The table of questions has the options in the order of its letters, so its letters are read by them: all right.
    done = shell("import", folder, folder / "questions.csv", "--name", "key", "--store", tmp_path / "s.db")
    assert "All answers are the references word for word" in done.stderr
    assert "read in the order here" not in done.stderr
    read(tmp_path / "other", "ABCDAB")
    other = tmp_path / "other"
    done = shell("import", other, other / "questions.csv", "--name", "me", "--store", tmp_path / "t.db")
    assert "All answers are the references word for word" in done.stderr


def test_a_table_of_several_models_is_imported_one_by_one(tmp_path: Path) -> None:
    read(tmp_path / "mine", "AB")
    (tmp_path / "both.csv").write_text("Frage-ID,Antwort,model\nq0,A,one\nq1,B,one\nq0,B,two\nq1,B,two\n")
    values = {}
    for name in ("one", "two"):
        made = proctor.import_answers(tmp_path / "mine", tmp_path / "both.csv", name=name, store=tmp_path / "s.db")
        values[name] = next(row["value"] for row in made.results() if row["metric"] == "accuracy")
    assert values == {"one": 1.0, "two": 0.5}
    (tmp_path / "odd.csv").write_text("Zeile,was\n1,A\n")
    with pytest.raises(
        UsageError, match=r"Which column holds the question ids\? Choose one: --id-column .* \(or position,"
    ):
        proctor.import_answers(tmp_path / "mine", tmp_path / "odd.csv", name="x", form="table", store=":memory:")


def test_the_preview_draws_boxes_and_points(tmp_path: Path) -> None:
    """Red where the edge of the box is: 100 of 1000 across 200 pixels is at 20; nothing in its middle."""
    Image.new("RGB", (200, 100), (0, 0, 0)).save(tmp_path / "a.png")
    rows = ['b,Where?,"100,200,500,800",box,a.png', 'p,Where?,"500,500",point,a.png']
    (tmp_path / "questions.csv").write_text("\n".join(["id,question,answer,format,image", *rows]))
    done = shell("check", tmp_path, "--out", tmp_path / "p.html", PROCTOR_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "p.html").read_text()
    box, point = (
        Image.open(BytesIO(base64.b64decode(hit))).convert("RGB")
        for hit in re.findall(r"data:image/jpeg;base64,([^\"]+)", page)
    )

    def red(picture: Image.Image, x: float, y: float) -> bool:
        pixel = picture.getpixel((round(x * picture.width), round(y * picture.height)))
        return isinstance(pixel, tuple) and pixel[0] > 120 > pixel[1]

    assert (red(box, 0.1, 0.5), red(box, 0.3, 0.2), red(box, 0.3, 0.5)) == (True, True, False)
    assert any(red(point, 0.5 + off / point.width, 0.5) for off in (-3, -2, 2, 3))
    assert page.count("The reference is drawn in red") == 2
