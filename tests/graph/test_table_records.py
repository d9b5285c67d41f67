"""Tables that stand in documents are counted, filtered and added up, beside the prose around."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.session import Session
from core.auth import AuthContext
from core.settings import load_settings

ANN = AuthContext(tenant="default", user="ann")
PLAN = """# Maintenance of hall 2

The plan lists the machines of hall 2. The next review is on 12 July.

| Machine | Pressure (bar) | Status | Owner |
|---|---|---|---|
| Pump P-1 | 12.5 | open | Anna Berg |
| Pump P-2 | 16 | closed | Otto Lind |
| Press K-7 | 210 | open | Anna Berg |
| Lathe D-3 | 6 | open | Maria Sokol |
"""
DESK = """<h1>Заявки</h1><p>Выгрузка за март.</p><table>
<tr><th>Заявка</th><th>Состояние</th><th>Часы</th></tr>
<tr><td>З-1</td><td>решена</td><td>4</td></tr>
<tr><td>З-2</td><td>ожидает</td><td>1,5</td></tr>
<tr><td>З-3</td><td>ожидает</td><td>9</td></tr></table>"""
BOATS = """name,class,built,stock,price_eur,lead_days
Heron,single,2012,4,900,14
Coot,single,1999,0,450,30
Swift,double,2023,7,1200,21
Mallard,double,2008,0,700,7
"""
CLUBS = """кружок,руководитель,день,плата_в_месяц,мест,свободно
Шахматы,Лев Грачёв,вторник,400,20,5
Хор,Мария Серова,пятница,300,40,12
Лепка,Мария Серова,вторник,600,15,3
Плавание,Олег Панин,среда,1500,16,0
"""
DOCTORS = """прізвище,фах,поверх,стаж_років,ціна_прийому_грн,приймає_дітей
Бойко,терапевтка,3,27,450,ні
Мельник,невролог,2,15,600,ні
Ткач,хірург,3,31,550,так
Романюк,педіатр,1,9,400,так
"""
JABS = """# Щеплення

| Вакцина | Кому | Ціна |
|---|---|---|
| Грип | усі від 6 місяців | 420 грн |
| Гепатит В | дорослі | 510 грн |
"""
BATH = """# Баня

| Сеанс | Взрослые | Дети |
|---|---|---|
| Общий, 2 часа | 600 руб. | 250 руб. |
| Отдельный кабинет, 1 час | 1800 руб. | 900 руб. |
"""
ANSWERS = [
    ("How many rows have status open?", "3 of 4 records", 0),
    ("How many machines are there?", "4 records", 0),
    ("Which machine has the highest pressure?", "Press K-7 — pressure: 210 bar", 1),
    ("Which machines belong to Anna Berg?", "Press K-7", 2),
    ("What is the pressure of Pump P-2?", "Pump P-2 — ", 0),
    ("When is the next review?", "on 12 July", 0),
    ("Сколько заявок ожидает?", "2", 0),
    ("Which boat is the oldest?", "Coot — built: 1999", 1),
    ("Which boat was built last?", "Swift — built: 2023", 1),
    ("How many boats are out of stock?", "2 of 4 records", 0),
    ("Which boat has the longest lead time?", "Coot — lead days: 30", 1),
    ("How much does the Heron cost?", "price eur: 900", 1),
    ("Какой кружок самый дорогой?", "Плавание — плата в месяц: 1500", 1),
    ("Сколько кружков ведёт Мария Серова?", "2 из 4", 0),
    ("В каком кружке больше всего свободных мест?", "Хор", 1),
    ("В какой день занимается хор?", "Хор — день: пятница", 1),
    ("Скільки лікарів приймають дітей?", "2 із 4", 0),
    ("У кого з лікарів найбільший стаж?", "Ткач — стаж років: 31", 1),
    ("Скільки коштує прийом у хірурга?", "ціна прийому грн: 550", 1),
    ("Скільки лікарів на третьому поверсі?", "2 із 4", 0),
    ("Какие кружки ведёт Мария Серова?", "2. Лепка", 2),
    ("Какие собрания ведёт Олег Панин?", "Плавание", 1),
    ("Який лікар бере найбільше за прийом?", "Мельник — ціна прийому грн: 600", 1),
    ("Сколько стоит общий сеанс для детей?", "Общий, 2 часа — Дети: 250 руб. [1]", 0),
    ("Сколько кружков с платой 300?", "1 из 4 (плата_в_месяц = 300)", 0),
    ("Скільки коштує щеплення від грипу?", "Грип — Ціна: 420 грн [1]", 0),
]
REFUSED = [
    "How many boats did the club sell?",
    "Which boat is the fastest?",
    "How many boats are broken?",
    "Сколько кружков закрыла Мария Серова?",
    "Скільки лікарів звільнилося?",
    "Скільки коштує щеплення від кору?",
    "Какие книги ведёт Олег Панин?",
    "How many parrots are on sale?",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder: Path = tmp_path_factory.mktemp("tables")
    (folder / "plan.md").write_text(PLAN)
    (folder / "desk.html").write_text(DESK)
    texts = {"boats.csv": BOATS, "kruzhki.csv": CLUBS, "likari.csv": DOCTORS, "jabs.md": JABS}
    texts["bath.md"] = BATH
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    given = {"data": folder / "data", "embedder": "embedded"}
    with Session(load_settings(given)[0], create=True, needs_embedder=True) as opened:
        target = opened.intake.open_collection("default", "default", None)
        opened.ingest(
            target, [folder / "plan.md", folder / "desk.html", *map(folder.joinpath, texts)]
        )
        yield opened


@pytest.mark.parametrize(("question", "answer", "listed"), ANSWERS)
def test_a_question_about_a_table_is_answered_by_its_rows(
    session: Session, question: str, answer: str, listed: int
) -> None:
    result = session.ask(question, ANN, "default").result
    assert answer in result["answer"], result["answer"]
    cited = {one["source"] for claim in result["claims"] for one in claim["citations"]}
    assert sum("!" in one or "#" in one for one in cited) >= listed
    texts = [claim["text"] for claim in result["claims"]]
    assert len(set(texts)) == len(texts)


def test_rows_have_the_rights_of_their_document_and_go_with_it(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text(PLAN)
    (tmp_path / "open.md").write_text("# Hall 3\n\nThe hall is empty.\n")
    given = {"data": tmp_path / "data", "embedder": "embedded"}
    with Session(load_settings(given)[0], create=True, needs_embedder=True) as opened:
        target = opened.intake.open_collection("default", "default", None)
        opened.ingest(target, [tmp_path / "plan.md"], acl=frozenset({"board"}))
        opened.ingest(target, [tmp_path / "open.md"])
        board = AuthContext(tenant="default", user="bob", roles=frozenset({"board"}))
        seen = [opened.catalogue.describe_records(one, target.id) for one in (ANN, board)]
        assert [sum(table.records for table in one.tables) for one in seen] == [0, 4]
        assert not seen[0].fields
        titles = [one.title for one in opened.catalogue.document_names(board, target.id)]
        assert "Pump P-1" not in titles  # no document that a question could name
        gone = opened.maintenance.named_document(target, "plan.md")
        assert opened.maintenance.would_forget(target, [gone])["documents"] == 5
        opened.maintenance.forget(target, [gone], keep_out=True)
        assert opened.catalogue.list_documents(board, target, after="", limit=9)[0]["title"] == (
            "Hall 3"
        )
        (tmp_path / "plan.md").write_text(PLAN + "| Saw S-1 | 2 | open | Anna Berg |\n")
        opened.ingest(target, [tmp_path / "plan.md"])
        assert len(opened.catalogue.list_documents(board, target, after="", limit=9)) == 1


@pytest.mark.parametrize("question", REFUSED)
def test_what_no_record_says_is_refused(session: Session, question: str) -> None:
    assert session.ask(question, ANN, "default").result["refused"]


LONG = {
    "en": ("boats", "name,built", "Boat", "Which boats are there?"),
    "ru": ("книги", "название,год", "Книга", "Какие есть книги?"),
    "uk": ("книжки", "назва,рік", "Книжка", "Які є книжки?"),
    "zh": ("图书", "书名,年份", "书", "有哪些图书？"),
}
SHOWN = {
    "en": "Show 24 boats",
    "ru": "Покажи 24 книги",
    "uk": "Покажи 24 книжки",
    "zh": "显示24本图书",
}


@pytest.mark.parametrize("language", LONG)
def test_a_list_says_how_to_see_the_rest(session: Session, tmp_path: Path, language: str) -> None:
    name, head, thing, question = LONG[language]
    rows = "\n".join(f"{thing} {n},{1990 + n}" for n in range(24))
    (tmp_path / f"{name}.csv").write_text(f"{head}\n{rows}\n", encoding="utf-8")
    target = session.intake.open_collection("default", f"long-{language}", None)
    session.ingest(target, [tmp_path])
    first = session.ask(question, ANN, target.name).result["answer"].split("\n")
    assert len(first) == 11 and "24" in first[0] and SHOWN[language].split("24")[0].strip(
    ).lower() in first[0].lower()  # fmt: skip
    every = session.ask(SHOWN[language], ANN, target.name).result["answer"].split("\n")
    assert len(every) == 25  # more than `plan.max_evidence` pieces


def test_a_value_that_no_row_has_is_not_counted_as_none(session: Session, tmp_path: Path) -> None:
    for name, rows in (("north", "A,North,12\nB,North,30"), ("west", "C,West,90\nD,South,7")):
        (tmp_path / f"loans_{name}.csv").write_text(f"loan,branch,cost\n{rows}\n")
    target = session.intake.open_collection("default", "loans", None)
    session.ingest(target, [tmp_path])
    for question, answer in (
        ("How many loans are there at the branch East?", "there are: North"),
        ("How many loans are there at the branch North?", "2 of 4 records"),
        ("How many loans of branch West cost more than 500?", "0 of 4 records"),
        ("Which loan has the highest cost?", "C — cost: 90"),  # of both tables
    ):
        found = session.ask(question, ANN, "loans").result["answer"]
        assert answer in found and ("East" not in question or "0 of" not in found), found


OFFICES = """# {place} office

The office opened in {opened}.

## Staff of {place}

| Employee | Department | Salary | Hired |
|---|---|---|---|
{rows}
"""
LOANS = """<h1>Loans in {month}</h1><p>Of the town library.</p><table>
<tr><th>Book</th><th>Branch</th><th>Days</th></tr>{rows}</table>"""
SEVERAL = [
    ("How many loans at East?", "3 of 5 records", "february.html"),
    ("How many loans in February?", "2 records in february.html", "february.html"),
    ("Which loan has the most days?", "Ulysses — days: 30", "february.html"),
    ("Which has the most days?", "Ulysses — days: 30", "february.html"),
    ("Which employee has the highest salary?", "Max Huber — salary: 5600", "vienna.md"),
    ("What is the average salary in Engineering?", "average Salary: 5400", "vienna.md"),
    ("What is the average salary?", "average Salary: 4700", "vienna.md"),
    ("What is Otto Lind's salary?", "Otto Lind — salary: 5200", "berlin.md"),
    ("What is the salary of Ida Brown?", "", ""),
    ("When did the Vienna office open?", "opened in 2016.", "vienna.md"),
    ("上海有多少商品？", "2 条记录", "shanghai.md"),
    ("价格最高的商品是什么？", "炒锅", "shanghai.md"),
]


@pytest.fixture(scope="module")
def several(session: Session, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("several")
    rows = {
        "january": ["Dune|East|14", "Emma|West|21", "Persuasion|East|7"],
        "february": ["Ulysses|East|30", "Emma|North|3"],
    }
    for month, lines in rows.items():
        cells = "".join(f"<tr><td>{one.replace('|', '</td><td>')}</td></tr>" for one in lines)
        (folder / f"{month}.html").write_text(LOANS.format(month=month.title(), rows=cells))
    berlin = "| Anna Berg | Sales | 4100 | 2015-03-01 |\n| Otto Lind | Engineering | 5200 | 2018 |"
    vienna = "| Max Huber | Engineering | 5600 | 2017 |\n| Eva Gruber | Sales | 3900 | 2019 |"
    for place, opened, lines in (("Berlin", 2011, berlin), ("Vienna", 2016, vienna)):
        text = OFFICES.format(place=place, opened=opened, rows=lines)
        (folder / f"{place.lower()}.md").write_text(text)
    for name, place, lines in (
        ("beijing", "北京", "| 茶壶 | 厨具 | 88 |\n| 毛巾 | 家纺 | 25 |"),
        ("shanghai", "上海", "| 茶杯 | 厨具 | 35 |\n| 炒锅 | 厨具 | 168 |"),
    ):
        table = f"| 商品 | 类别 | 价格 |\n|---|---|---|\n{lines}\n"
        (folder / f"{name}.md").write_text(f"# {place}分店销售\n\n{table}", encoding="utf-8")
    target = session.intake.open_collection("default", "several", None)
    session.ingest(target, [folder])
    return target.name


@pytest.mark.parametrize(("question", "answer", "source"), SEVERAL)
def test_tables_of_several_documents_are_asked_together(
    session: Session, several: str, question: str, answer: str, source: str
) -> None:
    result = session.ask(question, ANN, several).result
    assert result["refused"] == (not answer)
    assert answer in (result["answer"] or ""), result["answer"]
    rows = f"{result['claims']}"
    assert source in rows
