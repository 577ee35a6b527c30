"""`proctor check`: questions of one's own, a submission, a store, and other files that can be checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from proctor.cli.output import Output, OutputFormat
from proctor.cli.tree import show_plugin_report
from proctor.cli.usage import refuse_options
from proctor.core import Option, PluginReport, UsageError, check_path, existing
from proctor.shell import DEFAULT_STORE, LatencyRule, QuestionSeconds, StoreUrl, Track, validator_names

_PAGE = Path("preview.html")
_STORE = "store"


def check(
    what: Annotated[
        str,
        Option(
            "Your questions (a folder or a file); or what FILE is: a benchmark's name, workflow, judge, receipt, "
            "documents, or store.",
            metavar="WHAT",
            names=validator_names,
            argument=True,
        ),
    ],
    file: Annotated[
        str, Option("The file to check, unless WHAT is your questions.", metavar="[FILE]", argument=True)
    ] = "",
    media: Annotated[Path | None, Option("The folder with its videos or images.")] = None,
    columns: Annotated[
        list[str] | None,
        Option(
            "Your questions: the column of a field, such as question=Frage; may be repeated.",
            "--map",
            metavar="FIELD=COLUMN",
        ),
    ] = None,
    out: Annotated[Path | None, Option("Your questions: the page with ten of them. [default: preview.html]")] = None,
    data: Annotated[
        Path | None,
        Option(
            "The benchmark's own files; the store remembers them. mediqa-eval: ratings, or a template without values.",
            "--data --ratings",
        ),
    ] = None,
    track: Track = "",
    store: StoreUrl = None,
    options: Annotated[
        list[str] | None,
        Option(
            "mediqa-eval: split=valid or test; any-scale=true for scores beyond 0 to 1. receipt: key=, published=. "
            "judge: export=, device=, base_url=, model=. documents: query=, top=, out=, encoder=, size=, overlap=.",
            "--option",
            metavar="KEY=VALUE",
        ),
    ] = None,
    budget_s: QuestionSeconds = None,
    latency: LatencyRule = None,
    every: Annotated[bool, Option("List each finding instead of grouping by cause.", "--all")] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check questions, a submission or a store.

    Your own questions: all faults are listed at once, with file, row and column. Without faults, a page shows ten
    questions as a model gets them. Exit code 1 if there are faults; then nothing is written.

    A submission, before it is sent: an "error" means that it would be refused: the exit code is 1. What is "wrong" is
    accepted and counts as a wrong answer (missing, late, not in its format): the exit code is 3. A "warning" is for
    you to check. References are not needed; what can't be checked without them is named.

    judge compares a trained judge's scores of up to 50 items along all its paths: they must be the same in the trainer's
    memory, with the adapter loaded again, merged, and served over HTTP (by default, or at base_url as model), and others
    than its base's. An adapter that is not loaded, another chat template or tokenizer and lower precision are found.
    With export=FOLDER the judge is written where others can use it, unless a path has a fault.

    receipt checks the signature of a challenge's receipt, offline: key is the challenge's public key (its digits, a
    file, or the challenge's folder). With published, the challenge published with sealed/ after its end, it also checks
    that questions, references and rules are those that were used for scoring.

    documents reads a folder for retrieval-judge and evidence-judge, builds its index if it is missing, and shows which
    passages are found for query. store reads every row, of --store if there is no FILE, and changes nothing; exit code 1
    where a row is damaged.

    A submission is checked by `proctor check focus answer.json --data focus`, a store by `proctor check store runs.db`.

    Example: proctor check my-questions/
    """
    from proctor import api
    from proctor.models import parse_settings

    if not file and what in validator_names():
        if what != _STORE:
            own = f"; your questions in {what}: proctor check ./{what}" if Path(what).exists() else ""
            raise UsageError(f"FILE is missing. Give the file to check: proctor check {what} FILE{own}")
        file = str(store or DEFAULT_STORE)
    if not file:
        of_file: dict[str, object] = {"--data": data, "--track": track, "--option": options, "--budget": budget_s}
        refuse_options(of_file | {"--latency": latency}, "it goes with a FILE: proctor check BENCHMARK FILE")
        show_plugin_report(_own_questions(what, media, columns, out or _PAGE, every=every), output)
        return
    refuse_options({"--map": columns, "--out": out}, "it goes with your own questions: proctor check PATH")
    given: dict[str, Any] = {"data": data, "track": track, "budget_s": budget_s, "latency": latency}
    chosen = parse_settings(options or (), what="--option")
    report = api.validate(what, file, media=media, every=every, options=chosen, store=store, **given)
    show_plugin_report(report, output)


def _own_questions(
    path: str, media: Path | None, columns: list[str] | None, page: Path, *, every: bool
) -> PluginReport:
    from proctor.shell import media_at

    given: dict[str, list[str]] = {}
    for pair in columns or ():
        name, _, column = pair.partition("=")
        given.setdefault(name.strip(), []).append(column.strip())
    if media is not None and ":/" not in str(media):  # a path has one slash of an address
        existing(media, "the folder with the videos or images")
    return check_path(Path(path), media_at(media), page, columns=given, every=every)
