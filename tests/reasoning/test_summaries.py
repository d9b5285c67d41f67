"""Questions about a whole: told from others, planned, and answered by sentences that read alone."""

from __future__ import annotations

import pytest
from builders import piece, weights_of
from fakes import FakeEmbedder

from core.metadata import EXTRACTS, LABELS, LISTED_CHUNKS, ROW
from core.settings import Settings
from core.types import Evidence, Plan, ToolSpec, Understanding
from reasoning.rendering import render_answer
from reasoning.rules.answering.summaries import AskedSummary, asked_summary
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Turn

TOOLS = [
    ToolSpec(name=name, base=name, purpose="Find passages.", arguments={})
    for name in ("search", "summarise")
]


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "What is this collection about?"),
        ("en", "Can you give me a brief summary of the documentation?"),
        ("en", "What topics do these documents cover"),
        ("en", "What are the main themes?"),
        ("ru", "Какие здесь основные темы?"),
        ("uk", "Які головні теми?"),
        ("zh", "主要主题是什么？"),
        ("en", "What documents are there?"),
        ("en", "How many documents are there?"),
        ("ru", "Перечисли документы"),
        ("uk", "Скільки тут документів?"),
        ("zh", "一共有多少个文档？"),
        ("ru", "О чём эта коллекция?"),
        ("ru", "Кратко перескажи все документы"),
        ("uk", "Про що ці документи?"),
        ("ru", "Про що ця колекція?"),  # a short question is easily taken for Russian
        ("zh", "这个文集讲什么？"),
        ("zh", "总结一下这些文档"),
    ],
)
def test_a_question_about_the_collection(language: str, question: str) -> None:
    found = asked_summary(question, language)
    assert found is not None
    assert (found.name, found.sure, found.here) == ("", True, False)
    assert found.themes == any(word in question for word in ("theme", "topic", "тем", "主题"))


@pytest.mark.parametrize(
    ("language", "question", "name", "part"),
    [
        ("en", "Summarise chapters 2 and 5", "", "2,5"),
        ("en", "Compare chapter 3 and chapter 7 of the report", "the report", "3,7"),
        ("en", "Summarise section 4.1", "", "4.1"),
        ("en", "What are the chapters of the handbook?", "the handbook", "*"),
        ("ru", "Сравни главу 3 и главу 7", "", "3,7"),
        ("ru", "Какие главы есть в отчёте?", "отчёте", "*"),
        ("uk", "Перекажи розділи 2 і 5", "", "2,5"),
        ("zh", "总结第二章和第五章", "", "2,5"),
        ("zh", "手册有哪些章节？", "手册", "*"),
    ],
)
def test_several_chapters_and_all_of_them(
    language: str, question: str, name: str, part: str
) -> None:
    found = asked_summary(question, language)
    assert found is not None and (found.name, found.part, found.sure) == (name, part, True)


@pytest.mark.parametrize(
    "question", ["Compare Python and Ruby", "What are the steps to install it?"]
)
def test_no_chapters_are_asked_for(question: str) -> None:
    found = asked_summary(question, "en")
    assert found is None or not found.part


@pytest.mark.parametrize(
    ("language", "question", "name", "sure"),
    [
        ("en", "Summarise Dune", "Dune", True),
        ("en", "Give me a summary of the document guide.md", "guide.md", True),
        ("en", "What is Gilead about?", "Gilead", False),
        ("en", "Summarise the causes of the war", "the causes of the war", False),
        ("ru", "О чём книга «Идиот»?", "Идиот", True),
        ("ru", "Кратко о документе a.md", "a.md", True),
        ("uk", "Перекажи документ «Моделі»", "Моделі", True),
        ("zh", "《红楼梦》讲了什么？", "红楼梦", True),
        ("zh", "请总结一下文档 guide.md", "guide.md", True),
    ],
)
def test_a_question_about_a_document(language: str, question: str, name: str, sure: bool) -> None:
    found = asked_summary(question, language)
    assert found is not None
    assert (found.name, found.sure, found.part) == (name, sure, "")


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "What is this about?"),
        ("en", "Give me an overview"),
        ("en", "Summarise"),
        ("ru", "О чём это?"),
        ("ru", "Дай краткий обзор"),
        ("uk", "Про що це?"),
        ("zh", "这讲的是什么？"),
        ("zh", "请概述一下"),
    ],
)
def test_a_question_about_all_there_is(language: str, question: str) -> None:
    found = asked_summary(question, language)
    assert found is not None
    assert (found.name, found.sure, found.here) == ("", True, True)


@pytest.mark.parametrize(
    ("language", "question", "name", "number"),
    [
        ("en", "Summarise chapter 3", "", 3),
        ("en", "Give me an overview of the third chapter of Gilead", "Gilead", 3),
        ("en", "What is Section IV about?", "", 4),
        ("en", "Summarise part two of the novel Gilead", "Gilead", 2),
        ("ru", "Кратко перескажи главу 3", "", 3),
        ("ru", "О чём третья глава?", "", 3),
        ("uk", "Перекажи розділ 3", "", 3),
        ("zh", "总结一下第三章", "", 3),
        ("zh", "概括《红楼梦》的第3章", "红楼梦", 3),
        ("en", "Summarise the last chapter", "", -1),
        ("ru", "Перескажи последнюю главу", "", -1),
        ("uk", "Перекажи останній розділ", "", -1),
        ("zh", "总结最后一章", "", -1),
    ],
)
def test_a_question_about_a_chapter(language: str, question: str, name: str, number: int) -> None:
    found = AskedSummary(name, sure=True, part=str(number), here=not name, near=True)
    assert asked_summary(question, language) == found._replace(language=language)


@pytest.mark.parametrize(
    ("language", "question", "name", "part", "asked_in"),
    [
        ("zh", "Summarise chapter 2 of 云岭茶园手册", "云岭茶园手册", "2", "en"),
        ("ru", "A summary of Обрезка", "Обрезка", "", "en"),
        ("en", "Перескажи главу II Quality Handbook", "Quality Handbook", "2", "ru"),
    ],
)
def test_a_name_of_another_script_is_asked_for_in_the_language_around_it(
    language: str, question: str, name: str, part: str, asked_in: str
) -> None:
    found = asked_summary(question, language)
    assert found is not None
    assert (found.name, found.part, found.language) == (name, part, asked_in)


@pytest.mark.parametrize(
    ("language", "question", "part"),
    [
        ("en", "Summarize the chapter on the Normans in three sentences", "the Normans"),
        ("en", "Summarise the maintenance chapter", "maintenance"),
        ("en", "tl;dr of the part on spare parts", "the part on spare parts"),
        ("ru", "Перескажи раздел об экскурсиях", "экскурсиях"),
        ("uk", "Стисло перекажи розділ «Збір меду»", "Збір меду"),
        ("zh", "总结一下设备维护那一章", "设备维护"),
    ],
)
def test_a_chapter_is_asked_for_by_its_heading(language: str, question: str, part: str) -> None:
    found = asked_summary(question, language)
    assert found is not None
    assert (found.name, found.sure, found.part, found.here) == ("", True, part, True)


@pytest.mark.parametrize(
    ("asked", "fragment", "name", "part"),
    [
        ("Summarise chapter 2 of Gilead", "And chapter 3?", "Gilead", "3"),
        ("What is Gilead about?", "And the chapter on rain?", "Gilead", "rain"),
        ("Перескажи главу 2 «Идиота»", "А глава 3?", "Идиота", "3"),
        ("Перекажи розділ 2 «Тигролови»", "А розділ 1?", "Тигролови", "1"),
        ("总结《红楼梦》第二章", "第三章呢?", "红楼梦", "3"),
        ("Summarise Gilead", "What are the main themes?", "", ""),
        ("Summarise chapter 2 of Gilead", "And the next chapter?", "Gilead", "3"),
        ("Summarise the third chapter of Gilead", "The previous one", "Gilead", "2"),
        ("Перескажи вторую главу «Идиота»", "А следующая глава?", "Идиота", "3"),
        ("Перекажи розділ 2 «Тигролови»", "наступний розділ", "Тигролови", "3"),
        ("总结《红楼梦》第二章", "下一章呢?", "红楼梦", "3"),
        ("总结《红楼梦》第二章", "第五章呢？", "红楼梦", "5"),
        ("Summarise chapter 2 of Gilead", "Rain", "rain", ""),
        ("总结《红楼梦》第二章", "采摘", "采摘", ""),
    ],
)
def test_a_later_turn_asks_for_another_part(
    asked: str, fragment: str, name: str, part: str
) -> None:
    query = reasoner().understand(fragment, [Turn(asked, "It rains.")])
    call = reasoner().plan(query, TOOLS).questions[0].calls[0]
    assert (call.arguments["document"], call.arguments["part"]) == (name, part)


@pytest.mark.parametrize(
    ("between", "goes_on"), [("How old is Ames?", True), ("Who wrote the chapter on snow?", False)]
)
def test_a_chapter_is_asked_for_behind_another_question(between: str, goes_on: bool) -> None:
    turns = [Turn(asked, "It rains.") for asked in ("Summarise Gilead", between)]
    query = reasoner().understand("And the chapter on rain?", turns)
    assert query.question.startswith("Summarise the chapter on rain") is goes_on


@pytest.mark.parametrize(
    ("language", "question", "name", "sentences"),
    [
        ("en", "Summarise the bread notes in one sentence", "bread", 1),
        ("en", "Give me a two-sentence summary of the museum page", "museum", 2),
        ("en", "Summarise everything in three sentences", "", 3),
        ("en", "Summarise the bread notes", "bread", 0),
        ("ru", "Перескажи заметки о хлебе в двух предложениях", "хлебе", 2),
        ("uk", "Підсумуй документ про годинники одним реченням", "годинники", 1),
        ("zh", "用一句话总结果园手册", "果园", 1),
        ("zh", "请用两句话概括有轨电车的风险", "有轨电车的风险", 2),
    ],
)
def test_a_number_of_sentences_is_no_part_of_the_name(
    language: str, question: str, name: str, sentences: int
) -> None:
    found = asked_summary(question, language)
    assert found is not None
    assert (found.name, found.sentences) == (name, sentences)


@pytest.mark.parametrize(
    ("language", "question", "name"),
    [
        ("en", "What are the main themes of the tramway report?", "tramway"),
        ("en", "What topics does the handbook cover?", "the handbook"),
        ("ru", "Какие основные темы отчёта о трамвае?", "трамвае"),
        ("uk", "Які теми розглядаються у посібнику?", "посібнику"),
        ("zh", "有轨电车报告的主要主题是什么？", "有轨电车"),
    ],
)
def test_themes_of_a_document_are_asked_for(language: str, question: str, name: str) -> None:
    found = asked_summary(question, language)
    assert found is not None
    assert (found.name, found.themes) == (name, True)


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "What is a tree about to fall called?"),
        ("en", "What documents do I need for a visa?"),
        ("en", "Who is the author about whom this is written?"),
        ("ru", "Какие документы нужны для визы?"),
        ("zh", "有哪些文件格式被支持？"),
        ("zh", "请" * 3000),
    ],
)
def test_other_questions_ask_for_no_summary(language: str, question: str) -> None:
    assert asked_summary(question, language) is None


def reasoner() -> RulesReasoner:
    return RulesReasoner(Settings(), weights_of([]), FakeEmbedder())


def planned(question: str) -> tuple[Understanding, Plan]:
    rules = reasoner()
    understanding = rules.understand(question, [])
    return understanding, rules.plan(understanding, TOOLS)


def calls(question: str) -> list[str]:
    return [call.tool for call in planned(question)[1].questions[0].calls]


def test_what_may_be_another_question_is_searched_for_too() -> None:
    assert calls("What is Gilead about?") == ["summarise", "search"]
    assert calls("Summarise Gilead") == ["summarise"]
    assert calls("Who wrote Gilead?") == ["search"]


def row(item: Evidence, *sentences: str) -> Evidence:
    found = piece("1 document.", kind=ROW, tool="summarise")
    starts = [item.text.index(one) for one in sentences]
    quoted = [(item.chunk_id, at, at + len(one)) for at, one in zip(starts, sentences, strict=True)]
    metadata = {LISTED_CHUNKS: [item.chunk_id], EXTRACTS: quoted, LABELS: {}}
    return found.model_copy(update={"metadata": metadata})


def test_extracts_are_whole_sentences_in_their_order_and_labelled() -> None:
    understanding, plan = planned("Summarise Gilead")
    opens = "The harbour opens at noon for the fishing boats."
    counts = "The harbour master counts all the fishing boats of the harbour."
    text = piece(f"{opens} It is cold.\n{counts}", title="Gilead")
    beside = piece("The harbour opens at noon for boats of the fleet.", title="Other")
    evidence = [row(text, opens, counts), text, beside]
    rules = reasoner()
    grades = rules.grade(plan.questions[0], evidence)
    assert [grade.grade for grade in grades] == [3, 3, 0]
    found = [
        item.model_copy(update={"grades": {"q1": grade.grade}})
        for item, grade in zip(evidence, grades, strict=True)
        if grade.grade
    ]
    draft = rules.answer(understanding, plan, found)
    assert [claim.text for claim in draft.claims] == [opens, counts]
    said = render_answer(understanding, plan, draft.claims, [], found)
    assert said.startswith("Extracts from “Gilead”:\n")


def test_documents_of_a_similar_name_answer_nothing_and_nothing_is_searched_instead() -> None:
    _, plan = planned("Summarise Gilead")
    rules = reasoner()
    assert rules.grade(plan.questions[0], [piece("Text of another book.")]) == []
    assert rules.rewrite(plan.questions[0], [], TOOLS) is None


def test_a_spelling_of_another_country_is_no_slip() -> None:
    assert asked_summary("Summarize the orchard handbook", "en") == asked_summary(
        "Summarise the orchard handbook", "en"
    )


@pytest.mark.parametrize(
    "question", ["What does the chapter about the war say?", "Summarise the chapter about the war"]
)
def test_a_chapter_is_asked_for_by_what_it_is_about(question: str) -> None:
    found = asked_summary(question, "en")
    assert found is not None and found.part == "the war"
