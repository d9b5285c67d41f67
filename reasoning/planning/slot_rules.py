"""What makes the slots of a plan valid: each rule is one function with one message."""

from __future__ import annotations

from reasoning.planning.facts import Facts, Found, ancestors, producers, shown, uses
from reasoning.planning.slots import SLOT_NAME


def slot_names(facts: Facts) -> Found:
    """A slot is called by a plain identifier."""
    for question in facts.plan.questions:
        if question.slot is not None and not SLOT_NAME.fullmatch(question.slot):
            yield (
                question.id,
                "a slot is called by letters, digits and _ (at most 64),"
                f" not {shown(question.slot)}",
            )


def slots_defined_once(facts: Facts) -> Found:
    """One question alone finds a slot."""
    seen: set[str] = set()
    for question, slot in producers(facts.plan):
        if slot in seen:
            yield question.id, f"a slot is found by one question, {{{slot}}} is by another already"
        seen.add(slot)


def slots_used(facts: Facts) -> Found:
    """Some question uses each slot."""
    used = {name for question in facts.plan.questions for name in uses(question)}
    for question, slot in producers(facts.plan):
        if slot not in used:
            yield question.id, f"a slot is used by another question, {{{slot}}} by none"


def slots_defined(facts: Facts) -> Found:
    """Every slot that is used is found by a question."""
    defined = {slot for _, slot in producers(facts.plan)}
    for question in facts.plan.questions:
        for name in uses(question):
            if name not in defined:
                yield (
                    question.id,
                    f"a slot that is used is found by a question, {{{name}}} by none"
                    " (for plain braces write {{ and }})",
                )


def slots_downstream(facts: Facts) -> Found:
    """A slot is used only by questions that depend, also over others, on the one that finds it."""
    found_by = {slot: question.id for question, slot in producers(facts.plan)}
    for question in facts.plan.questions:
        above = ancestors(facts.plan, question.id)
        for name in uses(question):
            if name in found_by and found_by[name] not in above:
                yield (
                    question.id,
                    f"a slot is used downstream of its question: {{{name}}} needs"
                    f" {shown(found_by[name])} among the deps",
                )
