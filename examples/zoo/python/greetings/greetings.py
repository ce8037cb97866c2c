"""Greets.

FAULT=1 leaves TCP_NODELAY off. Python's server writes head and body of a response separately, so the body waits until the
client has acknowledged the head, which takes clients 40 ms.
"""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Greetings(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = not os.environ.get("FAULT")

    def do_GET(self) -> None:
        body = b'{"greeting":"hello"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Greetings).serve_forever()
