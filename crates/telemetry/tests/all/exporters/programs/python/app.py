"""A server and its client in one process; nothing in it knows that it is watched."""

import logging
import threading
import urllib.error
import urllib.request

from flask import Flask
from werkzeug.serving import make_server

app = Flask(__name__)


@app.get("/hello/<name>")
def hello(name):
    logging.getLogger(__name__).warning("greeting %s", name)
    return f"hello {name}"


@app.get("/boom")
def boom():
    raise ValueError("boom")


server = make_server("127.0.0.1", 0, app)
serving = threading.Thread(target=server.serve_forever)
serving.start()
for path in ["/hello/world", "/boom"]:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}").read()
    except urllib.error.HTTPError as error:
        assert error.code == 500
server.shutdown()
serving.join()
