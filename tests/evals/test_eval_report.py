"""Reports of constructed runs: the figures are in them, texts are escaped, pages need nothing."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from cli.terminal.output import checked_out, write_files
from core.errors import CallerError
from core.settings import Settings
from evals.compare import Section, _section, checked_pipelines, section_json
from evals.dataset import JudgedQuery
from evals.report import html_report, markdown_report, markdown_text, report
from evals.runner import PipelineRun, QueryRun
from evals.summary import measured, rank_groups, rank_names

SETTINGS = Settings(eval_resamples=500)
EVIL = "<script>alert(1)</script> | *bold* $x$"
TYPES = (EVIL, "事实问题", "plain")
SVG = "{http://www.w3.org/2000/svg}"


def run(number: int, rank: int | None, ms: float, distance: float | None) -> QueryRun:
    query = JudgedQuery(f"q{number}", "text", {"right": 1}, type=TYPES[number % 3])
    others = [(f"wrong{n}", 1.0) for n in range(200)]
    ranking = others if rank is None else [*others[: rank - 1], ("right", 1.0), *others[rank:]]
    return QueryRun(query, "en" if number % 2 else "zh", ranking, ms, distance)


@pytest.fixture(scope="module")
def section() -> Section:
    """Return twelve queries: the base always ranks second, the other first but for one miss."""
    base = [run(n, 2, 10.0 + n, 0.5 + n / 100) for n in range(12)]
    other = [run(n, 1 if n else None, 20.0 + n, 0.2 + n / 100) for n in range(12)]
    pipelines = [
        measured(PipelineRun(name, runs, [], []))
        for name, runs in (("classic", base), ("agentic", other))
    ]
    return _section("set & <b>", pipelines, SETTINGS, ["a <warning> with [link](x)"], ["- a note"])


@pytest.fixture(scope="module")
def page(section: Section) -> str:
    return html_report(report([section], SETTINGS))


@pytest.fixture(scope="module")
def drawn(section: Section) -> tuple[str, dict[str, str]]:
    """Return the report as Markdown, and its drawings."""
    return markdown_report(report([section], SETTINGS), "r")


def test_the_figures_are_those_of_the_runs(section):
    found = section_json(section)
    assert found["n"] == 12
    classic, agentic = found["pipelines"]["classic"], found["pipelines"]["agentic"]
    assert classic["metrics"]["mrr"] == 0.5
    assert agentic["metrics"]["mrr"] == pytest.approx(11 / 12, abs=1e-6)
    gap = found["differences"]["agentic"]["mrr"]
    assert gap["difference"] == pytest.approx(11 / 12 - 0.5, abs=1e-6)
    assert (gap["wins"], gap["ties"], gap["losses"]) == (11, 0, 1)
    assert found["differences"]["agentic"]["latency_ms"]["difference"] == pytest.approx(10)
    assert classic["latency_ms"]["p50"] == pytest.approx(15.5)
    assert classic["first_relevant"]["2"] == 12
    assert agentic["first_relevant"] == {**dict.fromkeys(rank_names(), 0), "1": 11, "not found": 1}
    assert agentic["distance"]["not_relevant"] == {"n": 1, "median": 0.2}
    assert set(found["by_type"]) == set(TYPES)
    assert {name: part["n"] for name, part in found["by_language"].items()} == {"en": 6, "zh": 6}


def test_ranks_are_counted_in_groups_without_holes():
    ranks = [1, 2, 3, 4, 5, 6, 10, 11, 100, 101, 150, None]
    counts = rank_groups([run(n, rank, 1.0, None) for n, rank in enumerate(ranks)])
    assert list(counts) == ["1", "2", "3", "4–5", "6–10", "11–100", "101+", "not found"]
    assert list(counts.values()) == [1, 1, 1, 2, 2, 2, 2, 1]


def test_the_page_holds_the_numbers(page):
    tree = HTMLParser(page)
    rows = {
        row.css("th")[0].text(): [cell.text() for cell in row.css("td")]
        for row in tree.css("table")[0].css("tbody tr")
    }
    assert rows["MRR"][0] == "0.500 (0.500, 0.500)"
    assert rows["MRR"][1].startswith("0.917 (")
    assert rows["MRR"][2].startswith("+0.417 (")
    assert rows["latency, p50 (ms)"] == ["15.5", "25.5", "+10.0", "–"]
    heads = [cell.text() for cell in tree.css("table")[0].css("thead th")]
    assert heads == ["metric", "classic", "agentic", "agentic − classic", "p"]


def test_the_page_needs_nothing_and_runs_nothing(page):
    tree = HTMLParser(page)
    assert tree.css("script, link, img, iframe, object, use[href^='http']") == []
    assert "http:" not in page
    assert "https:" not in page
    assert "@import" not in page
    assert "color-scheme: light dark" in page
    assert "currentColor" in page
    assert re.findall(r"url\((?!#)", page) == []


def test_text_from_the_data_is_shown_and_never_markup(page):
    tree = HTMLParser(page)
    assert EVIL in [part.split(" (n =")[0] for part in (c.text() for c in tree.css("tbody th"))]
    assert "set & <b> (n = 12)" in [heading.text() for heading in tree.css("h2")]
    assert "<script" not in page


def test_ids_of_the_page_are_unique_and_references_lead_somewhere(page):
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    used = re.findall(r'href="#([^"]+)"', page) + re.findall(r"url\(#([^)]+)\)", page)
    assert used
    assert set(used) <= set(ids)


def test_drawings_are_whole_named_and_the_same_every_time(section, drawn):
    text, files = drawn
    assert set(files) == {
        f"r-1-{name}.svg" for name in ("metrics", "types", "languages", "ranks", "distances")
    }
    for name, svg in files.items():
        root = ElementTree.fromstring(svg.encode())
        assert root.tag == f"{SVG}svg"
        assert root.findtext(f"{SVG}title")
        assert not root.findall(f".//{SVG}text"), "letters are paths"
        assert f"({name})" in text
    _, again = markdown_report(report([section], SETTINGS), "r")
    assert files == again


def test_bars_are_as_long_as_the_means(drawn):
    """Read the drawing back: the widths of the first two bars stand as the metrics do."""
    _, files = drawn
    root = ElementTree.fromstring(files["r-1-metrics.svg"].encode())
    widths: dict[str, list[float]] = {"#0072b2": [], "#e69f00": []}
    for path in root.iter(f"{SVG}path"):
        colour = (path.get("style") or "").removeprefix("fill: ").split(";")[0]
        if colour in widths and path.get("clip-path"):
            xs = [float(x) for x in re.findall(r"[ML] (\S+) \S+", path.get("d") or "")]
            widths[colour].append(max(xs) - min(xs))
    assert len(widths["#0072b2"]) == len(widths["#e69f00"]) == 8
    assert widths["#e69f00"][5] / widths["#0072b2"][5] == pytest.approx((11 / 12) / 0.5, rel=1e-3)


def test_names_the_font_cannot_draw_are_numbered_and_the_caption_says_so(drawn):
    text, _ = drawn
    assert "numbers stand for names, in the order of the table" in text


def test_markdown_shows_what_the_data_says(drawn):
    text, _ = drawn
    assert "| MRR | 0.500 (0.500, 0.500) | 0.917 (" in text
    assert "<script" not in text
    assert r"&lt;script&gt;alert(1)&lt;/script&gt; \| \*bold\* \$x\$ (n = 4)" in text
    assert r"a &lt;warning&gt; with \[link\](x)" in text
    assert "\n- a note" not in text
    columns = [line.replace(r"\|", "").count("|") for line in text.splitlines() if line[:1] == "|"]
    assert set(columns) == {6, 7, 10}, "every row has the columns of its table"
    assert markdown_text("a\nb `c`") == r"a b \`c\`"


@pytest.mark.parametrize("text", ["", "hybrid", "hybrid,hybrid", "hybrid,best"])
def test_a_comparison_needs_two_known_pipelines(text):
    with pytest.raises(CallerError):
        checked_pipelines(text)
    assert checked_pipelines(" classic , agentic ") == ["classic", "agentic"]


def test_a_report_is_refused_before_the_work_when_it_cannot_be_written(tmp_path):
    for path in (tmp_path / "r.pdf", tmp_path / "none" / "r.md", tmp_path):
        with pytest.raises(CallerError):
            checked_out(path, (".md", ".html"))
    assert checked_out(tmp_path / "r.HTML", (".md", ".html"))


def test_files_are_written_whole(tmp_path):
    write_files({tmp_path / "a.md": "old"})
    write_files({tmp_path / "a.md": "new"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
    assert (tmp_path / "a.md").read_text() == "new"
    with pytest.raises(CallerError):
        write_files({tmp_path / "none" / "a.md": "x"})
