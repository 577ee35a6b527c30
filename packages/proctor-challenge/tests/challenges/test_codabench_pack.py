"""A challenge as a Codabench bundle: what the platform would refuse, what participants could find in it, and figures
that are Proctor's own."""

from __future__ import annotations

import csv
import io
import json
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from proctor.core import ConfigurationError, InputError, ProblemsError
from proctor_challenge import check_pack, pack_folder, write_pack
from proctor_challenge.packs.platforms import PackProgram, check_codabench, start_program
from proctor_challenge.packs.programs import DIGITS, figures_of, run_scorer, score_codabench
from proctor_challenge.settings import read_challenge
from tests.support.packed_challenge import CANARY, focus_challenge, unpacked
from tests.support.program import proctor

IN_THE_WRONG = "q00000-nobody-asked"


@pytest.fixture(scope="module")
def challenge(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """FOCUS on a few questions, packed."""
    folder = focus_challenge(tmp_path_factory.mktemp("focus"), data)
    written = write_pack("codabench", folder, pack_folder(folder, "codabench"), "hospital/focus-scorer:1")
    assert written.phases == ("final",)
    return folder


@pytest.fixture(scope="module")
def bundle(challenge: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle, unpacked; the platform took it."""
    folder = tmp_path_factory.mktemp("bundle")
    unpacked(pack_folder(challenge, "codabench") / "bundle.zip", folder)
    return folder


def here(program: PackProgram) -> str:
    """Scores in this process, at the paths that a platform would mount."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DIGITS, str(program.digits))
        score_codabench(program.mounts["/app/input"], program.mounts["/app/output"])
    return "this process"


def test_the_platform_takes_the_bundle(challenge: Path, tmp_path: Path) -> None:
    told = unpacked(pack_folder(challenge, "codabench") / "bundle.zip", tmp_path)
    (phase,) = told["phases"]
    assert (phase["start"], phase["end"]) == ("2026-03-01 07:30:00", "2026-12-01 00:00:00")  # UTC, as texts
    assert all(phase[name] for name in ("hide_output", "hide_prediction_output", "hide_score_output"))
    assert phase["accepts_only_result_submissions"]
    assert not any("ingestion_program" in task for task in told["tasks"])
    assert told["docker_image"] == "hospital/focus-scorer:1"
    assert told["contact_email"] == "organisers@example.org"
    columns = told["leaderboards"][0]["columns"]
    assert [one["key"] for one in columns if not one["hidden"]] == ["technical", "clinical", "accuracy"]
    assert {one["precision"] for one in columns} == {3}


def test_only_the_references_hold_references(bundle: Path, challenge: Path) -> None:
    keys = {one["qID"]: one["answer"] for one in json.loads((challenge / "sealed/final/references.json").read_text())}
    assert len(keys) == 60
    for archive in bundle.glob("*.zip"):
        with zipfile.ZipFile(archive) as opened:
            names = opened.namelist()
            assert not any(CANARY.encode() in opened.read(name) for name in names)
        assert ("sealed/data/references.json" in names) == (archive.name == "reference_final.zip")
        assert not any(name.endswith(("base.json", ".key")) for name in names)


def test_it_runs_as_on_the_platform_and_gives_the_same_figures(challenge: Path) -> None:
    (found,) = check_pack("codabench", challenge, pack_folder(challenge, "codabench"))
    assert (found.phase, found.baseline, found.ok, found.wrong) == ("final", "base", True, ())
    assert found.ran == "a process"  # nobody has built the image here
    assert found.figures > 10
    assert found.largest <= 1e-12


def test_the_figures_are_those_of_the_toolkit(challenge: Path, data: Path) -> None:
    asked = {one["qID"] for one in json.loads((challenge / "public/final/requests.json").read_text())}
    with (data / "focus-toolkit/expected_results.csv").open(encoding="utf-8", newline="") as file:
        right = [one["correctness"] == "True" for one in csv.DictReader(file) if one["qID"] in asked]
    given: dict[str, float] = {}

    def start(program: PackProgram) -> str:
        ran = here(program)
        given.update(json.loads((program.mounts["/app/output"] / "scores.json").read_text()))
        return ran

    settings = read_challenge(challenge, sealed=True)
    (found,) = check_codabench(challenge, settings, pack_folder(challenge, "codabench"), start)
    assert found.ok
    assert given["technical_questions"] == len(right) == 60
    assert given["accuracy"] == pytest.approx(sum(right) / len(right), abs=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda scores: {**scores, "accuracy": scores["accuracy"] + 1e-11}, "accuracy: "),
        (lambda scores: {name: value for name, value in scores.items() if name != "clinical"}, "clinical: not there"),
        (lambda scores: {**scores, "item_q1": 1.0}, "item_q1: not expected"),
    ],
)
def test_a_figure_that_differs_is_found(challenge: Path, change, said: str) -> None:  # type: ignore[no-untyped-def]
    def start(program: PackProgram) -> str:
        here(program)
        file = program.mounts["/app/output"] / "scores.json"
        file.write_text(json.dumps(change(json.loads(file.read_text()))))
        return "a double"

    settings = read_challenge(challenge, sealed=True)
    (found,) = check_codabench(challenge, settings, pack_folder(challenge, "codabench"), start)
    assert not found.ok
    assert found.wrong[0].startswith(said)
    assert len(found.wrong) == 1


def test_what_is_shown_is_rounded_and_says_nothing_of_single_questions(
    challenge: Path, bundle: Path, tmp_path: Path
) -> None:
    given = scoring_step(bundle, challenge / "sealed/base.json", tmp_path)
    score_codabench(given, tmp_path / "out")
    scores = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert all(value == round(value, 3) for value in scores.values())
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["scores.json"]
    assert len(scores) < 20  # of 60 questions


def scoring_step(bundle: Path, answers: Path, folder: Path) -> Path:
    """The input folder of a scoring step."""
    with zipfile.ZipFile(bundle / "reference_final.zip") as archive:
        archive.extractall(folder / "in" / "ref")
    (folder / "in" / "res").mkdir(parents=True)
    (folder / "out").mkdir()
    shutil.copyfile(answers, folder / "in" / "res" / "answers.json")
    return folder / "in"


def test_what_platform_and_archivers_add_is_not_looked_at(challenge: Path, bundle: Path, tmp_path: Path) -> None:
    given = scoring_step(bundle, challenge / "sealed/base.json", tmp_path)
    for name in ("metadata", "__MACOSX/._answers.json", ".DS_Store", "sub/.hidden"):
        (given / "res" / name).parent.mkdir(exist_ok=True)
        (given / "res" / name).write_text("[]")
    (given / "res" / "passwd.json").symlink_to("/etc/passwd")
    score_codabench(given, tmp_path / "out")
    (given / "res" / "second.json").write_text("[]")
    with pytest.raises(InputError, match="the submission: found 2 files, expected an archive with one file of answers"):
        score_codabench(given, tmp_path / "out")


def test_a_wrong_file_is_one_line(
    challenge: Path, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = scoring_step(bundle, challenge / "sealed/base.json", tmp_path)
    (given / "res" / "answers.json").write_text(json.dumps([{"qID": IN_THE_WRONG, "content": "yes"}]))
    with pytest.raises(SystemExit) as ended:
        run_scorer(score_codabench, str(given), str(tmp_path / "out"))
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("proctor: ")
    assert said.count("\n") == 1
    assert not list((tmp_path / "out").iterdir())


def test_other_references_than_those_that_were_packed_are_refused(
    challenge: Path, bundle: Path, tmp_path: Path
) -> None:
    given = scoring_step(bundle, challenge / "sealed/base.json", tmp_path)
    file = given / "ref" / "sealed" / "data" / "references.json"
    keys = json.loads(file.read_text())
    keys[0]["answer"] += "1"
    file.write_text(json.dumps(keys))
    with pytest.raises(InputError, match="found other questions or references, expected those that were packed"):
        score_codabench(given, tmp_path / "out")


def test_what_runs_is_what_the_pack_carries(challenge: Path, tmp_path: Path) -> None:
    (wheel,) = pack_folder(challenge, "codabench").glob("image/proctor_eval-*.whl")
    broken = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(broken, "w") as out:
        for one in archive.infolist():
            content = archive.read(one)
            out.writestr(
                one, b"raise SystemExit('from the wheel')" if one.filename == "proctor/__init__.py" else content
            )
    (tmp_path / "program").mkdir()
    program = PackProgram(
        "no-such-image", ("python3", "-c", "import proctor"), "/app/program", {"/app/program": tmp_path}, (broken,)
    )
    with pytest.raises(ConfigurationError, match="exit code 1: from the wheel"):
        start_program(program)


def test_there_is_no_network(challenge: Path, tmp_path: Path) -> None:
    wheels = tuple(pack_folder(challenge, "codabench").glob("image/*.whl"))
    asked = "import socket; socket.create_connection(('127.0.0.1', 9), timeout=1)"
    mounts = {"/app/program": tmp_path}
    with pytest.raises(ConfigurationError, match=r"no network: socket\.getaddrinfo"):
        start_program(PackProgram("no-such-image", ("python3", "-c", asked), "/app/program", mounts, wheels))


def test_the_same_installation_gives_the_same_wheel(challenge: Path) -> None:
    wheels = sorted(pack_folder(challenge, "codabench").glob("image/*.whl"))
    assert [one.name.partition("-")[0] for one in wheels] == [
        "proctor_build", "proctor_challenge", "proctor_eval", "proctor_web",
    ]  # fmt: skip
    (wheel,) = [one for one in wheels if one.name.startswith("proctor_eval-")]
    with zipfile.ZipFile(wheel) as archive:
        record = archive.read("proctor_eval-0.1.0.dist-info/RECORD").decode()
        names = archive.namelist()
        assert archive.testzip() is None
    listed = [row[0] for row in csv.reader(io.StringIO(record))]
    assert listed == names
    assert "proctor/tasks/focus/taxonomy.json" in names
    assert not any("__pycache__" in name for name in names)
    pins = (wheel.parent / "requirements.txt").read_text().split()
    assert {"numpy", "pydantic", "sqlalchemy", "typer"} <= {one.partition("==")[0] for one in pins}
    assert not {"torch", "fastapi", "proctor-eval"} & {one.partition("==")[0] for one in pins}


NEW = "name: final, opens: 2026-01-01T00:00:00Z"
TWO = """\
  - {{name: early, opens: {0}, closes: {1}, questions: public/final, sealed: sealed/final}}
  - {{name: final, opens: {2}, questions: public/final, sealed: sealed/final}}
"""


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ("  - {name: final, questions: public/final, sealed: sealed/final}\n", "phase final, opens: found nothing"),
        (TWO.format("2026-01-01T00:00:00Z", "null", "2026-02-01T00:00:00Z"), "phase early, closes: found nothing"),
        (TWO.format("2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z", "2026-02-01T00:00:00Z"), "opens: found 2026-02-01"),
        (f"  - {{{NEW}, sealed: sealed/final, accepts: [image]}}\n", "found none that accepts files"),
        (f"  - {{{NEW}, questions: public/final, sealed: sealed}}\n", "expected a folder of its own inside sealed/"),
    ],
)  # fmt: skip
def test_what_codabench_can_not_do_is_refused(challenge: Path, tmp_path: Path, phases: str, said: str) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(challenge, folder, ignore=shutil.ignore_patterns("packs"))
    text = (folder / "challenge.yaml").read_text()
    answers = "{final: sealed/base.json}" if "name: early" in phases or "name: final" in phases else "{}"
    head = text.partition("phases:\n")[0].replace("{final: sealed/base.json}", answers)
    (folder / "challenge.yaml").write_text(f"{head}phases:\n{phases}")
    with pytest.raises(InputError) as refused:
        write_pack("codabench", folder, tmp_path / "out")
    assert said in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_phases_that_touch_are_a_second_apart_and_guesses_stand_in_for_a_baseline(
    challenge: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "two"
    shutil.copytree(challenge, folder, ignore=shutil.ignore_patterns("packs"))
    days = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z")
    phases = TWO.format(*days) + "  - {name: training, questions: sealed/final}\n"
    head = (folder / "challenge.yaml").read_text().partition("baselines:\n")[0]
    (folder / "challenge.yaml").write_text(f"{head}phases:\n{phases}")
    pack = pack_folder(folder, "codabench")
    written = write_pack("codabench", folder, pack)
    assert written.phases == ("early", "final")
    assert written.notes == ("training: left out, since its references are public and nobody needs a server for it.",)
    told = unpacked(pack / "bundle.zip", tmp_path / "bundle")
    assert [one.get("end") for one in told["phases"]] == ["2026-01-31 23:59:59", None]
    found = list(check_codabench(folder, read_challenge(folder, sealed=True), pack, here))
    assert [(one.phase, one.baseline, one.ok) for one in found] == [
        ("early", "random", True),
        ("final", "random", True),
    ]


def test_a_benchmark_of_another_package_is_refused(
    challenge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = SimpleNamespace(dist=SimpleNamespace(name="hospital"), module="hospital.benchmark")
    monkeypatch.setattr("proctor_challenge.packs.parts.entry_points", lambda **_: [theirs])
    with pytest.raises(
        InputError, match="found focus, which is of the package hospital, expected one of Proctor's own"
    ):
        write_pack("codabench", challenge, tmp_path / "out")


def test_references_among_the_handed_out_questions_are_refused(challenge: Path, tmp_path: Path) -> None:
    folder = tmp_path / "told"
    shutil.copytree(challenge, folder, ignore=shutil.ignore_patterns("packs"))
    shutil.copyfile(folder / "sealed/final/references.json", folder / "public/final/references.json")
    for platform in ("codabench", "grand-challenge"):
        with pytest.raises(ProblemsError) as refused:
            write_pack(platform, folder, tmp_path / "out")
        assert "found its reference handed out, expected none" in str(refused.value)
        assert not (tmp_path / "out").exists()


def test_what_only_a_judge_could_score_counts_for_nobody(challenge: Path, tmp_path: Path) -> None:
    folder = tmp_path / "free"
    shutil.copytree(challenge, folder, ignore=shutil.ignore_patterns("packs"))
    for part in ("public/final/requests.json", "sealed/final/requests.json", "sealed/final/references.json"):
        rows = json.loads((folder / part).read_text())
        ids = sorted(one["qID"] for one in rows)[:10]
        for one in rows:
            if one["qID"] in ids:
                name = "format" if "format" in one else "answer_format"
                one |= {name: "open_ended", "format_kwargs": {}}
        (folder / part).write_text(json.dumps(rows))
    written = write_pack("codabench", folder, tmp_path / "out")
    assert written.notes == ("final: no scores for 10 questions in free text: no judge is asked without network.",)
    settings = read_challenge(folder, sealed=True)
    figures = figures_of(folder, settings, settings.phases[0], folder / "sealed/base.json")
    named = {one.name: one.value for one in figures}
    assert len(named) == len(figures)
    assert named["technical_questions"] == 50
    assert named["accuracy"] is not None


def test_the_command_checks_a_pack_that_is_there(challenge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor_challenge.packs.platforms._CHECKS", {"codabench": _checked_here})
    ran = proctor("challenge", "pack", "codabench", challenge, "--check")
    assert ran.returncode == 0, ran.stderr
    assert "final: base in this process: 16 figures as Proctor's own (largest difference 0.0e+00)" in ran.stdout
    assert "is there already and is checked as it is" in ran.stderr
    for name in ("--privileged", "a b", "x" * 129):
        refused = proctor("challenge", "pack", "codabench", challenge, "--out", challenge / "new", f"--image={name}")
        assert refused.returncode == 2
        assert "--image " in refused.stderr
    refused = proctor("challenge", "pack", "kaggle", challenge)
    assert refused.returncode == 2
    assert "PLATFORM 'kaggle' is unknown: choose one of codabench" in refused.stderr


def _checked_here(folder: Path, settings, pack: Path):  # type: ignore[no-untyped-def]
    return check_codabench(folder, settings, pack, here)
