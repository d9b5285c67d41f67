"""Make the PDF and the DOCX of the sample library.

Needs `fpdf2` and `python-docx` (`pip install fpdf2 python-docx`); neither is needed to run Carrel
on the finished files. Run it from anywhere: the files land in `examples/library/texts/`.
Both texts are in the public domain.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from docx import Document
from fpdf import FPDF

TEXTS = Path(__file__).resolve().parent / "library" / "texts"
MADE = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)  # fixed, so that a rebuild changes little

CANDLE_TITLE = "The Chemical History of a Candle"
CANDLE_AUTHOR = "Michael Faraday"
CANDLE_HEAD = "Lecture I. A Candle: The Flame. Its Sources. Structure. Mobility. Brightness."
CANDLE_SOURCE = (
    "The Chemical History of a Candle, by Michael Faraday (1861). Opening of Lecture I, given to a"
    " young audience at the Royal Institution. Public domain."
)
CANDLE = [
    (
        "I purpose, in return for the honour you do us by coming to see what are our proceedings here, to"
        " bring before you, in the course of these lectures, the Chemical History of a Candle. I have taken"
        " this subject on a former occasion; and were it left to my own will, I should prefer to repeat it"
        " almost every year, so abundant is the interest that attaches itself to the subject, so wonderful"
        " are the varieties of outlet which it offers into the various departments of philosophy. There is"
        " not a law under which any part of this universe is governed which does not come into play, and is"
        " touched upon in these phenomena. There is no better, there is no more open door by which you can"
        " enter into the study of natural philosophy, than by considering the physical phenomena of a candle."
        " I trust, therefore, I shall not disappoint you in choosing this for my subject rather than any"
        " newer topic, which could not be better, were it even so good."
    ),
    (
        "And before proceeding, let me say this also: that though our subject be so great, and our intention"
        " that of treating it honestly, seriously, and philosophically, yet I mean to pass away from all"
        " those who are seniors amongst us. I claim the privilege of speaking to juveniles as a juvenile"
        " myself. I have done so on former occasions, and, if you please, I shall do so again. And though I"
        " stand here with the knowledge of having the words I utter given to the world, yet that shall not"
        " deter me from speaking in the same familiar way to those whom I esteem nearest to me on this"
        " occasion."
    ),
    (
        "And now, my boys and girls, I must first tell you of what candles are made. Some are great"
        " curiosities. I have here some bits of timber, branches of trees particularly famous for their"
        " burning. And here you see a piece of that very curious substance taken out of some of the bogs in"
        " Ireland, called candle-wood, a hard, strong, excellent wood, evidently fitted for good work as a"
        " resister of force, and yet withal burning so well that where it is found they make splinters of it,"
        " and torches, since it burns like a candle, and gives a very good light indeed. And in this wood we"
        " have one of the most beautiful illustrations of the general nature of a candle that I can possibly"
        " give. The fuel provided, the means of bringing that fuel to the place of chemical action, the"
        " regular and gradual supply of air to that place of action, heat and light, all produced by a little"
        " piece of wood of this kind, forming, in fact, a natural candle."
    ),
    (
        "But we must speak of candles as they are in commerce. Here are a couple of candles commonly called"
        " dips. They are made of lengths of cotton cut off, hung up by a loop, dipped into melted tallow,"
        " taken out again and cooled, then re-dipped, until there is an accumulation of tallow round the"
        " cotton."
    ),
]

FLATLAND_TITLE = "Flatland: A Romance of Many Dimensions"
FLATLAND_AUTHOR = "Edwin A. Abbott"
FLATLAND_SOURCE = (
    "Flatland: A Romance of Many Dimensions, by Edwin A. Abbott (1884). Section 1. Public domain."
)
FLATLAND = [
    (
        "I call our world Flatland, not because we call it so, but to make its nature clearer to you, my"
        " happy readers, who are privileged to live in Space."
    ),
    (
        "Imagine a vast sheet of paper on which straight Lines, Triangles, Squares, Pentagons, Hexagons, and"
        " other figures, instead of remaining fixed in their places, move freely about, on or in the surface,"
        " but without the power of rising above or sinking below it, very much like shadows—only hard and"
        " with luminous edges—and you will then have a pretty correct notion of my country and countrymen."
        " Alas, a few years ago, I should have said “my universe”: but now my mind has been opened to higher"
        " views of things."
    ),
    (
        "In such a country, you will perceive at once that it is impossible that there should be anything of"
        " what you call a “solid” kind; but I dare say you will suppose that we could at least distinguish by"
        " sight the Triangles, Squares, and other figures, moving about as I have described them. On the"
        " contrary, we could see nothing of the kind, not at least so as to distinguish one figure from"
        " another. Nothing was visible, nor could be visible, to us, except Straight Lines; and the necessity"
        " of this I will speedily demonstrate."
    ),
    (
        "Place a penny on the middle of one of your tables in Space; and leaning over it, look down upon it."
        " It will appear a circle."
    ),
    (
        "But now, drawing back to the edge of the table, gradually lower your eye (thus bringing yourself more"
        " and more into the condition of the inhabitants of Flatland), and you will find the penny becoming"
        " more and more oval to your view; and at last when you have placed your eye exactly on the edge of"
        " the table (so that you are, as it were, actually a Flatlander) the penny will then have ceased to"
        " appear oval at all, and will have become, so far as you can see, a straight line."
    ),
    (
        "When I was in Spaceland I heard that your sailors have very similar experiences while they traverse"
        " your seas and discern some distant island or coast lying on the horizon. The far-off land may have"
        " bays, forelands, angles in and out to any number and extent; yet at a distance you see none of these"
        " (unless indeed your sun shines bright upon them revealing the projections and retirements by means"
        " of light and shade), nothing but a grey unbroken line upon the water."
    ),
    (
        "Well, that is just what we see when one of our triangular or other acquaintances comes toward us in"
        " Flatland. As there is neither sun with us, nor any light of such a kind as to make shadows, we have"
        " none of the helps to the sight that you have in Spaceland. If our friend comes closer to us we see"
        " his line becomes larger; if he leaves us it becomes smaller: but still he looks like a straight"
        " line; be he a Triangle, Square, Pentagon, Hexagon, Circle, what you will—a straight Line he looks"
        " and nothing else."
    ),
]


class Pages(FPDF):
    """Print the running title and the page number at the foot of every page."""

    def footer(self) -> None:
        """Write the footer line."""
        self.set_y(-15)
        self.set_font("Times", style="I", size=9)
        self.cell(0, 10, f"{CANDLE_TITLE} - page {self.page_no()}", align="C")


def make_pdf(path: Path) -> None:
    """Write the candle lecture as a small-format PDF of several pages with a text layer."""
    pdf = Pages(format=(148, 210))
    pdf.set_title(CANDLE_TITLE)
    pdf.set_author(CANDLE_AUTHOR)
    pdf.set_subject("Opening of Lecture I")
    pdf.set_keywords("candle, flame, chemistry, physics, popular lecture")
    pdf.set_lang("en-GB")
    pdf.set_creation_date(MADE)
    pdf.set_auto_page_break(auto=True, margin=20)
    pdf.add_page()
    pdf.set_font("Times", style="B", size=16)
    pdf.multi_cell(0, 9, CANDLE_TITLE, align="C", new_x="LMARGIN", new_y="NEXT")
    pdf.set_font("Times", size=12)
    pdf.multi_cell(0, 7, CANDLE_AUTHOR, align="C", new_x="LMARGIN", new_y="NEXT")
    pdf.ln(3)
    pdf.set_font("Times", style="I", size=10)
    pdf.multi_cell(0, 5, CANDLE_SOURCE, new_x="LMARGIN", new_y="NEXT")
    pdf.ln(3)
    pdf.set_font("Times", style="B", size=12)
    pdf.multi_cell(0, 6, CANDLE_HEAD, align="L", new_x="LMARGIN", new_y="NEXT")
    pdf.ln(2)
    pdf.set_font("Times", size=12)
    for paragraph in CANDLE:
        pdf.multi_cell(0, 6.5, paragraph, align="L", new_x="LMARGIN", new_y="NEXT")
        pdf.ln(3)
    pdf.output(str(path))


def make_docx(path: Path) -> None:
    """Write section 1 of Flatland as a DOCX with heading styles and core properties."""
    document = Document()
    core = document.core_properties
    core.title, core.author = FLATLAND_TITLE, FLATLAND_AUTHOR
    core.subject = "Section 1, Of the Nature of Flatland"
    core.keywords = "geometry, dimensions, satire, mathematics"
    core.language = "en-GB"
    core.comments = "Public domain text of 1884"
    core.created = core.modified = MADE.replace(tzinfo=None)
    document.add_heading(FLATLAND_TITLE, level=0)
    document.add_paragraph(FLATLAND_SOURCE)
    document.add_heading("Part I: This World", level=1)
    document.add_heading("Section 1. Of the Nature of Flatland", level=2)
    for paragraph in FLATLAND:
        document.add_paragraph(paragraph)
    document.save(str(path))


if __name__ == "__main__":
    TEXTS.mkdir(parents=True, exist_ok=True)
    make_pdf(TEXTS / "chemical_history_of_a_candle.pdf")
    make_docx(TEXTS / "flatland_section_1.docx")
