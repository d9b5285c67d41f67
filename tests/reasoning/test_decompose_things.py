"""Descriptions of things in technical questions, taken out in English and Chinese."""

from __future__ import annotations

import pytest

from core.settings import Settings
from reasoning.rules.reasoner import RulesReasoner

APART = [
    (
        "Which team runs the API that allows 12 calls per minute?",
        "What is the API that allows 12 calls",
        2,
    ),
    ("Who runs the service that counts beds?", "What is the service that counts beds?", 2),
    (
        "Which city does the service that greets each guest serve?",
        "What is the service that greets",
        2,
    ),
    ("Who leads the club founded by Acme Inc. in Lyon?", "founded by Acme Inc. in Lyon?", 2),
    ("最大延迟为 40 秒的接口由哪个团队维护？", "最大延迟为 40 秒的接口是哪个？", 2),
    ("每晚核对床位数据的服务由谁维护？", "每晚核对床位数据的服务是哪个？", 2),
    ("Who leads the UN that meets in spring?", "Who leads the UN", 1),
    ("What is the delay of the bed list API, who runs it and is it new?", "What is the delay", 3),
    ("What is the delay of the bed service, who runs it?", "What is the delay", 2),
    ("使用该服务的公司有哪些？", "使用该服务的公司有哪些", 1),
    ("参加比赛的人是谁？", "参加比赛的人是谁", 1),
    ("最大的接口有哪些？", "最大的接口有哪些", 1),
]


@pytest.mark.parametrize(("question", "first", "count"), APART)
def test_a_described_thing_is_asked_for_first(question: str, first: str, count: int) -> None:
    reasoner = RulesReasoner(Settings(), lambda found: dict.fromkeys(found, 1.0), None)
    parts = reasoner.understand(question, []).parts
    assert len(parts) == count
    assert first in parts[0].text
