"""The mode in which Chroma answers (`vector_exact_limit=0`): rights, damage, kills, recall."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attack_disk_child import SETTINGS, Tally, in_fork, unwell
from benchmarks.ingest_corpus import InstantEmbedder
from core.auth import AuthContext
from core.faults import VARIABLE

ROLES = ("board", "legal", "staff", "lab")
TENANTS = ("alpha", "beta")
WORDS = ("lamp", "harbour", "bread", "walrus", "candle", "budget", "tea", "owl", "bridge", "mill")
PIPELINES = ("vector", "hybrid", "linked", "keyword")
LEAST_RECALL, DEPTH = 0.95, 10
STAGES = ("vectors.before", "vectors.after", "outbox.before", "outbox.after", "verified.before")


class WordEmbedder(InstantEmbedder):
    """Give a text the sum of random vectors of its words, so that texts alike are near."""

    model_id = "words"

    def embed_documents(self, texts: Sequence[str]) -> Any:  # noqa: ANN401
        """Return unit rows."""
        rows = np.array([sum(map(_word, text.split()), np.zeros(self.dimension)) for text in texts])
        rows = rows.reshape(len(texts), self.dimension)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1e-12), dtype=np.float32)


@lru_cache(10_000)
def _word(word: str) -> Any:  # noqa: ANN401
    return InstantEmbedder().embed_query(word.strip(".,").casefold())


def callers() -> list[AuthContext]:
    """Return callers of both tenants: without a role, with one, with all."""
    roles = [frozenset[str](), *(frozenset({one}) for one in ROLES), frozenset(ROLES)]
    return [
        AuthContext(tenant=t, user=f"u{n}", roles=r) for t in TENANTS for n, r in enumerate(roles)
    ]


def asked_chroma(work: Path, draw: random.Random, *, quick: bool) -> Iterator[Tally]:
    """Make two tenants with closed documents and attack the index that answers."""
    data = work / "data"
    work.mkdir(parents=True)
    documents = 120 if quick else 400
    made = in_fork(lambda: _made(work, data, documents))
    if made.code:
        raise SystemExit(made.err)
    yield _told(Tally("Chroma answers: rights (callers x pipelines x questions), counts"),
                lambda: _probed(data, 8 if quick else 40, draw.random()))  # fmt: skip
    yield _told(Tally(f"Chroma answers: recall at {DEPTH} against the exact scan"),
                lambda: _recalled(data, 6 if quick else 25, draw.random()))  # fmt: skip
    yield _damaged(work, data, draw, 8 if quick else 60)
    yield _killed(work, data, draw, 5 if quick else 25)


def _told(tally: Tally, work: Callable[[], list[tuple[str, list[str], str]]]) -> Tally:
    """Take the cases of a fork."""

    def run() -> int:
        print(json.dumps(work()))
        return 0

    ended = in_fork(run)
    if ended.code:
        tally.case("the run", [ended.err.strip()[-400:]])
    else:
        for what, problems, note in json.loads(ended.out):
            tally.case(what, problems, note)
    return tally


def _session(data: Path, exact: int, **given: Any) -> Any:  # noqa: ANN401
    import graph.session
    from cli.options import opened
    from core.settings import load_settings

    graph.session.open_embedder = lambda settings: WordEmbedder()  # type: ignore[attr-defined]
    changes = {**SETTINGS, "segment_min_rows": 20, "vector_exact_limit": exact, **given}
    return opened(load_settings({"data": data, **changes})[0], create=True, needs_embedder=True)


def _readers(number: int) -> frozenset[str]:
    """Return who may read a document: one in four is open, the others are for one role."""
    return frozenset() if number % 4 == 0 else frozenset({ROLES[number % 3 + (number % 8 == 7)]})


def _text(tenant: str, number: int) -> str:
    secret = f"SECRET{tenant.upper()}{number}X"
    return f"{WORDS[number % 10]} {secret} and the {WORDS[number * 7 % 10]} of note {number}.\n"


def _made(work: Path, data: Path, documents: int) -> int:
    from ingest.pipeline import Pipeline

    with _session(data, 0) as session:
        for tenant in TENANTS:
            target = session.store.writer.open_collection(tenant, "main", None)
            groups: dict[frozenset[str], list[Path]] = {}
            for number in range(documents):
                path = work / "files" / tenant / f"n{number}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_text(tenant, number))
                groups.setdefault(_readers(number), []).append(path)
            for acl, paths in groups.items():
                pipeline = Pipeline(
                    session.store, session.embedder, session.settings, target, acl=acl
                )
                if not pipeline.run(paths).ok:
                    return 5
    return 0


def _may(auth: AuthContext, name: str) -> bool:
    readers = _readers(int(Path(name).stem[1:]))
    return not readers or bool(readers & auth.roles)


def _probed(data: Path, questions: int, seed: float) -> list[tuple[str, list[str], str]]:
    from serve.searching import searched
    from stores.listing import Listing

    draw, cases = random.Random(seed), []
    with _session(data, 0) as session:
        listing = Listing(session.store.database)
        for auth in callers():
            collection = session.store.catalogue.collection(auth.tenant, "main")
            count = listing.count(auth, collection)
            names = [
                row["document_id"]
                for row in listing.documents(auth, collection, after="", limit=500)
            ]
            wrong = [name for name in names if not _may(auth, name)]
            wrong += [f"counts {count}, shows {len(names)}"] if count != len(names) else []
            cases.append((f"{auth.tenant} {sorted(auth.roles)} count", wrong, "counted"))
            for _ in range(questions):
                other = draw.choice(TENANTS)
                text = draw.choice(
                    (_text(other, draw.randrange(100)), " ".join(draw.sample(WORDS, 3)))
                )
                for pipeline in PIPELINES:
                    reply = searched(session, auth, text, "main", pipeline, 20)
                    told = json.dumps(reply)
                    foreign = [
                        t for t in TENANTS if t != auth.tenant and f"SECRET{t.upper()}" in told
                    ]
                    shown = [one["document_id"] for one in reply["results"]]
                    wrong = [f"foreign: {one}" for one in foreign]
                    wrong += [f"closed: {name}" for name in shown if not _may(auth, name)]
                    if pipeline != "keyword" and len(shown) < 15:
                        wrong.append(f"{len(shown)} of 20")
                    cases.append(
                        (f"{auth.tenant} {sorted(auth.roles)} {pipeline} {text}", wrong, "asked")
                    )
        asleep = session.store.chroma._client is None
        cases.append(("Chroma was asked", ["it was never opened"] if asleep else [], ""))
    return cases


def _recalled(data: Path, questions: int, seed: float) -> list[tuple[str, list[str], str]]:
    from serve.searching import searched

    found: dict[int, list[set[str]]] = {}
    for exact in (0, 1_000_000):
        draw = random.Random(seed)
        with _session(data, exact) as session:
            found[exact] = [
                {
                    one["chunk_id"]
                    for one in searched(session, auth, text, "main", "vector", DEPTH)["results"]
                }
                for auth in callers()
                for text in (f"{draw.choice(WORDS)} {draw.random()}" for _ in range(questions))
            ]
    shares = [
        len(one & two) / max(1, len(two))
        for one, two in zip(found[0], found[1_000_000], strict=True)
    ]
    mean = sum(shares) / len(shares)
    cases = [
        (f"question {n}", [f"recall {s:.2f}"] if s < 0.5 else [], "asked")
        for n, s in enumerate(shares)
    ]
    wrong = [f"recall {mean:.3f}"] if mean < LEAST_RECALL else []
    return [*cases, ("mean", wrong, f"mean recall {mean:.3f}, least {min(shares):.2f}")]


def _seen(data: Path) -> dict[str, Any]:
    """Search for all that is there, with Chroma answering, and let the doctor look."""

    def look() -> int:
        from serve.searching import searched
        from stores.health import examine

        found: dict[str, Any] = {"lost": [], "doubled": [], "left": [], "documents": {}}
        with _session(data, 0) as session:
            auth = AuthContext(tenant="alpha", user="u", roles=frozenset(ROLES))
            results, said = [], []
            for number in range(0, 40):
                reply = searched(session, auth, _text("alpha", number), "main", "vector", 8)
                names = [one["document_id"] for one in reply["results"]]
                results.append(sorted(names))
                said += reply["warnings"]
                found["lost"] += [] if f"n{number}.txt" in names else [f"n{number}.txt"]
                found["doubled"] += [name for name in names if names.count(name) > 1]
            found |= {"results": results, "said": sorted(set(said))}
            session.store.outbox.drain()
            session.store.chroma.close()
            found["left"] = examine(session.store)["problems"]
        print(json.dumps(found))
        return 0

    ended = in_fork(look, canary=False)
    if ended.code:
        return {"error": f"exit code {ended.code}: {ended.err.strip()[-300:]}"}
    return dict(json.loads(ended.out))


def _damaged(work: Path, data: Path, draw: random.Random, times: int) -> Tally:
    """Flip, cut, remove and exchange files of the index; an answer is the same, or says so."""
    tally = Tally("Chroma answers: damage to its files")
    wanted = _seen(data)
    for number in range(times):
        place = work / "damaged"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(data, place)
        files = sorted(p for p in (place / "chroma").rglob("*") if p.is_file() and p.stat().st_size)
        path = draw.choice(files)
        how = ("flip", "cut", "remove", "zero", "noise")[number % 5]
        content = bytearray(path.read_bytes())
        start = draw.randrange(len(content))
        if how == "flip":
            content[start] ^= 1 << draw.randrange(8)
        elif how == "zero":
            content[start : start + 4096] = bytes(len(content[start : start + 4096]))
        elif how == "noise":
            content[start : start + 512] = draw.randbytes(len(content[start : start + 512]))
        path.unlink()
        if how != "remove":
            path.write_bytes(content[:start] if how == "cut" else content)
        found = _seen(place)
        wrong = [] if "error" not in found else [found["error"]]
        if not wrong and found["results"] != wanted["results"] and not found["said"]:
            wrong.append("other results without a word")
        wrong += [f"afterwards: {line}" for line in found.get("left", [])]
        same = found.get("results") == wanted["results"]
        note = ("same" if same else "other") + (", told" if found.get("said") else "")
        tally.case(f"{how} {path.relative_to(place)} at {start}", wrong, note)
    return tally


def _killed(work: Path, data: Path, draw: random.Random, times: int) -> Tally:
    """Kill an ingest while it writes vectors, and ask Chroma."""
    tally = Tally("Chroma answers: kill -9 while vectors are written")
    extra = work / "extra"
    extra.mkdir()
    for number in range(60):
        (extra / f"e{number}.txt").write_text(f"Extra {number} of the {WORDS[number % 10]}.\n")
    for number in range(times):
        place = work / "killed"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(data, place)
        stage = f"{STAGES[number % len(STAGES)]}:{draw.randrange(1, 4)}"

        def ingest(stage: str = stage, place: Path = place) -> int:
            from ingest.pipeline import Pipeline

            os.environ[VARIABLE] = stage
            with _session(place, 0, vector_batch=10, ingest_batch=20) as session:
                target = session.store.catalogue.collection("alpha", "main")
                Pipeline(session.store, session.embedder, session.settings, target).run([extra])
            return 0

        ended = in_fork(ingest)
        wrong = [f"exit code {ended.code}"] if ended.code not in (0, -signal.SIGKILL) else []
        wrong += unwell(_seen(place))
        tally.case(stage, wrong, "killed" if ended.code else "ended before")
    return tally
