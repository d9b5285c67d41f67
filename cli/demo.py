"""`carrel demo`: the main job on the sample corpora, step by step."""

from __future__ import annotations

import time
from pathlib import Path

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_TENANT, Data
from cli.options import flags_from, opened, settings_from
from cli.terminal.answer import path_line, print_answer, step_line
from cli.terminal.output import stdout
from cli.upkeep.ingest import print_summary, run_ingest
from core.auth import AuthContext
from core.errors import OperatorError
from core.language.detect import detect_language
from core.trace import Step
from stores.sqlite.schema import FORMAT

INSTALLED = Path(__file__).resolve().parent / "examples"
EXAMPLES = INSTALLED if INSTALLED.is_dir() else INSTALLED.parent.parent / "examples"
CORPORA = ("xpay", "library")
QUESTIONS = (
    (
        "xpay",
        "What is the maximum timeout of the XPay refund API, who maintains it,"
        " and have there been complaints recently?",
        "three sources, three answers",
    ),
    ("xpay", "XPay 退款接口 timeout 最大多少?谁维护?最近有投诉吗?", "the same in Chinese"),
    ("library", "What can I read on physics for a general audience?", "a reading list"),
    ("xpay", "How many complaints did YPay receive about its refund timeout?", "must be refused"),
)


def demo(data: Data = None) -> None:
    """Ingest the sample corpora and answer questions from them, showing every step."""
    began = time.monotonic()
    if not EXAMPLES.is_dir():
        raise OperatorError(
            "the demo reads the sample corpora that come with it",
            value=str(EXAMPLES),
            hint="install it again",
        )
    # One of an earlier format would be refused, and nothing is erased unasked.
    folder = data or settings_from(None).data / f"demo-{FORMAT}"
    out = stdout()
    out.print("[bold]1. Ingest the sample corpora[/bold]")
    for name in CORPORA:
        summary = run_ingest(
            [EXAMPLES / name],
            name,
            profile=name,
            tenant=DEFAULT_TENANT,
            acl="",
            prune=True,
            flags=flags_from(folder, None),
            quiet=False,
            alone=True,
        )
        print_summary(summary, name)
        if not summary.ok:
            raise typer.Exit(1)
    _ask_all(folder)
    out.print(
        f"\n[bold]{time.monotonic() - began:.1f} s in all.[/bold] Ask something yourself:\n"
        f'  carrel ask --data "{escape(str(folder))}" -c library'
        ' "Which book explains a candle?" --steps\n'
        f'  carrel trace --data "{escape(str(folder))}" last\n'
        f'  carrel serve --allow-anonymous --data "{escape(str(folder))}"'
        "    # the same in a browser"
    )


def _ask_all(folder: Path) -> None:
    out = stdout()
    auth = AuthContext(tenant=DEFAULT_TENANT)
    with opened(settings_from(folder)) as session:
        for number, (collection, question, what) in enumerate(QUESTIONS, start=2):
            out.print(f"\n[bold]{number}. {escape(question)}[/bold] [dim]({what})[/dim]")

            def show(step: Step) -> None:
                out.print(step_line(step, detect_language(question)))  # noqa: B023 - ends before the next

            run = session.ask(question, auth, collection, on_step=show)
            out.print()
            print_answer(run.result)
            if number == 2:
                out.print("\n[dim]the path it took:[/dim]")
                out.print(path_line(run.trail), markup=False)
