"""The documentation is up to date, short and linked, and names commands that exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.commands import app
from cli.docs import BEGIN, DOCS, END, ROOT, generated, named_commands

MOST_WORDS = 27_700  # of all pages under docs/, tables with their bars included
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("examples/**/README.md")])
COMMAND = re.compile(r"^(?:\$ )?(carrel [^\n&;>|]*)|`(carrel [^`|…]*)`", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def test_generated_files_are_fresh():
    stale = [
        path.name
        for path, text in generated().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run `make docs`; stale: {', '.join(stale)}"


def test_the_design_has_a_place_for_the_drawing():
    text = (DOCS / "explanation" / "design.md").read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


def test_the_documentation_stays_short():
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in DOCS.rglob("*.md")}
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda one: -one[1])[:5]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text)
    broken = [link for link in map("".join, found) if not leads_somewhere(page, link)]
    assert not broken


def leads_somewhere(page: Path, link: str) -> bool:
    """Return whether a relative link names a file, and a heading of it after "#"."""
    if "://" in link or link.startswith("mailto:"):
        return True
    name, _, heading = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not heading:
        return target.exists()
    titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return heading in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_every_page_is_linked_from_another():
    linked = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if "://" not in link
    }
    assert sorted(page.name for page in DOCS.rglob("*.md") if page not in linked) == []


def test_commands_in_the_pages_exist():
    known = dict(named_commands("carrel", typer.main.get_command(app)))
    unknown = [
        f"{page.name}: {line}"
        for page in PAGES
        for line in commands(page.read_text(encoding="utf-8"))
        if not understood(line.partition(" #")[0].split(), known)
    ]
    assert not unknown


def commands(text: str) -> list[str]:
    """Return the command lines of a page, in blocks and within sentences."""
    return [block or inline for block, inline in COMMAND.findall(text)]


def understood(words: list[str], known: dict[str, Any]) -> bool:
    """Return whether a line names a command and only options that it has."""
    named = max(size for size in range(1, len(words) + 1) if " ".join(words[:size]) in known)
    rest = words[named:]
    if hasattr(known[" ".join(words[:named])], "list_commands") and rest[:1] != ["COMMAND"]:
        return rest == [] or rest[0].startswith("-") or "|" in rest[0]
    options = {one for parameter in known[" ".join(words[:named])].params for one in parameter.opts}
    given = {word.strip("[]") for word in rest if re.match(r"\[?--?[a-z]", word)}
    return given <= {*options, "--help"}


@pytest.mark.parametrize("name", ["glossary.md", "life.md"])
def test_files_that_a_guide_names_are_there(name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", text)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []
