"""Transcripts as services and editors write them, remade by us: each program's own header, marks and line ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.core import InputError
from proctor_build.pipeline.transcripts import Spoken, read_transcript

YT_DLP = """WEBVTT
Kind: captions
Language: en

00:00:00.400 --> 00:00:02.200 align:start position:0%
~
now<00:00:00.800><c> we</c><00:00:01.100><c> slide</c><00:00:01.500><c> the</c><00:00:01.800><c> probe</c>

00:00:02.200 --> 00:00:02.210 align:start position:0%
now we slide the probe
~

00:00:02.210 --> 00:00:03.900 align:start position:0%
now we slide the probe
towards<00:00:02.600><c> the</c><00:00:03.000><c> feet</c>

00:00:03.900 --> 00:00:03.910 align:start position:0%
towards the feet
~
""".replace("~", " ")  # a line of one blank
YOUTUBE_STYLED = """WEBVTT
Kind: captions
Language: de
Style:
::cue(c.colorE5E5E5) { color: rgb(229,229,229);
 }
##

00:00:01.000 --> 00:00:02.000 position:63% line:0%
<c.colorE5E5E5>wir schieben</c>

00:00:02.000 --> 00:00:03.500
die Sonde
"""
WHISPER = """WEBVTT

00:00.000 --> 00:02.000
Now we slide the probe.

00:02.000 --> 00:04.500
Then we press.

"""
ZOOM = (
    "WEBVTT\r\n\r\n1\r\n00:00:01.000 --> 00:00:02.500\r\nJane Doe: Now we slide.\r\n\r\n"
    "2\r\n00:00:03.000 --> 00:00:04.000\r\nJane Doe: Step one: press.\r\n\r\n"
    "3\r\n00:00:05.000 --> 00:00:06.000\r\nDr. Max Muster (Host): Stop.\r\n\r\n"
    "4\r\n00:00:07.000 --> 00:00:08.000\r\nJane Doe: And lift.\r\n"
)
TEAMS = """WEBVTT

NOTE duration:"00:00:09.1200000"

f1d3ff84-4329-4d1c-9d3b-0a4c5f2d6f5e/12-0
00:00:01.120 --> 00:00:03.440
<v Jane Doe>Now we slide the
probe.</v>

f1d3ff84-4329-4d1c-9d3b-0a4c5f2d6f5e/19-0
00:00:04.120 --> 00:00:05.440
<v Max Muster>Press.</v>
"""
MEET = """WEBVTT - recorded meeting

STYLE
::cue { color: white }

REGION
id:bottom

00:00:01.000 --> 00:00:02.000 region:bottom
<v.loud Speaker 1>Slide &amp; press.

00:00:02.500 --> 00:00:03.000
<v Speaker 2><i>Now</i> lift.
"""
PREMIERE = (
    '\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\n<font color="#ffffff">Slide</font>\r\n\r\nto the left.\r\n\r\n'
    "2\r\n00:00:03,000 --> 00:00:04,000 X1:10 X2:600 Y1:400 Y2:450\r\n{\\an8}Press.\r\n\r\n\r\n"
    "3\r\n00:00:05 --> 00:00:06,5\r\n\r\n\r\n00:00:07,000-->00:00:08,000\r\nStop."
)
BLANKS = "WEBVTT\n\n1\n00:01.000 --> 00:02.000\nslide\n \n2\n00:03.000 --> 00:04.000\npress\n\t\n00:05.000 --> 00:06.000\nstop\n"
NO_HEADER_END = "WEBVTT\nKind: captions\n00:01.000 --> 00:02.000\nslide\n"
UNMOVED = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n00:01.000 --> 00:02.000\nslide\n"


def read(folder: Path, name: str, text: str) -> Spoken:
    file = folder / name
    file.write_bytes(text.encode())
    return read_transcript(file)


@pytest.mark.parametrize(
    ("name", "text", "cues"),
    [
        ("yt-dlp.vtt", YT_DLP, [(0.4, 2.2, "now we slide the probe"), (2.21, 3.9, "towards the feet")]),
        ("youtube.vtt", YOUTUBE_STYLED, [(1.0, 2.0, "wir schieben"), (2.0, 3.5, "die Sonde")]),
        ("whisper.vtt", WHISPER, [(0.0, 2.0, "Now we slide the probe."), (2.0, 4.5, "Then we press.")]),
        ("teams.vtt", TEAMS, [(1.12, 3.44, "Now we slide the probe."), (4.12, 5.44, "Press.")]),
        ("meet.vtt", MEET, [(1.0, 2.0, "Slide & press."), (2.5, 3.0, "Now lift.")]),
        ("premiere.srt", PREMIERE, [(1.0, 2.0, "Slide to the left."), (3.0, 4.0, "Press."), (7.0, 8.0, "Stop.")]),
        ("blanks.vtt", BLANKS, [(1.0, 2.0, "slide"), (3.0, 4.0, "press"), (5.0, 6.0, "stop")]),
        ("blanks.srt", BLANKS.split("\n\n", 1)[1], [(1.0, 2.0, "slide"), (3.0, 4.0, "press"), (5.0, 6.0, "stop")]),
        ("header.vtt", NO_HEADER_END, [(1.0, 2.0, "slide")]),
        ("unmoved.vtt", UNMOVED, [(1.0, 2.0, "slide")]),
    ],
)
def test_each_services_file_is_read(tmp_path: Path, name: str, text: str, cues: list[tuple[float, float, str]]) -> None:
    assert [(cue.start, cue.end, cue.text) for cue in read(tmp_path, name, text).cues] == cues


def test_youtubes_words_keep_their_times(tmp_path: Path) -> None:
    first, second = read(tmp_path, "a.vtt", YT_DLP).cues
    assert [(word.text, word.start) for word in first.words] == [
        ("now", 0.4), ("we", 0.8), ("slide", 1.1), ("the", 1.5), ("probe", 1.8),
    ]  # fmt: skip
    assert [(word.text, word.start) for word in second.words] == [("towards", 2.21), ("the", 2.6), ("feet", 3.0)]


def test_zooms_names_are_nothing_that_was_said(tmp_path: Path) -> None:
    found = read(tmp_path, "a.vtt", ZOOM)
    assert [cue.text for cue in found.cues] == ["Now we slide.", "Step one: press.", "Stop.", "And lift."]
    assert found.notes == ["2 names of speakers before the texts left out"]
    said = ZOOM.replace("Jane Doe: And lift.", "and lift.")  # one without: what stands before a colon may be said
    assert read(tmp_path, "b.vtt", said).cues[0].text == "Jane Doe: Now we slide."


def test_a_streams_segment_is_refused_by_the_name_of_its_map(tmp_path: Path) -> None:
    moved = UNMOVED.replace("MPEGTS:0", "MPEGTS:900000")
    with pytest.raises(InputError) as caught:
        read(tmp_path, "a.vtt", moved)
    assert str(caught.value).endswith(
        "a.vtt: line 2: found X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000, expected times on the video's clock: "
        "these are a segment's of a stream; join the segments to one file"
    )
    same = UNMOVED.replace("MPEGTS:0,LOCAL:00:00:00.000", "LOCAL:00:00:10.000,MPEGTS:900000")
    assert read(tmp_path, "b.vtt", same).cues[0].start == 1.0


def test_whispers_segments_without_a_length_are_left_out_and_named(tmp_path: Path) -> None:
    segments = [
        {"id": 0, "start": 0.0, "end": 1.2, "text": " We slide."},
        {"id": 1, "start": 1.2, "end": 1.2, "text": " Thanks."},
        {"id": 2, "start": 1.2, "end": 1.2, "text": ""},
        {"id": 3, "start": 1.2, "end": 3.0, "text": " We press."},
    ]
    found = read(tmp_path, "a.json", json.dumps({"text": "", "segments": segments, "language": "en"}))
    assert [cue.text for cue in found.cues] == ["We slide.", "We press."]
    assert [(one.id, one.kind, one.found) for one in found.refused] == [
        ("segment 2", "times", "1.20 to 1.20 s: Thanks.")
    ]
    assert found.notes == ["1 cue without a length left out: 1.20 to 1.20 s: Thanks."]


def test_whisperx_words_without_times_share_the_time_between_their_neighbours(tmp_path: Path) -> None:
    """Between 1.0 and 2.2 s three numbers were said: 0.4 s each; at the end two share what is left of the segment."""
    words = [
        {"word": "Turn", "start": 0.5, "end": 1.0, "score": 0.9}, {"word": "30"}, {"word": "60"}, {"word": "90"},
        {"word": "degrees", "start": 2.2, "end": 2.6, "score": 0.8}, {"word": "1"}, {"word": "2"},
    ]  # fmt: skip
    segment = {"start": 0.5, "end": 3.0, "text": "Turn 30 60 90 degrees 1 2", "words": words}
    (cue,) = read(tmp_path, "a.json", json.dumps({"segments": [segment]})).cues
    assert [(word.text, word.start, word.end) for word in cue.words] == [
        ("Turn", 0.5, 1.0), ("30", 1.0, 1.4), ("60", 1.4, 1.8), ("90", 1.8, 2.2), ("degrees", 2.2, 2.6), ("1", 2.6, 2.8),
        ("2", 2.8, 3.0),
    ]  # fmt: skip
    assert [word.confidence for word in cue.words] == [0.9, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0]


def test_words_whose_times_do_not_fit_their_segment_are_no_times(tmp_path: Path) -> None:
    words = [{"word": "Press", "start": 0.5, "end": 31.0}]
    segment = {"start": 0.5, "end": 2.0, "text": "Press", "words": words}
    (cue,) = read(tmp_path, "a.json", json.dumps({"segments": [segment]})).cues
    assert (cue.words, cue.flags) == ((), ("times of words do not fit",))


def test_whisperx_words_and_segments_that_overlap_keep_their_times(tmp_path: Path) -> None:
    """Two people speak at once, and a word begins before the last one ended: nothing is moved or lost."""
    first = [{"word": "Close", "start": 0.0, "end": 0.9}, {"word": "it", "start": 0.8, "end": 1.4}]
    second = [{"word": "Now", "start": 1.1, "end": 1.1}, {"word": "cut", "start": 1.2, "end": 2.0}]
    segments = [
        {"start": 0.0, "end": 1.4, "text": "Close it", "words": first},
        {"start": 1.1, "end": 2.0, "text": "Now cut", "words": second},
    ]
    found = read(tmp_path, "a.json", json.dumps({"segments": segments}))
    assert [(cue.start, cue.end, cue.text) for cue in found.cues] == [(0.0, 1.4, "Close it"), (1.1, 2.0, "Now cut")]
    assert [(word.start, word.end) for cue in found.cues for word in cue.words] == [
        (0.0, 0.9), (0.8, 1.4), (1.1, 1.1), (1.2, 2.0),
    ]  # fmt: skip
    assert (found.refused, found.notes) == ([], [])
