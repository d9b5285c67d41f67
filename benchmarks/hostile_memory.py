"""Upload 16 hostile files to a server one after the other, and see what memory it keeps.

    python -m benchmarks.hostile_memory [--only wide] [--set NAME=VALUE] [--rounds 2]

After each upload's job has ended the server's resident memory is printed, with how the job ended
and how long /health took at most meanwhile. Exit code 1 when the server keeps more than 100 MB.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx

from benchmarks.hostile_containers import members_of, packed
from benchmarks.hostile_pdf import bombs
from benchmarks.load_server import Server, served

MOST_MB = 100
MB = 2**20
SETTLE_S = 3.0
ENDED = ("done", "failed", "cancelled")
PLAIN = "The travel budget of the Lyon office is 40,000 euros. The office has 12 rooms. " * 40


def files() -> Iterator[tuple[str, bytes]]:
    """Yield 16 files that cost more than they look."""
    zeros = bytes(50 * MB)
    parts = members_of("docx")
    yield "bomb.zip", packed([*members_of("zip"), ("z.xml", zeros)])
    nested = packed([("a.md", b"# text")])
    for _ in range(12):
        nested = packed([("a.md", b"# text"), ("in.zip", nested)])
    yield "nested.zip", nested
    yield "bomb.docx", packed([*parts, ("word/z.xml", zeros)])
    laughs = "<!DOCTYPE r [<!ENTITY a 'haha'>" + "".join(
        f"<!ENTITY {name} '{f'&{before};' * 10}'>"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    yield "laughs.xml", f"{laughs}]><r><p>&i;</p></r>".encode()
    yield "deep.xml", b"<a>" * 100_000 + b"text" + b"</a>" * 100_000
    yield "deep.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    yield "bomb.jsonl.gz", gzip.compress(bytes(1 << 28))
    yield "long.txt", b"word " * 10_000_000  # 50 MB
    yield "large.txt", b"".join(b"The %d. line says nothing of use.\n" % n for n in range(8_000))
    yield "narrow.csv", _row("c", 20_000)
    yield "keys.jsonl", json.dumps({f"key{n}": n for n in range(100_000)}).encode()
    yield "parts.eml", _mail(20_000)
    yield "sheets.xlsx", _workbook(200)
    yield "image.pdf", bombs()["image-huge"]
    yield "table.md", b"|a" * 20_000 + b"\n" + b"|-" * 20_000 + b"\n" + b"|b" * 20_000
    yield "wide.csv", _row("c", 200_000)


def _row(name: str, columns: int) -> bytes:
    header = ",".join(f"{name}{n}" for n in range(columns))
    return f"{header}\n{','.join('1' * columns)}\n".encode()


def _mail(parts: int) -> bytes:
    head = b'Subject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
    one = b"--b\nContent-Type: text/plain\n\npart %d says nothing\n"
    return head + b"".join(one % n for n in range(parts)) + b"--b--\n"


def _workbook(sheets: int) -> bytes:
    import openpyxl

    made = openpyxl.Workbook()
    for number in range(sheets):
        sheet = made.create_sheet(f"s{number}")
        sheet.append([f"s{number}c{column}" for column in range(100)])
        sheet.append(list(range(100)))
        sheet.append(list(range(100)))
    out = io.BytesIO()
    made.save(out)
    assert zipfile.is_zipfile(out)
    return out.getvalue()


def main() -> int:
    """Print a row per upload; return 1 when too much memory is kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="files whose names hold this")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        data = Path(place, "data")
        settings = ["serve_writer_roles=reader", "serve_rate=0", *given.set]
        data.mkdir(mode=0o700)
        _begin(data)
        with served(data, 1, settings) as server:
            return _run(server, given.only, given.rounds)


def _begin(data: Path) -> None:
    from app.session import Session
    from core.settings import load_settings

    with Session(load_settings({"data": data})[0], create=True):
        pass


def _run(server: Server, only: str, rounds: int) -> int:
    print(f"ready after {server.ready_seconds:.1f} s: {_rss(server):.0f} MB")
    with httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {server.keys[0]}"}, timeout=120
    ) as client:
        # What any server holds that has ingested something is no matter of these files.
        _upload(client, "plain.txt", PLAIN.encode())
        time.sleep(SETTLE_S)
        before = _rss(server)
        print(f"after a plain document: {before:.0f} MB")
        last = before
        for _ in range(rounds):
            for name, content in files():
                if only not in name:
                    continue
                began = time.monotonic()
                state, slowest = _upload(client, name, content)
                spent = time.monotonic() - began
                time.sleep(SETTLE_S)
                now = _rss(server)
                print(
                    f"{name:14} {len(content) / MB:6.1f} MB {spent:6.1f} s  RSS {now:5.0f} MB"
                    f" ({now - last:+5.0f})  peak {_rss(server, 'VmHWM'):5.0f}"
                    f"  health {slowest:.2f} s  {state}",
                    flush=True,
                )
                last = now
    print(f"kept: {last - before:+.0f} MB (at most {MOST_MB}), {server.threads()} threads")
    return int(last - before > MOST_MB)


def _upload(client: httpx.Client, name: str, content: bytes) -> tuple[str, float]:
    """Return how the job ended and the slowest answer of /health meanwhile."""
    params = {"collection": "hostile", "name": name}
    answer = client.post("/api/v1/documents", params=params, content=content)
    if answer.status_code != 202:
        return f"{answer.status_code} {answer.text[:80]}", 0.0
    job, slowest = answer.json(), 0.0
    while job["state"] not in ENDED:
        time.sleep(0.2)
        began = time.monotonic()
        client.get("/health")
        slowest = max(slowest, time.monotonic() - began)
        job = client.get(f"/api/v1/jobs/{job['id']}").json()
    return f"{job['state']}: {job['chunks']} chunks {str(job['error'])[:90]}", slowest


def _rss(server: Server, key: str = "VmRSS") -> float:
    text = Path(f"/proc/{server.pid}/status").read_text()
    line = next(line for line in text.splitlines() if line.startswith(key))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
