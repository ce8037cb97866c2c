"""Shows the weather, from a forecast service. ROLE is weather or forecast.

FAULT=1 makes the forecast service refuse more than five calls per second; weather waits as long as it is told to.
"""

import os
import threading
import time

import requests
from flask import Flask

CALLS_PER_SECOND = 5
ATTEMPTS = 10
FAULTY = bool(os.environ.get("FAULT"))

app = Flask(os.environ["ROLE"])
session = requests.Session()
lock = threading.Lock()
calls: dict[int, int] = {}


def is_over_quota() -> bool:
    second = int(time.time())
    with lock:
        calls[second] = calls.get(second, 0) + 1
        return FAULTY and calls[second] > CALLS_PER_SECOND


@app.get("/health")
def health():
    return {"status": "ok"}


def forecast(city: str):
    if is_over_quota():
        return {"error": "too many requests"}, 429, {"Retry-After": "1"}
    time.sleep(0.01)
    return {"city": city, "celsius": 11}


def weather(city: str):
    for _ in range(ATTEMPTS):
        response = session.get(f"{os.environ['FORECAST_URL']}/forecast/{city}", timeout=5)
        if response.status_code != 429:
            return response.json()
        time.sleep(float(response.headers["Retry-After"]))
    return {"error": "no forecast"}, 503


if os.environ["ROLE"] == "forecast":
    app.get("/forecast/<city>")(forecast)
else:
    app.get("/weather/<city>")(weather)
app.run(host="127.0.0.1", port=int(os.environ["PORT"]), threaded=True)
