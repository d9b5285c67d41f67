"""Models by settings, and a session whose models are broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.session import Session
from core.errors import ModelError
from core.settings import Settings, load_settings
from models.loading import open_embedder, open_reranker, open_second


@pytest.fixture
def given(tmp_path: Path, model_cache: Path) -> dict[str, object]:
    return {"data": tmp_path / "data", "cache": model_cache, "embedder_threads": 1}


def test_there_is_no_second_embedder_and_no_reranker_by_default(tiny_folder: Path, given) -> None:
    settings = Settings(embedder=str(tiny_folder), **given)
    first, second = open_embedder(settings), open_second(settings)
    assert first.dimension == 16
    assert second is None
    assert open_reranker(settings) is None


def test_settings_name_two_embedders_and_a_reranker(
    tiny_folder: Path, tiny_cross_encoder: Path, make_model, given
) -> None:
    settings = Settings(
        embedder=str(tiny_folder),
        embedder_second=str(make_model("bert", "cls")),
        embedder_query_prompt="the ",
        embedder_languages=["ru"],
        reranker=str(tiny_cross_encoder),
        **given,
    )
    first, second = open_embedder(settings), open_second(settings)
    reranker = open_reranker(settings)
    assert second is not None
    assert reranker is not None
    assert len({first.model_id, second.model_id, reranker.model_id}) == 3
    assert first.languages == {"ru"}
    assert second.languages is None
    plain = open_embedder(Settings(embedder=str(tiny_folder), **given))
    assert plain.model_id != first.model_id


def test_a_missing_second_embedder_names_its_setting(given) -> None:
    settings = Settings(embedder_second="/nowhere", **given)
    with pytest.raises(ModelError, match="CARREL_EMBEDDING__SECOND, or use 'none'"):
        open_second(settings)


def test_the_way_to_a_model_that_is_not_here_is_told(
    given, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = "pip install 'carrel-rag\\[huggingface\\]'"
    monkeypatch.setattr("models.folder.has_extra", lambda extra: False)
    for opened, name in ((open_embedder, "embedder"), (open_reranker, "reranker")):
        with pytest.raises(ModelError, match=f"models pull NAME.*{extra}"):
            opened(Settings(**{**given, name: "BAAI/not-here"}))


def test_the_backend_is_one_of_three() -> None:
    with pytest.raises(Exception, match="embedding.backend"):
        load_settings({"embedder_backend": "tpu"})


def test_a_session_gives_its_models_to_the_search(
    tiny_folder: Path, tiny_cross_encoder: Path, make_model, given
) -> None:
    models = {"embedder": tiny_folder, "embedder_second": make_model("bert", "cls")}
    models["reranker"] = tiny_cross_encoder
    settings = Settings(**{name: str(path) for name, path in models.items()}, **given)
    with Session(settings, create=True, needs_embedder=True) as session:
        collection = session.store.intake.open_collection("acme", "main", None)
        index = session.index(collection)
        assert session.second is not None
        assert index.second is not None
        assert index.second.model_id == session.second.model_id
        assert index.reranker is not None
        assert session.index(collection).reranker is index.reranker
        assert session.warnings == []


def test_broken_models_leave_a_session_that_warns(tiny_folder: Path, given) -> None:
    values = {"embedder": "/nowhere", "embedder_second": "/nowhere", "reranker": "/nowhere"}
    Session(Settings(embedder=str(tiny_folder), **given), create=True).close()
    with Session(Settings(**values, **given)) as session:
        assert session.embedder is None
        assert session.second is None
    assert [warning.partition(":")[0] for warning in session.warnings] == [
        "keyword search only",
        "one embedder alone",
    ]


def test_a_broken_reranker_is_one_warning(tiny_folder: Path, given) -> None:
    settings = Settings(embedder=str(tiny_folder), reranker=str(tiny_folder), **given)
    with Session(settings, create=True) as session:
        collection = session.store.intake.open_collection("acme", "main", None)
        for _ in range(2):
            assert session.index(collection).reranker is None
        assert [warning.partition(":")[0] for warning in session.warnings] == ["no re-ranking"]


def test_ingest_needs_both_embedders(tiny_folder: Path, given) -> None:
    settings = Settings(embedder=str(tiny_folder), embedder_second="/nowhere", **given)
    with pytest.raises(ModelError, match="EMBEDDING__SECOND") as raised:
        Session(settings, create=True, needs_embedder=True)
    assert raised.value.__traceback__ is not None  # which keeps the failed session
    Session(Settings(embedder=str(tiny_folder), **given)).close()
