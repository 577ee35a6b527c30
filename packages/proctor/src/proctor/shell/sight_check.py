"""A sight test of a model (`sight`): what is tested, by which routes, and how the result is shown."""

# No `from __future__ import annotations`: the command line reads these annotations.

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import randbelow
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from proctor.core import (
    DASH,
    FPS,
    MAX_FRAMES,
    Option,
    UsageError,
    clean,
    count_of,
    one_of,
    p_value,
    percent,
    plain_table,
    shorten,
)
from proctor.reports import FrameLike, Record
from proctor.shell.model_options import ModelOptions
from proctor.shell.option_values import facets_of
from proctor.shell.options import _LIMITS, _MEDIA, Cache, Concurrency, MaxSide, OnChange, _Names, filled, listed
from proctor.shell.stores import sync_twin
from proctor.shell.systems import ModelAccess, checked

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.models import ModelClient, ModelSpec
    from proctor.sight import SightPlan, SightResult

    _Model = str | ModelSpec
else:
    _Model = Any


class SightOptions(ModelOptions, total=False):
    """How a model is tested. `routes` are the ways in which a run may send media; without any, all but sound that the model's
    protocol has, of which frames alone must be seen. The others are the options of a run: what is tested is what it sends.
    All pictures are drawn by a seed, which is recorded; it is a new one each time, so that no cache knows them, or that of an
    earlier test (`redraw`; in a `batch` it is 0, since the same requests have to be made again). At most `calls` questions are asked within `within_s` seconds. `on_change` is
    called with the number of calls so far."""

    routes: Annotated[
        _Names,
        Option(
            "Only these ways of sending media: frames, video, tools, schema, sound. [default: all but sound]",
            "--routes",
            (),
            shell=str,
            read=facets_of,
            metavar="ROUTE[,ROUTE]",
        ),
    ]
    fps: Annotated[float, Option("Frames per second that a model gets.", default=FPS, low=0.001, group=_MEDIA)]
    max_frames: Annotated[
        int, Option("Frames of a clip, as in a run.", default=MAX_FRAMES, low=1, high=256, group=_MEDIA)
    ]
    max_side: MaxSide
    cache: Cache
    redraw: Annotated[
        int | None, Option("Draw the pictures of an earlier test: its seed. [default: new ones]", low=0, metavar="SEED")
    ]
    calls: Annotated[int, Option("At most this many questions.", default=64, low=1, group=_LIMITS)]
    within_s: Annotated[
        float, Option("Seconds after which no more is asked.", "--within", 120.0, low=0.1, group=_LIMITS)
    ]
    concurrency: Concurrency
    batch: Annotated[
        str | Path | None,
        Option("Folder for batch requests and replies (OpenAI, vllm run-batch).", shell=Path, group=_LIMITS),
    ]
    on_change: OnChange


@dataclass(frozen=True)
class SightTable(FrameLike):
    """The result of a sight test: a row for each route. `data` is all of it, and `file` is where it is kept."""

    data: "SightResult"
    file: Path

    @property
    def rows(self) -> list[Record]:
        """The state of each route, and how many replies were right."""
        routes = self.data.routes.items()
        return [
            {"route": name, **route.model_dump(exclude={"at"}), "required": name in self.data.required}
            for name, route in routes
        ]

    @property
    def title(self) -> str:
        """The model and the state."""
        many = len(self.data.findings)
        state = f"fault ({count_of(many, 'finding')})" if many else self.data.state
        return f"Sight test of {self.data.model}: {state}"

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong, each with its evidence."""
        return tuple(f"{finding.text} ({finding.route}: {finding.evidence})" for finding in self.data.findings)

    @property
    def verdict(self) -> str:
        """For people, in lines of 80 characters at most: the verdict, then what is wrong, why it is sure, and what to do."""
        data, lines = self.data, [self.title]
        for finding in data.findings:
            lines += _filled(finding.text, "- ", "  ")
            lines += _filled(f"By {finding.route}: {finding.evidence}.", "  ", "  ")
            lines += _filled(f"What to do: {finding.advice}", "  ", "  ")
        unsure = [name for name in data.required if data.routes[name].state not in {"sees", "fault"}]
        for name in () if data.findings else unsure:
            lines += _filled(
                f"By {name}, {data.routes[name].state}: {shorten(data.routes[name].note, 300)}", "- ", "  "
            )
        lines += _filled(f"What to do: {data.advice}", "  ", "  ") if data.advice and not data.pending else []
        return "\n".join(lines)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know beside the findings."""
        data = self.data
        spent = f"{count_of(data.calls, 'call')} in {data.seconds:.0f} s, seed {data.seed} (--redraw {data.seed})."
        read = "none" if data.digits_px is None else f"{data.digits_px} pixels high"
        acuity = f"Smallest digits read in a picture of {data.side_px} pixels: {read}."
        asked = any(kind.kind == "smallest" and kind.right + kind.wrong + kind.nothing_seen for kind in data.kinds)
        kept = "Run the same command again when the replies are there." if data.pending else f"Kept in {self.file}"
        return (*data.notes, *((acuity,) if asked else ()), spent, kept)

    @property
    def tables(self) -> "Sequence[Table]":
        """The routes, and the questions by kind."""
        routes = [
            (name, one.state, f"{one.right} of {one.replies}" if one.replies else DASH, shorten(one.note, 100))
            for name, one in self.data.routes.items()
        ]
        heads = ("question", ">asked", ">right", ">wrong", ">unseen", ">unusable", ">guess", ">p")
        kinds = [
            (
                f"{one.route}: {one.kind}",
                one.asked,
                DASH if one.kind == _CONTROL else one.right,
                one.wrong,
                one.nothing_seen,
                one.unreadable + one.refused + one.rejected + one.failed + one.pending,
                DASH if one.p is None else percent(one.constant),
                DASH if one.p is None else p_value(one.p),
            )
            for one in self.data.kinds
        ]
        return [
            plain_table("By route", ("route", "state", ">right", "why"), routes, wrapped=("why",)),
            plain_table("By question", heads, kinds),
        ]


_CONTROL = "black"  # there is nothing to see: to see nothing is right
_COLUMNS = 80


def _filled(text: str, before: str, after: str) -> list[str]:
    return textwrap.wrap(clean(text), _COLUMNS, initial_indent=before, subsequent_indent=after, break_on_hyphens=False)


@dataclass(frozen=True)
class PreparedSight:
    """A sight test whose input is checked."""

    client: "ModelClient"
    access: ModelAccess
    plan: "SightPlan"
    options: SightOptions

    async def ask(self) -> SightTable:
        """Ask the questions and keep the result, unless replies of a batch are to come. Raises `ConfigurationError` if the
        model can't be asked at all."""
        from proctor.sight import examine, keep, record_file

        await self.access.check_servers()
        async with self.access.closing():
            result = await examine(self.client, self.plan, self.options["on_change"])
        cache = self.options["cache"]
        file = record_file(result.settings, cache) if result.pending else keep(result, cache)
        return SightTable(result, file)


def arrange_sight(model: _Model, **options: Unpack[SightOptions]) -> PreparedSight:
    """The first step of `sight`: check everything, connect to nothing. Raises `UsageError` for an unknown route, and
    `ConfigurationError` for a model that can't be asked."""
    from proctor.media import MediaSettings
    from proctor.models import BatchFolder
    from proctor.sight import ROUTES, SightPlan

    given = filled("sight", SightOptions, options)
    wanted = listed(given["routes"])
    for name in wanted:
        if name not in ROUTES:
            raise UsageError(f"--routes {name} is unknown: give {one_of(ROUTES, name)}.")
    access = ModelAccess(given)
    if given["batch"] is not None:
        access.batch = BatchFolder(Path(given["batch"]))
    client = access.clients([model])[0]
    if client.spec.hears:
        raise UsageError(f"{client.name} is a speech recogniser, which sees nothing. Give a model that takes pictures.")
    settings = checked(MediaSettings, max_side=given["max_side"], max_frames=given["max_frames"], fps=given["fps"])
    routes = tuple(name for name in ROUTES if name in (wanted or _offered(client)))
    seed = given["redraw"]
    if seed is None:
        seed = 0 if given["batch"] is not None else randbelow(2**31)
    plan = SightPlan(
        routes,
        tuple(wanted) or ("frames",),
        settings,
        seed=seed,
        calls=given["calls"],
        seconds=float("inf") if given["batch"] is not None else given["within_s"],
        concurrency=given["concurrency"],
    )
    return PreparedSight(client, access, plan, given)


def _offered(client: "ModelClient") -> list[str]:
    """The routes that a model's protocol has. Whether a model takes sound is unknown: it is tested only by name."""
    by_tools = client.takes_tools and client.spec.structured in {"auto", "tool"}
    video = client.takes_video or client.takes_footage
    has = {"frames": True, "video": video, "tools": by_tools, "schema": client.takes_schema}
    return [name for name, offered in has.items() if offered]


async def sight_async(model: _Model, **options: Unpack[SightOptions]) -> SightTable:
    """Test whether pictures, clips and sound reach a served model as they are sent, in at most 64 calls.

    The result names what is wrong: nothing arrives, only the first or last pictures, another order, shrunk, times invented, the
    video file ignored, replies from a cache, stripped beside tools or a schema. What could not be checked is a state of its
    own. The result is kept for the model, its servers and settings; a run says so if there is none that passed, and its report
    shows it.

    Raises `UsageError` for an unknown route and `ConfigurationError` if the model can't be asked at all. The command is `proctor
    sight`. `sight` works in a notebook; in async code await `sight_async`.
    """
    return await arrange_sight(model, **options).ask()


sight = sync_twin(sight_async)
