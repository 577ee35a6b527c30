"""What a run says of sight tests before it sends media to a served model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.core import VideoClip, shell_word
from proctor.shell.systems import orders_asked_by

if TYPE_CHECKING:
    from proctor.shell.run_preparation import Arranged
    from proctor.sight import SightResult


def sight_notes(run: Arranged) -> list[str]:
    """Which served models are sent media by a route that passed no sight test, or failed the last one, or more media than were
    tested."""
    from proctor.sight import kept_result

    routes = routes_of(run)
    served = [client for client in run.access.opened if client.servers and not client.spec.hears]
    never, told = [], []
    for client in served if routes and run.access.batch is None else ():
        result = kept_result(client.settings, run.options["cache"])
        if result is not None and (wrong := result.wrong(routes)):
            told.append(f"{client.name}: its sight test of {result.at[:10]} says: {' '.join(wrong)}")
        elif result is None or not result.passed(routes):
            never.append(client)
        elif more := _untested(run, result):
            sent = " and ".join(more)
            told.append(f"{client.name}: its sight test of {result.at[:10]} had less than this run sends: {sent}.")
    if never:
        names = ", ".join(dict.fromkeys(client.name for client in never))
        other = "" if routes == ["frames"] else f" --routes {','.join(routes)}"
        command = f"proctor sight {shell_word(never[0].name)} --base-url {never[0].servers[0]}{other}"
        told.append(f"{names}: no sight test was passed, so it is unknown whether the media arrive ({command}).")
    return told


def _untested(run: Arranged, result: SightResult) -> list[str]:
    """What the run sends beyond a sight test; without clips the number of their frames does not matter."""
    media = run.library.settings.model_dump(mode="json")
    items = run.benchmark.counted(all_items=run.plan.all_items)
    clips = any(isinstance(medium, VideoClip) for item in items for medium in item.media)
    return result.beyond(media if clips else {name: one for name, one in media.items() if name != "max_frames"})


def routes_of(run: Arranged) -> list[str]:
    """The routes (`proctor.sight.ROUTES`) by which a run sends pictures and sound."""
    from proctor.media import CONDITIONS

    items = run.benchmark.counted(all_items=run.plan.all_items)
    seen = [CONDITIONS.get(name) for name in run.conditions if CONDITIONS.get(name).sees]
    pictured = [item for item in items if item.pictured] if any(one.shows for one in seen) else []
    orders = any(item.answer.kind == "ordering" for item in pictured) and orders_asked_by(run.options) == "schema"
    uses = {
        "frames": bool(pictured) and run.options["video_as"] == "frames",
        "video": bool(pictured) and run.options["video_as"] == "file",
        "schema": orders,
        "sound": any(one.hears for one in seen) and any(item.sounding for item in items),
    }
    return [name for name, used in uses.items() if used]
