"""What a server writes to its log: one JSON object a line, without questions, bodies or keys."""

from __future__ import annotations

import json
import logging
import re
import sys
import time

log = logging.getLogger("carrel.serve")
FIELDS = ("id", "method", "route", "status", "ms", "tenant", "user")
SECRET = re.compile(r"carrel_[0-9a-f]{12}_[0-9a-f]+|Bearer +\S+|eyJ[\w-]+\.[\w-]+\.[\w-]*")


class JsonLines(logging.Formatter):
    """Format a record as one line; whatever looks like a key is struck out."""

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
        return json.dumps(safe, ensure_ascii=False)


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Send this server's log, and what uvicorn says of errors, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (log.name, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)
