"""The longer video from which a benchmark's video was made."""

from __future__ import annotations

from proctor.core.validation import FrozenModel


class Excerpt(FrozenModel):
    """The part of a longer video from which a benchmark's video was made: `start` to `end` in seconds of the longer
    video, which is at `url` if that is known. Second 0 of the clip is its second `start`. `start` may be slightly
    negative as a result of alignment. `also` is another published name of the video, by which its file may be found.
    With `whole` the file is known to be the longer video.

    >>> Excerpt(start=18.25, end=131.25, url="https://example.org/v").seconds
    113.0
    """

    start: float
    end: float
    url: str = ""
    also: str = ""
    whole: bool = False

    @property
    def seconds(self) -> float:
        """The duration."""
        return self.end - self.start
