"""Sells tours; a guide's calendar says whether there is one left. ROLE is tours or calendar.

FAULT=1 makes the calendar take 120 ms.
"""

import os
import time

import requests
from flask import Flask
from waitress import serve

CALENDAR_SECONDS = 0.12 if os.environ.get("FAULT") else 0.002
app = Flask("tours")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=32))


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/free")
def free():
    time.sleep(CALENDAR_SECONDS)
    return {"places": 7}


@app.post("/tours")
def book():
    calendar = session.get(os.environ["CALENDAR_URL"] + "/free", timeout=10).json()
    return {"booked": calendar["places"] > 0}, 201


serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=32)
