"""Which engines of OCR are there: RapidOCR of an extra, Tesseract of the system."""

from __future__ import annotations

from core.distribution import has_extra, install_command
from ingest.loaders.tesseract import installed_languages

RAPID, TESSERACT = "rapidocr", "tesseract"
HINT = f"run `{install_command('ocr')}` and ingest again, or OCR it first"
CYRILLIC = (
    "Cyrillic needs Tesseract: `apt install tesseract-ocr tesseract-ocr-rus tesseract-ocr-ukr`, "
    "or OCR it first"
)


def engines_for(wanted: str) -> str:
    """Return the engines and languages that a setting of `ingest.ocr` gives here, "" for none."""
    found = [RAPID] if wanted in ("auto", RAPID) and has_extra("ocr") else []
    if wanted in ("auto", TESSERACT):
        spoken = [one for one in installed_languages() if not (found and one == "chi_sim")]
        found += [f"{TESSERACT} {'+'.join(spoken)}"] if spoken else []
    return ", ".join(found)
