"""Accepts uploads and writes an audit log in the folder DIR.

FAULT=1 syncs the log to disk after each record.
"""

import hashlib
import logging
import os
import pathlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PARTS = 30
FAULTY = bool(os.environ.get("FAULT"))


class SyncedFileHandler(logging.FileHandler):
    def emit(self, record):
        super().emit(record)
        os.fsync(self.stream.fileno())


handler_type = SyncedFileHandler if FAULTY else logging.FileHandler
audit = logging.getLogger("audit")
audit.setLevel(logging.INFO)
audit.addHandler(handler_type(pathlib.Path(os.environ["DIR"], "audit.log")))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        digest = hashlib.sha256(content).hexdigest()
        audit.info("received %d bytes", len(content))
        for part in range(PARTS):
            audit.info("stored part %d of %s", part, digest)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
