"""The chat model that the settings ask for, or why there is none."""

from __future__ import annotations

from core.errors import CarrelError
from core.settings import Settings
from models.chat.faults import NoConnection
from models.chat.types import ChatModel


def open_chat(settings: Settings) -> tuple[ChatModel | None, str]:
    """Return the chat model, or None and a warning that says why the rules decide.

    With `reasoner` "auto" the warning is empty when nothing answers at `llm.url`. Nothing that a
    server or a model file does raises.
    """
    if settings.reasoner == "rules":
        return None, ""
    try:
        return wanted_chat(settings), ""
    except CarrelError as error:
        if settings.reasoner == "auto" and isinstance(error, NoConnection):
            return None, ""
        return None, f"the rules decide, without a model: {error}"


def wanted_chat(settings: Settings) -> ChatModel:
    """Return the chat model that the settings name; raises a CarrelError for what it lacks."""
    if settings.llm.provider:
        from models.chat.provider_chat import provider_chat

        return provider_chat(settings)
    return _file_chat(settings) if settings.llm.file else _server_chat(settings)


def _server_chat(settings: Settings) -> ChatModel:
    from models.chat.probe import probe, server_key

    capabilities = probe(settings)  # before the heavy imports: often there is no server

    from models.chat.openai_chat import server_chat

    return server_chat(settings, capabilities, server_key(settings))


def _file_chat(settings: Settings) -> ChatModel:
    from models.chat.guarded import GuardedChat
    from models.chat.llama_cpp_chat import open_gguf_chat

    llm, capabilities = open_gguf_chat(settings)
    return GuardedChat(llm, capabilities, settings, close=getattr(llm, "close", None))
