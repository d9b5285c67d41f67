"""Signed tokens that are not what they seem: a small run of `benchmarks.attack_http`."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.attack_tokens import Keys, accepted, forged, unfit
from benchmarks.attack_world import AUDIENCE, CALLERS, ISSUER, SECRET
from core.settings import load_settings
from serve.access.auth import Tokens
from serve.errors import NotAuthenticated

CASES = 150


@pytest.mark.parametrize("symmetric", [True, False], ids=["HS256", "RS256"])
def test_good_tokens_alone_get_in_as_who_they_name(symmetric: bool, tmp_path: Path) -> None:
    keys = Keys(symmetric, tmp_path)
    how = {"jwt_key": SECRET} if symmetric else {"jwt_public_key": keys.path}
    algorithm = {"jwt_algorithm": "HS256" if symmetric else "RS256"}
    named = {"jwt_audience": AUDIENCE, "jwt_issuer": ISSUER}
    tokens = Tokens(load_settings({**how, **algorithm, **named})[0])
    draw = random.Random(7)
    bad = [*islice(forged(keys, draw, "http://127.0.0.1:1/"), CASES)]
    bad += islice(unfit(keys, draw), CASES)
    let_in = []
    for what, text in bad:
        try:
            let_in.append((what, text, tokens.verified(text)))
        except NotAuthenticated:
            continue
    assert let_in == []
    for _, text, kind in islice(accepted(keys, draw), CASES // 3):
        auth = tokens.verified(text)
        assert (auth.tenant, auth.user, sorted(auth.roles)) == CALLERS[kind]
