"""Ask plain questions over small pages, and print the answers to be read.

python -m benchmarks.plain_questions
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

import carrel

FILE = Path(__file__).with_suffix(".yaml")


def main() -> None:
    """Print each answer, and how many questions were refused of those with one and without."""
    refused = {"questions": 0, "absent": 0}
    asked = dict(refused)
    with tempfile.TemporaryDirectory() as folder, carrel.Library(Path(folder, "data")) as library:
        for number, case in enumerate(yaml.safe_load(FILE.read_text(encoding="utf-8"))):
            source = Path(folder, str(number))
            source.mkdir()
            for name, text in case["pages"].items():
                (source / name).write_text(text, encoding="utf-8")
            library.ingest(source, collection=f"c{number}")
            for kind in refused:
                for question in case[kind]:
                    answer = library.ask(question, f"c{number}").answer
                    is_refused = answer is None or answer.refused
                    refused[kind] += is_refused
                    asked[kind] += 1
                    text = "refused" if is_refused else answer.text
                    print(f"{kind:<9} {question}\n          {text.splitlines()[0]}", flush=True)
    print(f"refused: {refused} of {asked}")


if __name__ == "__main__":
    main()
