"""The calls of a search, once its query is known."""

from __future__ import annotations

from core.operations import FilledQuery, MapRetrieve, Retrieve
from core.settings import Settings
from core.types import Call, Finding, SubQuestion, ToolSpec
from nodes.retrieve import calls_of
from reasoning.planning.compiler import top_k
from reasoning.planning.slots import plain_query

SETTINGS = Settings()
TOP = top_k(SETTINGS)
LIMITED = {"properties": {"query": {}, "limit": {}}}


def tool(name: str, purpose: str, *, scoped: bool = True) -> ToolSpec:
    return ToolSpec(
        name=name, base="search", purpose=purpose, arguments=LIMITED, scoped=scoped, not_for=[]
    )


SERVICES = tool("lookup_services", "Find which team maintains a service.")
BOOKS = tool("read_books", "Read books about candles and their authors.")
GENERAL = tool("search", "Find passages.", scoped=False)
QUESTION = SubQuestion(
    id="q1",
    text="Who maintains {thing}?",
    query="maintains {thing}",
    language="en",
    calls=[Call(tool="lookup_services", arguments={"query": "maintains", "language": "en"})],
)


def retrieve(tools: list[str], top: int = TOP) -> Retrieve:
    return Retrieve(out="h1", question="q1", query="x", tools=tools, top_k=top)


def names(calls: list[Call]) -> list[str]:
    return [call.tool for call in calls]


def test_the_planners_calls_stand_for_its_own_query() -> None:
    plain = QUESTION.model_copy(update={"text": "Who runs it?", "query": "runs it"})
    found = calls_of(
        retrieve(["lookup_services"]), plain, plain_query(plain), [SERVICES, BOOKS], SETTINGS
    )
    assert found == QUESTION.calls


def test_a_filled_query_is_what_is_asked_and_may_add_a_tool() -> None:
    value = Finding(value="candle author", evidence_id="e", start=0, end=13)
    query = FilledQuery(text="t", query="maintains candle author", values={"thing": value})
    found = calls_of(retrieve(["lookup_services"]), QUESTION, query, [SERVICES, BOOKS], SETTINGS)
    assert names(found) == ["lookup_services", "read_books"]
    assert {call.arguments["query"] for call in found} == {"maintains candle author"}
    alone = calls_of(retrieve(["search"]), QUESTION, query, [GENERAL], SETTINGS)
    assert names(alone) == ["search"]


def test_without_tools_the_specs_choose() -> None:
    query = FilledQuery(text="t", query="authors of books about candles")
    assert names(calls_of(retrieve([]), QUESTION, query, [SERVICES, BOOKS], SETTINGS)) == [
        "read_books"
    ]


def test_another_number_of_hits_is_asked_for() -> None:
    query = FilledQuery(text="t", query="candles")
    (call,) = calls_of(retrieve(["search"], 3), QUESTION, query, [GENERAL], SETTINGS)
    assert call.arguments["limit"] == 3
    (call,) = calls_of(retrieve(["search"]), QUESTION, query, [GENERAL], SETTINGS)
    assert "limit" not in call.arguments


def test_the_language_of_a_plan_file_is_detected() -> None:
    said = "und"
    asked = QUESTION.model_copy(update={"language": said})
    query = FilledQuery(text="t", query="Кто написал эту книгу о свечах и когда её издали?")
    hop = MapRetrieve(
        out="m",
        question="q1",
        template="{entity}",
        entities="e",
        tools=["search"],
        top_k=TOP,
        fan_out=1,
    )
    (call,) = calls_of(hop, asked, query, [GENERAL], SETTINGS)
    assert call.arguments["language"] == "ru"
