"""Grades 0..3 of evidence made by hand, in four languages, and what caps them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builders import asking, piece
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.types import AnswerKind, Evidence, SubQuestion
from models.embeddings import Embedder
from reasoning.rules.reasoner import RulesReasoner

Rules = Callable[..., RulesReasoner]

CASES = {
    "en": (
        asking("What is the highest dose of morphine for an adult?", wants="number"),
        piece("The highest dose of morphine for an adult is 20 mg. It is given by a nurse."),
        piece("Morphine is kept in a locked cupboard. A nurse counts it every evening."),
        piece("The canteen serves soup and bread from noon. Cakes are sold on Fridays."),
    ),
    "ru": (
        asking("Какая наибольшая доза морфина для взрослого?", "ru"),
        piece("Наибольшая доза морфина для взрослого составляет 20 мг.", "ru"),
        piece("Морфин хранят в запертом шкафу. Его пересчитывают каждый вечер.", "ru"),
        piece("В столовой с полудня подают суп и хлеб.", "ru"),
    ),
    "uk": (
        asking("Яка найбільша доза морфіну для дорослого?", "uk"),
        piece("Найбільша доза морфіну для дорослого становить 20 мг.", "uk"),
        piece("Морфін тримають у замкненій шафі. Його рахують щовечора.", "uk"),
        piece("В їдальні з полудня подають суп і хліб.", "uk"),
    ),
    "zh": (
        asking("成人吗啡的最大剂量是多少？", "zh", wants="number"),
        piece("成人吗啡的最大剂量是 20 毫克。", "zh"),
        piece("吗啡锁在柜子里。护士每天晚上清点。", "zh"),
        piece("食堂中午供应面包和汤。", "zh"),
    ),
}


def grades(rules: Rules, question: SubQuestion, *evidence: Evidence) -> list[int]:
    given = rules(evidence).grade(question, evidence)
    assert [grade.evidence_id for grade in given] == [item.evidence_id for item in evidence]
    assert all(grade.reason for grade in given)
    return [grade.grade for grade in given]


@pytest.mark.parametrize("language", CASES)
def test_an_exact_answer_is_3_its_topic_less_and_a_foreign_topic_0(
    language: str, rules: Rules
) -> None:
    question, exact, related, foreign = CASES[language]
    exact_grade, related_grade, foreign_grade = grades(rules, question, exact, related, foreign)
    assert exact_grade == 3
    assert related_grade in (0, 1, 2)
    assert related_grade < exact_grade
    assert foreign_grade == 0


def test_the_same_meaning_in_other_words_is_found(rules: Rules) -> None:
    question = asking("How do I get rid of a wasp nest?")
    same, foreign = (
        piece("To remove a hornets' colony, call the pest control service."),
        piece("The roof of the boiler house was painted green."),
    )
    first, second = grades(rules, question, same, foreign)
    assert first > second == 0


@pytest.mark.parametrize(
    ("language", "question", "text"),
    [
        (
            "uk",
            "Скільки кілометрів доріг відремонтувала громада?",
            "Громада відремонтувала 7,4 км доріг.",
        ),
        (
            "en",
            "How many kilometres of road did the council repair?",
            "The council repaired 7.4 km of road.",
        ),
        (
            "ru",
            "Сколько километров дорог отремонтировал город?",
            "Город отремонтировал 7,4 км дорог.",
        ),
        # The adjective stands by its noun, and in another case.
        (
            "uk",
            "Хто директорка нового садка?",
            "Новий садок відкрили у травні. Його директоркою призначено Оксану Левчук.",
        ),
    ],
)
def test_a_unit_may_be_short_and_what_a_pronoun_stands_for_is_said_before(
    language: str, question: str, text: str, rules: Rules
) -> None:
    assert grades(rules, asking(question, language), piece(text, language))[0] >= 2


def test_evidence_that_names_something_else_is_capped(rules: Rules) -> None:
    question = asking("What is the capacity of the Kepler ward?")
    right = piece("The capacity of the Kepler ward is 12 beds.")
    wrong = piece("The capacity of the Tycho ward is 30 beds.")
    first, second = grades(rules, question, right, wrong)
    assert first == 3
    assert second < 2


def test_a_heading_may_name_what_the_sentence_leaves_out(rules: Rules) -> None:
    question = asking("What is the capacity of the Kepler ward?")
    item = piece("The capacity of the ward is 12 beds.", title="Kepler ward")
    assert grades(rules, question, item)[0] >= 2


@pytest.mark.parametrize(
    ("wants", "question", "holds", "lacks"),
    [
        (
            "number",
            "How many beds does the ward have?",
            "The ward does have 12 beds.",
            "The ward does have beds.",
        ),
        (
            "date",
            "When was the ward for children opened?",
            "The ward for children was opened in 1998.",
            "The ward for children was opened by a singer.",
        ),
    ],
)
def test_evidence_without_the_wanted_kind_is_capped(
    wants: AnswerKind, question: str, holds: str, lacks: str, rules: Rules
) -> None:
    asked = asking(question, wants=wants)
    with_kind, without = grades(rules, asked, piece(holds), piece(lacks))
    assert with_kind >= 2
    assert without <= 1


@pytest.mark.parametrize(
    ("wants", "question", "answer"),
    [
        ("place", "Where does a walrus sleep?", "A walrus sleeps in the sea."),
        ("person", "Who leads the ward?", "The ward is led by the nurse who leads the shift."),
    ],
)
def test_a_person_or_place_may_be_a_common_word(
    wants: AnswerKind, question: str, answer: str, rules: Rules
) -> None:
    assert grades(rules, asking(question, wants=wants), piece(answer))[0] >= 2


def test_a_thing_that_no_document_mentions_is_capped(rules: Rules) -> None:
    question = asking("What is the salary of the ward's doctors?")
    evidence = [piece("The doctors of the ward meet at noon."), piece("Nurses work in two shifts.")]
    first, _ = rules(evidence).grade(question, evidence)
    assert first.grade == 1
    assert "words" in first.reason


@pytest.mark.parametrize(
    ("language", "asked", "other", "text"),
    [
        ("en", "When is breakfast?", "When is dinner?", "Breakfast is served from 7:00 to 10:30."),
        (
            "en",
            "Who is the night manager of the inn?",
            "Who is the day manager of the inn?",
            "At the inn the night manager is Owen Drake.",
        ),
        (
            "en",
            "How much does a late checkout cost?",
            "How much does a late breakfast cost?",
            "A late check-out until 14:00 costs £25.",
        ),
        ("ru", "Во сколько завтрак?", "Во сколько обед?", "Завтрак подают в 8:30."),
        ("uk", "О котрій сніданок?", "О котрій обід?", "Сніданок подають о 8:30."),
        ("zh", "馆长是谁？", "副馆长是谁？", "馆长是王建国。"),
        ("zh", "E1是什么意思？", "E2是什么意思？", "E1：温度传感器断路。"),
        (
            "en",
            "How much does the recording cost?",
            "How much does the catalogue cost?",
            "Recordings made on request cost £25.",
        ),
    ],
)
def test_another_of_the_kind_does_not_answer(
    rules: Rules, language: str, asked: str, other: str, text: str
) -> None:
    evidence = piece(text, language)
    assert grades(rules, asking(asked, language), evidence) >= [2]
    assert grades(rules, asking(other, language), evidence) < [2]


def test_empty_evidence_is_off_topic(rules: Rules) -> None:
    assert grades(rules, asking("What is the dose?"), piece("---")) == [0]
    assert rules().grade(asking("What is the dose?"), []) == []


def test_without_an_embedder_words_alone_decide() -> None:
    from builders import weights_for

    from core.settings import Settings

    question, exact, related, foreign = CASES["en"]
    evidence = [exact, related, foreign]
    reasoner = RulesReasoner(Settings(), weights_for(evidence), None)
    first, second, third = (grade.grade for grade in reasoner.grade(question, evidence))
    assert first == 3
    assert first > second >= third == 0


FILLERS = (
    "The canteen serves soup.",
    "Morphine is locked away.",
    "A nurse counts the keys.",
    "Who counts the doses?",
    "Cakes are sold on Fridays",
    "Room 12",
)


@settings(max_examples=examples(40), deadline=None)
@given(
    around=st.lists(st.sampled_from(FILLERS), max_size=4, unique=True),
    place=st.integers(0, 4),
)
def test_adding_the_answer_never_lowers_the_grade(
    around: list[str], place: int, minilm: Embedder
) -> None:
    from builders import weights_of

    from core.settings import Settings

    question, exact, *_ = CASES["en"]
    answer = "The highest dose of morphine for an adult is 20 mg."
    weights = weights_of([(exact.text, "en"), *((text, "en") for text in FILLERS)])
    reasoner = RulesReasoner(Settings(), weights, minilm)
    more = [*around[:place], answer, *around[place:]]
    before, after = (
        reasoner.grade(question, [piece(" ".join(texts) or "-")])[0].grade
        for texts in (around, more)
    )
    assert after >= before
    assert after >= 2


def test_the_best_piece_of_many_keeps_its_grade(rules: Rules) -> None:
    question, best, *_ = CASES["en"]
    others = [piece(f"The canteen serves soup number {number}.") for number in range(40)]
    evidence = [best, *others]
    assert rules(evidence).grade(question, evidence)[0].grade == 3
    assert all("no sentence" not in one.reason for one in rules(evidence).grade(question, evidence))


RECORDS = (
    (
        "en",
        "The Time Machine",
        "title: The Time Machine\nauthor: H. G. Wells\nyear: 1895\nprice: 18",
    ),
    (
        "ru",
        "Мастер и Маргарита",
        "название: Мастер и Маргарита\nавтор: Булгаков\nгод издания: 1973",
    ),
)
FIELDS = (
    ("What is the price of The Time Machine?", "text"),
    ("In what year was The Time Machine published?", "date"),
    ("В каком году издана книга Мастер и Маргарита?", "date"),
    ("Кто автор книги Мастер и Маргарита?", "person"),
)


@pytest.mark.parametrize(("text", "wants"), FIELDS)
def test_a_field_of_a_named_record_answers(rules: Rules, text: str, wants: AnswerKind) -> None:
    evidence = [piece(said, spoken, title=name, kind="record") for spoken, name, said in RECORDS]
    language = "ru" if text[0] > "z" else "en"
    question = asking(text, language, wants=wants)
    given = rules(evidence)
    best = {grade.evidence_id: grade.grade for grade in given.grade(question, evidence)}
    named = evidence[language == "ru"]
    assert best.pop(named.evidence_id) == 3
    assert max(best.values()) <= 1


def test_a_field_that_a_record_lacks_does_not_answer(rules: Rules) -> None:
    spoken, name, said = RECORDS[1]
    record = piece(said, spoken, title=name, kind="record")
    question = asking("Сколько страниц в книге Мастер и Маргарита?", "ru", wants="number")
    assert grades(rules, question, record)[0] <= 1


@pytest.mark.parametrize(
    ("language", "question", "wants", "text"),
    [
        ("ru", "Какова высота телебашни в городе Кедрогорске?", "number",
         "Телебашня Кедрогорска поднимается на 187 метров."),
        ("ru", "Сколько времени ехать до областного центра?", "number",
         "До областного центра ходит электричка, поездка занимает 2 часа 20 минут."),
        ("zh", "烘干机是哪一年买的？", "date", "烘干由两台新机器完成，它们是2019年从杭州买来的。"),
    ],
)  # fmt: skip
def test_what_is_put_in_other_words_is_named(
    language: str, question: str, wants: AnswerKind, text: str, rules: Rules
) -> None:
    given = rules([piece(text, language)]).grade(
        asking(question, language, wants=wants), [piece(text, language)]
    )
    assert given[0].grade >= 2, given[0].reason
    assert given[0].reading is not None


GATEWAY = "The Zorvex gateway depends on the Zorvex ledger and the Zorvex risk engine."
GATEWAY_RU = "Шлюз Zorvex зависит от Zorvex Ledger и от Zorvex Risk Engine."


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Who founded Zorvex?", "en"),
        ("Who is the CEO of Zorvex?", "en"),
        ("Кто основал Zorvex?", "ru"),
        ("Хто заснував Zorvex?", "uk"),
        ("Zorvex 是谁创办的?", "zh"),
    ],
)
def test_what_says_but_the_name_answers_nothing_in_any_language(
    question: str, language: str, rules: Rules
) -> None:
    asked = asking(question, language, wants="person")
    english = piece(GATEWAY, title="Zorvex payments")
    russian = piece(GATEWAY_RU, "ru", title="Платежи Zorvex")
    assert max(grades(rules, asked, english, russian)) <= 1


def test_an_answer_in_another_word_is_kept(rules: Rules) -> None:
    founded = piece(f"{GATEWAY} Zorvex was established by Maria Lind in 2011.", title="Zorvex")
    assert grades(rules, asking("Who founded Zorvex?", wants="person"), founded)[0] >= 2


def test_a_record_that_says_but_the_name_answers_nothing(rules: Rules) -> None:
    asked = asking("Who founded Zorvex?", wants="person")
    record = piece(GATEWAY, kind="record", title="Zorvex payments", ordinal=0)
    assert grades(rules, asked, record)[0] <= 1


def test_a_unit_needs_a_number_in_chinese(rules: Rules) -> None:
    asked = asking("每本书可以借多少天?", "zh", wants="number")
    praise = piece("本书篇幅很长，适合有一定阅读耐心的成年读者。", "zh")
    rule = piece("每本书可借 21 天，并可续借两次。", "zh")
    praised, ruled = grades(rules, asked, praise, rule)
    assert praised <= 1 < ruled


@pytest.mark.parametrize(
    ("language", "question", "text", "grade"),
    [
        ("en", "How do I delete a note?", "A note is synchronised when you close it.", 1),
        ("en", "How do I delete a note?", "Select the note and press Remove.", 2),
        ("en", "How do I uninstall the client?", "Install the client with its setup file.", 1),
        ("ru", "Как удалить заметку?", "Заметка сохраняется, когда вы её закрываете.", 1),
        ("ru", "Как удалить заметку?", "Выберите заметку и нажмите «Стереть».", 2),
        ("uk", "Як видалити нотатку?", "Нотатка зберігається, коли ви її закриваєте.", 1),
        ("zh", "怎么删除笔记?", "关闭笔记时会自动保存。", 1),
    ],
)
def test_a_way_to_do_something_needs_a_word_of_what_is_done(
    language: str, question: str, text: str, grade: int, rules: Rules
) -> None:
    wanted = asking(question, language)
    item = piece(text, language, title="note")
    found = rules([item]).grade(wanted, [item])[0]
    assert (found.grade >= 2) is (grade >= 2), found.reason


def test_the_row_of_another_code_does_not_answer(rules: Rules) -> None:
    table = "Code | Cause | Remedy\nV-17 | The tank is empty | Fill the tank within 5 days"
    asked = "How many days do I have to fill the tank with {}?"
    rows = piece(table, "en", kind="table")
    assert grades(rules, asking(asked.format("V-17"), "en", wants="number"), rows)[0] >= 2
    assert grades(rules, asking(asked.format("V-31"), "en", wants="number"), rows)[0] <= 1
