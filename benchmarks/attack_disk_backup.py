"""Backups that were tampered with: refused in one line, or restored exactly as they were made."""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import sqlite3
import struct
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.attack_disk_child import Tally, carrel
from benchmarks.attack_disk_faults import Ground, canonical_of
from benchmarks.truth import differences
from core.errors import OperatorError
from stores.backup.archive import unpack
from stores.backup.format import CATALOGUE, MANIFEST, PARTS

MAX_GB = 0.05
HEAD = 16 + 16 + 7
SEALED_BLOCK = (1 << 20) + 16
OUTSIDE = "outside.txt"


class Tampering:
    """Unpack one changed backup after the other beside things that must stay as they are."""

    def __init__(self, work: Path, ground: Ground) -> None:
        """Seal and back up the ground's eight documents, twice."""
        self.ground, self.work = ground, work
        work.mkdir(parents=True)
        self.keys = {name: work / f"{name}.key" for name in ("own", "other")}
        for name, path in self.keys.items():
            path.write_text(f"{name} " + "passphrase " * 4)
        self.plain = ground.backup.read_bytes()
        self.older = self._backup(ground.base)
        self.sealed = self._backup(ground.full, self.keys["own"])
        self.others = self._backup(ground.full, self.keys["other"])
        self.parts = _members(self.plain)
        self.wanted = {name: hashlib.sha256(data).digest() for name, data in self.parts.items()}
        self.wanted.pop(MANIFEST)

    def _backup(self, data: Path, key: Path | None = None) -> bytes:
        target = self.work / "made"
        given = ("--key-file", key) if key else ()
        ended = carrel("backup", target, "--force", *given, data=data)
        if ended.code:
            raise SystemExit(ended.err)
        return target.read_bytes()

    def tried(self, data: bytes, key: bytes | None = None) -> tuple[str, list[str]]:
        """Unpack; return the refusal, "" for none, and what is wrong with it."""
        place = self.work / "place"
        shutil.rmtree(place, ignore_errors=True)
        (place / "inside").mkdir(parents=True)
        (place / OUTSIDE).write_text("untouched")
        (self.work / "bad").write_bytes(data)
        wrong, said = [], ""
        try:
            unpack(self.work / "bad", place / "inside", key=key, max_gb=MAX_GB)
            found = {one.name: one for one in (place / "inside").iterdir()}
            sums = {n: hashlib.sha256(p.read_bytes()).digest() for n, p in found.items()}
            if sums != self.wanted:
                wrong.append(f"restored something else: {sorted(sums)}")
        except OperatorError as error:
            said = str(error)
            if "\n" in said or len(said) > 600:
                wrong.append(f"not one short line: {said[:200]!r}")
        except BaseException as error:
            wrong.append(f"{type(error).__name__}: {str(error)[:200]}")
            said = "unexpected"
        beside = {one.name for one in place.iterdir()} - {"inside"}
        if beside != {OUTSIDE} or (place / OUTSIDE).read_text() != "untouched":
            wrong.append(f"outside of the target: {sorted(beside)}")
        strange = {one.name for one in (place / "inside").iterdir()} - {*PARTS}
        if strange := {name for name in strange if not name.endswith(("-wal", "-shm", "-journal"))}:
            wrong.append(f"strange files: {sorted(strange)}")
        return said, wrong

    def put(self, tally: Tally, what: str, data: bytes, key: bytes | None = None,
            *, must: bool | None = None) -> None:  # fmt: skip
        """Count a case; `must` says whether it has to be refused, where that is known."""
        said, wrong = self.tried(data, key)
        if must is not None and must != bool(said):
            wrong.append(f"it was {'refused: ' + said if said else 'restored'}")
        tally.case(what, wrong, "refused" if said else "restored exactly")


def _members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        found = {}
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None
            found[entry.name] = content.read()
    return found


def packed(
    parts: list[tuple[tarfile.TarInfo | str, bytes]], form: int = tarfile.PAX_FORMAT
) -> bytes:
    """Write members as they are given."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for given, content in parts:
            entry = tarfile.TarInfo(given) if isinstance(given, str) else given
            if isinstance(given, str):
                entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def fitted(
    parts: dict[str, bytes], change: Callable[[dict[str, Any]], None] | None = None
) -> bytes:
    """Write parts with a manifest whose sums fit them."""
    manifest = json.loads(parts[MANIFEST])
    for part in manifest["parts"]:
        content = parts.get(part["name"], b"")
        part |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if change:
        change(manifest)
    ordered = [(name, data) for name, data in parts.items() if name != MANIFEST]
    return packed([*ordered, (MANIFEST, json.dumps(manifest).encode())])


def tampered(work: Path, ground: Ground, draw: random.Random, times: int) -> Iterator[Tally]:
    """Try `times` random changes of each kind, and all the constructed ones."""
    hashlib.scrypt = lru_cache(hashlib.scrypt)  # slow by design, and the salt is mostly the same
    at = Tampering(work, ground)
    own = at.keys["own"].read_bytes().strip()
    other = at.keys["other"].read_bytes().strip()
    yield _flips(at, "plain backup: one bit flipped", at.plain, None, draw, times)
    yield _flips(at, "plain backup: one bit of a tar header or the manifest", at.plain, None, draw,
                 times, places=_structure(at.plain))  # fmt: skip
    yield _flips(at, "sealed backup: one bit flipped", at.sealed, own, draw, max(200, times // 4))
    yield _cuts(at, "plain backup: cut", at.plain, None, draw, times // 2)
    yield _cuts(at, "sealed backup: cut", at.sealed, own, draw, max(60, times // 8))
    yield _spliced(at, draw, times // 2)
    yield _sealed(at, own, other, draw)
    yield _named(at)
    yield _sized(at)
    yield _manifests(at, draw, times // 4)
    yield _catalogues(at, draw, times // 4)
    yield _commands(at, draw)


def _structure(data: bytes) -> list[int]:
    places: list[int] = []
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for entry in archive:
            places += range(entry.offset, entry.offset + 512)
            if entry.name == MANIFEST:
                places += range(entry.offset_data, entry.offset_data + entry.size)
    return places


def _flips(at: Tampering, name: str, data: bytes, key: bytes | None, draw: random.Random,
           times: int, places: list[int] | None = None) -> Tally:  # fmt: skip
    tally = Tally(name)
    for _ in range(times):
        place = draw.choice(places) if places else draw.randrange(len(data))
        bit = 1 << draw.randrange(8)
        changed = data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
        at.put(tally, f"bit {bit} at {place}", changed, key, must=True if key else None)
    return tally


def _cuts(at: Tampering, name: str, data: bytes, key: bytes | None, draw: random.Random,
          times: int) -> Tally:  # fmt: skip
    tally = Tally(name)
    for _ in range(times):
        size = draw.choice((draw.randrange(len(data)), draw.randrange(2000),
                            len(data) - draw.randrange(1, 12_000)))  # fmt: skip
        at.put(tally, f"to {size}", data[:size], key, must=True if key else None)
    return tally


def _spliced(at: Tampering, draw: random.Random, times: int) -> Tally:
    """Replace, double, drop and exchange runs of bytes, also with those of an older backup."""
    tally = Tally("plain backup: runs of bytes replaced, doubled, dropped, exchanged")
    for number in range(times):
        data = bytearray(at.plain)
        start, size = draw.randrange(len(data)), draw.choice((1, 64, 512, 4096, 20_000))
        how = number % 5
        if how == 0:
            data[start : start + size] = draw.randbytes(size)
        elif how == 1:
            data[start:start] = data[start : start + size]
        elif how == 2:
            del data[start : start + size]
        elif how == 3:
            data[start : start + size] = bytes(len(data[start : start + size]))
        else:
            data[start : start + size] = at.older[start : start + size]
        at.put(tally, f"{how} {start}+{size}", bytes(data))
    return tally


def _sealed(at: Tampering, own: bytes, other: bytes, draw: random.Random) -> Tally:
    """Use other keys, headers and blocks of other sealed files."""
    tally = Tally("sealed backup: keys, headers and blocks exchanged, unsealed content")
    sealed, theirs = at.sealed, at.others
    put = lambda what, data, key=own, must=True: at.put(tally, what, data, key, must=must)  # noqa: E731
    put("as it is", sealed, own, False)
    put("other key", sealed, other)
    put("no key", sealed, None)
    put("made by another key", theirs)
    put("plain with a key", at.plain)
    put("no content", sealed[:HEAD])
    put("appended byte", sealed + b"\0")
    put("appended block", sealed + sealed[HEAD : HEAD + SEALED_BLOCK])
    put("header of the other", theirs[:HEAD] + sealed[HEAD:])
    put("plain after a header", sealed[:HEAD] + at.plain)
    put("magic of another version", sealed.replace(b"SEALED-1", b"SEALED-2", 1))
    put("empty", b"")
    for number in range(20):
        key = bytearray(own)
        key[draw.randrange(len(key))] ^= 1 << draw.randrange(8)
        put(f"key with a bit flipped {number}", sealed, bytes(key))
    blocks = [sealed[n : n + SEALED_BLOCK] for n in range(HEAD, len(sealed), SEALED_BLOCK)]
    for number in range(8):
        mixed = draw.choices(blocks, k=draw.randrange(1, 4))
        same = mixed == blocks
        put(f"blocks {number}", sealed[:HEAD] + b"".join(mixed), own, not same)
    return tally


def _named(at: Tampering) -> Tally:
    """Give members names that lead elsewhere, and kinds that are no files."""
    tally = Tally("plain backup: names that lead outside, links, devices, doubled members")
    names = ["../" + OUTSIDE, f"/tmp/{OUTSIDE}", "a/../../" + OUTSIDE, "./catalogue.sqlite3",
             "catalogue.sqlite3/", "CATALOGUE.SQLITE3", "..", ".", "", "/", "a" * 300, "owner.lock",
             "chroma/chroma.sqlite3", "segments/1/x", "catalogue.sqlite3\0../x", "..\\" + OUTSIDE,
             "catalogue.sqlite3-wal", "audit.key\n", "uploads/x", "con", "\udcff"]  # fmt: skip
    kinds = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE,
             tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE,
             tarfile.BLKTYPE, b"9")  # fmt: skip
    rest = list(at.parts.items())
    for name in names:
        for kind in kinds:
            for first in (True, False):
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname = kind, f"../{OUTSIDE}"
                extra = [(entry, b"")]
                try:
                    made = packed(extra + rest if first else rest[:-1] + extra + rest[-1:])
                except (ValueError, UnicodeError):
                    continue
                at.put(tally, f"{name!r} {kind!r} {first}", made)
    for kind in kinds[3:]:
        for name in (*PARTS, MANIFEST):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, f"../{OUTSIDE}"
            rest_of = [(n, d) for n, d in rest if n != name]
            at.put(tally, f"{name} as {kind!r}", packed([(entry, b""), *rest_of]), must=True)
    for name, data in rest:
        at.put(tally, f"{name} twice", packed([(name, data), *rest]), must=True)
        left = [(n, d) for n, d in rest if n != name]
        at.put(tally, f"without {name}", packed(left), must=True)
        at.put(tally, f"{name} after the manifest", packed([*rest, (name, data)]), must=True)
    for first in PARTS:
        for second in PARTS:
            if first < second and first in at.parts and second in at.parts:
                swapped = {**at.parts, first: at.parts[second], second: at.parts[first]}
                at.put(tally, f"{first} and {second}", packed(list(swapped.items())), must=True)
                given, at.wanted = (
                    at.wanted,
                    {  # nobody signed it, so this is a backup as well
                        n: hashlib.sha256(d).digest() for n, d in swapped.items() if n != MANIFEST
                    },
                )
                at.put(tally, f"{first} and {second}, sums fitted", fitted(swapped), must=None
                       if CATALOGUE not in (first, second) else True)  # fmt: skip
                at.wanted = given
    return tally


def _raw(name: str, size: bytes, kind: bytes = b"0", content: bytes = b"") -> bytes:
    """Write one tar header by hand, with any size, and its content."""
    head = bytearray(512)
    head[: len(name)] = name.encode()
    head[100:108], head[108:116], head[116:124] = b"0000600\0", b"0000000\0", b"0000000\0"
    head[124:136], head[136:148] = size.ljust(12, b"\0"), b"00000000000\0"
    head[148:156], head[156:157], head[257:265] = b" " * 8, kind, b"ustar\x0000"
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + content + bytes(-len(content) % 512)


def _pax(*records: tuple[str, str], kind: bytes = b"x") -> bytes:
    text = b""
    for name, value in records:
        line = f" {name}={value}\n".encode()
        size = len(line) + len(str(len(line)))
        size = len(line) + len(str(size))
        text += str(size).encode() + line
    return _raw("PaxHeader", b"%011o\0" % len(text), kind, text)


def _sized(at: Tampering) -> Tally:
    """Declare sizes that are huge, negative or no numbers, in every way that tar has."""
    tally = Tally("plain backup: huge, negative and false sizes, sparse files, stacked headers")
    catalogue, end = at.parts[CATALOGUE], bytes(1024)
    rest = b"".join(
        _raw(name, b"%011o\0" % len(data), content=data)
        for name, data in at.parts.items() if name != CATALOGUE)  # fmt: skip
    plain = _raw(CATALOGUE, b"%011o\0" % len(catalogue), content=catalogue)
    at.put(tally, "by hand", plain + rest + end, must=False)
    huge = [b"\x80" + b"\0" * 3 + struct.pack(">Q", 1 << bits) for bits in (27, 33, 40, 50, 62, 63)]
    huge += [b"77777777777\0", b"\xff" * 12, b"\xff" * 11 + b"\0", b"\x80" + b"\xff" * 11, b"-1\0",
             b"9999\0", b"zz\0", b"", b" \0", b"0\0", b"00000000001\0"]  # fmt: skip
    for kind in (b"0", b"7", b"S", b"x", b"g", b"L", b"K", b"5", b"2"):
        for size in huge:
            for name in (CATALOGUE, MANIFEST, "../" + OUTSIDE):
                made = _raw(name, size, kind, catalogue[:1024]) + plain + rest + end
                at.put(tally, f"{name} {kind!r} {size!r}", made)
    for value in (
        "-1",
        "-512",
        "-1024",
        "0",
        "1",
        str(1 << 33),
        str(1 << 62),
        str(1 << 80),
        "1e9",
        "9" * 400,
        "9" * 5000,
        "x",
        "",
        "0x10",
        "１２",
    ):  # noqa: RUF001
        for key in ("size", "GNU.sparse.size", "GNU.sparse.realsize", "GNU.sparse.map",
                    "GNU.sparse.major", "GNU.sparse.name", "path", "linkpath", "mtime", "uid",
                    "hdrcharset"):  # fmt: skip
            for kind in (b"x", b"g"):
                at.put(
                    tally,
                    f"pax {key}={value[:20]}",
                    _pax((key, value), kind=kind) + plain + rest + end,
                )
    for real in (1 << 20, 1 << 25, 40 << 20, 1 << 33, 1 << 40):
        sparse = [("GNU.sparse.major", "0"), ("GNU.sparse.minor", "1"),
                  ("GNU.sparse.name", CATALOGUE), ("GNU.sparse.size", str(real)),
                  ("GNU.sparse.numblocks", "1"),
                  ("GNU.sparse.map", f"0,{len(catalogue)}")]  # fmt: skip
        made = _pax(*sparse) + plain + rest + end
        at.put(tally, f"sparse of {real}", made, must=True)
        written = sum(one.stat().st_size for one in (at.work / "place" / "inside").iterdir())
        if written > len(at.plain) + (1 << 20):
            tally.case(f"sparse of {real}", [f"{written} bytes written of {len(made)}"])
    for depth in (10, 200, 900, 1100, 3000, 20_000):
        for kind, text in ((b"x", b"13 comment=x\n"), (b"L", b"name\0"), (b"K", b"name\0")):
            one = _raw("h", b"%011o\0" % len(text), kind, text)
            at.put(tally, f"{depth} headers {kind!r}", one * depth + plain + rest + end)
    at.put(tally, "zeros", bytes(20_000_000), must=True)
    for text in (b"\x1f\x8b" + bytes(600), b"BZh9" + bytes(600), b"PK\3\4" + bytes(600),
                 b"\xfd7zXZ\0" + bytes(600), b"SQLite format 3\0" + bytes(600)):  # fmt: skip
        at.put(tally, f"begins {text[:6]!r}", text, must=True)
    return tally


def _manifests(at: Tampering, draw: random.Random, times: int) -> Tally:
    """Change the manifest alone: older, newer, of other sums, of hostile JSON."""
    tally = Tally("plain backup: manifests that are older, false or hostile JSON")
    older = _members(at.older)
    put = lambda what, data, must=True: at.put(tally, what, data, must=must)  # noqa: E731
    put("the older manifest", packed(list({**at.parts, MANIFEST: older[MANIFEST]}.items())))
    put("the older catalogue", packed(list({**at.parts, CATALOGUE: older[CATALOGUE]}.items())))
    texts = [b"", b"{}", b"[]", b"null", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"NaN",
             b'{"format": 1e400}', b"9" * 100_000, b'"' + b"a" * 900_000 + b'"', b" " * 1_000_001,
             at.parts[MANIFEST] + b"x", b"\xef\xbb\xbf" + at.parts[MANIFEST]]  # fmt: skip
    for text in texts:
        put(f"{text[:12]!r} of {len(text)}", packed(list({**at.parts, MANIFEST: text}.items())))
    loaded = json.loads(at.parts[MANIFEST])
    values = [
        None,
        -1,
        1 << 70,
        1.5,
        "x",
        "x" * 10_000,
        [],
        {},
        True,
        ["x"] * 50,
        [[[]]],
        "\0",
        "2",
    ]
    for _ in range(times):
        changed = json.loads(at.parts[MANIFEST])
        name = draw.choice([*loaded, "parts", "format"])
        if name == "parts":
            part = draw.choice(changed["parts"])
            part[draw.choice(["name", "bytes", "sha256", "more"])] = draw.choice(values)
        elif name == "format" and draw.random() < 0.5:
            changed[name] += draw.choice([-1, 1, 1 << 40])
        else:
            changed[name] = draw.choice(values)
        data = json.dumps(changed).encode()
        at.put(tally, f"{name}={str(changed.get(name))[:60]}",
               packed(list({**at.parts, MANIFEST: data}.items())))  # fmt: skip
    return tally


def _catalogues(at: Tampering, draw: random.Random, times: int) -> Tally:
    """Damage the catalogue and make the sums fit: only SQLite's checks are left to find it."""
    tally = Tally("plain backup: damaged catalogue whose sums fit (refused, or what was put in)")
    whole = at.parts[CATALOGUE]
    for _ in range(times):
        changed = bytearray(whole)
        for _ in range(draw.choice((1, 1, 4, 64))):
            place = draw.randrange(len(changed))
            place = draw.choice((place, place % 4096, place // 4096 * 4096 + draw.randrange(64)))
            changed[place] ^= 1 << draw.randrange(8)
        at.wanted[CATALOGUE] = hashlib.sha256(changed).digest()
        at.put(tally, "flipped", fitted({**at.parts, CATALOGUE: bytes(changed)}))
    for size in (0, 1, 16, 100, 512, 4096, len(whole) - 4096, len(whole) - 1):
        at.put(tally, f"cut to {size}", fitted({**at.parts, CATALOGUE: whole[:size]}), must=True)
    statements = ["CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM audit; END",
                  "CREATE VIEW v AS SELECT 1", "CREATE TABLE sneaky (a)", "DROP TABLE feedback",
                  "CREATE INDEX sneaky ON runs (tenant)", "PRAGMA user_version = 0",
                  "INSERT INTO document_acl VALUES (99999, 'x')",
                  "UPDATE sqlite_schema SET sql = replace(sql, 'TEXT', 'BLOB') WHERE name = 'runs'",
                  "CREATE VIRTUAL TABLE f USING fts5(a)", "DELETE FROM meta"]  # fmt: skip
    for statement in statements:
        path = at.work / "changed.sqlite3"
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute(statement)
            connection.commit()
        changed_by = path.read_bytes()
        at.wanted[CATALOGUE] = hashlib.sha256(changed_by).digest()
        at.put(tally, statement[:40], fitted({**at.parts, CATALOGUE: changed_by}),
               must=None if "meta" in statement else True)  # fmt: skip
    at.wanted[CATALOGUE] = hashlib.sha256(whole).digest()
    return tally


def _commands(at: Tampering, draw: random.Random) -> Tally:
    """Restore with the command: into nothing, into an empty folder and beside a live directory."""
    tally = Tally("`carrel restore` of tampered backups: exit code, one line, nothing left, exact")
    place = at.work / "restored"
    cases: list[tuple[str, bytes, Path | None]] = [("as it is", at.plain, None)]
    cases += [(f"sealed, {name} key", at.sealed, key) for name, key in at.keys.items()]
    for number in range(30):
        data, key = (at.plain, None) if number % 2 else (at.sealed, at.keys["own"])
        spot = draw.randrange(len(data))
        flipped = data[:spot] + bytes([data[spot] ^ 4]) + data[spot + 1 :]
        cases.append((f"bit at {spot}", flipped, key))
    one = _raw("h", b"%011o\0" % 13, b"x", b"13 comment=x\n")
    cases.append(("1100 headers", one * 1100 + at.plain, None))
    for _ in range(25):
        changed = bytearray(at.parts[CATALOGUE])
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        cases.append(
            ("flipped, sums fitted", fitted({**at.parts, CATALOGUE: bytes(changed)}), None)
        )
    for what, data, key in cases:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        (place / OUTSIDE).write_text("untouched")
        (at.work / "bad").write_bytes(data)
        given = ("--key-file", key) if key else ()
        ended = carrel("restore", at.work / "bad", *given, data=place / "data")
        wrong = ended.wrong
        left = sorted(one.name for one in place.iterdir())
        if ended.code:
            wrong += [f"left behind: {left}"] if left != [OUTSIDE] else []
            lines = [line for line in ended.err.splitlines() if line.startswith("carrel: ")]
            wrong += [f"not one line: {ended.err!r}"] if len(lines) != 1 else []
        elif "fitted" not in what:
            names = differences(canonical_of(place / "data"), at.ground.truth)
            wrong += [f"another truth: {names}"] if names else []
        tally.case(what, wrong, "refused" if ended.code else "restored")
    return tally
