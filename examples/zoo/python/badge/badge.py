"""Prints badges for visitors; the printer takes 15 ms.

FAULT=1 serves one connection at a time, with the server's default queue of five.
"""

import os
import time
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

PRINT_SECONDS = 0.015


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(PRINT_SECONDS)
        body = b"badge"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


server = HTTPServer if os.environ.get("FAULT") else Server
server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
