"""Annotations without rendered pictures: from the simulator's scripts, a box of fixed size where an object lies."""

from __future__ import annotations

from proctor.tasks.simulated.script import Event, Scene, draw_script
from proctor.tracks import AnnotatedBox, AnnotatedMoment, AnnotatedVideo, Annotation, Sighting

WIDTH, HEIGHT, SIDE = 384, 216, 24


def drawn(seed: int, name: str, seconds: float = 60.0, procedure: str = "") -> tuple[Annotation, list[Event]]:
    """The annotation of one procedure as an annotator would draw it, and the events that it is of."""
    script = draw_script(seed, name, seconds)
    scene = Scene(script, (WIDTH, HEIGHT), seed)
    classes = {event.instance: event.class_name for event in script.events}
    sightings = []
    for second in range(int(seconds)):
        for kept_rows in scene.at(float(second)).objects:
            if not (0 < kept_rows.x < WIDTH and 0 < kept_rows.y < HEIGHT):
                continue
            covered = any(
                event.kind == "hidden" and event.instance == kept_rows.instance and event.start <= second < event.end
                for event in script.events
            )
            box = AnnotatedBox(x=kept_rows.x - SIDE / 2, y=kept_rows.y - SIDE / 2, width=SIDE, height=SIDE)
            sightings.append(
                Sighting(
                    second=second,
                    instance=kept_rows.instance,
                    class_name=classes[kept_rows.instance],
                    box=None if covered else box,
                )
            )
    moments: list[AnnotatedMoment] = []
    for event in script.events:
        named = {"instance": event.instance, "class_name": event.class_name}
        if event.kind == "inserted":
            moments.append(AnnotatedMoment(kind="insertion", time=event.start, **named))
        elif event.kind == "retrieved":
            moments.append(AnnotatedMoment(kind="retrieval", time=event.end, **named))
    video = AnnotatedVideo(
        id=name, file=f"{name}.mp4", width=WIDTH, height=HEIGHT, seconds=seconds, fps=25, procedure=procedure
    )
    return Annotation(video=video, sightings=tuple(sightings), moments=tuple(moments)), list(script.events)
