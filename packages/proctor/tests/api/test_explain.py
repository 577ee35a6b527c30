"""`explain`: runs of a store, logs of other programs, and the runs between two sides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import Benchmark, InputError, Item, Reference, Score, UsageError, VideoClip
from proctor.core.formats import ChoiceFormat
from proctor.reports import ExplanationTable
from proctor.runs import Store
from proctor.systems import prompt_for_benchmark
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.explained_runs import JUDGES, planted, questions
from tests.support.faulty_server import Fault, FaultyServer, Request
from tests.support.foreign import foreign
from tests.support.lamp_benchmark import lamps
from tests.support.program import proctor as program

FEW: dict[str, Any] = {"draws": 100}


def parts(found: ExplanationTable) -> dict[str, float]:
    return {row["part"]: row["difference"] for row in found.rows}


def adds_up(found: ExplanationTable) -> bool:
    gap = found.data.gap.value
    one, two = found.data.first.estimate.value, found.data.second.estimate.value
    assert gap is not None
    assert one is not None
    assert two is not None
    return abs(sum(parts(found).values()) - gap) < 1e-12 and abs(one - two - gap) < 1e-12


# -- sides


def test_sides_are_named_as_runs_or_paths(tmp_path: Path) -> None:
    store = planted(tmp_path / "s.db", ("reader",))
    found = proctor.explain("first", "second/video", store=store, **FEW)
    assert (found.data.first.name, found.data.second.name) == ("first / video", "second / video")
    with pytest.raises(
        InputError, match=r"found no run and no file 'frist', expected one of first/video, second/video"
    ):
        proctor.explain("frist", "second", store=store)
    with pytest.raises(InputError, match=r"first / video: found the same side twice, expected two sides"):
        proctor.explain("first", "first/video", store=store)
    with pytest.raises(UsageError, match=r"--failed is given 3 times: give it once for both sides, or once for each"):
        proctor.explain("first", "second", store=store, failed=["wrong"] * 3)
    with pytest.raises(InputError, match=r"--metric: found 'acuracy', expected one of accuracy"):
        proctor.explain("first", "second", store=store, metric="acuracy")
    run = store.start_run("organs", "first", "text-only", {"system": {"model": "m"}})
    store.write(run, [])
    with pytest.raises(UsageError, match=r"first has several runs: choose one of first/text-only, first/video"):
        proctor.explain("first", "second", store=store)


def test_the_benchmark_is_the_one_that_has_both_runs(tmp_path: Path) -> None:
    store = planted(tmp_path / "s.db", ("reader",))
    store.add_benchmark(lamps())
    store.write(store.start_run("lamps", "first", "video", {}), [])
    assert proctor.explain("first", "second", store=store, **FEW).data.first.name == "first / video"
    with pytest.raises(
        InputError, match=r"no benchmark with a run of both sides among lamps, organs, .*\(--benchmark\)"
    ):
        proctor.explain("first", "third", store=store)
    store.write(store.start_run("lamps", "second", "video", {}), [])
    with pytest.raises(InputError, match=r"both sides in lamps, organs, expected the name of one \(--benchmark\)"):
        proctor.explain("first", "second", store=store)
    assert proctor.explain("first", "second", store=store, benchmark="organs", **FEW).data.gap.value is not None


def test_one_run_under_two_policies_or_judges_is_two_sides(tmp_path: Path) -> None:
    store = planted(tmp_path / "s.db", ("missing", "judge"))
    same = proctor.explain("first", "first", store=store, failed=["wrong", "exclude"], scorer=JUDGES[0], **FEW)
    assert [row["part"] for row in same.rows] == ["missing", "asked"]
    assert parts(same)["asked"] == 0
    assert adds_up(same)
    judges = proctor.explain("first", "first", store=store, scorer=JUDGES, **FEW)
    assert parts(judges) == pytest.approx({"judge": -2 / 48, "asked": 0.0}, abs=1e-12)


# -- logs


def table(file: Path, *, own: bool = True) -> Path:
    """The answers of `second` as a table of another program, with its options in reverse and a reader of its own, which
    calls every third reply wrong; the last four items are not there, and one answer has failed."""
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(questions().items[:-4]):
        if item.answer.kind == "free_text":
            continue
        assert item.reference is not None
        shown = [*reversed(item.options)]
        key = item.options["ABCD".index(str(item.reference.answer))]
        letter = "ABCD"[shown.index(key)] if number % 5 else "ABCD"[(shown.index(key) + 1) % 4]
        failed = number == 8
        rows.append(
            {
                "id": item.id,
                "system": "theirs",
                "prompt": f"{item.question} Choose:\n"
                + "\n".join(f"{a}. {b}" for a, b in zip("ABCD", shown, strict=True)),
                "options": shown,
                "answer": "" if failed else f"Answer: {letter}",
            }
        )
        if own:
            rows[-1]["correct"] = int(bool(number % 5 and number % 3 and not failed))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_a_run_and_a_table_of_another_program(tmp_path: Path) -> None:
    """First 36 with options: right unless a number is divisible by 5. Theirs: the same on 33, one failed, and each third one
    called wrong by its own program."""
    store = planted(tmp_path / "s.db", ())
    log = table(tmp_path / "theirs.jsonl")
    before = (tmp_path / "s.db").read_bytes()
    found = proctor.explain("first", log, store=store, scorer=[JUDGES[0], "correct"], **FEW)
    numbers = [number for number in range(44) if number % 4 != 3]
    failed = 8
    ours = sum(number % 5 != 0 for number in numbers if number != failed)
    theirs = sum(bool(number % 5 and number % 3) for number in numbers if number != failed)
    assert found.data.common == len(numbers) == 33
    assert found.data.second.estimate.value == pytest.approx(theirs / 33, abs=1e-12)
    own = sum(number % 5 != 0 for number in numbers) / 33
    assert parts(found)["reader"] == pytest.approx((ours - theirs) / 33, abs=1e-12)
    assert parts(found)["asked"] == pytest.approx(own - ours / 33, abs=1e-12)
    assert adds_up(found)
    kinds = {(one.kind, one.what) for one in found.data.differences}
    assert ("options", "order of the options") in kinds
    assert ("reader", "reader of replies") in kinds
    assert ("items", "items asked") in kinds
    assert [one for one in found.data.fixed if one[0] == "options"] != []
    assert (tmp_path / "s.db").read_bytes() == before


def test_a_log_without_its_own_score_is_read_by_proctor_alone(tmp_path: Path) -> None:
    store = planted(tmp_path / "s.db", ())
    found = proctor.explain(
        "first", table(tmp_path / "t.jsonl", own=False), store=store, scorer=[JUDGES[0], "code"], **FEW
    )
    assert "reader" not in parts(found)
    assert found.data.second.scorer == "code"
    assert adds_up(found)


IN_LOGS = ("items", "missing", "reader", "options", "prompt")


def log_with(file: Path, differences: tuple[str, ...], *, failed: bool) -> Path:
    """A table of another program that states options, prompts and its own score; `failed`: each eleventh call has."""
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(item for item in questions().items if item.options):
        assert item.reference is not None
        if "items" in differences and number % 7 == 3:
            continue
        shown = [*reversed(item.options)] if "options" in differences else [*item.options]
        key = item.options["ABCD".index(str(item.reference.answer))]
        right = number % 5 != 0
        letter = "ABCD"[(shown.index(key) + (not right)) % 4]
        lost = "reader" in differences and number % 3 == 0
        wording = "Look closely." if "prompt" in differences else "Look."
        gone = failed and number % 11 == 1
        rows.append(
            {
                "id": item.id,
                "prompt": f"{wording} {item.question}",
                "options": shown,
                "answer": "" if gone else f"Answer: {letter}",
                "correct": int(right and not lost and not gone),
            }
        )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.mark.parametrize("differences", [*((one,) for one in IN_LOGS), *combinations(IN_LOGS, 2)], ids="+".join)
def test_differences_planted_in_logs_are_named_and_add_up(tmp_path: Path, differences: tuple[str, ...]) -> None:
    store = proctor.open_store(tmp_path / "s.db")
    store.add_benchmark(questions())
    failed = "missing" in differences
    one = log_with(tmp_path / "one.jsonl", (), failed=failed)
    two = log_with(tmp_path / "two.jsonl", differences, failed=failed)
    how: dict[str, Any] = {"failed": ["wrong", "exclude"] if failed else "wrong", "store": store, **FEW}
    found = proctor.explain(one, two, **how)
    assert {one.kind for one in found.data.differences} == set(differences)
    assert adds_up(found)
    swapped = {name: value for name, value in parts(found).items() if name != "asked"}
    assert set(swapped) == set(differences) & {"items", "missing", "reader"}
    assert all(abs(value) > 1e-12 for value in swapped.values())
    assert abs(parts(found)["asked"]) < 1e-12  # what the options and the prompt would change, they do not here
    turned = proctor.explain(two, one, **how | {"failed": ["exclude", "wrong"] if failed else "wrong"})
    assert parts(turned) == pytest.approx({name: -value for name, value in parts(found).items()}, abs=1e-12)


def test_an_imported_log_keeps_its_own_score(tmp_path: Path) -> None:
    """VLMEvalKit's `hit` calls two right answers wrong: against the run itself, that is the reader."""
    lines = ["index,question,prediction,hit"]
    for number, item in enumerate(lamps().items):
        right = item.reference is not None and item.reference.answer is True
        lines.append(f"{item.id},{item.question},yes,{int(right and number not in (0, 4))}")
    file = tmp_path / "theirs.csv"
    file.write_text("\n".join(lines) + "\n")
    made = proctor.import_answers(lamps(), file, name="theirs", store=tmp_path / "s.db")
    found = proctor.explain("theirs", "theirs", store=made.store, scorer=["code", "hit"], **FEW)
    assert parts(found) == pytest.approx({"reader": 2 / 12, "asked": 0.0}, abs=1e-12)
    assert (found.data.first.form, found.data.second.form) == ("", "vlmevalkit")
    with pytest.raises(UsageError, match=r"--scorer 'hat' has not scored theirs / video: choose one of code, hit"):
        proctor.explain("theirs", file, store=made.store, scorer="hat")


def test_two_files_of_one_name_are_two_sides(tmp_path: Path) -> None:
    store = planted(tmp_path / "s.db", ())
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        table(tmp_path / name / "t.jsonl", own=name == "a")
    one, two = tmp_path / "a" / "t.jsonl", tmp_path / "b" / "t.jsonl"
    found = proctor.explain(one, two, store=store, **FEW)
    assert (found.data.first.name, found.data.second.name) == (str(one), str(two))
    assert parts(found)["asked"] == 0
    assert parts(found)["reader"] == found.data.gap.value != 0
    with pytest.raises(InputError, match=r"t.jsonl: found the same side twice"):
        proctor.explain(one, tmp_path / "b" / ".." / "a" / "t.jsonl", store=store)


def test_a_prompt_in_a_log_is_compared_line_by_line(tmp_path: Path) -> None:
    store = planted(tmp_path / "s.db", ())
    one, two = table(tmp_path / "one.jsonl"), tmp_path / "two.jsonl"
    two.write_text(one.read_text().replace("Choose:", "Choose <script>alert(1)</script>:"))
    found = proctor.explain(one, two, store=store, scorer="correct", **FEW)
    (prompt,) = [one for one in found.data.differences if one.kind == "prompt"]
    assert (prompt.what, prompt.items, prompt.of) == ("prompt as sent", 33, 33)
    assert "+Which organ is in view 0? Choose <script>alert(1)</script>:" in prompt.lines
    page = tmp_path / "page.html"
    found.write(page)
    assert "<script>alert" not in page.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert" in page.read_text(encoding="utf-8")


def test_predictions_of_vlmevalkit_are_explained(tmp_path: Path) -> None:
    """Its `hit` counts a failed call as wrong, and misses the replies that give the option's text."""
    store = planted(tmp_path / "s.db", ())
    lines = ["index,question,A,B,C,D,answer,prediction,hit"]
    for number, item in enumerate(item for item in questions().items if item.options):
        assert item.reference is not None
        key = str(item.reference.answer)
        said = "Failed to obtain answer via API." if number == 0 else f"Answer: {key}"
        said = item.options["ABCD".index(key)] if number % 4 == 1 else said
        lines.append(f"{item.id},{item.question},{','.join(item.options)},{key},{said},{int(number % 4 not in (0, 1))}")
    file = tmp_path / "theirs.csv"
    file.write_text("\n".join(lines) + "\n")
    found = proctor.explain("first", file, store=store, scorer=[JUDGES[0], "hit"], **FEW)
    assert (found.data.second.form, found.data.second.policy, found.data.second.missing) == ("vlmevalkit", "wrong", 1)
    assert found.data.second.estimate.value == pytest.approx(18 / 36, abs=1e-12)
    assert parts(found)["reader"] == pytest.approx((9 + 8) / 36, abs=1e-12)  # 9 by text, 8 that it calls wrong
    assert adds_up(found)


def test_an_unreadable_log_is_refused_in_one_line(tmp_path: Path) -> None:
    store = planted(tmp_path / "s.db", ())
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(InputError, match=r"note.txt: found an unknown format, expected a log of another program"):
        proctor.explain("first", tmp_path / "note.txt", store=store)
    several = table(tmp_path / "t.jsonl")
    several.write_text(several.read_text().replace('"correct"', '"hit": 1, "correct"'))
    with pytest.raises(UsageError, match=r"t.jsonl has several scores of Accuracy: choose --scorer"):
        proctor.explain("first", several, store=store)


# -- logs written by the programs themselves


def test_a_log_of_inspect_is_explained(tmp_path: Path) -> None:
    """Inspect leaves out of its accuracy what failed; a run of ours counts it as wrong."""
    foreign("tests.support.foreign_inspect", tmp_path)
    found = foreign("tests.support.foreign_explained", "inspect", tmp_path)
    assert found["parts"].keys() == {"missing", "asked"}  # its scorer reads each reply as we do
    assert abs(sum(found["parts"].values()) - found["gap"]) < 1e-12
    assert found["second"]["form"] == "inspect"
    assert found["second"]["policy"] == "exclude"
    assert found["second"]["missing"] == 1
    assert found["second"]["score"] == pytest.approx(found["inspect"], abs=1e-12)
    assert {"missing", "reader", "model"} <= set(found["kinds"])


def test_samples_of_lmms_eval_are_explained(tmp_path: Path) -> None:
    """lmms-eval counts an empty reply as wrong, and states its settings in the file of results."""
    wrote = foreign("tests.support.foreign_lmms_eval", "write", tmp_path)
    made = proctor.import_answers(lamps(), right_answers(tmp_path / "ours.csv"), name="ours", store=tmp_path / "s.db")
    found = proctor.explain("ours", wrote["file"], store=made.store, id_column="position", **FEW)
    assert found.data.second.estimate.value == pytest.approx(wrote["exact_match"], abs=1e-12)
    assert (found.data.second.form, found.data.second.policy, found.data.second.missing) == ("lmms-eval", "wrong", 1)
    assert adds_up(found)
    assert {one.kind for one in found.data.differences} >= {"reader", "model"}


def test_settings_that_lmms_eval_states_are_compared(tmp_path: Path) -> None:
    """Its file of results has the settings of the task and the arguments of the model, as texts."""

    def folder(name: str, tokens: int, frames: int) -> Path:
        (tmp_path / name).mkdir()
        right = [item.reference is not None and item.reference.answer is True for item in lamps().items]
        lines = [
            json.dumps({"doc_id": n, "input": item.question, "filtered_resps": ["yes"], "exact_match": float(right[n])})
            for n, item in enumerate(lamps().items)
        ]
        (tmp_path / name / "x_samples_lamps.jsonl").write_text("\n".join(lines) + "\n")
        results = {
            "model_name": "a-lab/seer-7b",
            "configs": {"lamps": {"generation_kwargs": {"max_new_tokens": tokens, "temperature": 0}}},
            "config": {"model_args": f"pretrained=a-lab/seer-7b,max_frames_num={frames},fps=nan"},
        }
        (tmp_path / name / "x_results.json").write_text(json.dumps(results))
        return tmp_path / name

    store = proctor.open_store(tmp_path / "s.db")
    store.add_benchmark(lamps())
    one, two = folder("one", 16, 8), folder("two", 512, 32)
    found = proctor.explain(one, two, store=store, id_column="position", **FEW)
    told = {(one.kind, one.what, one.first, one.second) for one in found.data.differences}
    assert told == {("frames", "most frames", "8", "32"), ("sampling", "max_tokens", "16", "512")}
    assert found.data.gap.value == 0
    kept = proctor.import_answers(lamps(), two, name="kept", store=store, id_column="position")
    assert kept.runs[0].settings["sampling"] == {"max_tokens": 512, "temperature": 0}
    again = proctor.explain("kept", one, store=store, id_column="position", scorer=["code", "exact_match"], **FEW)
    assert ("sampling", "max_tokens", "512", "16") in {
        (one.kind, one.what, one.first, one.second) for one in again.data.differences
    }


def right_answers(file: Path) -> Path:
    rows = [f"{item.id},{'yes' if item.reference and item.reference.answer else 'no'}" for item in lamps().items]
    file.write_text("\n".join(["id,answer", *rows]) + "\n")
    return file


# -- the runs between


def clips(folder: Path, videos: int = 4, each: int = 3) -> Benchmark:
    items = []
    for video in range(videos):
        write_clock_video(folder / f"v{video}.mp4", ClockVideo([40 * n for n in range(100)]))
        items += [
            Item(
                id=f"v{video}/q{number}",
                group=f"v{video}",
                question=f"Which organ, number {video * each + number}?",
                options=("liver", "spleen"),
                answer=ChoiceFormat(),
                reference=Reference(answer="A"),
                media=(VideoClip(source=f"v{video}.mp4"),),
            )
            for number in range(each)
        ]
    metric = proctor.ACCURACY
    return Benchmark("clips", "Clips", tuple(items), (metric,), "accuracy", media_root=folder)


def right(request: Request) -> str:
    """More frames help, the longer prompt hurts where there are few frames, and heat flips one in three."""
    number = int(request.text.partition("number ")[2].partition("?")[0])
    frames, careful = len(request.image_bytes), "Be careful" in request.text
    hot = float(request.body.get("temperature", 0)) > 0
    good = number % 4 != 0 if frames > 5 else number % 2 == 0
    good = good and not (careful and frames <= 5 and number % 3 == 0)
    return "Answer: A" if good != (hot and number % 3 == 1) else "Answer: B"


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(right) as found:
        yield found


def asked(tmp_path: Path, server: FaultyServer) -> tuple[Store, Path]:
    """Two runs of a model that differ in frames, prompt and temperature."""
    folder = tmp_path / "media"
    folder.mkdir()
    benchmark, template = clips(folder), tmp_path / "careful.txt.j2"
    template.write_text(
        "{% block system %}Be careful.{% endblock %}{% block user %}{{ question }}\n"
        "{% for letter, text in options %}{{ letter }}. {{ text }}\n{% endfor %}{{ instruction }}{% endblock %}"
    )
    shared: dict[str, Any] = {"model": "m", "base_url": server.url, "store": tmp_path / "s.db", "baselines": False}
    proctor.run(benchmark, fps=1, settings={"temperature": 0}, name="ours", **shared)
    changed: dict[str, Any] = {"fps": 2, "settings": {"temperature": 0.7}, "prompt": str(template), "name": "theirs"}
    proctor.run(benchmark, **shared, **changed)
    return proctor.open_store(tmp_path / "s.db"), template


def test_runs_between_tell_apart_what_was_asked(tmp_path: Path, server: FaultyServer) -> None:
    store, template = asked(tmp_path, server)
    before = server.count
    options: dict[str, Any] = {"store": store, "prompts": template, "base_url": server.url, "price": "2/8", **FEW}
    planned = proctor.explain("ours", "theirs", **options)
    assert server.count == before  # nobody is asked
    assert [row["part"] for row in planned.rows] == ["asked"]
    assert {one.kind for one in planned.data.differences} == {"frames", "prompt", "sampling"}
    runs = planned.data.runs
    assert [one.steps for one in runs] == [
        ("frames",), ("prompt",), ("sampling",), ("frames", "prompt"), ("frames", "sampling"), ("prompt", "sampling"),
    ]  # fmt: skip
    assert {(one.there, one.left) for one in runs} == {(0, 12)}
    assert {one.pictures for one in runs} == {12 * 4, 12 * 8}
    assert all(one.input_usd is not None and one.input_usd > 0 for one in runs)
    assert planned.data.fixed == ()

    done = proctor.explain("ours", "theirs", ask=True, **options)
    assert server.count == before + 6 * 12
    assert [row["part"] for row in done.rows] == ["frames", "prompt", "sampling"]
    assert adds_up(done)
    scores = {
        row["system"]: row["value"]
        for row in proctor.results(store, metrics="accuracy", **FEW).rows
        if row["scorer"] == "code"
    }
    of = {frozenset(one.steps): scores[one.name] for one in runs} | {frozenset(): scores["ours"]}
    of[frozenset({"frames", "prompt", "sampling"})] = scores["theirs"]
    orders = list(permutations(("frames", "prompt", "sampling")))
    for name in ("frames", "prompt", "sampling"):
        steps = [(frozenset(order[: order.index(name)]), frozenset(order[: order.index(name) + 1])) for order in orders]
        wanted = sum(of[one] - of[two] for one, two in steps) / len(orders)
        assert parts(done)[name] == pytest.approx(wanted, abs=1e-12)
        assert wanted != 0
    again = proctor.explain("ours", "theirs", store=store, prompts=template, **FEW)
    assert server.count == before + 6 * 12  # what is there is used, and nobody is asked
    assert parts(again) == parts(done)


def test_asking_is_resumed(tmp_path: Path) -> None:
    with FaultyServer(right) as server:
        store, template = asked(tmp_path, server)
        options: dict[str, Any] = {"store": store, "prompts": template, "base_url": server.url, **FEW}
        server._script = [Fault.UNAUTHORIZED] * 3
        with pytest.raises(proctor.ProctorError):
            proctor.explain("ours", "theirs", ask=True, concurrency=1, **options)
        left = proctor.explain("ours", "theirs", **options)
        assert [row["part"] for row in left.rows] == ["asked"]
        server._script = []
        before, to_ask = server.count, sum(one.left for one in left.data.runs)
        words = ("explain", "ours", "theirs", "--ask", "--base-url", server.url, "--prompt", template)
        said = program(*words, "--store", tmp_path / "s.db", "--draws", "100")
        assert said.returncode == 0, said.stderr
        assert "Runs between the two sides" in said.stdout
        assert server.count - before == to_ask
        done = proctor.explain("ours", "theirs", **options)
        assert [row["part"] for row in done.rows] == ["frames", "prompt", "sampling"]
        assert adds_up(done)


def test_what_no_run_can_swap_is_named(tmp_path: Path, server: FaultyServer) -> None:
    store, _ = asked(tmp_path, server)
    found = proctor.explain("ours", "theirs", store=store, **FEW)
    assert ("prompt", "the template with this hash is not here (--prompt FILE)") in found.data.fixed
    assert [one.steps for one in found.data.runs] == [("frames",), ("sampling",), ("frames", "sampling")]
    turned = proctor.explain("theirs", "ours", store=store, **FEW)
    assert turned.data.runs == ()
    assert dict(turned.data.fixed)["frames"] == "the template with this hash is not here (--prompt FILE)"
    with pytest.raises(InputError, match="--ask: found no difference that a run can swap"):
        proctor.explain("theirs", "ours", store=store, ask=True, **FEW)


# -- the command


def test_the_command_prints_a_table_json_and_a_page(tmp_path: Path) -> None:
    planted(tmp_path / "s.db", ("reader", "prompt")).close()
    words = ("explain", "first", "second", "--store", tmp_path / "s.db", "--draws", "100")
    done = program(*words, "--out", tmp_path / "page.html")
    assert done.returncode == 0
    assert "Reader of replies" in done.stdout
    assert "All: the gap" in done.stdout
    assert (tmp_path / "page.html").stat().st_size > 10_000
    data = json.loads(program(*words, "--format", "json").stdout)
    assert abs(sum(part["difference"] for part in data["parts"]) - data["gap"]) < 1e-12
    assert program(*words, "--format", "csv").stdout.startswith("part,difference,ci_low,ci_high,share")
    (tmp_path / "mine.txt").write_text("not a page")
    refused = program(*words, "--out", tmp_path / "mine.txt")
    assert refused.returncode == 1
    assert (tmp_path / "mine.txt").read_text() == "not a page"


def test_answers_between_that_wait_for_a_judge_are_not_left_out(tmp_path: Path) -> None:
    """Without the judge's scores a run between would take the items in free text out of all figures."""
    store = planted(tmp_path / "s.db", ("sampling",))
    first = next(run for run in store.runs("organs") if run.system == "first")
    told: dict[str, Any] = dict(first.settings)
    changed: dict[str, Any] = told | {"system": {**told["system"], "prompt_sha256": _usual_prompt()}}
    for name in ("ours", "theirs"):
        heat = {"temperature": 1.0 if name == "theirs" else 0.0}
        run = store.start_run(
            "organs", name, "video", changed | {"system": {**changed["system"], "model_settings": heat}}
        )
        rows = store.score_rows(first)
        scores: dict[str, list[Score]] = {}
        for row in rows:
            one = Score(item_id=row.item_id, metric=row.metric, value=row.value, scorer=row.scorer)
            scores.setdefault(row.item_id, []).append(one)
        store.write(run, [(answer, scores[item]) for item, answer in store.answers(first).items()])
    found = proctor.explain("ours", "theirs", store=store, **FEW)
    assert [one.steps for one in found.data.runs] == []  # the only step leads to the other side
    assert [row["part"] for row in found.rows] == ["sampling"]

    other: dict[str, Any] = {
        **changed,
        "system": {**changed["system"], "model": "test:n", "model_settings": {"temperature": 1.0}},
    }
    run = store.start_run("organs", "others", "video", other)
    store.write(run, [(answer, scores[item]) for item, answer in store.answers(first).items()])
    planned = proctor.explain("ours", "others", store=store, **FEW)
    (row,) = planned.data.runs
    between = store.start_run("organs", row.name, "video", {**changed, "system": {**changed["system"]}})
    by_code = {item: [one for one in some if one.scorer == "code"] for item, some in scores.items()}
    store.write(between, [(answer, by_code[item]) for item, answer in store.answers(first).items()])
    waiting = proctor.explain("ours", "others", store=store, **FEW)
    assert waiting.data.common == planned.data.common == 48
    assert [row["part"] for row in waiting.rows] == ["asked"]
    assert waiting.data.runs[0].why == f"12 answers without a score by {JUDGES[0]}: proctor score"


def _usual_prompt() -> str:
    return prompt_for_benchmark("organs").sha256


def test_a_condition_is_one_difference_with_all_that_follows_from_it(tmp_path: Path, server: FaultyServer) -> None:
    """Frames that are not shown, and a prompt that says so, are no differences of their own: no run is needed."""
    (tmp_path / "media").mkdir()
    benchmark = clips(tmp_path / "media", videos=2)
    how: dict[str, Any] = {"model": "m", "base_url": server.url, "store": tmp_path / "s.db", "baselines": False}
    proctor.run(benchmark, conditions=["video", "text-only"], **how)
    found = proctor.explain("m/video", "m/text-only", store=tmp_path / "s.db", **FEW)
    assert [row["part"] for row in found.rows] == ["condition"]
    assert found.data.fixed == ()
    assert {one.kind for one in found.data.differences} <= {"condition", "frames", "prompt"}
    (frames,) = [one for one in found.data.differences if one.what == "frames shown"]
    assert (frames.first, frames.second, frames.items) == ("4", "0", 6)
    assert adds_up(found)
    turned = proctor.explain("m/text-only", "m/video", store=tmp_path / "s.db", **FEW)
    assert parts(turned) == pytest.approx({"condition": -parts(found)["condition"]}, abs=1e-12)
