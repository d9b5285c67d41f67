"""What the figures of a collection advise for its settings, measured in docs/evals/techdocs.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from core.auth import AuthContext
from core.errors import CallerError
from core.profile import Profile
from core.settings import Settings
from serve.study.study import WHOLE, Advice, Study, study

if TYPE_CHECKING:
    from app.session import Session
    from stores.sqlite.catalogue import Collection

CODE_SHARE = 0.05  # of the characters, from which documents count as technical; chosen
SMALLEST, LARGEST = 4000, 200_000  # characters up to which sections stay whole: 1,000 find less
OVERLAP = 10  # hundredths of a chunk that the next one repeats: 30 find nothing more
WEIGHTS = {"title": 0.1, "opening": 0.15}


def advised_study(session: Session, auth: AuthContext, collection: Collection) -> Study:
    """Return the figures of what a caller sees, with the advice; raises CallerError for nothing."""
    found = study(
        collection.name,
        collection.profile.name,
        lambda: session.catalogue.visible_passages(auth, collection),
    )
    if not found.documents:
        rule, hint = "there are no documents in it that you may see", "`carrel ingest` adds some"
        raise CallerError(rule, value=collection.name, hint=hint)
    return found.model_copy(update={"advice": advise(found, session.index(collection).settings)})


def advise(study: Study, settings: Settings) -> list[Advice]:
    """Return what is advised and not set yet; nothing where nothing was measured to help."""
    now = settings.ingest
    technical = _of_technical(study, settings) if study.code_share >= CODE_SHARE else ()
    overlap = Advice(
        setting="ingest.chunk_overlap",
        now=now.chunk_overlap,
        advised=min(now.chunk_overlap, now.chunk_size * OVERLAP // 100),
        why=f"more than {OVERLAP} % of a chunk finds no page more",
    )
    return [one for one in (*technical, overlap) if one.now != one.advised]


def advised_profile(profile: Profile, advice: Sequence[Advice]) -> Profile:
    """Return the profile of a collection with the advice in its settings."""
    given = {one.setting: one.advised for one in advice}
    return profile.model_copy(update={"settings": {**profile.settings, **given}})


def _of_technical(study: Study, settings: Settings) -> Iterator[Advice]:
    """Keep sections whole with their code, and prefer titles and beginnings of pages.

    The size of a chunk then follows the sections of its type; what is set is the longest.
    """
    now, given = settings.ingest, settings.selection.factor_amounts
    code = f"{study.code_share:.0%} of the characters are code"
    why = f"{code}: a sample stays with the text around it, and nothing is repeated"
    yield Advice(setting="ingest.chunker", now=now.chunker, advised="structural", why=why)
    longest = max(one.section for one in study.types.values())
    needed = min(LARGEST, max(now.structural_max, SMALLEST, -(-longest // 1000) * 1000))
    by_type = ", ".join(f"{kind} {one.section:,}" for kind, one in study.types.items())
    why = f"{WHOLE:.0%} of the sections have at most so many characters: {by_type}"
    yield Advice(setting="ingest.structural_max", now=now.structural_max, advised=needed, why=why)
    named = {one.partition("=")[0] for one in given}
    more = [f"{name}={amount}" for name, amount in WEIGHTS.items() if name not in named]
    why = f"{code}: a page says what it is about in its title and its beginning"
    yield Advice(setting="selection.factor_amounts", now=given, advised=[*given, *more], why=why)
