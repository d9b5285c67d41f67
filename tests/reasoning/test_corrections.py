"""Which earlier statement a later one corrects, or says that it has changed."""

from __future__ import annotations

import pytest

from core.language.detect import detect_language
from core.notes import Note, NoteDraft, TurnSource
from core.settings import load_settings
from models.loading import open_embedded
from reasoning.corrections import LEAST, gives_other_value, superseding_odds


def note(text: str, language: str) -> Note:
    source = TurnSource(conversation="c", run_id="r", quote=text)
    time = "2026-01-01T00:00:00+00:00"
    kept = {"note_id": "n", "tenant": "t", "owner": "o", "created_at": time, "changed_at": time}
    return Note(content=text, provenance=source, language=language, **kept)  # type: ignore[arg-type]


def takes(earlier: str, later: str, *, last: bool = False, embedded: bool = True) -> bool:
    language = detect_language(earlier)
    source = TurnSource(conversation="c", run_id="r", quote=later)
    draft = NoteDraft(content=later, provenance=source, language=language)
    embedder = open_embedded(load_settings()[0]) if embedded else None
    notes = [note(earlier, language)]
    return superseding_odds(draft, notes, "n" if last else "", embedder)[0] > LEAST


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The board meeting is on Thursday.", "The board meeting is on Friday, not on Thursday."),
        ("The choir sings in the hall.", "The choir sings in the library now instead of the hall."),
        ("We decided to use Postgres.", "We decided against Postgres and will use SQLite."),
        ("I drive an old Fiat.", "I sold the Fiat and got a Skoda."),
        ("Отчёт сдаю Виктору.", "Отчёт сдаю не Виктору, а Людмиле."),
        ("Мы решили перенести ревизию на май.", "Ревизию перенесли на июнь вместо мая."),
        ("Торт замовили з полуницею.", "Торт буде з вишнею, не з полуницею."),
        ("客厅刷米色的漆。", "客厅改刷浅绿，不要米色了。"),
    ],
)
def test_what_changes_a_value_takes_the_place_of_the_earlier(earlier: str, later: str) -> None:
    assert takes(earlier, later)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("My brother lives in Rome.", "My sister lives in Rome now."),
        ("I like green tea.", "I don't like coffee."),
        ("We use Kafka for events.", "We also use Redis now."),
        ("I am allergic to nuts.", "I am not allergic to nuts."),  # both are shown
        ("Я люблю чай.", "Я не люблю кофе."),
        ("我喜欢绿茶。", "我不喜欢咖啡。"),
        ("The roof was redone in 2021.", "Our office moved to the old brewery."),
    ],
)
def test_what_is_of_another_thing_does_not(earlier: str, later: str) -> None:
    assert not takes(earlier, later)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The meeting is on 3 June.", "No, 5 June."),
        ("My dentist appointment is at 9.", "sorry, at 10"),
        ("The printer is a Brother.", "no it's a Canon, i just looked"),
        ("The deposit was 350 pounds.", "*450"),
        ("Встреча в четверг.", "Нет, в пятницу."),
        ("Наша команда называется «Вихрь».", "извини, «Шторм»"),
        ("Хрестини 3 серпня.", "Ні, 10 серпня."),
        ("我的预约在周三。", "不对，是周四。"),
    ],
)
def test_a_few_words_give_the_last_statement_another_value(earlier: str, later: str) -> None:
    assert gives_other_value(later, detect_language(earlier), earlier)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The meeting is on 3 June.", "no, thanks"),
        ("The meeting is on 3 June.", "sorry, wrong window"),
        ("The meeting is on 3 June.", "No, when is it?"),
        ("Встреча в четверг.", "нет, спасибо"),
        ("The meeting is on 3 June.", "5 June is a holiday in Denmark."),
    ],
)
def test_small_talk_corrects_nothing(earlier: str, later: str) -> None:
    assert not gives_other_value(later, detect_language(earlier), earlier)
