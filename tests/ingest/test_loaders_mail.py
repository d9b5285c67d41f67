"""E-mail and mailboxes: a message is a document, and so is each document attached to it."""

from __future__ import annotations

import base64
import mailbox
from email.message import EmailMessage
from pathlib import Path

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loading import LIMITS, loaded, only, reason, saved, texts

DOCX = "vnd.openxmlformats-officedocument.wordprocessingml.document"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def message(subject: str = "Привет", text: str = "Добрый день!") -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = subject
    mail["From"] = "Иван <ivan@example.org>"
    mail["To"] = "a@example.org"
    mail["Date"] = "Fri, 16 Dec 2022 17:04:16 -0500"
    mail.set_content(text)
    return mail


def attach(mail: EmailMessage, name: str, data: bytes) -> None:
    mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)


def report() -> bytes:
    document = docx.Document()
    document.add_heading("Report", 1)
    document.add_paragraph("Body of the report")
    return saved(document)


def test_headers_and_text(tmp_path: Path) -> None:
    mail = message()
    mail.add_alternative("<p>Добрый <b>день</b> в HTML</p>", subtype="html")
    document = only(tmp_path / "a.eml", bytes(mail))
    assert document.title == "Привет"
    assert document.metadata == {
        "title": "Привет", "authors": ["Иван <ivan@example.org>"], "to": "a@example.org",
        "updated_at": "2022-12-16T17:04:16-05:00",
    }  # fmt: skip
    head, body = texts(document)
    assert head.startswith("Subject: Привет\nFrom: Иван") and body == "Добрый день!"


def test_html_alone_is_read_as_such(tmp_path: Path) -> None:
    mail = message()
    mail.set_content("<script>bad()</script><p>Hello <b>you</b></p>", subtype="html")
    assert texts(only(tmp_path / "h.eml", bytes(mail)))[1] == "Hello you"


def test_attachments_are_documents_of_their_own(tmp_path: Path) -> None:
    mail = message()
    attach(mail, "Отчёт.docx", report())
    attach(mail, "logo.png", b"\x89PNG")
    attach(mail, "old.doc", OLE)
    attach(mail, "../../etc/evil.md", b"# Evil\n\ntext")
    inner = message("Inner", "inner text")
    attach(inner, "deep.txt", b"deep text")
    mail.add_attachment(inner)
    documents, failures = loaded(tmp_path / "a.eml", bytes(mail))
    assert [document.document_id for document in documents] == [
        "a.eml", "a.eml/Отчёт.docx", "a.eml/evil.md", "a.eml/message.eml",
        "a.eml/message.eml/deep.txt",
    ]  # fmt: skip
    assert texts(documents[1]) == ["Body of the report"] and documents[3].title == "Inner"
    assert list(failures) == ["a.eml/old.doc"]


def test_nesting_ends(tmp_path: Path) -> None:
    mail = message("0", "innermost")
    for level in range(1, 9):
        outer = message(str(level), f"level {level}")
        outer.add_attachment(mail)
        mail = outer
    documents, failures = loaded(tmp_path / "n.eml", bytes(mail))
    assert len(documents) == LIMITS.zip_depth + 1
    assert "zip_depth" in str(failures)


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "utf-8"])
def test_bytes_without_a_named_encoding(tmp_path: Path, encoding: str) -> None:
    raw = "Subject: Письмо без кодировки\nFrom: Вася <v@x>\n\nТекст письма без заголовка о ней.\n"
    document = only(tmp_path / "b.eml", raw.encode(encoding))
    assert document.title == "Письмо без кодировки"
    assert texts(document)[1] == "Текст письма без заголовка о ней."


def test_wrong_and_made_up_encodings(tmp_path: Path) -> None:
    for charset in ("us-ascii", "no-such-charset", "utf-8"):
        head = f"Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain; charset={charset}\n\n"
        content = head.encode() + "Сообщение об ошибке".encode("cp1251")
        assert texts(only(tmp_path / "w.eml", content))[1] == "Сообщение об ошибке"


def test_malformed_messages_give_what_can_be_read(tmp_path: Path) -> None:
    broken = (
        b"Subject: =?utf-8?b?" + base64.b64encode("Тема".encode()) + b"?=\nDate: not a date\n"
        b'From: "unclosed <x@y\nContent-Type: multipart/mixed; boundary=q\n\n--q\n'
        b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n!!!not base64\n--q\n"
        b"Content-Type: text/plain\n\nreadable"
    )
    document = only(tmp_path / "m.eml", broken)
    assert document.title == "Тема" and "readable" in texts(document)[-1]


def test_files_that_are_no_mail(tmp_path: Path) -> None:
    assert "white space" in reason(tmp_path / "e.eml", b"  \n\n ")
    assert "no e-mail" in reason(tmp_path / "t.eml", b"just some text\nof a person\n")
    assert "empty e-mail" in reason(tmp_path / "n.eml", b"From: a@b\n\n  \n")
    assert "no mailbox" in reason(tmp_path / "t.mbox", b"just text\n")
    assert "no Outlook message" in reason(tmp_path / "t.msg", b"proc msgcat {} {}\n")
    assert "damaged" in reason(tmp_path / "d.msg", OLE + bytes(2000))


def bodies(*parts: EmailMessage, kind: str = "mixed") -> EmailMessage:
    mail = message()
    mail.set_content("")
    mail.clear_content()
    mail["Content-Type"] = f"multipart/{kind}"
    for part in parts:
        mail.attach(part)
    return mail


def text_part(text: str, subtype: str = "plain", **headers: str) -> EmailMessage:
    part = EmailMessage()
    part.set_content(text, subtype=subtype)
    for name, value in headers.items():
        part[name] = value
    return part


def test_a_plain_footer_does_not_hide_the_text(tmp_path: Path) -> None:
    mail = bodies(text_part("<p>The <b>whole</b> letter</p>", "html"), text_part("A list footer"))
    assert texts(only(tmp_path / "f.eml", bytes(mail)))[1:] == ["The whole letter", "A list footer"]


def test_the_same_text_twice_is_read_once(tmp_path: Path) -> None:
    mail = bodies(text_part("Words of the letter"), text_part("<p>Words of the letter", "html"))
    assert texts(only(tmp_path / "t.eml", bytes(mail)))[1:] == ["Words of the letter"]


def test_an_alternative_that_says_nothing(tmp_path: Path) -> None:
    long = "<style>p {color: red}</style><p>" + "The text of the letter in many words. " * 3
    mail = bodies(text_part("Open in a browser"), text_part(long, "html"), kind="alternative")
    assert "many words" in texts(only(tmp_path / "s.eml", bytes(mail)))[1]
    within = bodies(text_part(long, "html"), text_part("<i>and its end</i>", "html"))
    outer = bodies(text_part("see HTML"), within, kind="alternative")
    assert texts(only(tmp_path / "o.eml", bytes(outer)))[2] == "and its end"


def test_western_is_said_of_whatever_was_written(tmp_path: Path) -> None:
    head = b"Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain; charset=ISO-8859-1\n\n"
    for encoding, text in (
        ("cp1252", "It’s “quoted” – for €5"),
        ("utf-8", "Grüße aus Köln, naïve café"),
        ("cp1251", "Сообщение об ошибке в договоре поставки"),
        ("latin-1", "Grüße aus Köln, naïve café"),
    ):
        content = head + text.encode(encoding)
        assert texts(only(tmp_path / "w.eml", content))[1] == text, encoding


def test_attachments_with_odd_names_or_none(tmp_path: Path) -> None:
    mail = message()
    mail.add_attachment("a note", filename="README")
    mail.add_attachment(report(), maintype="application", subtype=DOCX)
    tnef = b"\x78\x9f\x3e\x22" + bytes(50)
    mail.add_attachment(tnef, maintype="application", subtype="ms-tnef", filename="winmail.dat")
    documents, failures = loaded(tmp_path / "n.eml", bytes(mail))
    assert [document.document_id for document in documents] == [
        "n.eml", "n.eml/README.txt", "n.eml/attachment.docx",
    ]  # fmt: skip
    assert "Outlook" in failures["n.eml/winmail.dat"]


def test_a_message_attached_in_base64(tmp_path: Path) -> None:
    inner = base64.encodebytes(bytes(message("Inner", "inner text")))
    content = (
        b"Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=q\n\n--q\n"
        b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n" + inner + b"--q--\n"
    )
    documents, failures = loaded(tmp_path / "b.eml", content)
    assert not failures and documents[1].title == "Inner"


def test_parts_within_parts_without_end(tmp_path: Path) -> None:
    mail = text_part("innermost")
    for _ in range(60):
        mail = bodies(mail)
    assert only(tmp_path / "p.eml", bytes(mail)).title == "Привет"


def test_a_mailbox(tmp_path: Path) -> None:
    path = tmp_path / "box.mbox"
    box = mailbox.mbox(str(path))
    first = message("Первое", "From here on\n\nFrom the start of a line")
    attach(first, "a.txt", "вложение".encode())
    for mail in (first, message("Second", "text")):
        box.add(mail)
    box.flush()
    box.close()
    documents, failures = loaded(path)
    assert not failures
    assert [document.document_id for document in documents] == [
        "box.mbox#1", "box.mbox#1/a.txt", "box.mbox#2",
    ]  # fmt: skip
    assert "From the start of a line" in texts(documents[0])[1]
    assert documents[2].title == "Second"


@given(st.binary(max_size=400))
def test_any_bytes_end_in_documents_or_reasons(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("mail") / "x.eml"
    documents, failures = loaded(path, b"Subject: x\nFrom: y\n" + junk)
    assert documents or failures
    assert not any("gave up" in reason for reason in failures.values()), failures
