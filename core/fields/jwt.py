"""Settings: say which signed tokens are good."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, SecretStr

from core.fields.group import IGNORED, ChangeRule, Group

JwtAlgorithm = Literal["HS256", "RS256", "ES256", "EdDSA"]


class JwtSettings(Group):
    """Say which signed tokens are good."""

    CHANGES: ClassVar[ChangeRule] = IGNORED

    key: SecretStr | None = Field(
        None, description="Secret (HS256) that signed tokens are checked with."
    )
    public_key: Path | None = Field(
        None, description="PEM file of the public key that signed tokens are checked with."
    )
    algorithm: JwtAlgorithm = Field(
        "HS256", description="The one algorithm that signed tokens may use."
    )
    audience: str = Field("", description="Audience that a token must name.")
    issuer: str = Field("", description="Issuer that a token must name.")
    leeway_seconds: int = Field(
        60, ge=0, le=600, description="Difference between clocks that an expiry tolerates."
    )
