"""Where MARC 21 and UNIMARC have what a catalogue says, and how it is called."""

from __future__ import annotations

# name: (tag, codes of subfields) in order.
_Table = dict[str, tuple[tuple[str, str], ...]]
_SUBJECT_21 = "abcdtvxyz"
MARC21: _Table = {
    "title": (("245", "anpb"),),
    "authors": (("100", "abq"), ("110", "ab"), ("111", "a"), ("700", "ab"), ("710", "ab")),
    "publisher": (("260", "b"), ("264", "b")),
    "place": (("260", "a"), ("264", "a")),
    "edition": (("250", "ab"),),
    "extent": (("300", "a"),),
    "isbn": (("020", "a"),),
    "issn": (("022", "a"),),
    "keywords": (
        ("600", _SUBJECT_21), ("610", _SUBJECT_21), ("611", _SUBJECT_21), ("630", _SUBJECT_21),
        ("648", "a"), ("650", _SUBJECT_21), ("651", _SUBJECT_21), ("653", "a"), ("655", "a"),
    ),
    "udc": (("080", "a"),),
    "ddc": (("082", "a"),),
    "lcc": (("050", "ab"),),
    "bbk": (("084", "a"),),
    "series": (("490", "av"), ("440", "av"), ("830", "av")),
    "notes": (
        ("500", "a"), ("502", "a"), ("504", "a"), ("511", "a"), ("518", "a"), ("538", "a"),
        ("546", "a"), ("586", "a"),
    ),
    "url": (("856", "u"),),
    "annotation": (("520", "ab"),),
    "contents": (("505", "agtr"),),
}  # fmt: skip
_SUBJECT_UNI = "abcfgtxyz"
UNIMARC: _Table = {
    "title": (("200", "aehi"),),
    "authors": (("700", "abg"), ("701", "abg"), ("702", "abg"), ("710", "ab"), ("711", "ab")),
    "publisher": (("210", "c"), ("214", "c")),
    "place": (("210", "a"), ("214", "a")),
    "edition": (("205", "ab"),),
    "extent": (("215", "a"),),
    "isbn": (("010", "a"),),
    "issn": (("011", "a"),),
    "keywords": (
        ("600", _SUBJECT_UNI), ("601", _SUBJECT_UNI), ("602", "a"), ("604", "at"), ("605", "a"),
        ("606", "axyz"), ("607", "axyz"), ("608", "a"), ("610", "a"),
    ),
    "udc": (("675", "a"),),
    "ddc": (("676", "a"),),
    "lcc": (("680", "ab"),),
    "bbk": (("686", "a"),),
    "series": (("225", "aiv"), ("410", "t"), ("461", "t")),
    "notes": (("300", "a"), ("304", "a"), ("320", "a"), ("328", "a")),
    "url": (("856", "u"),),
    "annotation": (("330", "a"),),
    "contents": (("327", "a"),),
}  # fmt: skip
# Bibliographic codes of ISO 639-2, and what ISO 639-1 calls the same.
_CODES = (
    "eng en rus ru ukr uk chi zh zho zh ger de deu de fre fr fra fr spa es ita it por pt pol pl "
    "cze cs ces cs slo sk slk sk slv sl hrv hr srp sr scc sr scr hr bul bg mac mk mkd mk bel be "
    "lit lt lav lv est et fin fi swe sv nor no nob nb nno nn dan da ice is isl is dut nl nld nl "
    "hun hu rum ro ron ro gre el ell el tur tr ara ar heb he per fa fas fa urd ur hin hi ben bn "
    "tam ta tel te jpn ja kor ko vie vi tha th ind id may ms msa ms lat la geo ka kat ka arm hy "
    "hye hy aze az kaz kk uzb uz kir ky tgk tg tuk tk tat tt mon mn yid yi epo eo cat ca glg gl "
    "baq eu eus eu wel cy cym cy gle ga alb sq sqi sq bos bs afr af swa sw"
)
LANGUAGES = dict(zip(_CODES.split()[::2], _CODES.split()[1::2], strict=True))
