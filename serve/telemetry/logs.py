"""What a server writes to its log: one JSON object a line, without questions, bodies or keys."""

from __future__ import annotations

import json
import logging
import re
import sys
import time

from core.settings import Settings

log = logging.getLogger("carrel.serve")
CHECKS = "carrel.checks"
LOGGERS = ("carrel.serve", "carrel.audit", CHECKS, "uvicorn.error")
FIELDS = ("id", "method", "route", "status", "ms", "tenant", "user")
SECRET = re.compile(r"carrel_[0-9a-f]{12}_[0-9a-f]+|Bearer +\S+|eyJ[\w-]+\.[\w-]+\.[\w-]*")


class JsonLines(logging.Formatter):
    """Format a record as one line of JSON; text that looks like a key is redacted."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {name: value for name in FIELDS if (value := getattr(record, name, None))}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        safe = {
            name: SECRET.sub("[key]", value) if isinstance(value, str) else value
            for name, value in line.items()
        }
        # Some characters, such as U+2028, end a line for one reader or another.
        text = json.dumps(safe, ensure_ascii=False)
        return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


class TextLines(JsonLines):
    """Format a record as one line for people; what a caller sent cannot begin another line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = json.loads(super().format(record))
        error = line.pop("error", "")
        first = (line.pop("time"), line.pop("level"), line.pop("message"))
        rest = (f"{name}={value}" for name, value in line.items())
        shown = " ".join(
            "".join(c if c.isprintable() else "?" for c in one) for one in (*first, *rest)
        )
        return f"{shown}\n{error}" if error else shown


def log_to_stderr(settings: Settings) -> None:
    """Send this server's log, and what uvicorn says of errors, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextLines() if settings.serve.log_format == "text" else JsonLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
    use_level(settings)


def use_level(settings: Settings) -> None:
    """Set the log level of the settings."""
    for name in LOGGERS:
        logging.getLogger(name).setLevel(settings.serve.log_level.upper())
