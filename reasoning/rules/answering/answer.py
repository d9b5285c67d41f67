"""Write an answer from whole sentences of the evidence, each cited to its characters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import exp
from typing import Literal

from core.language.analysis import content_terms
from core.language.detect import UNDETERMINED
from core.language.orders import gives_orders
from core.language.passages import CODE_KIND, TABLE, spans_of
from core.language.table_rows import cells_of, is_header, label_cells, write_cells
from core.settings import Settings
from core.types import Claim, Draft, Evidence, Plan, SubQuestion
from reasoning.claims.support import Supporting
from reasoning.claims.tokens import claim_tokens
from reasoning.claims.words import Sense
from reasoning.conflicts import find_conflicts
from reasoning.rules.answering.blocks import (
    MOST_CHARACTERS,
    announces,
    follows,
    in_context,
    quoted,
    steps_in,
)
from reasoning.rules.answering.documentation import (
    asked_definitions,
    asks_for_code,
    defining_claims,
    example_claims,
    name_defined,
    newest,
)
from reasoning.rules.answering.features import terms_of
from reasoning.rules.answering.headings import LED, dated, headings_of
from reasoning.rules.answering.named import terms_before
from reasoning.rules.answering.relevance import (
    VECTOR_SCORE,
    VERSION_NOTE,
    Relevance,
    Sentence,
    is_of_day,
)
from reasoning.rules.answering.wanted import QueryTerms
from reasoning.rules.grade import ANSWERS, PARTLY
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.records.fields import asks_for_field
from reasoning.rules.values.forms import NUMBER, has_kind
from reasoning.rules.values.value_spans import plain_title

# A question is open while sentences leave out this share of its words, weighed by how rare they
# are; a sentence completes it that says this share of what is open.
OPEN, CLOSES = 0.2, 0.35  # by hand


def completing(
    chosen: Sequence[Sentence], ranked: Sequence[Sentence], wanted: QueryTerms
) -> Sentence | None:
    """Return the sentence that covers most of the words still open, None when it is too little.

    It stands in another document that the chosen ones name, or that names theirs.
    """
    weights = {number: wanted.groups[number][2] for number in range(wanted.own)}
    covered = frozenset[int]().union(*(sentence.matched for sentence in chosen))
    open_weight = sum(weight for number, weight in weights.items() if number not in covered)
    if open_weight < OPEN * sum(weights.values()):
        return None
    found = [
        (sum(weights[n] for n in sentence.matched - covered), sentence.score, sentence)
        for sentence in ranked
        if any(_linked(sentence, other) for other in chosen)
    ]
    best = max(found, key=lambda one: one[:2], default=None)
    return best[2] if best is not None and best[0] >= CLOSES * open_weight else None


def _linked(left: Sentence, right: Sentence) -> bool:
    """Tell whether one of two sentences of different documents names the other's document."""
    if left.evidence.document_key == right.evidence.document_key:
        return False
    return _names(left, right) or _names(right, left)


def _names(sentence: Sentence, other: Sentence) -> bool:
    title = plain_title(other.evidence.title)
    if len(title) < 2:
        return False
    return re.search(rf"(?<!\w){re.escape(title)}(?!\w)", sentence.text, re.IGNORECASE) is not None


# A second sentence is said where the first is not sure and leaves out words of the question, and
# where its own odds reach this share: right answers .78 with one sentence, .84 so (means of four
# sets, a second one in 24 of 100 answers).
SECOND_SHARE, SURE, FULL_COVERAGE = 0.4, 0.6, 0.8
REPEAT_SHARE = 0.3
LONG = 3  # sentences after which no other is added
# Of the question's words, by rarity, in the sentence itself: with fewer it may speak of another
# thing. By hand, since public sets hold no verdicts.
VERDICT_LEXICAL = 0.25
# Groups of `claims.yaml` whose words leave open whether what stands behind them is so.
CONDITIONS = frozenset({"condition", "occasion"})
UNSURE = CONDITIONS | {"hedge", "attribution", "falsity"}
CLAUSE_ENDS = re.compile(r"[,;:，；：]|\s[–—-]\s")
YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
AMOUNT = re.compile(r"(?<![\w-])\d+(?:[.,]\d+)*")  # a number that is no part of a name
LEAST_OWN = 2  # words of a part that may be answered alone; chosen, not measured
SAME_SHARE = 0.7  # chosen, not measured
UNIT = re.compile(r"[(（\[].*")  # behind the name of a column
ITEM_SHARE = 0.75  # chosen, not measured
# What a question asks for by a word of one list, and the list of words that bring it.
BRINGS = (("asks_why", "cause"), ("asks_remedy", "remedy"))


def answer(
    plan: Plan,
    evidence: Sequence[Evidence],
    relevance: Relevance,
    settings: Settings,
) -> Draft:
    """Return claims for every sub-question that has evidence; name the others as missing."""
    claims: list[Claim] = []
    missing: list[str] = []
    cited: set[tuple[str, int]] = set()
    for question in plan.questions:
        usable = _readable(question, evidence)
        if missing and _hangs(question):
            usable = []
        if question.wants == "list":
            best = relevance.ranked(question, usable)
            found = _items(best, usable)[: settings.answering.list_items]
        elif question.wants == "topic":
            found = _mentions(question, usable, relevance, settings, cited)
        else:
            found = _sentences(question, usable, relevance, settings, cited)
        found = [one.model_copy(update={"question_id": question.id}) for one in found]
        if any(one.verdict for one in found) and find_conflicts(found, plan, usable)[1]:
            # What documents disagree about is neither "yes" nor "no".
            found = [one.model_copy(update={"verdict": ""}) for one in found]
        if found:
            claims += found
            cited |= {(c.chunk_id, c.start) for claim in found for c in claim.citations}
        else:
            missing.append(question.text)
    return Draft(claims=claims, missing=missing)


def _hangs(question: SubQuestion) -> bool:
    """Tell whether a part says too little to be answered where the one before it is not."""
    own = set(content_terms(question.text, question.language))
    return bool(question.about) and len(own) < LEAST_OWN


def _readable(question: SubQuestion, evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the evidence that answers; not what is foreign where the asker's language does."""
    usable = [item for item in evidence if item.grades.get(question.id, 0) >= PARTLY]
    own = [item for item in usable if item.language in (question.language, UNDETERMINED)]
    answers = any(item.grades[question.id] >= ANSWERS for item in own)
    return own if answers else usable


def _sentences(
    question: SubQuestion,
    evidence: Sequence[Evidence],
    relevance: Relevance,
    settings: Settings,
    cited: set[tuple[str, int]],
) -> list[Claim]:
    """Return the likeliest sentences; one is repeated only when there is no other."""
    wanted = relevance.wanted(question, evidence)
    everything = relevance.sentences(wanted, evidence)
    ranked = [one for one in everything if one.is_answer]
    ranked = [one for one in ranked if one.has_kind] or ranked
    if ranked and _is_withheld(everything[0], ranked[0]):
        return []
    new = [one for one in ranked if (one.evidence.chunk_id, one.start) not in cited]
    if ranked and (not new or new[0].score < REPEAT_SHARE * ranked[0].score):
        # What answered another part answers this one where it speaks of all it names, or was read.
        new = [
            one
            for one in ranked
            if len(wanted.matched(terms_before(one))) >= wanted.own
            or (one.read is not None and one.read > 0 and one.score >= SURE)
        ]
    chosen, confidence = _best_row(new), _confidence(new)
    long = False
    if chosen:  # by how many sentences one takes with what it needs before it
        item, at = chosen[0].evidence, chosen[0].start
        start, _ = in_context(item, at, chosen[0].end, code=False)
        spans = spans_of(item.text, item.kind)
        long = sum(start <= first <= at for first, _ in spans) >= LONG
        long = long or VERSION_NOTE.match(chosen[0].text) is not None  # of its own name alone
    while chosen and not long and len(chosen) < settings.answering.claims_per_question:
        following = completing(chosen, new, wanted) or _alike(chosen, new, sure=confidence >= SURE)
        if following is None:
            break
        chosen.append(following)
    if chosen and is_of_day(wanted, chosen[0].text, chosen[0].evidence.language) is None:
        # What holds on the day asked for may be an exception to what holds on all.
        chosen += [one for one in everything if _is_exception(one, chosen[0], wanted)][:1]
    claims = _documented(chosen, evidence, wanted, settings)
    if not claims:
        claims = _section(chosen, evidence, wanted) or _claims(chosen, evidence, wanted)
        claims = name_defined(claims, chosen, wanted) if settings.is_documentation else claims
    claims = [one.model_copy(update={"confidence": confidence}) for one in claims]
    if chosen and wanted.wants == "yesno":
        claims[0] = claims[0].model_copy(update={"verdict": _verdict(chosen[0], wanted)})
    return claims


def _best_row(ranked: Sequence[Sentence]) -> list[Sentence]:
    """Return the likeliest sentence; of a table the row that names all that it does, and more."""
    if not ranked or ranked[0].evidence.kind != TABLE:
        return list(ranked[:1])
    first = ranked[0]
    rows = (one for one in ranked if one.chunk_id == first.chunk_id)
    return [next((one for one in rows if one.matched > first.matched), first)]


def _documented(
    chosen: Sequence[Sentence],
    evidence: Sequence[Evidence],
    wanted: QueryTerms,
    settings: Settings,
) -> list[Claim]:
    """Return what documentation answers with, none where it is not that or has no code for it."""
    if not settings.is_documentation:
        return []
    defined = asked_definitions(wanted, evidence)
    defined = [one for one in defined if one.end or one.heading] or defined
    found = defining_claims(wanted, newest(defined)) if defined else []
    if not found and chosen and (asks_for_code(wanted) or wanted.level != "any"):
        return example_claims(wanted, chosen[0], evidence)
    return found


def _is_exception(one: Sentence, first: Sentence, wanted: QueryTerms) -> bool:
    """Tell whether a sentence beside another names the day asked for."""
    beside = one.chunk_id == first.chunk_id and one.start != first.start and one.is_answer
    return beside and is_of_day(wanted, one.text, one.evidence.language) is True


def _is_withheld(likeliest: Sentence, allowed: Sentence) -> bool:
    """Tell whether what answers best in a document stands behind an order, so that nothing may.

    Of other documents an order hides nothing.
    """
    item = likeliest.evidence
    ordered = gives_orders(item.text, likeliest.start, likeliest.end)
    return ordered and item.document_key == allowed.evidence.document_key


def _mentions(
    question: SubQuestion,
    evidence: Sequence[Evidence],
    relevance: Relevance,
    settings: Settings,
    cited: set[tuple[str, int]],
) -> list[Claim]:
    """Return the sentences that say all words asked about, in the order of their documents."""
    wanted = relevance.wanted(question, evidence)
    ranked = relevance.sentences(wanted, evidence)
    named = [one for one in ranked if one.is_answer and one.has_kind]
    if not named:
        return _sentences(question, evidence, relevance, settings, cited)
    chosen: list[Sentence] = []
    # What only stands below such a heading is for where nothing says it itself, or by "it".
    alone = [
        one
        for one in named
        if one.lexical >= one.coverage
        or lexicon(one.evidence.language).starts("reference", one.text)
    ]
    for one in sorted(alone or named, key=lambda one: -one.lexical):
        if all(_overlap(one.text, other.text) < SAME_SHARE for other in chosen):
            chosen.append(one)
    places = {item.chunk_id: place for place, item in enumerate(evidence)}
    documents = list(dict.fromkeys(one.evidence.document_key for one in chosen))
    chosen = sorted(
        chosen[: settings.answering.list_items],
        key=lambda one: (
            documents.index(one.evidence.document_key),
            one.evidence.ordinal,
            places[one.chunk_id],
            one.start,
        ),
    )
    claims = _claims(chosen, evidence, wanted)
    return [one.model_copy(update={"confidence": _confidence(named)}) for one in claims]


def _section(
    chosen: Sequence[Sentence], evidence: Sequence[Evidence], wanted: QueryTerms
) -> list[Claim]:
    """Return all steps of a section that says how to do what is asked for, where it is short."""
    if not chosen or not wanted.is_explained_by(chosen[0].evidence):
        return []
    first = chosen[0].evidence
    same = (one for one in evidence if one.document_key == first.document_key)
    items = sorted((one for one in same if one.section == first.section), key=lambda o: o.ordinal)
    words = lexicon(first.language)
    spans = [steps_in(one.text) for one in items]
    steps = any(spans) or any(words.found("sequence", one.text) for one in items)
    if any(gives_orders(one.text, 0, len(one.text)) for one in items):
        return []
    if not steps or sum(len(one.text) for one in items) > MOST_CHARACTERS:
        return []
    return [
        quoted(one, *span) if span else _beginning(one)
        for one, span in zip(items, spans, strict=True)
    ]


def _verdict(sentence: Sentence, wanted: QueryTerms) -> Literal["yes", "no", ""]:
    """Return what a sentence says to a question, "" where it leaves it open.

    Yes where it supports the question made a statement; no where it has every word of it, and a
    clause that does alone says some denies it. What is used "instead of" the thing asked about
    denies it, too; of two things compared the words alone do not tell which is which.
    """
    asked, words = lexicon(wanted.language), lexicon(sentence.evidence.language)
    verdicts = (words.message(f"verdict_{one}").rstrip(".。") for one in ("yes", "no"))
    own_verdict = rf"(?:^|[?？]\s*)(?:{'|'.join(verdicts)})[\s,.，。:：—-]"
    if re.search(own_verdict, sentence.text, re.IGNORECASE) or sentence.text.endswith(("?", "？")):
        return ""  # "No, …": it says its verdict itself, as does the reply to a question
    if _is_of_another_time(sentence.text, wanted.text, words, asked):
        return ""
    if _states(sentence, wanted):
        return "yes"
    # A word that is not said may be the very one: "used" in "it has been replaced".
    own = terms_of(sentence.text, sentence.evidence.language)
    above = " ".join(headings_of(sentence.evidence))  # not its keywords: they state nothing
    known = wanted.matched(own | terms_of(above, sentence.evidence.language))
    vague = len(known) < wanted.own or sentence.lexical < VERDICT_LEXICAL
    # What is asked of a thing comes last: that no heading says.
    vague = vague or wanted.own - 1 not in wanted.matched(own)
    numbers = set(AMOUNT.findall(wanted.text)) - set(NUMBER.findall(sentence.text))
    if vague or numbers or asked.found("comparing", wanted.text):
        return ""
    if words.found("exclusive", sentence.text):
        return ""  # "only", "except": what is asked about may be inside or outside
    permits = asked.found("permitting", wanted.text) or _shares_modality(sentence, wanted)
    bound = _bound(sentence, wanted, words)
    elsewhere = bool(bound) and not any(bound)  # "by anyone who has no debts"
    if elsewhere or not _is_plain(sentence, wanted, permits=permits):
        return ""
    denied = len(asked.all_of("negation", wanted.text))
    if denied:
        denied += len(bound)
    else:
        denied = int(_denies(sentence, wanted))
    other = words.search("instead", sentence.text)
    if other is not None and not asked.found("instead", wanted.text):
        before = terms_of(sentence.text[: other.start()], words.language)
        behind = terms_of(sentence.text[other.end() :], words.language)
        denied += bool((behind - before) & wanted.asked)
    return "no" if denied % 2 else ""


def _states(sentence: Sentence, wanted: QueryTerms) -> bool:
    """Tell whether a sentence supports a question that is made a statement.

    All words may be there and say something else: "The pump is 96 kg, the case 41 kg".
    """
    language = sentence.evidence.language
    evidence = Supporting([sentence.text], language)
    return language == wanted.language and any(
        not evidence.difference(statement) for statement in _statements(wanted.text, language)
    )


def _statements(question: str, language: str) -> Iterator[str]:
    """Yield what a question may be as a statement: what inverts it stands behind its subject."""
    words = lexicon(language)
    bare = question.strip().rstrip("?？").strip()
    if not words.any_of("inverting"):
        yield " ".join(words.remove(bare, "asking_particle").split())
        return
    first, *rest = bare.split()
    if first.casefold() in words.any_of("doing"):  # which no statement needs
        yield " ".join(rest)
        return
    for place in range(1, len(rest) + 1):
        yield " ".join([*rest[:place], first.casefold(), *rest[place:]])


def _senses(text: str, language: str) -> set[Sense]:
    return {each for one in claim_tokens(text, language) for each in one.senses}


def _shares_modality(sentence: Sentence, wanted: QueryTerms) -> bool:
    """Tell whether a question and a sentence both say what may be: "Can one …?", "one may"."""
    both = _senses(sentence.text, sentence.evidence.language)
    both &= _senses(wanted.text, wanted.language)
    return any(one.group == "modality" for one in both)


def _is_plain(sentence: Sentence, wanted: QueryTerms, *, permits: bool) -> bool:
    """Tell whether a sentence says what it says without what a question does not say either.

    "They refused to sell it" says neither that they sold it nor, to a question of whether they
    planned it, no; nor does what is said by somebody. What may be may have its conditions.
    """
    unsure = UNSURE - CONDITIONS if permits else UNSURE
    asked = _senses(wanted.text, wanted.language)
    language = sentence.evidence.language
    own = _senses(sentence.text, language)
    words = lexicon(language)
    if not (words.found("negation", sentence.text) or words.found("instead", sentence.text)):
        unsure |= {"negation"}  # "failed to", "hardly"
    return not any(one.group in unsure and one not in asked for one in own)


def _bound(sentence: Sentence, wanted: QueryTerms, words: Lexicon) -> list[bool]:
    """Tell of each denial of a sentence whether it denies the question: the next word is of it."""
    found = []
    for one in words.all_of("negation", sentence.text):
        clause = CLAUSE_ENDS.split(sentence.text[one.end() :], maxsplit=1)[0]
        permitted = words.starts("permitting", clause.strip())
        behind = content_terms(clause, words.language)[:1]
        if not behind:  # "Dogs are not", "… нельзя": it denies what stands before it
            ends = [0, *(end.end() for end in CLAUSE_ENDS.finditer(sentence.text, 0, one.start()))]
            behind = content_terms(sentence.text[ends[-1] : one.start()], words.language)[-1:]
        found.append(permitted or not behind or bool(wanted.matched(frozenset(behind))))
    return found


def _is_of_another_time(text: str, question: str, words: Lexicon, asked: Lexicon) -> bool:
    """Tell whether a sentence speaks of another time than a question, or of what nearly was so."""
    times = {one.group().casefold() for one in words.all_of("another_time", text)}
    if times != {one.group().casefold() for one in asked.all_of("another_time", question)}:
        return True
    dates = {one.group().casefold() for one in words.all_of("day_name", text)}
    dates |= set(YEAR.findall(text))
    return any(one not in question.casefold() for one in dates)


def _denies(sentence: Sentence, wanted: QueryTerms) -> bool:
    """Return whether only denying clauses have words of the question."""
    words = lexicon(sentence.evidence.language)
    matched: tuple[set[int], set[int]] = set(), set()
    denying = False
    starts = [one.start() for one in words.all_of("conditions", sentence.text)]
    ends = [one.end() for one in CLAUSE_ENDS.finditer(sentence.text)]
    for start, end in pairwise(sorted({0, *starts, *ends, len(sentence.text)})):
        clause = sentence.text[start:end]
        denied = words.found("negation", clause)
        denying |= denied
        matched[denied].update(wanted.matched(terms_of(clause, words.language)))
    return bool(matched[True] - matched[False]) if matched[True] | matched[False] else denying


def _confidence(ranked: Sequence[Sentence]) -> float:
    """Return the probability of the first sentence among all and "nothing answers" (logit)."""
    total = 1 + sum(exp(one.odds) for one in ranked)
    return exp(ranked[0].odds) / total if ranked else 0.0


def _alike(
    chosen: Sequence[Sentence], ranked: Sequence[Sentence], *, sure: bool
) -> Sentence | None:
    """Return the next sentence nearly as likely as the first that says something else."""
    complete = chosen[0].has_kind and chosen[0].coverage >= FULL_COVERAGE
    if sure or complete:
        return None
    least = SECOND_SHARE * exp(ranked[0].odds)
    for sentence in ranked:
        if exp(sentence.odds) < least:
            return None
        # Another row of a table that names less of the question is of another thing.
        beside = sentence.evidence.kind == TABLE and sentence.chunk_id == chosen[0].chunk_id
        if beside and sentence.matched < chosen[0].matched:
            continue
        torn = sentence.text[:1].islower()  # the end of a sentence that began elsewhere
        if (
            sentence not in chosen
            and not torn
            and all(_overlap(sentence.text, other.text) < SAME_SHARE for other in chosen)
        ):
            return sentence
    return None


def _overlap(left: str, right: str) -> float:
    first, second = set(left.casefold().split()), set(right.casefold().split())
    return len(first & second) / max(1, min(len(first), len(second)))


def _items(best: Sequence[Sentence], evidence: Sequence[Evidence]) -> list[Claim]:
    """Return one sentence of each document, best documents first.

    A document is as good as its best sentence and its best passage as a whole; one much worse than
    the best is left out, since a short list that fits beats a long one that does not.
    """
    sentences: dict[str, Sentence] = {}
    for sentence in best:
        sentences.setdefault(sentence.evidence.document_key, sentence)
    passages: dict[str, float] = {}
    for item in evidence:
        meaning = max(0.0, item.scores.get(VECTOR_SCORE, 0.0))
        passages[item.document_key] = max(meaning, passages.get(item.document_key, 0.0))
    ranked = sorted(
        ((one.score + passages[key], one) for key, one in sentences.items()),
        key=lambda pair: -pair[0],
    )
    kept = [sentence for worth, sentence in ranked if worth >= ITEM_SHARE * ranked[0][0]]
    return [quoted(one.evidence, one.start, one.end) for one in kept]


def _claims(
    chosen: Sequence[Sentence], evidence: Sequence[Evidence], wanted: QueryTerms
) -> list[Claim]:
    """Return the claims of sentences with what each needs; none contains another."""
    words = lexicon(wanted.language)
    brings = next((brought for asks, brought in BRINGS if words.found(asks, wanted.text)), "")
    claims: list[Claim] = []
    for sentence in chosen:
        at = sentence.start, sentence.end
        several = wanted.howto or wanted.enumerates
        start, end = in_context(
            sentence.evidence, *at, code=wanted.howto, items=several, brings=brings
        )
        earlier = [
            c for claim in claims for c in claim.citations if c.chunk_id == sentence.chunk_id
        ]
        if gives_orders(sentence.evidence.text, start, end):
            start, end = at  # what stands beside it is no answer
        start = max([start, *(c.end for c in earlier if c.start <= start < c.end)])
        if not any(c.start <= sentence.start < c.end for c in earlier):
            row = _row(sentence, wanted)
            if row is not None:
                claims.append(row)
                continue
            claims += _announcing(sentence, evidence)
            claims.append(_dated(quoted(sentence.evidence, start, end), sentence, wanted))
            behind = follows(sentence.evidence, evidence)
            if behind is not None and end == len(sentence.evidence.text.rstrip()):
                ordered = gives_orders(behind.text, 0, len(behind.text))
                if announces(sentence.evidence) and not ordered:
                    claims.append(_beginning(behind))
    return claims


def _row(sentence: Sentence, wanted: QueryTerms) -> Claim | None:
    """Return what a row of a table says, with its columns' names; of the columns asked for alone.

    A column is asked for whose name's words are all in the question, or that holds what it asks
    for, where what is there is not in it.
    """
    item = sentence.evidence
    names, *rows = spans_of(item.text, item.kind)
    if item.kind != TABLE or sentence.start == names[0]:
        return None
    header = cells_of(item.text[slice(*names)])
    cells = label_cells(item.text[slice(*names)], sentence.text)
    if not is_header(header, [cells_of(item.text[slice(*one)]) for one in rows]):
        cells = [one._replace(label="") for one in cells]
    asked = frozenset(
        one.column
        for one in cells
        if one.column
        and _asks_for(wanted, UNIT.sub("", one.label), item.language)
        and not terms_of(one.text, item.language) <= wanted.asked
    )
    if len(cells) < 2:
        return None
    citations = [item.cited(*names), item.cited(sentence.start, sentence.end)]
    return Claim(text=write_cells(cells, asked), citations=citations)


def _asks_for(wanted: QueryTerms, label: str, language: str) -> bool:
    words = terms_of(label, language)
    return bool(words and words <= wanted.asked) or asks_for_field(wanted.text, label)


def _dated(claim: Claim, sentence: Sentence, wanted: QueryTerms) -> Claim:
    """Put the heading with the date asked for before a claim that has none."""
    item = sentence.evidence
    says_when = has_kind("date", claim.text, lexicon(item.language))
    lead = dated(item) if wanted.wants == "date" and not says_when else ""
    return claim.model_copy(update={"text": f"{lead}{LED}{claim.text}"}) if lead else claim


def _announcing(sentence: Sentence, evidence: Sequence[Evidence]) -> list[Claim]:
    """Return the claim of the sentence that announces code in the chunk behind it."""
    before = follows(sentence.evidence, evidence, -1)
    if before is None or not announces(before) or sentence.evidence.kind != CODE_KIND:
        return []
    start, end = spans_of(before.text, before.kind)[-1]
    return [] if gives_orders(before.text, start, end) else [quoted(before, start, end)]


def _beginning(item: Evidence) -> Claim:
    """Return the claim of a chunk up to what a reader takes in at once."""
    spans = spans_of(item.text, item.kind)
    end = max((end for _, end in spans if end <= MOST_CHARACTERS), default=spans[0][1])
    return quoted(item, spans[0][0], end)
