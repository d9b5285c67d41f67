"""`carrel demo`: the main job on the sample corpora, step by step."""

from __future__ import annotations


def demo() -> None:
    """placeholder"""
