"""Which view a notebook shows of each type, set from outside: the types know nothing of HTML."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from core.trace import RunRecord
from core.types import Answer, Evidence, Plan
from display.answers import answer_view
from display.evidence import EvidenceList, evidence_view
from display.plan_drawing import plan_view
from display.runs import run_view
from display.view import View

VIEWS: dict[type, Callable[[Any], View]] = {
    Answer: answer_view,
    Evidence: lambda one: evidence_view([one]),
    EvidenceList: lambda found: evidence_view(found, found.notes),
    Plan: plan_view,
    RunRecord: run_view,
}


def show_in_notebooks() -> None:
    """Give the types of `VIEWS` the methods by which IPython and its kin show a value."""
    for kind, view in VIEWS.items():
        _attach(kind, view)


def _attach(kind: type, view: Callable[[Any], View]) -> None:
    def bundle(
        self: object,
        include: Container[str] | None = None,
        exclude: Container[str] | None = None,
    ) -> dict[str, str]:
        return view(self).bundle(include, exclude)

    kind._repr_html_ = lambda self: view(self).html  # type: ignore[attr-defined]
    kind._repr_mimebundle_ = bundle  # type: ignore[attr-defined]
