"""Sites that send sums of groups get the figures of all their items, and no item leaves."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from proctor.core import ACCURACY, Answer, Benchmark, FailedPolicy, InputError, Item, Reference, Score, Status
from proctor.core.formats import CountFormat
from proctor.results import Options, group_sums, pool_sums, results, write_sums
from proctor.runs import Store
from proctor.stats import Resampling
from tests.support.program import proctor

SYSTEMS = ("alpha", "beta")


def a_site(folder: Path, name: str, groups: range, *, benchmark: str = "toy") -> Store:
    """Patients with one to four questions each; beta is better, and lacks an answer now and then."""
    items = tuple(
        Item(
            id=f"{g}-{k}",
            group=f"patient-{g}",
            question="How many?",
            answer=CountFormat(),
            reference=Reference(answer=k),
        )
        for g in groups
        for k in range(1 + g % 4)
    )
    store = Store(folder / f"{name}.db")
    store.add_benchmark(Benchmark(name=benchmark, title="Toy", items=items, metrics=(ACCURACY,), headline="accuracy"))
    for system, share in zip(SYSTEMS, (0.4, 0.7), strict=True):
        rows = []
        for item in items:
            rng = random.Random(f"{system} {item.id}")
            right = float(rng.random() < share)
            score = Score(item_id=item.id, metric="accuracy", value=right, scorer="code")
            failed = system == "beta" and rng.random() < 0.1
            status = Status.FAILED if failed else Status.ANSWERED
            rows.append((Answer(item_id=item.id, text="1", parsed=1, status=status), [] if failed else [score]))
        store.write(store.start_run(benchmark, system, "video", {}), rows)
    return store


def sums(folder: Path, name: str, groups: range, **other: str) -> Path:
    out = folder / f"{name}.json"
    write_sums(group_sums(a_site(folder, name, groups, **other), other.get("benchmark", "toy")), out)
    return out


def test_pooled_figures_are_those_of_all_items_together(tmp_path: Path) -> None:
    files = [
        sums(tmp_path, "berlin", range(9)),
        sums(tmp_path, "oxford", range(9, 14)),
        sums(tmp_path, "delhi", range(14, 30)),
    ]
    whole = a_site(tmp_path, "whole", range(30))
    name, (found,) = pool_sums(files, Resampling(draws=400, seed=3))
    expected = results(whole, "toy", Options(draws=400, seed=3, failed=FailedPolicy.WRONG)).rows
    assert (name, found.systems) == ("toy", SYSTEMS)
    for mean, row in zip(found.means, sorted(expected, key=lambda one: one.system), strict=True):
        assert (mean.n, mean.groups) == (row.n, row.groups)
        for one, other in ((mean.value, row.value), (mean.ci_low, row.ci_low), (mean.ci_high, row.ci_high)):
            assert one == pytest.approx(other, abs=1e-12)
    assert found.lacking["alpha"] == 0
    assert found.lacking["beta"] == sum(row.failed for row in expected) > 0
    alpha, beta = (one.value or 0.0 for one in found.means)
    assert found.pairs[0].difference.value == pytest.approx(alpha - beta)


def test_no_answer_item_or_group_is_in_the_file(tmp_path: Path) -> None:
    text = sums(tmp_path, "berlin", range(9)).read_text()
    assert "patient" not in text
    assert "How many" not in text
    assert "3-1" not in text


def test_other_benchmarks_the_same_items_and_made_up_files_are_refused(tmp_path: Path) -> None:
    berlin, other = sums(tmp_path, "berlin", range(9)), sums(tmp_path, "other", range(9, 12), benchmark="second")
    with pytest.raises(InputError, match="sums of second"):
        pool_sums([berlin, other])
    with pytest.raises(InputError, match=r"the same items as berlin\.json"):
        pool_sums([berlin, sums(tmp_path, "again", range(9))])
    plain = json.loads(berlin.read_text())
    plain["metrics"][0]["totals"] = plain["metrics"][0]["totals"][1:]
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(plain))
    with pytest.raises(InputError, match="as many totals as groups"):
        pool_sums([broken])


def test_a_system_that_one_site_lacks_is_left_out_and_named(tmp_path: Path) -> None:
    berlin = sums(tmp_path, "berlin", range(9))
    store = a_site(tmp_path, "oxford", range(9, 14))
    write_sums(group_sums(store, "toy", ["alpha"]), tmp_path / "oxford.json")
    _, (found,) = pool_sums([berlin, tmp_path / "oxford.json"], Resampling(draws=100))
    assert (found.systems, found.left_out, found.pairs) == (("alpha",), ("beta",), ())


def with_effort(folder: Path, name: str, groups: range, *, alone: bool = False) -> Path:
    """A site's sums with those of a second metric, or with these alone."""
    plain = json.loads(sums(folder, name, groups).read_text())
    second = {**plain["metrics"][0], "metric": "effort", "low": None, "high": None}
    file = folder / f"{name}.json"
    file.write_text(json.dumps({**plain, "metrics": [second] if alone else [*plain["metrics"], second]}))
    return file


def test_a_metric_that_one_site_lacks_is_left_out_and_named(tmp_path: Path) -> None:
    """Whichever file has it, its figures are of no use, and those of the other metric are as without it."""
    berlin, oxford = sums(tmp_path, "berlin", range(9)), with_effort(tmp_path, "oxford", range(9, 14))
    for files in ([berlin, oxford], [oxford, berlin]):
        done = proctor("results", *(word for file in files for word in ("--pool", file)), "--draws", "100")
        assert done.returncode == 0
        assert "effort" not in done.stdout
        assert "Not in every file, left out: effort by code under video" in " ".join(done.stderr.split())
        found = {one.metric: one for one in pool_sums(files, Resampling(draws=100))[1]}
        assert (found["effort"].institutions, found["effort"].systems, found["effort"].left_out) == (1, (), SYSTEMS)
        (alone,) = pool_sums([berlin, sums(tmp_path, "plain", range(9, 14))], Resampling(draws=100))[1]
        assert found["accuracy"].pairs == alone.pairs


def test_files_without_a_common_metric_are_refused(tmp_path: Path) -> None:
    berlin, oxford = sums(tmp_path, "berlin", range(9)), with_effort(tmp_path, "oxford", range(9, 14), alone=True)
    done = proctor("results", "--pool", berlin, "--pool", oxford)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "proctor: files: found no metric in all 2: accuracy by code under video in 1, effort by code under video in 1, "
        "expected the same metric, by the same scorer under the same condition\n"
    )


def test_the_commands(tmp_path: Path) -> None:
    for name, groups in (("berlin", range(9)), ("oxford", range(9, 14))):
        a_site(tmp_path, name, groups)
        done = proctor(
            "export", "toy", "--format", "sums", "--out", tmp_path / f"{name}.json", "--store", tmp_path / f"{name}.db"
        )
        assert done.stdout.startswith("1 metric"), done.stderr
    done = proctor("results", "--pool", tmp_path / "berlin.json", "--pool", tmp_path / "oxford.json", "--draws", "100")
    assert "toy: 2 sites" in done.stdout
    assert "Differences" in done.stdout
    assert "over groups: exact for shares, bootstrap for other scores (100 draws, seed 0)." in " ".join(
        done.stderr.split()
    )
    plain = json.loads(
        proctor("results", "--pool", tmp_path / "berlin.json", "--format", "json", "--draws", "100").stdout
    )
    assert [one["system"] for one in plain[0]["means"]] == list(SYSTEMS)
    assert plain[0]["settings"] == {"draws": 100, "seed": 0}
