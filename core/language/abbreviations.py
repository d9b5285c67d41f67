"""Abbreviations whose full stop does not end a sentence (English, Russian, Ukrainian)."""

from __future__ import annotations

# Always followed by what they announce: "Dr. Smith", "рис. 3", "им. Ленина".
ANNOUNCING = frozenset(
    "dr mr mrs ms prof rev hon gen col sgt capt lt gov pres sen rep st mt messrs "
    "fig figs eq eqs ref refs sec sect ch chap vol vols pp pt ed eds cf vs viz al e.g i.e approx "
    "ca tel dept univ resp incl "
    "рис табл илл см ср гл стр разд прил им ул просп пр пл пер наб корп кв оф ст пп напр проф "
    "акад доц канд тов гр св прп обл тел факс англ лат греч нем фр итал яп кит укр рус букв "
    "мал розд див порівн ім вул буд наприкл доп чл нім грец перекл ред вид упоряд".split()
)
# Announcing only before a number: "No. 5", "p. 12", "с. 3", "Art. 6"; else they are words.
BEFORE_NUMBER = frozenset("no nos p art para par item jan feb mar apr jun jul aug sep sept oct nov "
                          "dec с п д ч т в № рр стор ном".split())  # fmt: skip
# Two-part abbreviations whose last letter goes on: "т. е.", "т. к.", "т. зв.", "і т. ін".
CONTINUING_PAIRS = frozenset({("т", "е"), ("т", "к"), ("т", "н"), ("т", "зв"), ("т", "ч"),
                              ("т", "о"), ("і", "е"), ("i", "e"), ("e", "g")})  # fmt: skip
# A dotted acronym ("U.S.", "Ph.D.", "н.э.") ends a sentence only before one of these.
STARTERS = frozenset(
    "the this that these those it he she they we i you in on at a an as but and however if when "
    "there his her its their our my what why how who where after before for with "
    "в на по он она оно они мы вы я это этот эта эти но и а если когда как что после для однако "
    "у він вона воно вони ми ви це цей ця ці але та якщо коли як що після проте".split()
)
