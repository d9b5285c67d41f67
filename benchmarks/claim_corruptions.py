"""Write claims that their evidence supports, and claims made false by one change, with its kind.

`python -m benchmarks.claim_corruptions OUT` writes corrupted and untouched claims of four
languages (`LANGUAGE.jsonl`), drawn from public sets with a seed. With `--measure` it judges them
by the function of `carrel eval claims` and prints what was caught and what was refused though
untouched, by language, kind and set. The words that make a sentence false (corruption_words.yaml)
are this benchmark's own: they are not those by which the product judges.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import random
import re
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from benchmarks.answer_tables import share
from benchmarks.answer_tables import table as table_of
from benchmarks.answers import BESIDE
from core.language.sentences import sentence_spans
from core.settings import load_settings
from evals.claims import judge_claims, read_claims

PER_LANGUAGE = 1500  # corrupted ones, and as many untouched ones
SEED = 19
WHOLE = 1400  # characters of a passage; of a longer document the part around the sentence counts
SETS = {
    "en": (
        *("squad2", "xquad_en", "fastapi_en", "sib200_en", "dragonball_en", "scifact", "mtrag_un"),
        *("graphrag_bench_medical", "leval_longdoc", "books_described"),
    ),
    "ru": ("xquad_ru", "fastapi_ru", "sib200_ru"),
    "uk": ("fastapi_uk", "sib200_uk", "zno_uk"),
    "zh": (
        *("xquad_zh", "cmrc2018_zh", "fastapi_zh", "sib200_zh", "dragonball_zh", "pytorch_docs_zh"),
        "rgb_zh",
    ),
}
RECORDS = {"oss_projects": "corpus.jsonl.gz", "goodbooks10k": "books.jsonl"}
FIELDS = {"stars", "forks", "language", "license", "last_push", "authors", "year", "rating"}
TABLES = (
    *("comparison direction", "before or after", "change direction", "minimum or maximum"),
    *("all or some", "modality", "hedge", "negation added", "negation removed", "cause"),
    *("opposite word", "unit", "currency"),
)
ELSEWHERE = "sentence of another passage"
CODE = re.compile(r"[`{}<>|=_*#\\\[\]]|https?:|\w\(\)|^\W|\.\.\.|…|^\d+\.?\s|[?？]| [,.] ")
YEAR = re.compile(r"(?<!\d)(?:1[0-9]|20)\d\d(?=\s?年|(?![\d%.]\d|\d| ?%)(?!\w))")
DATE = re.compile(rf"{YEAR.pattern}|\d{{1,2}}月\d{{1,2}}日|(?<![\d年])\d{{1,2}}月(?!\d)")
NUMBER = re.compile(  # neither a year nor a day
    rf"(?<![A-Za-z\d.,:/-])(?!{YEAR.pattern})\d+(?:[.,]\d+)*(?![A-Za-z\d:/-]|[.,]\d|\s?[年月日])"
)
CAPITAL = "A-ZА-ЯЁІЇЄҐ"
NAME = re.compile(
    rf"(?<![.!?] )(?<!^)(?<![\w'’-])[{CAPITAL}][\w'’-]+(?: (?:of |the )?[{CAPITAL}][\w'’-]+)*"
)
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
COPULAS = ("быть", "являться", "стать", "становиться", "бути", "являтися", "стати", "становити")


@dataclass(frozen=True)
class Passage:
    """Hold one text of a set, and the sentences in it that can stand as a claim."""

    data: str
    language: str
    text: str
    sentences: tuple[str, ...]


Change = Callable[[str, Passage, random.Random], str]


@functools.cache
def table(language: str, kind: str) -> str:
    """Return the words of one language and kind."""
    path = Path(__file__).with_name("corruption_words.yaml")
    return str(yaml.safe_load(path.read_text(encoding="utf-8"))[language][kind])


# --- the texts ------------------------------------------------------------------------------------


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines, packed or not."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.decode("utf-8-sig").split("\n") if line.strip()]


def texts_of(data: Path, name: str) -> list[str]:
    """Return the passages of a set as plain text, without code and markup."""
    base, _, code = name.rpartition("_")
    if base in ("fastapi", "sib200"):
        parallel = {"fastapi": "fastapi_docs_parallel", "sib200": "sib200_parallel"}[base]
        rows = lines_of(data / parallel / f"corpus_{code}.jsonl")
        return neighbours(rows) if base == "sib200" else [plain(row["text"]) for row in rows]
    if name == "zno_uk":
        return exam_statements(lines_of(data / name / "queries.jsonl"))
    if name == "rgb_zh":
        return [one for row in lines_of(data / "rgb/zh_fact.jsonl") for one in row["positive"]]
    if name == "pytorch_docs_zh":
        with tarfile.open(data / name / "files.tar.gz") as packed:
            files = [packed.extractfile(one) for one in packed if one.name.endswith(".md")]
            return [plain(one.read().decode("utf-8")) for one in files if one]
    folder = data / (base if base == "dragonball" else name)
    file = next(one for one in sorted(folder.glob("*.jsonl*")) if "queries" not in one.name)
    texts = [row["text"].lstrip("\ufeff") for row in lines_of(file)]
    chinese = [bool(re.search(r"[一-鿿]{4}", text)) for text in texts]
    other = (code == "en") if base == "dragonball" else None
    return [text for text, here in zip(texts, chinese, strict=True) if here != other]


def plain(markdown: str) -> str:
    """Drop code, links and marks, as a reader sees the page."""
    text = re.sub(r"```.*?```", "", markdown, flags=re.S)
    text = re.sub(r"^#+ .*$|^///.*$|^\{\*.*$|<[^>\n]+>", "", text, flags=re.M)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)(?:\{[^}]*\})?", r"\1", text)
    return re.sub(r"\n{2,}", "\n\n", re.sub(r"\*\*|(?<!\w)[*`]|[*`](?!\w)", "", text)).strip()


def neighbours(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Join sentences that follow each other in the origin: as near a passage as the set comes."""
    ordered = sorted(rows, key=lambda row: int(row["metadata"]["sentence"]))
    texts = [str(row["text"]).strip('"').replace('""', '"') for row in ordered]
    return [" ".join(texts[at : at + 6]) for at in range(0, len(texts), 6)]


def exam_statements(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return exam questions that the right answer ends as a statement, several to a passage."""
    told = []
    for row in rows:
        start, right = " ".join(row["text"].split()), row["metadata"]["answer"][0]
        end = str(row["metadata"]["options"].get(right, "")).strip(" .")
        if re.search(r"[а-яіїєґ]$", start) and re.match(r"[а-яіїєґ]", end) and "*" not in start:
            told.append(f"{start} {end}.")
    return [" ".join(told[at : at + 6]) for at in range(0, len(told), 6)]


def passages_of(data: Path, name: str, language: str) -> list[Passage]:
    """Return the passages of a set that hold sentences which can stand as claims."""
    found = []
    for part in (part for text in texts_of(data, name) for part in parts(text)):
        sentences = (part[a:b].strip() for a, b in sentence_spans(part))
        if kept := tuple(one for one in sentences if is_statement(one, language)):
            found.append(Passage(name, language, part, kept))
    return found


def parts(text: str) -> Iterator[str]:
    """Yield a text in parts of about the length of a chunk, cut between sentences."""
    start = 0
    for _, end in [*sentence_spans(text), (0, len(text))]:
        if text[start:end].strip() and (end - start >= WHOLE or end == len(text)):
            yield text[start:end].strip()
            start = end


def is_statement(text: str, language: str) -> bool:
    """Tell whether a sentence is whole prose: neither a question nor code, a list or a heading."""
    low, high, end = (14, 110, "。") if language == "zh" else (45, 260, ".")
    whole = low <= len(text) <= high and text.endswith(end) and "\n" not in text
    if not whole or CODE.search(text) or text.count('"') % 2 or text.count("(") != text.count(")"):
        return False
    if language == "zh":
        return len(re.findall("[一-鿿]", text)) > len(text) / 2
    return text[0].isupper() and len(WORD.findall(text)) >= 7


# --- one change that makes a sentence false -------------------------------------------------------


@functools.cache
def pairs(language: str, kind: str) -> list[tuple[re.Pattern[str], str]]:
    """Return (pattern, what stands for it) of a table, in each direction that it has."""
    found = []
    for entry in re.split(r";\s*", table(language, kind).strip()):
        left, sign, right = re.split(r" ([/>])(?: |$)", entry)
        for one, other in [(left, right.strip()), (right, left)][: 1 if sign == ">" else 2]:
            signs = r"\$€£¥%°"
            start = "" if language == "zh" or one[0] in signs else r"(?<![\w-])"
            ends = language == "zh" or one[-1] in f"{signs},)"
            body = one.replace("~", r"(\w*)") + ("" if ends else r"(?![\w-])")
            plain_words = re.sub(r"\(\?[^)]*\)|\\", "", other)
            found.append((re.compile(start + body, re.I if start else 0), plain_words))
    return found


def from_table(kind: str, sentence: str, passage: Passage, draw: random.Random) -> str:
    """Put the other word of a pair in place of one; "" where the sentence has none."""
    language, options = passage.language, []
    edges = {0, *(end for _, _, end in tagged(sentence))} if language == "zh" else set()
    for pattern, other in pairs(language, kind):
        for hit in pattern.finditer(sentence):
            start, end = hit.span()
            near = sentence[max(0, start - 9) : end + 9]
            if (
                (edges and not {start, end} <= edges)
                or (kind == "unit" and not is_counted(sentence[:start], language))
                or (kind == "currency" and not re.search(r"\d", near))
            ):
                continue
            new = other.replace("~", hit.group(1) if hit.groups() else "")
            new += " " if new and hit.group().endswith(" ") else ""
            new = new[:1].upper() + new[1:] if hit.group()[0].isupper() else new
            options.append(tidy(put(sentence, hit.span(), new), language))
    return draw.choice(options) if options else ""


def is_counted(before: str, language: str) -> bool:
    """Tell whether what stands before a unit ends in a number that is no year."""
    words = "|".join(table(language, "number words").split())
    edge = "" if language == "zh" else r"\b"
    number = re.search(rf"(?:\d|{edge}(?:{words}))[\s-]?$", before, re.I)
    return bool(number) and not re.search(r"(?<!\d)(?:1[0-9]|20)\d\d\s?$", before)


def tidy(text: str, language: str) -> str:
    """Mend spaces and the capital after words were taken out."""
    text = re.sub(r" (?=[,.;])", "", re.sub(r"  +", " ", text).strip())
    return text if language == "zh" else text[:1].upper() + text[1:]


def put(sentence: str, span: tuple[int, int], new: str) -> str:
    """Return the sentence with other characters at a span."""
    return sentence[: span[0]] + new + sentence[span[1] :]


@functools.lru_cache(8192)
def tagged(sentence: str) -> tuple[tuple[str, str, int], ...]:
    """Return (word, part of speech, end) of the words of a Chinese sentence."""
    import jieba.posseg as segmenter  # type: ignore[import-untyped]

    found, at = [], 0
    for word, flag in segmenter.cut(sentence):
        at += len(word)
        found.append((word, flag, at))
    return tuple(found)


@functools.lru_cache(100_000)
def parsed(word: str, language: str) -> Any:
    """Return what the dictionary of Russian or Ukrainian says of a word."""
    return _dictionary(language).parse(word)[0]


@functools.cache
def _dictionary(language: str) -> Any:
    import pymorphy3  # type: ignore[import-untyped]

    return pymorphy3.MorphAnalyzer(lang=language)


def number(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Change one number that is no year."""
    hits = list(NUMBER.finditer(sentence))
    words = table(passage.language, "number words").split()[1:]
    if passage.language != "zh":
        hits += re.finditer(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", sentence)
    if not hits:
        return ""
    hit = draw.choice(hits)
    if (old := hit.group()) in words:
        return put(sentence, hit.span(), draw.choice([word for word in words if word != old]))
    at = draw.choice([place for place, sign in enumerate(old) if sign.isdigit()])
    new = draw.choice([sign for sign in "123456789" if sign != old[at]])
    return put(sentence, hit.span(), put(old, (at, at + 1), new))


def date(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Change a year, a month or a day of the week."""
    away = draw.choice([-30, -11, -4, -2, -1, 1, 2, 3, 7, 20])
    options = [
        put(sentence, hit.span(), str(int(hit.group()) + away)) for hit in YEAR.finditer(sentence)
    ]
    for kind in ("months", "days"):
        names = table(passage.language, kind).split()
        for hit in re.finditer(rf"(?<!\w)(?<!\d)(?:{'|'.join(names)})(?![а-яa-z])", sentence):
            if hit.group() != "May" or re.search(r"\d", sentence):
                new = draw.choice([name for name in names if name != hit.group()])
                options.append(put(sentence, hit.span(), new))
    return draw.choice(options) if options else ""


def swapped(pattern: re.Pattern[str]) -> Change:
    """Return the change that swaps two hits; side by side, as in 5 to 10, they are left alone."""

    def swap(sentence: str, passage: Passage, draw: random.Random) -> str:
        apart = [
            (one, two)
            for one, two in combinations(pattern.finditer(sentence), 2)
            if one.group() != two.group()
            and len(sentence[one.end() : two.start()].strip(" ,-–~至到和")) >= 5
        ]
        one, two = draw.choice(apart) if apart else (None, None)
        if one is None or two is None:
            return ""
        return put(put(sentence, two.span(), one.group()), one.span(), two.group())

    return swap


Places = list[tuple[int, int, str]]  # start, end and form: only like can stand for like


def names_of(text: str, language: str) -> Places:
    """Return the names in a text."""
    if language == "zh":
        return tagged_places(text, ("nr", "ns", "nt", "nrt", "nz"))
    barred = {*table(language, "pronouns").split(), *table(language, "months").split()}
    hits = [hit for hit in NAME.finditer(text) if hit.group().split()[0] not in barred]
    return [(*hit.span(), form(hit.group().split()[-1], language)) for hit in hits]


def nouns_of(text: str, language: str) -> Places:
    """Return the plain nouns in a text."""
    if language == "zh":
        return [(a, b, "") for a, b, _ in tagged_places(text, ("n",)) if b - a == 2]
    if language == "en":
        hits = re.finditer(rf"(?<=\bthe )([a-z]{{4,}}){table('en', 'followed by')}", text)
        return [(*hit.span(), "s" * hit.group().endswith("s")) for hit in hits]
    words = [hit for hit in WORD.finditer(text) if hit.group().islower() and len(hit.group()) > 4]
    found = [(*hit.span(), form(hit.group(), language)) for hit in words]
    return [one for one in found if " " in one[2]]


def tagged_places(text: str, flags: Sequence[str]) -> Places:
    """Return the words of a Chinese text that have one of some parts of speech."""
    found = [one for one in tagged(text) if one[1] in flags and len(one[0]) > 1]
    return [(end - len(word), end, flag) for word, flag, end in found]


def form(word: str, language: str) -> str:
    """Return case, gender and number, as far as a language has them and the word is known."""
    if language == "en":
        return ""
    tag = parsed(word, language).tag
    if "NOUN" not in tag:
        return f"-{word[-1:]}"
    return f"{tag.case} {tag.gender} {tag.number} {tag.animacy if word.islower() else ''}"


def from_passage(find: Callable[[str, str], Places]) -> Change:
    """Return the change that puts a like word of the same passage in place of one."""

    def change(sentence: str, passage: Passage, draw: random.Random) -> str:
        text = passage.text
        others = [(text[a:b], sort) for a, b, sort in find(text, passage.language)]
        return with_other(sentence, find(sentence, passage.language), others, draw)

    return change


def name_from_elsewhere(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Put a name that the passage does not know in place of one."""
    language, found = passage.language, names_of(sentence, passage.language)
    names = [name.strip() for name in table(language, "names").split(";")]
    cased = language in ("ru", "uk")
    others = [
        (name, sort)
        for name in names
        for sort in sorted({sort for _, _, sort in found})
        if name not in passage.text and (not cased or sort == form(name.split()[-1], language))
    ]
    return with_other(sentence, found, others, draw)


def with_other(
    sentence: str, mine: Places, others: Sequence[tuple[str, str]], draw: random.Random
) -> str:
    """Put another of the same form in place of one; not one whose stem the sentence has."""
    options = [
        ((a, b), other)
        for a, b, sort in mine
        for other, same in others
        if sort == same and other[:4].lower() not in sentence.lower() and sentence[a:b] not in other
    ]
    return put(sentence, *draw.choice(options)) if options else ""


def roles(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Swap who does and to whom it is done."""
    if passage.language == "zh":
        return roles_in_chinese(sentence)
    if passage.language != "en":
        return roles_by_case(sentence, passage.language)
    name = rf"(?:the )?[{CAPITAL}][\w'-]+(?: [{CAPITAL}][\w'-]+)*"
    who = rf"(?:{name}|(?:[Tt]he|[Aa]n?|[Tt]heir|[Hh]is) (?:[a-z-]+ ){{0,2}}[a-z-]+)"
    verbs = "|".join(table("en", "transitive").split())
    for ends, verb in (
        (who, rf"(?:was|were|is|are) (?:[a-z]+ly )?(?:\w{{3,}}ed|{verbs}) by"),
        (who, rf"(?:{verbs})"),
        (name, r"[a-z]{3,}ed"),
    ):
        edge = r"(?=[,.;]| (?:in|at|on|for|with|and|as|from|to|after|during|who|which|that)\b)"
        start = r"(?:(?<=^)|(?<=, )|(?<=that )|(?<=and ))"
        hit = re.search(rf"{start}({ends}) ({verb}) ({ends}){edge}", sentence)
        if hit and not {hit[1], hit[3]} & set(table("en", "pronouns").split()):
            first, second = hit[3], hit[1]
            if not hit.start():
                second = re.sub(r"^(?:The|An?|Their|His)\b", lambda one: one[0].lower(), second)
            return tidy(put(sentence, hit.span(), f"{first} {hit[2]} {second}"), "en")
    return ""


def roles_in_chinese(sentence: str) -> str:
    """Swap the two nouns or names around a verb, 被 or 比 where nothing else belongs to them."""
    words = [("", "x", 0), *tagged(sentence)]
    for at in range(2, len(words) - 2):
        left, verb, right = words[at - 1 : at + 2]
        free = words[at - 2][1] in "xcp" and not re.match("[nvjs]", words[at + 2][1])
        alike = left[1][:1] == right[1][:1] == "n" and left[0] != right[0]
        if free and alike and verb[0] in table("zh", "transitive").split():
            span = (left[2] - len(left[0]), right[2])
            return put(sentence, span, right[0] + verb[0] + left[0])
    return ""


def roles_by_case(sentence: str, language: str) -> str:
    """Swap the subject with an object of its number and gender, each in the other's case."""
    words = [(hit, parsed(hit.group(), language)) for hit in WORD.finditer(sentence)]
    verb = next((at for at, (_, one) in enumerate(words) if "VERB" in one.tag), len(words))
    subjects = [pair for pair in words[: min(verb, 6)] if {"NOUN", "nomn"} in pair[1].tag]
    for hit, other in words[verb + 1 : verb + 5] if subjects else ():
        between = sentence[words[verb][0].end() : hit.end()]
        if words[verb][1].normal_form in COPULAS or "PREP" in other.tag or "," in between:
            break
        first_hit, one = subjects[-1]
        like = (one.tag.gender, one.tag.number) == (other.tag.gender, other.tag.number)
        if "NOUN" not in other.tag or other.tag.case not in ("accs", "ablt") or not like:
            continue
        first, second = other.inflect({"nomn"}), one.inflect({other.tag.case})
        if first and second and one.normal_form != other.normal_form:
            # A name keeps its capital, the first word of a sentence does not.
            named = first_hit.start() and first_hit.group()[0].isupper()
            made = put(sentence, hit.span(), second.word.title() if named else second.word)
            new = first.word.title() if hit.group()[0].isupper() else first.word
            return tidy(put(made, first_hit.span(), new), language)
    return ""


def condition(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Drop the condition under which the sentence holds."""
    made = re.sub(table(passage.language, "conditions"), "", sentence, count=1)
    long = made != sentence and len(made) >= len(sentence) / 4
    return tidy(made, passage.language) if long else ""


def addition(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Add what nobody said."""
    added = table(passage.language, "additions").replace("| ,", "|,").split("|")
    return sentence[:-1] + draw.choice(added).rstrip() + sentence[-1]


def other_predicate(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Say of one subject what the passage says of another."""
    pattern = re.compile(table(passage.language, "subjects").strip())
    barred = tuple(table(passage.language, "pronouns").split())
    zh = passage.language == "zh"
    hits = [pattern.match(other) for other in (sentence, *passage.sentences)]
    told = [
        hit
        for hit in hits
        if hit and not (hit[1].startswith(barred) if zh else hit[1].split()[0] in barred)
    ]
    if not hits[0] or hits[0] not in told:
        return ""
    mine = hits[0]
    ends = [hit[3] for hit in told if hit[2] == mine[2] and hit[1].lower() != mine[1].lower()]
    return ("" if zh else " ").join((mine[1], mine[2], draw.choice(ends))) if ends else ""


def verbatim(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Return the sentence as it stands."""
    return sentence


CHANGES: dict[str, Change] = {
    "number": number,
    "date": date,
    "two numbers swapped": swapped(NUMBER),
    "two dates swapped": swapped(DATE),
    "name of the passage": from_passage(names_of),
    "name from elsewhere": name_from_elsewhere,
    "subject and object swapped": roles,
    "noun of the passage": from_passage(nouns_of),
    "condition dropped": condition,
    "invented addition": addition,
    "predicate of another subject": other_predicate,
    ELSEWHERE: verbatim,  # and the evidence is another passage
    **{kind: functools.partial(from_table, kind) for kind in TABLES},
}
SOUGHT = ("subject and object swapped", "two dates swapped", "currency")  # few sentences have them


# --- true rows ------------------------------------------------------------------------------------


def trimmed(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Drop a parenthesis, an opening word or an aside that nothing else hangs on."""
    asides = rf"\s?[(（](?![^()（）]*(?:{table(passage.language, 'keeping')}))[^()（）]{{3,}}[)）]"
    made = re.sub(asides, "", sentence)
    for kind in ("leading", "trailing"):
        made = re.sub(table(passage.language, kind), "", made)
    return tidy(made, passage.language) if made != sentence else ""


def fused(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Join a sentence with its neighbour."""
    following = passage.sentences[passage.sentences.index(sentence) + 1 :]
    if not following:
        return ""
    if passage.language == "zh":
        return f"{sentence[:-1]}；{following[0]}"
    return (
        f"{sentence[:-1]}; {following[0]}" if draw.random() < 0.5 else f"{sentence} {following[0]}"
    )


def in_digits(sentence: str, passage: Passage, draw: random.Random) -> str:
    """Write a number word as digits."""
    words = table(passage.language, "number words").split()
    edges = (r"(?<![一-十百千万第几])", "(?=[个名座部家位次年层种])")
    before, after = edges if passage.language == "zh" else (r"(?<![\w-])", r"(?![\w-])")
    hit = re.search(f"{before}(?:{'|'.join(words[1:])}){after}", sentence)
    return put(sentence, hit.span(), str(words.index(hit.group()) + 1)) if hit else ""


KEPT: dict[str, Change] = {
    "verbatim": verbatim,
    "trimmed": trimmed,
    "two sentences": fused,
    "number word in digits": in_digits,
}


def paraphrases(data: Path) -> list[dict[str, Any]]:
    """Return people's statements with the passages that support them."""
    found = []
    abstracts = {row["_id"]: row["text"] for row in lines_of(data / "scifact/corpus.jsonl.gz")}
    for row in lines_of(data / "scifact/queries.jsonl"):
        if row["metadata"]["answer"] == "SUPPORT":
            found.append(
                ("scifact", row["text"], [abstracts[row["metadata"]["evidence"][0]["doc"]]])
            )
    for row in lines_of(data / "dragonball/queries.jsonl"):
        answer, told = row["metadata"]["answer"], row["metadata"]["references"]
        if 30 < len(answer) < 300 and told and "Factual" in row["metadata"]["type"]:
            found.append(("dragonball_en", answer, told))
    texts = {row["_id"]: row["text"] for row in lines_of(data / "mtrag_un/corpus.jsonl.gz")}
    judged: dict[str, list[str]] = defaultdict(list)
    for line in (data / "mtrag_un/qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        judged[line.split("\t")[0]].append(texts[line.split("\t")[1]])
    for row in lines_of(data / "mtrag_un/queries.jsonl"):
        answer = row["metadata"]["answer"]
        if row["metadata"]["type"] == "ANSWERABLE" and len(answer) < 250 and judged[row["_id"]]:
            found.append(("mtrag_un", answer, judged[row["_id"]]))
    return [row_of(text, told, True, "paraphrase", "en", name) for name, text, told in found]


# --- drawing and judging rows ---------------------------------------------------------------------


def row_of(
    claim: str, evidence: Sequence[str], supported: bool, kind: str, language: str, data: str
) -> dict[str, Any]:
    """Return one row as `carrel eval claims` reads it."""
    row = {"claim": claim, "evidence": list(evidence), "supported": supported, "kind": kind}
    return row | {"language": language, "data": data}


def drawn(
    pools: Sequence[list[tuple[str, Passage]]], wanted: int, *, supported: bool, draw: random.Random
) -> list[dict[str, Any]]:
    """Draw rows of one language; each sentence gives one, of the kind that is rarest so far."""
    changes = KEPT if supported else CHANGES
    rows: list[dict[str, Any]] = []
    seen: Counter[str] = Counter({"verbatim": -wanted // 4})

    def made(
        sentence: str, passage: Passage, kind: str, pool: Sequence[tuple[str, Passage]]
    ) -> bool:
        claim = changes[kind](sentence, passage, draw)
        text = draw.choice(pool)[1].text if kind == ELSEWHERE and pool else passage.text
        known = " ".join(claim.split()) in " ".join(text.split())
        if not claim or (known and not supported):
            return False
        seen[kind] += 1
        rows.append(row_of(claim, [text], supported, kind, passage.language, passage.data))
        return True

    for kind in SOUGHT if not supported else ():
        for pool in pools:
            few = seen[kind] + wanted // len(changes) // len(pools)
            for one in pool[:4000]:
                if seen[kind] < few and made(*one, kind, pool):
                    pool.remove(one)
    while len(rows) < wanted and any(pools):
        for pool in filter(None, pools):
            one = pool.pop()
            for kind in sorted(changes, key=lambda kind: (seen[kind], kind)):
                if made(*one, kind, pool):
                    break
    return rows


def records(data: Path, wanted: int, draw: random.Random) -> list[dict[str, Any]]:
    """Return claims about fields of records, half of them with the value of another record."""
    rows = []
    for name, file in RECORDS.items():
        full = [row for row in lines_of(data / name / file) if len(FIELDS & {*row["metadata"]}) > 2]
        shown = [
            {"title": row["title"]}
            | {
                key: said(row["metadata"][key])
                for key in sorted(FIELDS)
                if row["metadata"].get(key)
            }
            for row in draw.sample(full, wanted)
        ]
        for record in shown:
            text = "\n".join(f"{key}: {value}" for key, value in record.items())
            key = draw.choice([key for key in record if key != "title"])
            others = [one[key] for one in shown if key in one and one[key] != record[key]]
            supported = draw.random() < 0.5
            value = record[key] if supported else draw.choice(others)
            claim = f"title: {record['title']}\n{key}: {value}"
            rows.append(row_of(claim, [text], supported, "field value", "en", name))
    return rows


def said(value: Any) -> str:
    """Write a value as a record shows it."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def rows_of(data: Path, language: str, wanted: int, seed: int) -> list[dict[str, Any]]:
    """Return the corrupted and the untouched rows of one language."""
    rows = []
    found = [passages_of(data, name, language) for name in SETS[language]]
    for supported in (False, True):
        draw = random.Random(f"{seed} {language} {supported}")
        pools = [
            [(one, passage) for passage in some for one in passage.sentences] for some in found
        ]
        for pool in pools:
            draw.shuffle(pool)
        rows += drawn(pools, wanted, supported=supported, draw=draw)
    if language == "en":
        rows += [*paraphrases(data), *records(data, wanted // 15, draw)]
    return rows


def judged_table(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    """Judge the rows of a file; return what was caught, or refused though true, by kind and set."""
    settings, _ = load_settings({"reasoner": "rules"})
    refused = [bool(one.reason) for one in judge_claims(read_claims(path), settings)]
    groups: dict[tuple[str, str], list[list[bool]]] = defaultdict(lambda: [[], []])
    for row, reason in zip(rows, refused, strict=True):
        paraphrased = row["kind"] == "paraphrase"  # people's own words, counted by themselves
        for group in (("kind", row["kind"]), ("set", row["data"]), ("all", row["language"])):
            if group[0] == "kind" or not paraphrased:
                groups[group][row["supported"]].append(reason)
    head = ("", "", "false claims caught", "true claims refused")
    lines = [(*name, share(false), share(true)) for name, (false, true) in sorted(groups.items())]
    return table_of(head, lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the rows, or judge them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder for LANGUAGE.jsonl")
    parser.add_argument("--measure", action="store_true", help="judge the rows that were written")
    parser.add_argument("--data", type=Path, default=BESIDE)
    parser.add_argument("--languages", nargs="*", default=list(SETS))
    parser.add_argument("--limit", type=int, default=PER_LANGUAGE)
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args(argv)
    asked.out.mkdir(parents=True, exist_ok=True)
    for language in asked.languages:
        rows = rows_of(asked.data, language, asked.limit, asked.seed)
        path = asked.out / f"{language}.jsonl"
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        count = Counter("true" if row["supported"] else "false" for row in rows)
        sys.stdout.write(f"{path}: {dict(count)}\n")
        if asked.measure:
            sys.stdout.write(judged_table(path, rows) + "\n")


if __name__ == "__main__":
    main()
