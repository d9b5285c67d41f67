"""Draw pages of four languages, clean, noisy and rotated, and count what OCR reads wrongly.

python -m benchmarks.ocr SENTENCES --cjk FONT.otf [--pages 5] [--languages en,ru,uk,zh]

SENTENCES holds corpus_LANGUAGE.jsonl with sentences as `text` (SIB-200). A page is A4 at 150 dots
per inch. Noisy: grey noise, a blur and a JPEG of quality 40. Rotated: by 2 degrees, as a scanner
takes a sheet. The rate is the edit distance by the length of what was drawn, without white space; a
page that is refused counts as 1.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits
from ingest.loaders.ocr import PictureReader
from ingest.loaders.tesseract import engines_for

LANGUAGES = ("en", "ru", "uk", "zh")
CONDITIONS = ("clean", "noisy", "rotated")
SIZE, MARGIN, LETTERS, LEADING = (1240, 1754), 110, 26, 44  # pixels
SENTENCES = 8  # of a page
PART = re.compile(r"[\u3000-\uffef]|[^\s\u3000-\uffef]+ *| +")  # of a line, never broken


def lines(text: str, font: ImageFont.FreeTypeFont, width: int) -> Iterator[str]:
    """Break a text at spaces, and at any Chinese letter."""
    line = ""
    for part in PART.findall(text):
        if font.getlength(line + part) > width:
            yield line.strip()
            line = ""
        line += part
    yield line.strip()


def drawn(sentences: list[str], font: ImageFont.FreeTypeFont) -> tuple[Image.Image, str]:
    """Return a page, a paragraph a sentence, and the text on it."""
    page = Image.new("L", SIZE, 255)
    pen, at = ImageDraw.Draw(page), MARGIN
    for sentence in sentences:
        for line in lines(sentence, font, SIZE[0] - 2 * MARGIN):
            pen.text((MARGIN, at), line, font=font, fill=20)
            at += LEADING
        at += LEADING // 2
    assert at < SIZE[1], "the sentences are longer than the page"
    return page, " ".join(sentences)


def spoilt(page: Image.Image, condition: str, draw: np.random.Generator) -> Image.Image:
    """Return the page as a scanner might give it."""
    if condition == "rotated":
        return page.rotate(2, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)
    if condition == "noisy":
        soft = np.asarray(page.filter(ImageFilter.GaussianBlur(0.8)), dtype=np.float32)
        grey = soft + draw.normal(0, 22, soft.shape)
        out = io.BytesIO()
        Image.fromarray(grey.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=40)
        return Image.open(out)
    return page


def distance(one: str, other: str) -> int:
    """Return how many letters must be put in, left out or exchanged (Levenshtein)."""
    codes = np.array([ord(sign) for sign in other])
    places = np.arange(len(other) + 1)
    row = places.copy()
    for number, sign in enumerate(one, 1):
        fresh = np.empty_like(row)
        fresh[0] = number
        fresh[1:] = np.minimum(row[1:] + 1, row[:-1] + (codes != ord(sign)))
        row = np.minimum.accumulate(fresh - places) + places
    return int(row[-1])


def rate(wanted: str, found: str) -> float:
    """Return the character error rate; white space is left out, wide signs are as narrow ones."""
    both = (unicodedata.normalize("NFKC", one) for one in (wanted, found))
    wanted, found = ("".join(one.split()) for one in both)
    return distance(wanted, found) / len(wanted)


def read(page: Image.Image, limits: LoadLimits) -> str:
    """Return what is read, "" for a page that is refused."""
    try:
        return PictureReader(limits).read(page.convert("RGB")).text
    except DocumentError:
        return ""


def main() -> None:
    """Print a table of rates and the pages a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cjk", type=Path, required=True, help="a font with Chinese letters")
    parser.add_argument("--pages", type=int, default=5, help="of each language and condition")
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    given = parser.parse_args()
    latin = Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf")
    engines = engines_for("auto")
    limits = LoadLimits(
        max_file_mb=8, max_pages=50, max_characters=200_000, timeout_s=600, memory_mb=4096,
        ocr=engines,
    )  # fmt: skip
    draw = np.random.default_rng(7)
    pages, began = 0, 0.0
    print(f"engines: {engines}\n| | {' | '.join(CONDITIONS)} |\n|---|{'---|' * len(CONDITIONS)}")
    for language in given.languages.split(","):
        rows = (given.data / f"corpus_{language}.jsonl").read_text("utf-8").splitlines()
        texts = [json.loads(row)["text"] for row in rows]
        font = ImageFont.truetype(str(given.cjk if language == "zh" else latin), LETTERS)
        rates: dict[str, list[float]] = {name: [] for name in CONDITIONS}
        for number in range(given.pages):
            clean, text = drawn(texts[SENTENCES * number : SENTENCES * (number + 1)], font)
            for name in CONDITIONS:
                page = spoilt(clean, name, draw)
                started = time.monotonic()
                found = read(page, limits)
                began += time.monotonic() - started
                pages += 1
                rates[name].append(rate(text, found))
        cells = [f"{np.mean(one):.1%} (worst {max(one):.1%})" for one in rates.values()]
        print(f"| {language} | {' | '.join(cells)} |", flush=True)
    print(f"{pages} pages, {pages / began:.2f} a second")


if __name__ == "__main__":
    main()
