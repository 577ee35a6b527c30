"""`proctor serve` and `proctor review`: sites in the browser, their accounts and studies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli import Output, OutputFormat, print_json, print_line, print_note, show
from proctor.core import InputError, Option, UsageError, count_of, one_of
from proctor.shell import names_in

if TYPE_CHECKING:
    from proctor_web import AccountsLocation, InvitationLink, Listening, Site, StudyUpdate

ReviewFolder = Annotated[Path, Option("The folder with review.yaml or challenge.yaml.", metavar="DIR", argument=True)]

ReviewStore = Annotated[
    str | None,
    Option("A file or SQLAlchemy URL. [default: PROCTOR_STORE, or as review.yaml or challenge.yaml says]", "--store"),
]


def accounts_of(folder: Path, store: str | None) -> AccountsLocation:
    """The accounts of the review or challenge in a folder."""
    from proctor_web import kind_of, review_accounts

    kind = kind_of(folder)
    return review_accounts(folder, store) if kind is None else kind.accounts(folder, store)


def site(
    folder: ReviewFolder,
    host: Annotated[str, Option("The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option("The port; 0 takes a free one.", low=0, high=65535)] = 8000,
    store: ReviewStore = None,
    tls_cert: Annotated[Path | None, Option("The certificate (PEM): pages by https.")] = None,
    tls_key: Annotated[Path | None, Option("The certificate's key (PEM).")] = None,
    proxy: Annotated[str, Option("Addresses or networks of proxies with TLS.")] = "",
    same_user: Annotated[bool, Option("Serve a challenge as the user who can open its sealed part.")] = False,
) -> None:
    """Serve a review or a challenge.

    For a review (DIR/review.yaml), studies are updated first: new items are added and assigned; readings stay. A
    challenge (DIR/challenge.yaml) is not served by a user who can open its sealed part, unless --same-user is given,
    for a trial. Other machines can connect by TLS only. Slow senders are disconnected, and the number of connections
    follows ulimit -n; behind --proxy, the visitors' own addresses count.

    `proctor serve DIR` is the same.

    Example: proctor serve my-review --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    from proctor_web import Listening, bound
    from proctor_web import serve as run

    listening = Listening(host, port, tls_cert, tls_key, proxy)
    site = _opened(folder, store, listening, same_user=same_user)
    with bound(listening) as opened:
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if tls_cert is None else "https"
        if proxy and listening.in_clear:
            print_note(
                f"Behind a proxy {host} is served without TLS: let a firewall keep others than {proxy} from this port"
            )
        print_line(f"Serving {site.title} at {scheme}://{shown}:{opened.getsockname()[1]} (Ctrl+C stops)")
        run(site, listening, [opened])


def view(
    store: Annotated[
        str, Option("The store: a path of an SQLite file, or an SQLAlchemy URL.", metavar="STORE", argument=True)
    ],
    host: Annotated[str, Option("The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option("The port; 0 takes a free one.", low=0, high=65535)] = 0,
    media: Annotated[
        Path | None, Option("The benchmark's media. [default: the folder that the store remembers]", metavar="DIR")
    ] = None,
    tls_cert: Annotated[Path | None, Option("The certificate (PEM): pages by https.")] = None,
    tls_key: Annotated[Path | None, Option("The certificate's key (PEM).")] = None,
    ask_token: Annotated[bool, Option("Also ask visitors from this machine for the token.")] = False,
) -> None:
    """Look at a store in the browser, live.

    Shows runs as they are asked, the leaderboard, every answer with the pictures that the model got, and two systems side
    by side. The store is only read. On this machine no login is needed; on another address the printed link has a token,
    without which nothing is shown.

    Example: proctor view runs.db
    """
    from proctor_web import Listening, bound, open_view, serve_view

    listening = Listening(host, port, tls_cert, tls_key)
    opened = open_view(store, listening, media=media, ask_token=ask_token)
    with bound(listening) as socket:
        print_line(f"Showing {opened.title} at {opened.address(socket.getsockname()[1])} (Ctrl+C stops)")
        serve_view(opened, [socket])


def _opened(folder: Path, store: str | None, listening: Listening, *, same_user: bool) -> Site:
    from proctor_web import kind_of, open_review

    if (kind := kind_of(folder)) is not None:
        return kind.open(folder, store, listening, same_user=same_user)
    try:
        review, updates = open_review(folder, store, listening, to_serve=True)
    except InputError as error:
        if (folder / "review.yaml").is_file():
            raise
        found = "no review.yaml and no challenge.yaml" if folder.is_dir() else "no such folder"
        expected = "the folder of a review, or of a challenge (proctor challenge new)"
        raise InputError(folder, found=found, expected=expected) from error
    for study_update in updates:
        print_update(study_update)
    return review


def print_update(study_update: StudyUpdate) -> None:
    """Print the changes to a study."""
    tally = study_update.items
    if study_update.fault:
        stay = f"its {count_of(tally.same, 'item')} stay as they are"
        print_note(f"{study_update.name} is not updated, {stay}: {study_update.fault}")
        return
    told = f"{count_of(tally.new, 'new item')}, {tally.changed} changed, {tally.same} as before"
    print_line(f"{study_update.name}: {told}, {count_of(study_update.assigned, 'assignment')} made")
    if tally.gone:
        gone = count_of(tally.gone, "item")
        print_note(f"{study_update.name}: {gone} no longer in the source, kept with all that was said about it")
    if study_update.disabled:
        out = f"no new work for {', '.join(study_update.disabled)} (disabled)"
        print_note(
            f"{study_update.name}: {out}; proctor review update DIR --reassign NAME --study {study_update.name} passes on what is open"
        )
    if study_update.disabled and study_update.waiting:
        print_note(
            f"{study_update.name}: {count_of(study_update.waiting, 'item')} waiting until enough of the plan's people may log in"
        )


StudyName = Annotated[str, Option("The study's name.", metavar="STUDY", argument=True)]

Address = Annotated[str, Option("The server's address, for the link. [default: that in the settings]", metavar="URL")]


def update(
    folder: ReviewFolder,
    reassign: Annotated[
        str, Option("Instead, give this person's open work in --study to others.", metavar="NAME")
    ] = "",
    study: Annotated[str, Option("With --reassign or --submit: the study's name.")] = "",
    submit: Annotated[
        Path | None,
        Option("Instead, submit the decisions of a filled-in sheet of --reader in --study.", metavar="FILE"),
    ] = None,
    reader: Annotated[str, Option("With --submit: whose sheet it is.", metavar="NAME")] = "",
    store: ReviewStore = None,
) -> None:
    """Update studies, assign work, read a sheet.

    As `proctor serve` does at its start: new items are added and assigned, and a changed item gets a new version. With
    --reassign, open work goes to readers of the plan who do not have it yet, those with the least work first; submitted
    readings stay.

    With --submit, all decisions of a sheet (proctor review export --what sheet) become final, or none if a row is invalid
    or was saved in the browser since. Rows without a decision stay open, with their comment as a draft. In an
    adjudicator's row the comment is the reason.

    Example: proctor review update my-review
    """
    if (submit is not None) != bool(reader) or (reassign and reader) or bool(study) != bool(reassign or reader):
        raise UsageError("Give --reassign NAME --study STUDY, or --submit FILE --study STUDY --reader NAME, or none.")
    if reassign:
        _reassign(folder, study, reassign, store)
        return
    if submit is not None:
        _submit_sheet(folder, study, reader, submit, store)
        return
    from proctor_web import open_review

    review, updates = open_review(folder, store)
    review.engine.dispose()
    for study_update in updates:
        print_update(study_update)


def _reassign(folder: Path, study: str, name: str, store: str | None) -> None:
    from proctor_web import reassign_work

    tally = reassign_work(folder, study, name, store)
    passed_on, gold = count_of(tally.passed_on, "item"), count_of(tally.gold, "gold item")
    print_line(f"{passed_on} passed on, {gold} taken away, {tally.stay} kept")
    if tally.stay:
        print_note("add a reader to the plan for what is kept: all others have them already")


def _submit_sheet(folder: Path, study: str, reader: str, file: Path, store: str | None) -> None:
    from proctor_web import decisions_from

    tally = decisions_from(folder, study, reader, file, store)
    kept = f", {tally.comments} of them with a comment, which is kept" if tally.comments else ""
    print_line(f"{tally.sealed} submitted, {tally.before} submitted before, {tally.left} left open{kept}")


def sample(
    store: Annotated[
        str, Option("The store of the answers: a file or SQLAlchemy URL.", metavar="STORE", argument=True)
    ],
    benchmark: Annotated[str, Option("The benchmark's name.", metavar="BENCHMARK", argument=True)],
    out: Annotated[Path | None, Option("The new folder of the review.", metavar="DIR")] = None,
    judge: Annotated[str, Option("The judge whose scores are to be corrected.", metavar="NAME")] = "",
    groups: Annotated[int, Option("How many groups are drawn.", low=1)] = 30,
    by: Annotated[list[str] | None, Option("Also stratify by this facet; may be repeated.", metavar="FACET")] = None,
    system: Annotated[list[str] | None, Option("Only this system; may be repeated.", metavar="NAME")] = None,
    condition: Annotated[str, Option("Only answers under it.", metavar="NAME")] = "",
    reader: Annotated[list[str] | None, Option("A person who labels; may be repeated.", metavar="NAME")] = None,
    readings: Annotated[int, Option("How many people label each answer.", low=1)] = 1,
    seed: Annotated[int, Option("The random seed; it is recorded.")] = 0,
) -> None:
    """Draw answers for people to label.

    Whole groups (videos, patients) are drawn with known probabilities, stratified by the judge's score and by facets. The
    sample is sealed (DIR/sample.json), and DIR/review.yaml is a review of its answers for `proctor serve`. When all are
    labelled, `proctor review export DIR labels --what scores` and `proctor results --corrected DIR/sample.json` correct the
    judge's scores of all answers.

    Example: proctor review sample runs.db rexsonovqa --judge three-level --groups 30 --out labels
    """
    from proctor_web import sample_study

    if out is None or not judge:
        raise UsageError(
            "--out DIR and --judge NAME are needed. Example: proctor review sample runs.db b --judge j --out d"
        )
    drawn = sample_study(
        store,
        benchmark,
        out,
        judge=judge,
        groups=groups,
        by=by or (),
        systems=system or (),
        condition=condition,
        readers=reader or (),
        readings=readings,
        seed=seed,
    )
    every = sum(len(stratum.groups) for stratum in drawn.strata)
    answers = len({(item, name) for item, name, _, _ in drawn.anchor})
    strata = "1 stratum" if len(drawn.strata) == 1 else f"{len(drawn.strata)} strata"
    print_line(
        f"{len(drawn.drawn)} of {count_of(every, 'group')} drawn in {strata}, {count_of(answers, 'answer')} to label"
    )
    print_line(f"sealed: {out / 'sample.json'} (SHA-256 {drawn.sha256[:16]}…)")
    if not reader:
        print_note(f"Nobody reads yet: add readers to the plan in {out / 'review.yaml'}")


def status(
    folder: ReviewFolder,
    study: Annotated[str, Option("Of this study, how far its readers agree.", metavar="[STUDY]", argument=True)] = "",
    store: ReviewStore = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show progress, or how far readers agree.

    People are shown by pseudonym; `proctor serve users list` has their names. Agreement is shown by dimension (percent,
    Cohen's and Fleiss' kappa, Gwet's AC1, Krippendorff's alpha; F1 of boxes and times), by reader with gold items, by
    two readers, over time, and for the most disputed and slowest items. Intervals are over groups. Only items that all
    readers have submitted count.

    Example: proctor review status my-review questions
    """
    if study:
        _show_agreement(folder, study, store, output)
        return
    from proctor_web import progress_tables

    studies, people = progress_tables(folder, store)
    show(output, studies.records, studies, people)


def _show_agreement(folder: Path, study: str, store: str | None, output: OutputFormat) -> None:
    from proctor_web import agreement_of

    found, tables = agreement_of(folder, study, store)
    if output is OutputFormat.JSON:
        print_json([asdict(found)])
        return
    blocks = tables or ("No item is submitted by all its readers yet.",)
    show(output, tables[0].records if tables else [], *blocks)


_SCORES, _SHEET = "scores", "sheet"


def _exports() -> list[str]:
    return [*names_in("proctor_web:EXPORTS")(), _SCORES, _SHEET]


def export(
    folder: ReviewFolder,
    study: StudyName,
    out: Annotated[Path | None, Option("The file: .jsonl, .csv, .parquet; .md for a datasheet.")] = None,
    what: Annotated[str, Option("readings, consensus, datasheet, scores or sheet.", names=_exports)] = "readings",
    reader: Annotated[str, Option("With --what sheet: whose items.", metavar="NAME")] = "",
    store: ReviewStore = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Export readings, scores or a person's sheet.

    Writes every submitted reading with pseudonym, version and time; the consensus with the adjudicator and the final item;
    or a section on the review for a datasheet. Of ratings of answers, `--what scores` makes scores by human:PSEUDONYM in
    the review's store, without a file, so that proctor audit compares judges with them; pairwise choices are shown as
    strengths of systems (Bradley-Terry).

    `--what sheet` is for people without a browser: one item per row (CSV), with empty cells to fill in; an adjudicator's
    rows show the readings that differ. `proctor review update --submit` reads it again. Orders, rationales, boxes and
    moments need the browser.

    Example: proctor review export my-review questions --out readings.parquet
    """
    if (what == _SHEET) != bool(reader):
        raise UsageError("--what sheet and --reader NAME need each other.")
    if what == _SCORES:
        _make_scores(folder, study, store, output)
        return
    if out is None:
        raise UsageError("--out is missing. Give the file to write: --out readings.csv")
    if what == _SHEET:
        _write_sheet(folder, study, reader, out, store)
        return
    from proctor_web import export_study

    print_line(f"{count_of(export_study(folder, study, what, out, store), 'row')} of {what} in {out}")


def _make_scores(folder: Path, study: str, store: str | None, output: OutputFormat) -> None:
    from proctor_web import ratings_to_scores

    count, tables = ratings_to_scores(folder, study, store)
    if tables:
        show(output, tables[0].records, *tables)
    else:
        print_line(f"{count_of(count, 'score')} by people")


def _write_sheet(folder: Path, study: str, reader: str, out: Path, store: str | None) -> None:
    from proctor_web import sheet_for

    print_line(f"{count_of(sheet_for(folder, study, reader, out, store), 'item')} in {out}")


def _user_actions() -> list[str]:
    return [*_USER_ACTIONS]


@dataclass(frozen=True)
class _UserAction:
    """What `proctor serve users` is asked for."""

    folder: Path
    store: str | None
    name: str
    role: str
    language: str
    address: str
    output: OutputFormat


def users(
    action: Annotated[
        str,
        Option(
            "list, add, invite, role, disable, enable, erase, or trail.",
            metavar="ACTION",
            argument=True,
            names=_user_actions,
        ),
    ],
    folder: ReviewFolder,
    name: Annotated[str, Option("The account's name.", metavar="[NAME]", argument=True)] = "",
    role: Annotated[
        str,
        Option(
            "add, role: what a person may do. [default: reviewer, participant]", names=names_in("proctor_web:ROLES")
        ),
    ] = "",
    language: Annotated[str, Option("add: the language of the pages: en, de.")] = "en",
    address: Address = "",
    store: ReviewStore = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Manage the accounts of a review or challenge.

    list shows role, pseudonym (which exports show instead of the name), state, and the day of the last login. add and
    invite print a link that sets the account's password, once, within seven days: send it to that person only. invite is
    for a person whose link expired, or who lost the password; the old link becomes invalid, and the old password works
    until the new link is used. role changes a person's rights, and ends their sessions. disable stops an account at
    once, and the person's readings stay; enable undoes it. erase removes the name, password, and logins of a disabled
    account for good; readings and trail keep the pseudonym.

    trail shows who changed what. Each entry contains the hash of the previous one, so changed or removed entries are
    detected: exit code 1. Keep the newest hash elsewhere to detect later whether entries were removed from the end.

    Example: proctor serve users add my-review anna --role reviewer --language de
    """
    if action not in _USER_ACTIONS:
        raise UsageError(f"ACTION {action!r} is unknown: choose {one_of([*_USER_ACTIONS], action)}")
    if not name and action not in {"list", "trail"}:
        raise UsageError("NAME is missing. Example: proctor serve users add my-review anna --role reviewer")
    _USER_ACTIONS[action](_UserAction(folder, store, name, role, language, address, output))


def _add_user(given: _UserAction) -> None:
    from proctor_web import add_person

    location = _reached_at(accounts_of(given.folder, given.store), given.address)
    is_new = location.store.is_new
    _print_invitation(location, add_person(location, given.name, given.role or location.newcomer, given.language))
    if is_new:
        other = f"If the server has another store, write that one into {location.settings} (store: …)"
        print_note(f"{location.store.shown} is new. {other}")


def _invite_user(given: _UserAction) -> None:
    from proctor_web import invite_person

    location = _reached_at(accounts_of(given.folder, given.store), given.address)
    _print_invitation(location, invite_person(location, given.name))


def _list_users(given: _UserAction) -> None:
    from proctor_web import people_table

    table = people_table(accounts_of(given.folder, given.store))
    show(given.output, table.records, table)


def _set_role(given: _UserAction) -> None:
    from proctor_web import change_role

    if not given.role:
        raise UsageError(f"--role is missing. Give what {given.name} may do: --role ROLE")
    change_role(accounts_of(given.folder, given.store), given.name, given.role)
    print_line(f"{given.name} is {given.role} from the next login on")


def _disable_user(given: _UserAction) -> None:
    from proctor_web import disable_person

    disable_person(accounts_of(given.folder, given.store), given.name)
    print_line(f"{given.name} is logged out and may not log in")


def _enable_user(given: _UserAction) -> None:
    from proctor_web import disable_person

    disable_person(accounts_of(given.folder, given.store), given.name, undo=True)
    print_line(f"{given.name} may log in again")


def _erase_user(given: _UserAction) -> None:
    from proctor_web import erase_person

    pseudonym = erase_person(accounts_of(given.folder, given.store), given.name)
    print_line(f"{given.name} is erased; readings and trail keep {pseudonym}")


def _show_trail(given: _UserAction) -> None:
    from proctor_web import read_trail

    found = read_trail(accounts_of(given.folder, given.store))
    show(given.output, found.entries.records, found.entries)
    if found.fault is not None:
        print_note(f"entry {found.fault} was changed, or does not follow the one before")
        raise typer.Exit(1)
    print_note(f"all entries are as recorded; the newest hash is {found.head}")


_USER_ACTIONS: dict[str, Callable[[_UserAction], None]] = {
    "list": _list_users,
    "add": _add_user,
    "invite": _invite_user,
    "role": _set_role,
    "disable": _disable_user,
    "enable": _enable_user,
    "erase": _erase_user,
    "trail": _show_trail,
}


def _print_invitation(location: AccountsLocation, invitation: InvitationLink) -> None:
    print_line(invitation.link)
    if not invitation.reachable:
        print_note(
            f"The link's address is a guess: {location.settings} has none. Give the server's by --address URL, or by `address:` "
            f"in {location.settings}"
        )


def _reached_at(location: AccountsLocation, address: str) -> AccountsLocation:
    """The accounts with links to this address. Raises `UsageError` for what is no address of a server (see `address:` in
    the settings)."""
    from proctor_web import is_address

    if not address:
        return location
    whole = address.removesuffix("/")
    if not is_address(whole):
        raise UsageError(f"--address {repr(address)[:80]} is no server's: write it like https://review.example.org")
    return replace(location, address=whole.casefold())
