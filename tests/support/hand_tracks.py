"""A video annotated by hand: two needles, a clip and a specimen."""

from __future__ import annotations

from proctor.tracks import AnnotatedBox, AnnotatedMoment, AnnotatedVideo, Annotation, Sighting

VIDEO = AnnotatedVideo(id="v", file="v.mp4", width=90, height=90, seconds=100.0, fps=25)


def track(instance: str, name: str, first: int, last: int, x: float = 10, y: float = 10) -> list[Sighting]:
    box = AnnotatedBox(x=x, y=y, width=10, height=10)
    return [Sighting(second=s, instance=instance, class_name=name, box=box) for s in range(first, last)]


HAND = Annotation(
    video=VIDEO,
    sightings=(
        *track("n1", "Needle", 10, 40),
        *track("n2", "Needle", 50, 70, x=40, y=70),
        *track("c1", "Clip", 20, 100, x=70),
        *track("s1", "Specimen", 60, 80, y=70),
    ),
    moments=(
        AnnotatedMoment(kind="insertion", instance="n1", class_name="Needle", time=9.6),
        AnnotatedMoment(kind="retrieval", instance="n1", class_name="Needle", time=40.2),
        AnnotatedMoment(kind="insertion", instance="c1", class_name="Clip", time=19.5),
        AnnotatedMoment(kind="insertion", instance="n2", class_name="Needle", time=49.7),
        AnnotatedMoment(kind="retrieval", instance="s1", class_name="Specimen", time=80.4),
    ),
)
