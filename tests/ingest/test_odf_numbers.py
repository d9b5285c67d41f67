"""OpenDocument: the numbers of lists and headings stand in their styles."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

from ingest.loaders.office.odf import OdfNumbering, add_blocks
from ingest.loaders.outline import Outline

T = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
S = 'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
STYLES = (
    f"<styles {T} {S}><text:list-style style:name='L'>"
    "<text:list-level-style-number text:level='1' style:num-format='1' style:num-suffix='.'/>"
    "<text:list-level-style-number text:level='2' style:num-format='1' text:display-levels='2'"
    " text:start-value='4'/>"
    "<text:list-level-style-number text:level='3' style:num-format='a' style:num-prefix='('"
    " style:num-suffix=')'/><text:list-level-style-number text:level='4' style:num-format=''/>"
    "</text:list-style><text:outline-style>"
    "<text:outline-level-style text:level='1' style:num-format='I'/>"
    "<text:outline-level-style text:level='2' style:num-format='1' text:display-levels='2'/>"
    "</text:outline-style></styles>"
)


def items(*inner: str) -> str:
    return "".join(f"<text:list-item>{one}</text:list-item>" for one in inner)


def numbered(*inner: str, more: str = "") -> str:
    return f"<text:list text:style-name='L' {more}>{items(*inner)}</text:list>"


def read(body: str, styles: str = STYLES) -> list[tuple[str, str]]:
    outline = Outline()
    add_blocks(
        outline, fromstring(f"<body {T}>{body}</body>"), OdfNumbering(fromstring(styles), None)
    )
    return [(block.section, block.text) for block in outline.finish()]


X = "<text:p>x</text:p>"


def test_levels_are_counted_as_their_styles_say() -> None:
    inner = f"<text:list>{items(X, X + f'<text:list>{items(X, X)}</text:list>')}</text:list>"
    ((_, text),) = read(numbered(X, X + inner, X))
    assert text == "1. x\n2. x\n  2.4 x\n  2.5 x\n    (a) x\n    (b) x\n3. x"


def test_lists_begin_anew_go_on_or_have_a_number_of_their_own() -> None:
    on = "text:continue-numbering='true'"
    own = f"<text:list-item text:start-value='7'>{X}</text:list-item>"
    body = numbered(X, X) + numbered(X) + numbered(X, more=on)
    body += f"<text:list text:style-name='L' {on}>{own}</text:list>"
    ((_, text),) = read(body)
    assert text == "1. x\n2. x\n1. x\n2. x\n7. x"


def test_lists_without_numbers_and_further_paragraphs() -> None:
    ((_, text),) = read(numbered(X + "<text:p>more</text:p>"), f"<styles {T}/>")
    assert text == "- x\nmore"


def test_headings_have_their_numbers() -> None:
    body = (
        "<text:h text:outline-level='1'>One</text:h><text:h text:outline-level='2'>A</text:h>"
        f"{X}<text:h text:outline-level='1'>Two</text:h><text:h text:outline-level='2'> </text:h>"
        f"<text:h text:outline-level='2'>B</text:h>{X}"
    )
    assert read(body) == [("I One › I.1 A", "x"), ("II Two › II.1 B", "x")]
