"""A PDF made by hand: a few lines of text on each page."""

from __future__ import annotations

from collections.abc import Sequence

_SHEET = "/MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >>"


def tiny_pdf(pages: Sequence[str]) -> bytes:
    """A PDF with one page for each text (Latin letters, lines parted by a newline)."""
    first = 4  # 1: catalogue, 2: the pages, 3: the font
    kids = " ".join(f"{first + 2 * k} 0 R" for k in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for k, text in enumerate(pages):
        lines = " ".join(f"({line}) Tj 0 -14 Td" for line in text.split("\n"))
        content = f"BT /F1 12 Tf 20 700 Td {lines} ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /Contents {first + 2 * k + 1} 0 R {_SHEET} >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        ]
    out, rows = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        rows.append(len(out))
        out += f"{number} 0 obj\n{one}\nendobj\n".encode()
    table = "".join(f"{row:010d} 00000 n \n" for row in rows)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n"
    return out + f"{end}<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n".encode()
