"""Pictures of text: what is read, in which order, within which bounds; what is not is not kept."""

from __future__ import annotations

import io
from pathlib import Path

import docx
import openpyxl
import pytest
from loading import LIMITS, loaded, reason, texts
from openpyxl.drawing.image import Image as SheetImage
from PIL import Image, ImageDraw, ImageFont
from pptx import Presentation

from core.distribution import install_command
from core.errors import DocumentError
from ingest.loaders import ocr
from ingest.loaders.limits import LoadLimits
from ingest.loaders.ocr_lines import TextLine, is_read, text_of_lines
from ingest.loaders.page_image import draw_page
from ingest.loaders.tesseract import engines_for, installed_languages
from ingest.sandbox.pool import Sandbox

RAPID = LIMITS.model_copy(update={"ocr": "rapidocr", "max_file_mb": 8})
WORDS = ["The pressure of the pump is 16 bar.", "The valve is closed before the cover."]
RUSSIAN = ["Давление насоса составляет шесть бар.", "Перед крышкой закрывают клапан."]


def drawn(lines: list[str], size: tuple[int, int] = (760, 150)) -> Image.Image:
    matplotlib = pytest.importorskip("matplotlib")
    font = ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"), 30)
    picture = Image.new("RGB", size, "white")
    for at, line in enumerate(lines):
        ImageDraw.Draw(picture).text((30, 20 + 50 * at), line, font=font, fill="black")
    return picture


def saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)  # type: ignore[arg-type]
    return out.getvalue()


def line(text: str, left: float, top: float, right: float, sure: float = 1.0) -> TextLine:
    return TextLine(text, sure, left, top, right, top + 20)


def test_a_line_counts_only_when_it_is_sure_and_has_its_letters() -> None:
    assert is_read(line("Nine letters", 0, 0, 150), 0.8)
    assert not is_read(line("Nine letters", 0, 0, 150, sure=0.7), 0.8)
    assert not is_read(line(". ,   ,  ", 0, 0, 900), 0.8)  # of an alphabet that it does not know
    assert is_read(line("退款接口的最长等待", 0, 0, 180), 0.8) and is_read(line("7", 0, 0, 9), 0.8)


def test_rows_keep_their_cells_and_columns_are_read_one_by_one() -> None:
    cells = [line("Total", 300, 1, 350), line("Name", 0, 0, 50), line("is new", 55, 2, 110)]
    assert text_of_lines([*cells, line("Below", 0, 100, 50)]) == "Name is new\tTotal\n\nBelow"
    prose = [
        line(f"line {at} of column {side} which goes on", side * 600, 25 * at, side * 600 + 500)
        for at in range(6)
        for side in (0, 1)
    ]
    shown = text_of_lines(prose)
    assert shown.index("line 5 of column 0") < shown.index("line 0 of column 1")
    assert text_of_lines([]) == ""


def test_without_ocr_the_reason_names_the_command(tmp_path: Path) -> None:
    content = saved(Image.new("RGB", (200, 200)), "PNG")
    assert install_command("ocr") in reason(tmp_path / "a.png", content)
    assert install_command("ocr") in reason(tmp_path / "a.pdf", saved(drawn(WORDS), "PDF"))
    # What says that it is something else is told by its content.
    assert "it is an image" in reason(tmp_path / "a.md", content)


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n" + bytes(99), b"II*\x00" + bytes(50)])
def test_a_damaged_picture_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    assert "damaged" in reason(tmp_path / "a.png", content, RAPID)


def test_too_many_pixels_pages_and_seconds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = saved(Image.new("1", (9_000, 9_000)), "PNG")  # 11 kB, and 240 MB when it is decoded
    assert "81 megapixels; the limit is 40 (ingest.ocr_m" in reason(tmp_path / "h.png", huge, RAPID)

    monkeypatch.setattr(ocr, "_lines", lambda engine, picture: [line("words", 0, 0, 60)])
    pages = saved(drawn([]), "TIFF", save_all=True, append_images=[drawn([])] * 3)
    two = RAPID.model_copy(update={"ocr_pages": 2})
    (document,), failures = loaded(tmp_path / "t.tif", pages, two)
    assert [block.page for block in document.blocks] == [1, 2]
    assert list(failures) == ["t.tif: page 3", "t.tif: page 4"]
    assert "reads 2 pages of a file (ingest.ocr_pages)" in failures["t.tif: page 3"]

    reader = ocr.PictureReader(RAPID.model_copy(update={"ocr_timeout_s": 1e-9}))
    with pytest.raises(DocumentError, match="ocr_timeout_s"):
        reader.read(drawn([]))


def test_a_page_whose_letters_are_not_known_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = line(". ,   ,", 0, 0, 900), line("a few words", 0, 40, 120)
    reader = ocr.PictureReader(RAPID)
    monkeypatch.setattr(ocr, "_lines", lambda engine, picture: [bad, good])
    with pytest.raises(DocumentError, match=r"Cyrillic needs Tesseract: `apt install"):
        reader.read(drawn([]))
    monkeypatch.setattr(ocr, "_lines", lambda engine, picture: [good] * 30 + [bad])
    assert reader.read(drawn([])).loss == "1 of its 31 lines are not legible to OCR"
    monkeypatch.setattr(ocr, "_lines", lambda engine, picture: [])
    with pytest.raises(DocumentError, match="no text"):
        reader.read(drawn([]))


def test_a_file_of_pictures_alone_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deck = Presentation()
    shapes = deck.slides.add_slide(deck.slide_layouts[6]).shapes
    for picture in (drawn(WORDS), Image.new("RGB", (20, 20))):  # the other one is an icon
        shapes.add_picture(io.BytesIO(saved(picture, "PNG")), 0, 0)
    deck.save(str(tmp_path / "a.pptx"))
    assert "no text on any slide" in reason(tmp_path / "a.pptx")
    seen = [line("Words that are long enough", 0, 0, 400)]
    monkeypatch.setattr(ocr, "_lines", lambda engine, picture: seen)
    (document,), failures = loaded(tmp_path / "a.pptx", limits=RAPID)
    assert not failures and texts(document) == ["Words that are long enough"]
    monkeypatch.setattr(ocr, "_lines", lambda engine, picture: [])
    assert "no text on any slide" in reason(tmp_path / "a.pptx", limits=RAPID)


def test_a_picture_is_known_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = [
        io.BytesIO(saved(drawn([word]), "PNG")) for word in ("One" * 9, "Two" * 9, "Three" * 9)
    ]
    deck = Presentation()
    for at, given in enumerate(([], pictures[:1], pictures[1:]), start=1):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = f"Title {at}"
        for picture in given:
            slide.shapes.add_picture(picture, 0, 0)
    ids = deck.slides._sldIdLst
    ids.insert(0, ids[2])  # the order of a viewer, and not that of the parts
    deck.save(str(tmp_path / "a.pptx"))
    word = docx.Document()
    word.add_paragraph("Beside pictures.")
    for picture in pictures[:2]:
        word.add_picture(picture)
    word.save(str(tmp_path / "b.docx"))
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    costs = book.create_sheet("Costs")
    costs.append(["c", "d"])
    costs.add_image(SheetImage(io.BytesIO(saved(drawn(WORDS), "PNG"))), "D1")
    book.save(tmp_path / "c.xlsx")
    seen = [line("Words that are long enough", 0, 0, 400)]
    monkeypatch.setattr(ocr, "_lines", lambda engine, picture: seen)
    places = {}
    for name in ("a.pptx", "b.docx", "c.xlsx"):
        (document, *_), _ = loaded(tmp_path / name, limits=RAPID)
        found = [block.section for block in document.blocks]
        places[name] = sorted(one for one in found if one.startswith("picture"))
        (document, *_), _ = loaded(tmp_path / name)  # without OCR
        assert document.pictures == {"a.pptx": 3, "b.docx": 2, "c.xlsx": 1}[name]
    assert places == {
        "a.pptx": ["picture 1 on slide 1", "picture 1 on slide 3", "picture 2 on slide 1"],
        "b.docx": ["picture 1", "picture 2"],
        "c.xlsx": ["picture 1 on sheet Costs"],
    }


def test_scans_and_pictures_are_read_in_the_sandbox(tmp_path: Path) -> None:
    pages = {"append_images": [drawn(RUSSIAN)], "save_all": True, "resolution": 110}
    (tmp_path / "a.pdf").write_bytes(saved(drawn(WORDS), "PDF", **pages))
    word = docx.Document()
    word.add_paragraph("Beside a picture.")
    word.add_picture(io.BytesIO(saved(drawn(WORDS), "PNG")))
    word.save(str(tmp_path / "b.docx"))
    limits = LoadLimits(**{**RAPID.model_dump(), "timeout_s": 60, "memory_mb": 2048})
    with Sandbox() as sandbox:
        scan, picture = (
            list(sandbox.parse(tmp_path / name, name, limits)) for name in ("a.pdf", "b.docx")
        )
    failure, document = scan
    assert failure.path == "a.pdf: page 2" and "Tesseract" in failure.reason
    (block,) = document.blocks
    assert block.page == 1 and "pressure of the pump is 16 bar" in block.text
    assert texts(picture[0])[0] == "Beside a picture."
    assert "valve is closed" in texts(picture[0])[1] and picture[0].blocks[1].section


def test_the_cited_words_of_a_scan_are_marked(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(saved(drawn(WORDS), "PDF", resolution=110))
    (tmp_path / "b.png").write_bytes(saved(drawn(WORDS), "PNG"))
    for name in ("a.pdf", "b.png"):
        shown = draw_page(tmp_path / name, 1, ["pressure of the pump is 16 bar"], RAPID)
        picture = Image.open(io.BytesIO(shown)).convert("RGB")
        yellow = [place for place in range(picture.height) if is_marked(picture, place)]
        assert 10 < len(yellow) < picture.height / 2  # one of the two lines
        misread = draw_page(tmp_path / name, 1, ["the pressure ofthe pumq is l6 bar"], RAPID)
        assert misread == draw_page(tmp_path / name, 1, [WORDS[0]], RAPID)
        absent = draw_page(tmp_path / name, 1, ["a crane that calls at dawn"], RAPID)
        assert absent == draw_page(tmp_path / name, 1, [], RAPID)
    with pytest.raises(DocumentError, match="no such page"):
        draw_page(tmp_path / "a.pdf", 2, [WORDS[0]], RAPID)


def test_marks_stand_on_the_words_of_a_large_page(tmp_path: Path) -> None:
    """It is made smaller before it is read, by the engine whose text was kept."""
    page = drawn([], (1800, 2400))
    page.paste(drawn(WORDS).resize((1520, 300)), (100, 900))
    page.save(tmp_path / "a.png")
    limits = RAPID.model_copy(update={"ocr": engines_for("auto")})
    shown = Image.open(io.BytesIO(draw_page(tmp_path / "a.png", 1, [WORDS[1]], limits)))
    yellow = [row for row in range(0, 2400, 10) if is_marked(shown.convert("RGB"), row)]
    assert 1020 < min(yellow) < 1060 and 1090 < max(yellow) < 1130


def is_marked(picture: Image.Image, row: int) -> bool:
    colours = picture.crop((0, row, picture.width, row + 1)).getcolors(1 << 20) or []
    return any(colour[2] < 160 < colour[0] for _, colour in colours)  # type: ignore[index,operator]


@pytest.mark.skipif("rus" not in installed_languages(), reason="Tesseract with rus is not here")
def test_tesseract_reads_what_rapidocr_does_not() -> None:
    reader = ocr.PictureReader(RAPID.model_copy(update={"ocr": engines_for("auto")}))
    assert "насоса составляет шесть бар" in reader.read(drawn(RUSSIAN)).text
