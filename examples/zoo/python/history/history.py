"""Draws charts.

FAULT=1 keeps each chart in a history that nothing ever shortens; otherwise the last 20 are kept.
"""

import collections
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHART_BYTES = 200_000
history = collections.deque(maxlen=None if os.environ.get("FAULT") else 20)


class Charts(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path != "/health":
            history.append(bytes([len(history) % 256]) * CHART_BYTES)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Charts).serve_forever()
