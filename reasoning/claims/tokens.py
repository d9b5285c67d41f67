"""Cut a statement into what is compared: numbers, units, dates, names and words with their keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from core.language import chinese
from core.language.scan import TOKEN, fold
from core.language.words import readings
from reasoning.claims.words import CONTRASTS, LONGEST, SETTLED, ClaimWords, Sense, claim_words

NUMBER, UNIT, MONTH, NAME = "number", "unit", "month", "name"
WORD, FUNCTION, OPERATOR = "word", "function", "operator"
_UNITS = (
    "km|kg|mm|cm|nm|m|g|mg|l|ml|gb|mb|tb|kb|gib|mib|ghz|mhz|khz|hz|kw|mw|gw|w|v|ms|s|h|min|bn|k|mph"
)
SCAN = re.compile(
    r"(?P<iso>(?<![\w.-])\d{4}[-/]\d{1,2}[-/]\d{1,2}(?![\w-]))"
    r"|(?P<dmy>(?<![\w.])\d{1,2}\.\d{1,2}\.\d{4}(?!\w))"
    r"|(?P<ymd>(?<!\d)\d{4}\s?年(?!代)(?:\s?\d{1,2}\s?月(?:\s?\d{1,2}\s?[日号])?)?"
    r"|(?<!\d)\d{1,2}\s?月(?:\s?\d{1,2}\s?[日号])?)"
    r"|(?P<decade>(?<!\w)\d{2,4}(?:['’]?s\b|-?[хx](?!\w)|年代))"
    r"|(?P<value>(?<![A-Za-z_\d.])(?:(?<![\d)\]] )(?<![\w)\]])[-−](?=\d))?"
    r"(?:\d{1,3}(?:[,\u00a0\u202f\u2009 ]\d{3})+(?![\d])(?:\.\d+)?|\d+(?:[.,:]\d+)*)"
    r"(?:st|nd|rd|th|-?(?:й|я|е|го|му|м|ом|а|ої|ій|ого|им|те)\b)?"
    r"(?:\s?[百千万亿][百千万亿]?(?![米克瓦]))?"
    rf"(?=(?:{_UNITS})\b|[^A-Za-z_]|$))"
    r"|(?P<symbol>[%‰°$€£¥₽₴<>≤≥=≠±])"
    rf"|(?P<token>{TOKEN.pattern})",
    re.IGNORECASE,
)
# Numerals in Chinese characters: two or more, or one before a measure word.
HANZI = re.compile(
    r"百分之[零〇一二三四五六七八九十百点]+|[零〇一二三四五六七八九]{4}年(?!代)"
    r"|[零〇一二三四五六七八九十百千万亿两]{2,}"
    r"|[零〇一二三四五六七八九十两](?=[个名位种只座条家次台张本件间所年月日号天人倍岁元米吨克度周层场篇项级组批届国省县市"
    r"公英分美欧]|部(?!分))"
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th|-?[а-яії]+)$", re.IGNORECASE)
_GROUPED = re.compile(r"^\d{1,3}(?:[,\u00a0\u202f\u2009 ]\d{3})+(?:\.\d+)?$")
_PLAIN = re.compile(r"(-?)0*([0-9]+)(\.[0-9]+)?")
_ROMAN = re.compile(r"^(?=[IVXLC]{2,}$)(?:C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})$")
_IDENTIFIER = re.compile(r"[_./\d]")
_CONTRACTED = re.compile(r"^(.+)n['’]t$", re.IGNORECASE)
MONEY = frozenset("$€£¥₽₴")
_NOT_A_NUMBER = frozenset({"万一", "千万", "一一", "十分", "百万一"})
_DIGITS = {mark: place for place, mark in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_PLACES = {"十": 10, "百": 100, "千": 1000}
CLOSED = frozenset(",;:()[]—–，；：（）、\n")


class ClaimToken(NamedTuple):
    """Hold one unit of a statement: its `keys` meet those of another that says the same."""

    text: str
    start: int
    end: int
    role: str
    keys: frozenset[str]
    senses: tuple[Sense, ...] = ()
    before: str = ""  # the marks between it and the token before
    word: str = ""  # as it is looked up: in small letters
    place: int = 0  # of its sentence

    @property
    def is_content(self) -> bool:
        """Tell whether it names, counts or describes."""
        return self.role not in (FUNCTION, OPERATOR)

    def has(self, groups: frozenset[str]) -> Sense | None:
        """Return its meaning in one of some groups."""
        return next((one for one in self.senses if one.group in groups), None)


class _Raw(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def _scanned(text: str, words: ClaimWords) -> Iterator[_Raw]:
    for match in SCAN.finditer(text):
        kind = next(
            name
            for name in ("iso", "dmy", "ymd", "decade", "value", "symbol", "token")
            if match.group(name) is not None
        )
        raw, start, end = match.group(), match.start(), match.end()
        if kind != "token":
            yield _Raw(kind, raw, start, end)
        elif match.group("han"):
            yield from _han(raw, start)
        else:
            yield from _words(raw, start)


def _han(raw: str, start: int) -> Iterator[_Raw]:
    """Cut a run of Chinese characters into numerals and words."""
    last = 0
    numerals = [one for one in HANZI.finditer(raw) if one.group() not in _NOT_A_NUMBER]
    for match in (*numerals, None):
        part = raw[last : match.start() if match else len(raw)]
        for word, first, end in chinese.segment(part, "default"):
            yield _Raw("token", word, start + last + first, start + last + end)
        if match:
            yield _Raw("hanzi", match.group(), start + match.start(), start + match.end())
            last = match.end()


def _words(raw: str, start: int) -> Iterator[_Raw]:
    """Take "isn't" and "cannot" apart, and what a hyphen joins."""
    contracted = _CONTRACTED.match(raw)
    if raw.casefold() == "cannot" or contracted:
        cut = 3 if contracted is None else contracted.end(1)
        head = {"ca": "can", "wo": "will", "sha": "shall"}.get(raw[:cut].casefold(), raw[:cut])
        yield _Raw("token", head, start, start + cut)
        yield _Raw("token", "not", start + cut, start + len(raw))
        return
    possessive = re.sub(r"['’]s$", "", raw)
    yield _Raw("token", possessive, start, start + len(possessive))


@lru_cache(maxsize=4096)
def claim_tokens(text: str, language: str) -> tuple[ClaimToken, ...]:
    """Cut a statement into tokens, dates in the order day, month, year."""
    words = claim_words(language)
    raws = list(_scanned(text, words))
    found: list[ClaimToken] = []
    place = 0
    last = 0
    while place < len(raws):
        size, senses = _phrase(raws, place, words)
        one = raws[place]
        end = raws[place + size - 1].end
        before = text[last : one.start]
        made = _tokens(
            _Raw(one.kind, text[one.start : end] if size > 1 else one.text, one.start, end),
            words,
            senses,
            place == 0,
        )
        for token in made:
            found.append(token._replace(before=before))
            before = ""
        last = end
        place += size
    ordered = _ordered_dates(_with_symbols(_with_numbers(found, words, text)))
    return tuple(_contrasts_last([one._replace(word=fold(one.text)) for one in ordered], words))


def _phrase(raws: list[_Raw], place: int, words: ClaimWords) -> tuple[int, tuple[Sense, ...]]:
    """Return how many tokens the longest entry of the tables at a place has, and its senses."""
    if raws[place].kind not in ("token", "symbol"):
        return 1, ()
    spaced = words.known.spaced
    join = " " if spaced else ""
    written: list[str] = []
    keys: list[str] = []
    best: tuple[int, tuple[Sense, ...]] = (1, ())
    for size, one in enumerate(raws[place : place + LONGEST], start=1):
        if one.kind not in ("token", "symbol"):
            break
        folded = fold(one.text)
        written.append(folded)
        keys.append(words.key(one.text) if spaced else folded)
        senses = words.senses(join.join(written), join.join(keys))
        if senses:
            best = (size, senses)
    return best


def _tokens(
    raw: _Raw, words: ClaimWords, senses: tuple[Sense, ...], first: bool
) -> Iterator[ClaimToken]:
    """Make the tokens of what was scanned."""

    def made(role: str, *keys: str) -> ClaimToken:
        return ClaimToken(raw.text, raw.start, raw.end, role, frozenset(keys), senses)

    if raw.kind in ("iso", "dmy", "ymd"):
        parts = re.findall(r"\d+", raw.text)
        if raw.kind == "dmy":
            day, month, year = parts
        elif raw.kind == "iso":
            year, month, day = parts
        else:
            year = parts.pop(0) if "年" in raw.text else ""
            month, day = [*parts, "", ""][:2]
        if day:
            yield made(NUMBER, f"#{int(day)}")
        if month:
            yield made(MONTH, f"months {int(month) - 1}")
        if year:
            yield made(NUMBER, f"#{int(year)}")
    elif raw.kind == "decade":
        digits = re.match(r"\d+", raw.text)
        yield made(NUMBER, f"decade {digits.group()}" if digits else raw.text)
    elif raw.kind == "value":
        yield made(NUMBER, f"#{_value(raw.text)}")
    elif raw.kind == "hanzi":
        bare = raw.text.removeprefix("百分之").removesuffix("年")
        yield made(NUMBER, f"#{_shown(_hanzi(bare))}")
        if raw.text.startswith("百分之"):
            units = (f"{one.group} {one.side}" for one in words.senses("%", "%"))
            yield ClaimToken("%", raw.end, raw.end, UNIT, frozenset(units))
    elif raw.kind == "symbol":
        shared = [f"{one.group} {one.side}" for one in senses if one.group == "units"]
        yield made(UNIT, *(shared or [raw.text]))
    else:
        yield _word(raw, words, senses, first)


def _word(raw: _Raw, words: ClaimWords, senses: tuple[Sense, ...], first: bool) -> ClaimToken:
    folded = fold(raw.text)
    exact = " " in raw.text or _IDENTIFIER.search(raw.text)
    key = folded if exact else words.key(raw.text)
    # In a Latin script "May" and "March" are months, "may" and "march" are none.
    capital = raw.text[:1].isupper() and not (first and len({one.group for one in senses}) > 1)
    month = any(one.group == "months" for one in senses)
    if month and words.known.script == "latin":
        senses = tuple(one for one in senses if (one.group == "months") == capital)
        month = capital
    elif month and raw.text[:1].isupper() and not (first and folded == key):
        senses, month = (), False  # "Марта" is a name, "марта" a month
    keys = {key, *(f"{one.group} {one.side}" for one in senses)}
    groups = {one.group for one in senses}
    role = WORD
    if month:
        role = MONTH
    elif groups & SETTLED:
        role = OPERATOR
    elif "units" in groups and not (raw.text[0].isupper() and raw.text[-1].isdigit()):
        role = UNIT
    elif _ROMAN.match(raw.text):
        return ClaimToken(raw.text, raw.start, raw.end, NUMBER, frozenset({f"#{_roman(raw.text)}"}))
    elif (raw.text[:1].isupper() and not (first and folded in words.function)) or (
        any(c.isupper() or c.isdigit() or c in "_./" for c in raw.text[1:])
    ):
        letter = len(raw.text) == 1 and not first and folded not in words.pronouns
        role = FUNCTION if folded in words.function and not senses and not letter else NAME
    elif folded in words.function or key in words.function or groups == {"neutral"}:
        role = FUNCTION
    return ClaimToken(raw.text, raw.start, raw.end, role, frozenset(keys), senses)


def _value(text: str) -> str:
    bare = _ORDINAL.sub("", text)
    scaled = re.search(r"\s?([百千万亿]+)$", bare)
    if scaled:
        number = _value(bare[: scaled.start()])
        return _shown(float(number) * _hanzi(scaled.group(1))) if _is_float(number) else number
    if _GROUPED.match(bare.lstrip("-−")):
        bare = re.sub(r"[,\u00a0\u202f\u2009 ]", "", bare)
    if re.fullmatch(r"[-−]?\d+,\d+", bare):
        bare = bare.replace(",", ".")
    bare = bare.replace("−", "-")
    if plain := _PLAIN.fullmatch(bare):  # to the last digit, which a float would round
        sign, whole, part = plain.groups(default="")
        return f"{sign}{whole}{part.rstrip('0').rstrip('.')}"
    try:
        return _shown(float(bare))
    except ValueError:
        return bare


def _is_float(text: str) -> bool:
    return re.fullmatch(r"-?\d+(?:\.\d+)?", text) is not None


def _shown(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.10g}"


def _roman(text: str) -> int:
    values = [{"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}[mark] for mark in text]
    return sum(
        -one if any(one < later for later in values[place + 1 : place + 2]) else one
        for place, one in enumerate(values)
    )


def _hanzi(text: str) -> float:
    """Return the value of a numeral in Chinese characters."""
    if "点" in text:
        whole, _, part = text.partition("点")
        digits = "".join(str(_DIGITS.get(mark, 0)) for mark in part)
        return _hanzi(whole) + float(f"0.{digits or 0}")
    if not text:
        return 0.0
    if not any(mark in text for mark in "十百千万亿"):
        return float("".join(str(_DIGITS[mark]) for mark in text))
    for mark, scale in (("亿", 10**8), ("万", 10**4)):
        if mark in text:
            head, _, tail = text.rpartition(mark)
            return (_hanzi(head) if head else 1) * scale + (_hanzi(tail) if tail else 0)
    total, digit = 0, 0
    for mark in text:
        if mark in _PLACES:
            total += (digit or 1) * _PLACES[mark]
            digit = 0
        else:
            digit = _DIGITS[mark]
    return float(total + digit)


def _with_symbols(found: list[ClaimToken]) -> list[ClaimToken]:
    """Put a sign of money behind its amount, where its name would stand."""
    made = list(found)
    for place, one in enumerate(made[:-1]):
        if one.text in MONEY and made[place + 1].role == NUMBER:
            made[place], made[place + 1] = made[place + 1], one
    return made


def _with_numbers(found: list[ClaimToken], words: ClaimWords, text: str) -> list[ClaimToken]:
    """Read numbers in words, and those with a scale behind them, as one number each."""
    made: list[ClaimToken] = []
    place = 0
    while place < len(found):
        value, after = _spoken(found, place, words)
        one = found[place]
        led = place > 1 and fold(found[place - 2].text) in words.proform_leads
        stands = led and fold(one.text) in words.proforms  # "the old one"
        if after == place or (stands and after == place + 1):
            made.append(one._replace(role=FUNCTION) if stands else one)
            place += 1
            continue
        last = found[after - 1]
        made.append(
            ClaimToken(
                text[one.start : last.end],
                one.start,
                last.end,
                NUMBER,
                frozenset({f"#{_shown(value)}"}),
                before=one.before,
            )
        )
        place = after
    return made


def _spoken(found: list[ClaimToken], place: int, words: ClaimWords) -> tuple[float, int]:
    """Return the number that begins at a place, and the place behind it; the same for none."""
    start, total, current, least = place, 0.0, 0.0, float("inf")
    if found[place].role == NUMBER:
        key = min(found[place].keys)
        try:
            current = float(key.removeprefix("#"))
        except ValueError:
            return 0.0, start
        place, least = place + 1, 0.0
        if place == len(found) or _lookup(found[place], words.scales) is None:
            return 0.0, start
    while place < len(found):
        one = found[place]
        value, scale = _lookup(one, words.numbers), _lookup(one, words.scales)
        joined = place > start and fold(one.text) in words.joins and place + 1 < len(found)
        if (
            joined
            and least >= 100
            and least != float("inf")
            and _lookup(found[place + 1], words.numbers) is not None
        ):
            place += 1
            continue
        if scale is not None and (place > start or scale >= 1000):
            current = (current or 1.0) * scale
            if scale >= 1000:
                total, current = total + current, 0.0
            least = scale
        elif value is not None and value < least and (least == float("inf") or least >= 10):
            current += value
            least = value if value >= 10 else 1
        else:
            break
        place += 1
    if place == start:
        return 0.0, start
    return total + current, place


def _lookup(one: ClaimToken, table: dict[str, float]) -> float | None:
    if one.role in (NUMBER, NAME) and one.before:
        return None if one.role == NUMBER else table.get(fold(one.text))
    found = table.get(fold(one.text))
    if found is None:
        found = next((table[key] for key in one.keys if key in table), None)
    return found


def _ordered_dates(found: list[ClaimToken]) -> list[ClaimToken]:
    """Put the day before the month."""
    made = list(found)
    for place, one in enumerate(made):
        if one.role != MONTH or place + 1 >= len(made) or not _is_day(made[place + 1]):
            continue
        if place == 0 or not _is_day(made[place - 1]):
            made[place], made[place + 1] = (
                made[place + 1]._replace(before=one.before),
                one._replace(before=""),
            )
    return made


def _is_day(one: ClaimToken) -> bool:
    key = min(one.keys)
    return one.role == NUMBER and key[1:].isdigit() and len(key) < 4 and 1 <= int(key[1:]) <= 31


def _contrasts_last(found: list[ClaimToken], words: ClaimWords) -> list[ClaimToken]:
    """Put "compared with the old one the new is small" in the order of "… small than the old"."""
    than = words.comparators[0] if words.comparators else ""
    senses = words.senses(than, than)
    for place, one in enumerate(found):
        # What closes the frame stands before a mark: "A与B不同" alone compares nothing.
        end = _contrast_ends(found, place + 1, words)
        framed = end < len(found) and (one.word, found[end - 1].word) in words.frames
        before = found[place - 1].word if place else ""
        # "It is unlike the others" compares nothing.
        opens = not place or CLOSED & set(one.before) or before in {*words.joins, *words.breaks}
        contrasts = any(sense.group == CONTRASTS for sense in one.senses)
        if not framed and not (contrasts and (opens or " " in one.text)):
            continue
        keys = frozenset({than, CONTRASTS, *(f"{sense.group} {sense.side}" for sense in senses)})
        lead = one._replace(role=FUNCTION, keys=keys, senses=senses, word=than)
        aside = [lead, *found[place + 1 : end - framed]]
        rest = found[end:]
        if place and before not in {*words.joins, *words.breaks}:
            return [*found[:place], *aside, *rest]
        stop = next(
            (at for at, each in enumerate(rest)
             if at and (each.word in words.breaks or {";", "；"} & set(each.before))), len(rest)
        )  # fmt: skip
        if not stop:
            return [*found[:place], *aside]
        rest[0] = rest[0]._replace(before=one.before)
        aside[0] = lead._replace(before=" ")
        return [*found[:place], *rest[:stop], *aside, *rest[stop:]]
    return found


def _contrast_ends(found: Sequence[ClaimToken], place: int, words: ClaimWords) -> int:
    """Return where a thing that is compared with ends: at a mark, or at the next nominative."""
    dictionary, named = words.known.dictionary, False
    for at in range(place, len(found)):
        if CLOSED & set(found[at].before):
            return at
        forms = readings(found[at].word, dictionary)[:4] if dictionary else ()
        cases = {form.case for form in forms}
        begins = forms and (forms[0].pos == "ADJF" or "gent" not in cases)
        if named and begins and "nomn" in cases:
            return at
        named = named or found[at].role == NAME or any(form.pos == "NOUN" for form in forms[:1])
    return len(found)
