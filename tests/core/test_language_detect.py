"""Language detection: scripts first, then letters, function words and a trained model."""

from __future__ import annotations

import pytest

from core.language.detect import detect_language

ENGLISH = "The river floods the valley every spring, and people move their boats to the hills."
GERMAN = "Der Fluss überschwemmt jedes Frühjahr das Tal, und die Leute bringen ihre Boote weg."
FRENCH = "La rivière inonde la vallée chaque printemps et les gens déplacent leurs bateaux."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (GERMAN, "de"),
        (FRENCH, "fr"),
        ("Dlaczego nie można zmienić hasła i gdzie jest instrukcja obsługi?", "pl"),
        ("timeout", "en"),
        ("maximum retry count", "en"),
        ("How does jax.lax.scan work?", "en"),
        ("naïve Bayes", "en"),
        ("The Russian word правда means truth and is also a newspaper", "en"),
        ("What does 道 mean in the Tao Te Ching?", "en"),
        ("Какие книги написал Пушкин?", "ru"),
        ("Что такое Engineering News-Record?", "ru"),
        ("Как использовать torch.nn.parallel.DistributedDataParallel", "ru"),
        ("книга", "ru"),
        ("Хто написав цю книгу?", "uk"),
        ("Як зробити запит до бази", "uk"),
        ("база даних", "uk"),
        ("база данных", "ru"),
        ("м'яч", "uk"),
        ("如何使用这个函数？", "zh"),
        ("XPay 退款接口 timeout 最大多少?谁维护?最近有投诉吗?", "zh"),
        ("如何使用 torch.nn.parallel.DistributedDataParallel 训练?", "zh"),
        ("これはテストです。東京へ行きます。", "ja"),
        ("이것은 시험입니다", "ko"),
        ("זה מבחן קצר", "he"),
        ("هذا اختبار قصير للغة العربية", "ar"),
        ("Αυτό είναι μια δοκιμή", "el"),
        ("นี่คือการทดสอบ", "th"),
        ("", "und"),
        ("   \n", "und"),
        ("12345 67.8", "und"),
        ("jax.lax.scan", "und"),
        ("x = foo(bar[0]) + 1\nif (x > 2) { return baz(x); }", "und"),
        ("😀🎉", "und"),
        ("\x00", "und"),
        ("\ufffd\ufffd", "und"),
    ],
)
def test_detects(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_a_long_text_is_judged_by_a_sample_of_all_its_parts() -> None:
    text = "12345 " * 1000 + "Это длинный русский текст о реках и озёрах. " * 200
    assert detect_language(text) == "ru"


def test_code_beside_chinese_prose_does_not_hide_the_prose() -> None:
    text = "这个函数返回一个张量。\n```\nx = foo(bar[0]) + baz(1)\ny = x.mean()\n```\n"
    assert detect_language(text) == "zh"
