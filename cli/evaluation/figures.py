"""Draw the figures of an evaluation in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from cli.terminal.output import stdout, warn

GROUPS = (("by_type", "query type"), ("by_language", "language"))
NO_TITLES: Mapping[str, str] = MappingProxyType({})
SHORT = {
    "precision@5": "P@5",
    "recall@5": "R@5",
    "recall@10": "R@10",
    "mrr": "MRR",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    "full_support@10": "All@10",
}


def print_result(result: dict[str, Any]) -> None:
    """Print what `carrel eval retrieval` found."""
    out = stdout()
    out.print(
        f"[bold]{escape(result['dataset'])}[/bold] · {result['pipeline']} · {result['n']} queries"
    )
    out.print(_metrics_table(result))
    for key, title in GROUPS:
        if key in result:
            out.print(_group_table(result[key], title))
    print_latency(result)
    if "against" in result:
        out.print()
        out.print(f"against [bold]{result['against']['pipeline']}[/bold], query by query")
        out.print(against_table(result))
        print_latency(result["against"])
    print_remarks(result)


def print_remarks(result: dict[str, Any]) -> None:
    """Print the notes and warnings."""
    for note in result["notes"]:
        stdout().print(f"[dim]{escape(note)}[/dim]")
    for warning in result["warnings"]:
        warn(warning)


def table(*headers: str) -> Table:
    """Return an empty table: names on the left, figures on the right."""
    made = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for place, header in enumerate(headers):
        justify: Any = "right" if place else "left"
        made.add_column(header, justify=justify, overflow="fold")
    return made


def _metrics_table(result: dict[str, Any]) -> Table:
    rows = table("metric", result["pipeline"], f"{result['confidence']:.0%} interval")
    for metric, value in result["metrics"].items():
        rows.add_row(metric, f"{value:.3f}", interval_text(result["ci"][metric]))
    return rows


def against_table(result: dict[str, Any], titles: Mapping[str, str] = NO_TITLES) -> Table:
    """Return the paired differences of all metrics, which `titles` may call something shorter."""
    against = result["against"]
    sure = f"{result['confidence']:.0%} interval"
    rows = table(
        "metric", result["pipeline"], against["pipeline"], "gain", sure, "p", "win/tie/loss"
    )
    for metric, gap in against["differences"].items():
        if metric in result["metrics"]:
            rows.add_row(
                titles.get(metric, metric),
                f"{result['metrics'][metric]:.3f}",
                f"{against['metrics'][metric]:.3f}",
                f"{gap['difference']:+.3f}",
                interval_text(gap["ci"], signed=True),
                f"{gap['p']:.4f}",
                f"{gap['wins']}/{gap['ties']}/{gap['losses']}",
            )
    return rows


def _group_table(groups: dict[str, Any], title: str) -> Table:
    rows = table(title, "n", *SHORT.values())
    for name, group in groups.items():
        values = [f"{group['metrics'][metric]:.3f}" for metric in SHORT]
        rows.add_row(escape(name), str(group["n"]), *values)
    return rows


def print_latency(result: dict[str, Any]) -> None:
    """Print the median and the 95th percentile."""
    times = result["latency_ms"]
    if times["p50"] is not None:
        stdout().print(
            f"latency of {result['pipeline']}: p50 {times['p50']:.1f} ms, p95 {times['p95']:.1f} ms"
        )


def interval_text(interval: list[float] | None, *, signed: bool = False) -> str:
    """Return "0.412, 0.530", or a dash where there is none."""
    if interval is None:
        return "–"
    sign = "+" if signed else ""
    return ", ".join(f"{end:{sign}.3f}" for end in interval)
