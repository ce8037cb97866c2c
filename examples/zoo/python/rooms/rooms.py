"""Lets rooms at one of three desks. A desk has two clerks, who take 20 ms each. ROLE is rooms or desk.

FAULT=1 chooses the desk by the country of the guest, and all are from one; else by the guest.
"""

import os
import threading
import time

import requests
from flask import Flask
from waitress import serve

COUNTRY = "IS"
FAULTY = bool(os.environ.get("FAULT"))
DESKS = os.environ.get("DESK_URLS", "").split(",")
app = Flask("rooms")
clerks = threading.Semaphore(2)
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_connections=8, pool_maxsize=32))


def desk_of(guest):
    key = sum(COUNTRY.encode()) if FAULTY else guest
    return DESKS[key % len(DESKS)]


@app.get("/health")
def health():
    return {"status": "ok"}


@app.post("/keys")
def give_key():
    with clerks:
        time.sleep(0.02)
    return {"room": 17}, 201


@app.post("/guests/<int:guest>/rooms")
def let_room(guest):
    response = session.post(desk_of(guest) + "/keys", timeout=10)
    response.raise_for_status()
    return response.json(), 201


serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=16)
