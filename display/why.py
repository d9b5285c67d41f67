"""Why an answer is what it is, in one sentence and in the language of its question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from core.errors import shorten
from core.language.analysis import analyze, terms
from core.language.cues import cues
from core.language.detect import detect_language
from core.metadata import ANY, ROW
from core.trace import RunRecord, spent_of_limit
from core.types import LIMITS, Evidence, StopReason
from display.html import line
from display.steps import tool_name

ENOUGH = 2  # the least grade that answers, as the graph has it
NAMED = 3  # sources, values and filters that a sentence names; chosen
WORDS = 8  # of a question, that a sentence names; chosen
LONGEST = 80  # characters of a title, a value or a filter; chosen
LOCAL = "local"  # who asks at this machine without roles sees every document


class Explanation(NamedTuple):
    """Say why a run ended as it did: in a sentence, by a cause, at a step (number from 1, node)."""

    sentence: str
    cause: str
    step: dict[str, Any] | None


def explain(run: RunRecord) -> Explanation:
    """Return why a run came to its answer, as far as its reader may see it now."""
    known = next((step.arguments for step in run.trail if step.node == "understand"), {})
    language = known.get("language") or detect_language(run.question)
    reasons = _Reasons(run, language)
    cause, node, parts = reasons.ending()
    say = reasons.say
    sentence = say["join"].join([*parts, *reasons.details(cause)])
    return Explanation(
        f"{sentence[:1].upper()}{sentence[1:]}{say['end']}", cause, reasons.step_of(node)
    )


class _Reasons:
    """What the record of one run says of its reasons, in one language."""

    def __init__(self, run: RunRecord, language: str) -> None:
        messages = cues(language).known.messages
        self._language = language
        self.say: dict[str, str] = messages["why"]
        self._limits: dict[str, str] = messages["stop_reasons"]
        self._lacking: dict[str, str] = messages["lacking"]
        self._messages: dict[str, str] = messages
        self._run, self._trail = run, run.trail
        self._answer, self._evidence = run.answer, run.evidence
        tools = dict.fromkeys(step.tool for step in run.trail if step.tool)
        self._tools = ", ".join(tool_name(one, language) for one in tools) or "–"

    def ending(self) -> tuple[str, str, list[str]]:
        """Return the cause, the node whose step shows it, and the parts that say it."""
        say, reason = self.say, self._answer.stop_reason
        if "withheld" in self._run.result:
            return "withheld", "", [say["withheld"]]
        if reason == StopReason.cancelled:
            return "cancelled", "", [self._no_answer("cancelled")]
        if reason == StopReason.clarification_needed:
            options = (self._run.result.get("clarification") or {}).get("options")
            return "clarification", "clarify", [say["asks_related" if options else "asks_topic"]]
        spent = spent_of_limit(self._trail)
        limit = [self._limits.get(reason, reason).format(**spent)] if reason in LIMITS else []
        if not self._answer.refused:
            cause, parts = self._answered()
            return cause, "verify", [*parts, *limit]
        if limit:
            return reason.value, "stop_condition", [say["no_answer"].format(why=limit[0])]
        if reason == StopReason.unsupported_answer:
            return "unsupported", "verify", [self._no_answer("unsupported")]
        return self._nothing_answers()

    def details(self, cause: str) -> Iterator[str]:
        """Yield what else made the answer what it is; nothing of a run that is partly closed."""
        if cause in ("withheld", "erased", "cancelled"):
            return
        say = self.say
        if self._run.result.get("conflicts"):
            yield say["conflict"]
        if read := self._arguments("understand").get("corrected"):
            pairs = [
                f"{self._quoted(typed)} → {self._quoted(meant)}" for typed, meant in read.items()
            ]
            yield say["read_as"].format(words=", ".join(pairs))
        if slots := (self._run.result.get("plan") or {}).get("slots"):
            values = [self._quoted(one["value"]) for one in slots[:NAMED]]
            yield say["values"].format(values=", ".join(values))
        if any(step.node == "rewrite" for step in self._trail) and cause != "clarification":
            yield say["rewritten"]
        checks = [step.decision for step in self._trail if step.node == "verify"]
        if cause != "unsupported" and not all(one.endswith(", 0 dropped") for one in checks):
            yield say["dropped"]
        yield from self._scope()
        refused = self._arguments("refuse")
        if refused.get("unfiltered"):
            yield _within(self._messages["unfiltered"])
        if better := refused.get("better"):
            yield _within(self._messages["better"].format(question=shorten(better, LONGEST)))
        if degraded := sum(bool(step.degraded) for step in self._trail):
            yield say["degraded"].format(count=degraded)
        if any(step.partial for step in self._trail):
            yield say["cut_short"]

    def step_of(self, node: str) -> dict[str, Any] | None:
        if not self._trail:
            return None
        places = [place for place, step in enumerate(self._trail) if step.node == node]
        place = places[-1] if places else len(self._trail) - 1
        return {"number": place + 1, "node": self._trail[place].node}

    def _answered(self) -> tuple[str, list[str]]:
        cited = {one.evidence_id for claim in self._answer.claims for one in claim.citations}
        items = [item for item in self._evidence if item.evidence_id in cited]
        counts = [item for item in items if item.kind == ROW]
        parts = []
        if counts:
            text = shorten(counts[0].text[:1].lower() + counts[0].text[1:], LONGEST).rstrip(" .。")
            parts.append(self.say["counted"].format(tools=_finders(counts), text=text))
        if rest := [item for item in items if item.kind != ROW and item.text]:  # not erased
            parts.append(
                self.say["answered"].format(
                    sources=self._named(rest),
                    tools=_finders(rest),
                    count=len(self._evidence) - len(counts),
                    grade=max(item.best_grade for item in rest),
                )
            )
            parts += self._matched(rest)
        if not parts:
            return "erased", [self.say["erased"]]
        missing = [shorten(line(one), LONGEST) for one in self._answer.missing]
        if not missing:
            return "answered", parts
        return "partial", [*parts, self.say["partial"].format(what="; ".join(missing[:NAMED]))]

    def _matched(self, items: Sequence[Evidence]) -> Iterator[str]:
        """Yield which words of the question the cited texts have, and which their headings."""
        cited = {item.evidence_id: item for item in items}
        quotes = [one for claim in self._answer.claims for one in claim.citations]
        texts = [(one.quote, cited[one.evidence_id]) for one in quotes if one.evidence_id in cited]
        above = [(f"{item.title} {item.section}", item) for item in items]
        asked, known, found_any = line(self._run.question), set[str](), False
        for name, places in (("words", texts), ("heading_words", above)):
            found = {term for text, item in places for term in terms(text, item.language)} - known
            tokens = [one for one in analyze(asked, self._language) if not one.is_function]
            words = dict.fromkeys(asked[t.start : t.end] for t in tokens if t.term in found)
            known |= found
            found_any = found_any or bool(words)
            if words:
                yield self.say[name].format(words=", ".join(list(words)[:WORDS]))

        if not found_any and any(item.language == self._language for item in items):
            yield self.say["no_words"]

    def _nothing_answers(self) -> tuple[str, str, list[str]]:
        found = [item for item in self._evidence if item.kind != ROW]
        if not found:
            return "nothing_found", "retrieve", [self._no_answer("nothing_found")]
        best = max(found, key=lambda item: item.best_grade)
        if best.best_grade >= ENOUGH:
            waits = any(step.node == "extract" for step in self._trail)
            cause, node = ("value_not_found", "extract") if waits else ("not_answered", "generate")
            return cause, node, [self._no_answer(cause, best)]
        cause = "not_mentioned" if "anywhere" in self._arguments("refuse") else "not_relevant"
        return cause, "grade_documents", [self._no_answer("not_relevant", best)]

    def _arguments(self, node: str) -> dict[str, Any]:
        return next((step.arguments for step in reversed(self._trail) if step.node == node), {})

    def _lacks(self) -> dict[str, str]:
        """Say what of the question nothing found mentions, or what the best passage lacks."""
        known = self._arguments("refuse")
        found = {}
        for place in self._lacking.keys() & known.keys():
            words = [shorten(word, LONGEST) for word in known[place][:WORDS]]
            text = self._lacking[place].format(words=", ".join(words))
            found["before" if place == "anywhere" else "after"] = _within(text)
        return found

    def _no_answer(self, name: str, best: Evidence | None = None) -> str:
        gaps: dict[str, object] = {"tools": self._tools, "count": len(self._evidence)}
        if best is not None:
            gaps |= {"source": self._named([best]), "grade": best.best_grade, "enough": ENOUGH}
        why = self.say[name].format(**gaps)
        if best is not None:
            lacks = self._lacks()
            why = self.say["join"].join(
                filter(None, (lacks.get("before"), why, lacks.get("after")))
            )
        return " ".join(self.say["no_answer"].format(why=why).split())

    def _scope(self) -> Iterator[str]:
        """Yield what the searches were confined to: filters, sources, and, of a refusal, rights."""
        rights = next((step.auth_filter for step in self._trail if step.auth_filter), {})
        filters = [*(rights.get("where") or []), *(rights.get("allowed_sources") or [])]
        if (version := rights.get("version_policy", ANY)) != ANY:
            filters.append(f"version: {version}")
        if filters:
            shown = ", ".join(shorten(str(one), LONGEST) for one in filters[:NAMED])
            yield self.say["filtered"].format(filter=shown)
        roles, user = rights.get("roles") or [], rights.get("user", LOCAL)
        if self._answer.refused and (roles or user != LOCAL):
            yield self.say["rights"].format(who=", ".join([user, *roles]))

    def _named(self, items: Sequence[Evidence]) -> str:
        """Return the titles of evidence, each once."""
        titles = dict.fromkeys(self._quoted(item.title or item.source) for item in items)
        more = ", …" if len(titles) > NAMED else ""
        return ", ".join(list(titles)[:NAMED]) + more

    def _quoted(self, text: str) -> str:
        return self.say["quoted"].format(title=shorten(line(text), LONGEST))


def _within(sentence: str) -> str:
    """Return a sentence as a part of another."""
    bare = sentence.rstrip(".。")
    return bare[:1].lower() + bare[1:]


def _finders(items: Sequence[Evidence]) -> str:
    """Return the tools that found evidence, each once."""
    return ", ".join(dict.fromkeys(item.tool for item in items if item.tool)) or "–"
