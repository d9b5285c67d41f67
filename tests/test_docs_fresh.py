"""Generated documentation equals what the code generates now."""

import pytest

from cli.docs import BEGIN, END, ROOT, generated


def test_generated_files_are_fresh():
    stale = [
        path.name
        for path, text in generated().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run `make docs`; stale: {', '.join(stale)}"


def test_readme_has_a_place_for_the_drawing():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/design.md"])
def test_links_between_pages_lead_somewhere(name):
    import re

    page = ROOT / name
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing
