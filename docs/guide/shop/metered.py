"""One of three services in a row that exposes metrics for Prometheus and sends no traces: metered.py PORT."""

import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

STARTED = time.monotonic()
NEXT = os.environ.get("NEXT")
SLOWER_AFTER_SECONDS = float(os.environ.get("SLOWER_AFTER", "inf"))
METRICS = """# TYPE http_request_duration_seconds summary
http_request_duration_seconds_sum{{code="200"}} {sum}
http_request_duration_seconds_count{{code="200"}} {count}
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total {cpu}
"""

lock = threading.Lock()
counted = {"sum": 0.0, "count": 0}


def items():
    began = time.monotonic()
    time.sleep(0.040 if began - STARTED > SLOWER_AFTER_SECONDS else 0.010)
    if NEXT:
        with urlopen(NEXT + "/items") as response:
            response.read()
    with lock:
        counted["sum"] += time.monotonic() - began
        counted["count"] += 1
    return "3 items\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = METRICS.format(cpu=time.process_time(), **counted) if self.path == "/metrics" else ""
        body = (items() if self.path == "/items" else body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
