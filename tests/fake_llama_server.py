"""A llama-server that misbehaves: the file `MOOD` beside the copy of this script says how.

- deaf: ignores SIGTERM
- hung: ignores SIGTERM, and its health is silent
- busy: its health is silent for a while, and it computes in that time
- broken: ends at once with an error
- loading: never gets ready
"""

from __future__ import annotations

import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

MOOD = Path(__file__).with_name("MOOD")
HELP = "--api-key-file FNAME\n--alias STRING"
BUSY_SECONDS = 1.2


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        mood = MOOD.read_text()
        while mood == "hung":
            time.sleep(60)
        if mood == "busy":
            MOOD.write_text("ok")
            end = time.monotonic() + BUSY_SECONDS
            while time.monotonic() < end:
                pass
        self.send_response(503 if mood == "loading" else 200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


def main() -> None:
    if "--help" in sys.argv:
        sys.stdout.write(HELP)
        return
    mood = MOOD.read_text()
    if mood == "broken":
        sys.exit("error: the tensors are of an unknown kind")
    if mood in ("deaf", "hung"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
