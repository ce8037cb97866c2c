"""Rates the strength of passwords.

FAULT=1 compares each one with 80,000 known passwords, letter by letter, in Python code that holds the interpreter's
lock.
"""

import json
import os
import random
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KNOWN = 80_000
FAULTY = bool(os.environ.get("FAULT"))

dice = random.Random(1)
known = ["".join(dice.choices("abcdefghij", k=8)) for _ in range(KNOWN)]
lookup = set(known)


def is_known(password: str) -> bool:
    if not FAULTY:
        return password in lookup
    found = False
    for entry in known:
        same = 0
        for left, right in zip(entry, password):
            if left != right:
                break
            same += 1
        found = found or same == len(password)
    return found


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        password = self.path.rpartition("/")[2]
        body = json.dumps({"known": is_known(password)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
