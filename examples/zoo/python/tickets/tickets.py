"""Sells tickets; the payment provider takes 40 ms.

FAULT=1 serves all requests with two threads.
"""

import os
import time

from flask import Flask
from waitress import serve

PAYMENT_SECONDS = 0.04
app = Flask("tickets")


@app.get("/health")
def health():
    return {"status": "ok"}


@app.post("/tickets")
def buy():
    time.sleep(PAYMENT_SECONDS)
    return {"paid": True}, 201


serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=2 if os.environ.get("FAULT") else 32)
