"""Questions of LangServe's requests, asked alone or in a batch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from core.auth import AuthContext
from core.errors import CallerError
from core.settings import Settings
from serve.following import Following, begun, result_of
from serve.langserve_schemas import AgentConfig, AgentInput, BatchRequest, question_of
from serve.types import Runner


@dataclass(frozen=True)
class Agent:
    """Ask the runner for what requests want."""

    runner: Runner
    settings: Settings

    async def answer(
        self, given: AgentInput, config: AgentConfig | None, path: AgentConfig, auth: AuthContext
    ) -> dict[str, Any]:
        """Return the result of one question; cancelled with the task that waits for it."""
        run = Following(self.runner, question_of(given, _over(config, path)), auth)
        try:
            return await result_of(run, [])
        finally:
            run.close()

    async def answers(
        self, body: BatchRequest, path: AgentConfig, auth: AuthContext
    ) -> list[dict[str, Any]]:
        """Return the results of a batch; the first failure is the whole batch's."""
        configs = self._configs(body)
        places = asyncio.Semaphore(self.settings.langserve_batch_at_once)

        async def one(given: AgentInput, config: AgentConfig | None) -> dict[str, Any]:
            async with places:
                return await self.answer(given, config, path, auth)

        pairs = zip(body.inputs, configs, strict=True)
        tasks = [asyncio.ensure_future(one(given, config)) for given, config in pairs]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    def _configs(self, body: BatchRequest) -> list[AgentConfig | None]:
        limit = self.settings.langserve_batch
        if len(body.inputs) > limit:
            raise CallerError(
                f"a batch has at most {limit} inputs (langserve_batch)",
                value=len(body.inputs),
                hint="send several batches",
            )
        if not isinstance(body.config, list):
            return [body.config] * len(body.inputs)
        if len(body.config) != len(body.inputs):
            raise CallerError(
                "the number of configs must match the number of inputs",
                value=f"{len(body.config)} configs, {len(body.inputs)} inputs",
            )
        return list(body.config)

    async def begun(
        self, given: AgentInput, config: AgentConfig | None, path: AgentConfig, auth: AuthContext
    ) -> Following:
        """Return a run whose first event is there, so that what keeps it out has a status."""
        return await begun(self.runner, question_of(given, _over(config, path)), auth)


def _over(config: AgentConfig | None, path: AgentConfig) -> AgentConfig:
    return config.over(path) if config else path
