#!/usr/bin/env python3
"""Clients in Python: requests with a session or a connection for each call, psycopg, pg8000.

    client.py requests|churn|psycopg|pg8000 ADDRESS SERVICE_MS THINK_MS BYTES WORKERS SECONDS

Calls for two seconds unmeasured, prints "measuring", and at its end the mean number of calls under way by its own clock,
their number and mean time.
"""

import json
import random
import sys
import threading
import time

kind, address = sys.argv[1:3]
service_ms, think_ms, size, workers, seconds = map(float, sys.argv[3:8])
host, port = address.split(":")
path = f"/?ms=5&slow={-service_ms:g}" if service_ms < 0 else f"/?ms={service_ms:g}"
url = f"http://{address}{path}&bytes={size:.0f}"


def over_requests():
    import requests

    session = requests.Session()
    return lambda: session.get(url)


def over_a_connection_each():
    import requests

    return lambda: requests.get(url, headers={"Connection": "close"})


def over_psycopg():
    import psycopg

    connection = psycopg.connect(host=host, port=port, user="postgres", autocommit=True)
    return lambda: connection.execute("SELECT pg_sleep(%s)", (service_ms / 1e3,)).fetchall()


def over_pg8000():
    import pg8000.native

    connection = pg8000.native.Connection("postgres", host=host, port=int(port))
    return lambda: connection.run("SELECT pg_sleep(:s)", s=service_ms / 1e3)


KINDS = {"requests": over_requests, "churn": over_a_connection_each, "psycopg": over_psycopg, "pg8000": over_pg8000}
busy, calls, lock, began = 0.0, 0, threading.Lock(), time.monotonic() + 2


def work(seed):
    global busy, calls
    call, chance = KINDS[kind](), random.Random(seed)
    while time.monotonic() - began < seconds:
        sent = time.monotonic()
        call()
        took = time.monotonic() - sent
        if sent >= began:
            with lock:
                busy, calls = busy + took, calls + 1
        if think_ms > 0:
            time.sleep(chance.expovariate(1e3 / think_ms))


threads = [threading.Thread(target=work, args=(at,)) for at in range(int(workers))]
for thread in threads:
    thread.start()
time.sleep(2)
print("measuring", flush=True)
for thread in threads:
    thread.join()
outstanding = busy / (time.monotonic() - began)
print(json.dumps({"outstanding": outstanding, "calls": calls, "mean_ms": busy / calls * 1e3}))
