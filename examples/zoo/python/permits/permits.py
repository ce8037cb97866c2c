"""Grants permits if a survey, which takes 40 ms, finds enough fish. ROLE is permits or survey.

FAULT=1 has two threads for requests; else there are 32.
"""

import os
import time

import requests
from flask import Flask
from waitress import serve

FAULTY = bool(os.environ.get("FAULT"))
app = Flask("permits")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=32))


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/fish")
def count():
    time.sleep(0.04)
    return {"fish": 4711}


@app.post("/permits")
def grant():
    response = session.get(os.environ["SURVEY_URL"] + "/fish", timeout=10)
    response.raise_for_status()
    return response.json(), 201


serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=2 if FAULTY else 32)
