"""The conventions of the code, read from its syntax trees and checked on a running graph."""

from __future__ import annotations

import ast
import re
import time
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, write
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.types import Command
from source_trees import ROOT, files, imports, nodes, parsed, place

import graph.build
from core.auth import AuthContext
from core.notes import NoteDraft, TurnSource
from core.settings import Settings
from core.types import Plan, SubQuestion
from graph.build import NODES, build_graph
from graph.context import Context
from graph.state import State, Update, state_serializer
from reasoning.planning.compiler import compiled
from reasoning.planning.files import PlanFile
from reasoning.rules.reasoner import RulesReasoner
from retrievers.types import Index
from stores.runlog.conversations import KeptTurn
from stores.store import Store
from tools.toolbox import Toolbox

BELOW = {
    "languages": [],
    "core": ["languages"],
    "display": ["core"],
    "models": ["languages", "core"],
    "stores": ["core"],
    "ingest": ["languages", "core", "models", "stores"],
    "retrievers": ["languages", "core", "models", "stores"],
    "tools": ["languages", "core", "models", "stores", "retrievers"],
    "reasoning": ["languages", "core", "models"],
    "nodes": ["core", "tools", "reasoning", "graph.state", "graph.context", "graph.reading"],
    "graph": ["core", "models", "stores", "retrievers", "tools", "reasoning", "nodes"],
    "app": [
        *("core", "models", "stores", "ingest", "retrievers", "tools", "reasoning", "nodes"),
        "graph",
    ],
}
ENTRIES = ["evals", "serve", "cli", "carrel"]
ROOMS = [*BELOW, *ENTRIES]
# Rooms whose modules still import each other in circles.
CIRCULAR = ("cli", "stores")
WITHOUT_LANGGRAPH = [
    "core",
    "display",
    "models",
    "stores",
    "ingest",
    "retrievers",
    "tools",
    "reasoning",
]
LATE_IMPORTS = 105  # import statements inside functions, of all rooms
# Rooms whose names are plain already, and the folders among them where they are not yet.
PLAIN_NAMES = (
    *("languages", "core", "models", "ingest", "app", "serve", "reasoning", "retrievers", "tools"),
    *("nodes", "graph", "evals", "display"),
    *("stores/segments", "stores/runlog", "stores/accounts", "stores/index"),
)
NO_NAMES = {"anew", "told", "said", "held", "mended"}
MAY_BUILD = ("app/session.py", "app/studio.py", *(f"{room}/" for room in ENTRIES))


def late_imports(path: Path) -> int:
    """Count the import statements inside the functions of a file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    inside = {
        (node.lineno, node.col_offset)
        for function in nodes(path)
        if isinstance(function, functions)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(inside)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def test_every_class_name_exists_once() -> None:
    """So that a search for a name finds one class, private ones and inner ones included."""
    places: dict[str, list[str]] = {}
    for path in files(*ROOMS):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{place(path)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def identifiers(path: Path) -> set[str]:
    """Return the names of everything that a file defines or uses."""
    found = (
        getattr(node, field, None)
        for node in nodes(path)
        for field in ("id", "attr", "arg", "name", "asname")
    )
    return {name for name in found if isinstance(name, str)}


def test_names_say_what_a_thing_is() -> None:
    """A sentence is `text` or `message`, not `said`; what is kept is `stored`, not `held`."""
    wrong = {
        place(path): names
        for path in files(*PLAIN_NAMES)
        if (
            names := {name for name in identifiers(path) if NO_NAMES & set(name.lower().split("_"))}
        )
    }
    assert wrong == {}


def test_imports_inside_functions_become_fewer() -> None:
    """Those left load what is large and only sometimes needed; the bound may only fall."""
    assert sum(map(late_imports, files(*ROOMS))) <= LATE_IMPORTS


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_only_what_is_below_it(room: str) -> None:
    allowed = [room, *BELOW[room]]
    wrong = [
        f"{place(path)} imports {module}"
        for path in files(room)
        for module in imports(path)
        if module.split(".")[0] in ROOMS
        and not any(within(module, package) or within(package, module) for package in allowed)
    ]
    assert wrong == []


def test_nothing_imports_what_is_above_all() -> None:
    wrong = [
        f"{place(path)} imports {module}"
        for room, above in (
            ("evals", ["serve", "cli", "carrel"]),
            ("serve", ["evals", "cli", "carrel"]),
            ("cli", ["carrel"]),
        )
        for path in files(room)
        for module in imports(path)
        if module.split(".")[0] in above
    ]
    assert wrong == []


def circles(imported: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules each of which reaches all others of its group (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_ones: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        open_ones.append(module)
        for other in imported[module]:
            if other not in number:
                visit(other)
            if other in open_ones:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            place = open_ones.index(module)
            group = open_ones[place:]
            del open_ones[place:]
            found.append(sorted(group))

    for module in imported:
        if module not in number:
            visit(module)
    return [group for group in found if len(group) > 1]


def test_circles_are_found() -> None:
    known = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set(), "f": {"f"}}
    assert circles(known) == [["a", "b", "c"]]


def test_no_modules_import_each_other() -> None:
    """Not even for types alone; a package that imports its own modules is no circle."""
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files(*ROOMS)
    }
    found = circles({name: {*imports(path)} & set(names) - {name} for name, path in names.items()})
    assert [group for group in found if not within_any(group[0], CIRCULAR)] == []


def within_any(module: str, packages: Sequence[str]) -> bool:
    return any(within(module, package) for package in packages)


def test_only_nodes_and_graph_know_langgraph() -> None:
    wrong = [
        place(path)
        for path in files(*WITHOUT_LANGGRAPH)
        if any(within(module, "langgraph") for module in imports(path))
    ]
    assert wrong == []


SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|DELETE\s+FROM|UPDATE\s+\w+\s+SET|PRAGMA)\b",
    re.DOTALL,
)
# LangGraph's own file of conversations, and a nameless table of what one run has come by; of these
# the first is opened as LangGraph wants it.
OWN_TABLES = {"graph/threads.py", "graph/postgres_threads.py", "ingest/known.py"}
OWN_FILE = "graph/threads.py"
PORTS = ("stores/ports.py", "stores/coordination.py", "stores/index/port.py")
STORES = {"store", "_store"}


def outside_the_stores() -> Iterator[tuple[str, ast.AST]]:
    for path in files(*(room for room in ROOMS if room != "stores")):
        for node in nodes(path):
            yield place(path), node


def test_nothing_outside_reaches_through_a_store() -> None:
    """What a caller works with, it is given: a port, not the way to it."""
    wrong = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, node in outside_the_stores()
        if isinstance(node, ast.Attribute)
        and isinstance(part := node.value, ast.Attribute)
        and getattr(part.value, "attr", getattr(part.value, "id", "")) in STORES
    ]
    assert wrong == []


def test_only_the_stores_know_sql() -> None:
    wrong = [
        f"{name}:{node.lineno} {node.value[:40]!r}"
        for name, node in outside_the_stores()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if name not in OWN_TABLES and SQL.search(node.value)
    ]
    assert wrong == []


def test_only_the_stores_know_sqlite() -> None:
    """Those above catch a StorageError, which the errors of SQLite are."""
    wrong = [
        name
        for path in files(*(room for room in ROOMS if room != "stores"))
        if (name := path.relative_to(ROOT).as_posix()) != OWN_FILE
        and any(within(module, "sqlite3") for module in imports(path))
    ]
    assert wrong == []


def test_a_store_has_few_parts(store: Store) -> None:
    ports = {name for name in vars(store) if not name.startswith("_")}
    assert ports - {"scan"} == {
        *("catalogue", "intake", "runs", "accounts", "notes", "maintenance", "search", "trees")
    }


def test_only_entry_points_build_the_graph() -> None:
    wrong = [
        name
        for path in files(*ROOMS)
        if not (name := place(path)).startswith(MAY_BUILD)
        and any(within(module, "graph.build") for module in imports(path))
    ]
    assert wrong == []


def test_the_graph_package_is_empty() -> None:
    """Re-exports here would make every node import the whole graph."""
    assert (ROOT / "graph" / "__init__.py").read_bytes() == b""


def test_the_packages_listed_are_those_that_exist() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = {path.parent.relative_to(ROOT).as_posix().replace("/", ".") for path in files(*ROOMS)}
    assert set(listed["tool"]["setuptools"]["packages"]) == found | {"profiles", "cli.examples"}


def described_by_ports() -> set[str]:
    """Return the names of the methods whose description is that of a port of the stores."""
    trees = [parsed(ROOT / name) for name in PORTS]
    return {
        member.name
        for tree in trees
        for port in tree.body
        if isinstance(port, ast.ClassDef)
        for member in port.body
        if isinstance(member, ast.FunctionDef) and ast.get_docstring(member)
    }


def undocumented(path: Path, described: Collection[str]) -> Iterator[str]:
    tree = parsed(path)
    if path.read_bytes() and not ast.get_docstring(tree):
        yield place(path)
    protocols = {
        node
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and any(ast.unparse(b) == "Protocol" for b in node.bases)
    }
    attributes = {
        member
        for protocol in protocols
        for member in protocol.body
        if isinstance(member, ast.FunctionDef) and member.decorator_list
    }
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]
    for owner in [tree, *classes]:
        for node in owner.body:
            named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if not named or node.name.startswith("_") or node in attributes:
                continue
            if not ast.get_docstring(node) and (owner is tree or node.name not in described):
                yield f"{place(path)}:{node.lineno} {node.name}"


def test_everything_public_has_a_docstring() -> None:
    """Or, in the stores, is described by the port that it stands behind."""
    described = described_by_ports()
    stores = files("stores")
    assert [
        one
        for path in files(*ROOMS)
        for one in undocumented(path, described if path in stores else ())
    ] == []


def test_every_node_is_named_by_its_file() -> None:
    named = {node.__name__: node.__module__ for node in NODES}
    assert named == {name: f"nodes.{name}" for name in named}
    assert {path.stem for path in files("nodes")} - {"__init__"} == set(named)


QUESTIONS = [
    ("Where is the harbour?", Settings(data=ROOT)),
    ("Where is the harbour? And how high is the tower?", Settings(data=ROOT)),
    ("Who invented the telephone?", Settings(data=ROOT)),
    ("Where is the harbour?", Settings(data=ROOT, budget_tool_calls=0)),
]
CHAIN = Plan(
    questions=[
        SubQuestion(id="q1", text="Where is the harbour?", query="harbour", slot="place"),
        SubQuestion(id="q2", text="What is in {place}?", query="{place}", deps=["q1"]),
    ]
)


@pytest.fixture
def tools(store: Store, embedder: FakeEmbedder) -> Toolbox:
    collection = store.intake.open_collection("acme", "main", None)
    texts = {
        "harbour": "The harbour is in the north of the town. It opened in 1900.",
        "tower": "The tower is 80 metres high. It stands on the hill.",
    }
    rows = [document(collection, name, text, title=name) for name, text in texts.items()]
    write(store, collection, rows, embedder)
    return Toolbox(Index(store, collection, embedder, Settings(data=store.folder)))


def test_every_node_writes_keys_of_the_state_alone(
    tools: Toolbox, embedder: FakeEmbedder, store: Store
) -> None:
    """LangGraph drops any other key without a word."""
    written: dict[str, set[str]] = {}

    def watched(node: graph.build.Node) -> graph.build.Node:
        def run(state: State, runtime: Runtime[Context]) -> Update:
            update = node(state, runtime)
            written.setdefault(node.__name__, set()).update(update)
            return update

        run.__name__ = node.__name__
        return run

    built = build_graph(watched)
    for question, settings in QUESTIONS:
        reasoner = RulesReasoner(settings, tools.term_weights(), embedder)
        context = Context(
            AuthContext(tenant="acme"), tools, reasoner, settings, clock=time.monotonic
        )
        result = built.invoke({"question": question}, context=context)
        assert result["answer"].text
        assert result["trail"]
    settings = Settings(data=ROOT)
    context = Context(
        AuthContext(tenant="acme"),
        tools,
        RulesReasoner(settings, tools.term_weights(), embedder),
        settings,
        given=PlanFile(plan=CHAIN, operations=compiled(CHAIN, settings)),
    )
    built.invoke({"question": "Where is the harbour?"}, context=context)
    context = replace(context, given=None, may_clarify=True)
    kept = built.copy(update={"checkpointer": InMemorySaver(serde=state_serializer())})
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}
    kept.invoke({"question": "Where is it?"}, thread, context=context)
    kept.invoke(Command(resume="the harbour"), thread, context=context)
    auth = context.auth
    talk = store.runs.create_conversation(auth.tenant, auth.user, "main")
    store.runs.save_turn(talk, KeptTurn("r1", "My name is Ann."), "", title="")
    source = TurnSource(conversation=talk.id, run_id="r1", quote="My name is Ann.")
    store.notes.write_notes(auth, [NoteDraft(content="My name is Ann.", provenance=source)])
    context = replace(context, may_clarify=False, recalls=True)
    built.invoke({"question": "What is my name?"}, context=context)
    assert set(written) >= {node.__name__ for node in NODES}
    known = State.__annotations__.keys()
    assert {name: keys - known for name, keys in written.items() if keys - known} == {}


def literal_keys(path: Path) -> Iterator[str]:
    """Yield the keys of the update that a node's function builds, as far as it spells them."""
    function = next(
        n for n in parsed(path).body if isinstance(n, ast.FunctionDef) and n.name == path.stem
    )
    for node in ast.walk(function):
        if isinstance(node, ast.Return):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Dict) and inner in top_dicts(node):
                    yield from (k.value for k in inner.keys if isinstance(k, ast.Constant))
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Subscript) and ast.unparse(target.value) == "update":
                assert isinstance(target.slice, ast.Constant)
                yield target.slice.value


def top_dicts(returned: ast.Return) -> list[ast.expr]:
    """Return the dicts that a statement like `return update | {...}` joins."""
    parts: list[ast.expr] = [returned.value] if returned.value else []
    while any(isinstance(part, ast.BinOp) for part in parts):
        joined = next(part for part in parts if isinstance(part, ast.BinOp))
        parts.remove(joined)
        parts += [joined.left, joined.right]
    return parts


@pytest.mark.parametrize("node", [node.__name__ for node in NODES])
def test_the_keys_a_node_spells_are_keys_of_the_state(node: str) -> None:
    assert set(literal_keys(ROOT / "nodes" / f"{node}.py")) <= State.__annotations__.keys()
