"""A provider of OpenID Connect in a process of its own, on a loopback port.

It is the package oidc-provider-mock, made to insist on PKCE, with a route that signs whatever
claims a test wants: `python tests/oidc_provider.py PORT`.
"""

from __future__ import annotations

import base64
import hashlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

HOST = "127.0.0.1"
SECONDS = 30


@contextmanager
def provider() -> Iterator[str]:
    """Run a provider until the block ends; give its issuer."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    url = f"http://{HOST}:{port}"
    command = [sys.executable, "-W", "ignore", str(Path(__file__)), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + SECONDS
            while not _answers(url):
                assert time.monotonic() < until and process.poll() is None
                time.sleep(0.05)
            yield url
        finally:
            process.kill()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/.well-known/openid-configuration").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _serve(port: int) -> None:
    import flask
    import oidc_provider_mock
    from authlib import jose
    from oidc_provider_mock._storage import storage

    app = oidc_provider_mock.app(require_nonce=True)
    app.wsgi_app = app.wsgi_app.app  # without the debugger
    challenges: set[str] = set()

    @app.before_request
    def insist_on_pkce() -> object:
        asked = flask.request
        if asked.path == "/oauth2/authorize":
            if asked.args.get("code_challenge_method") != "S256":
                return "PKCE is wanted", 400
            challenges.add(asked.args["code_challenge"])
        if asked.path == "/oauth2/token":
            digest = hashlib.sha256(asked.form.get("code_verifier", "").encode()).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() not in challenges:
                return {"error": "invalid_grant"}, 400
        return None

    @app.post("/sign")
    def sign() -> object:
        header = {"alg": "RS256", **flask.request.json["header"]}
        return jose.jwt.encode(header, flask.request.json["claims"], storage.jwk).decode()

    app.run(HOST, port, threaded=True, use_reloader=False)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
