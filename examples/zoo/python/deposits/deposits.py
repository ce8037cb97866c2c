"""Takes deposits: reads the account, asks a bank, which takes 30 ms, and adds to the account. ROLE is deposits or bank.

FAULT=1 has two database connections, which each request keeps while it asks the bank; else a request gives its connection
back before it asks.
"""

import os
import queue
import time
from contextlib import contextmanager

import psycopg
import requests
from flask import Flask
from waitress import serve

FAULTY = bool(os.environ.get("FAULT"))
CONNECTIONS = 2 if FAULTY else 8
app = Flask("deposits")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=32))
pool = queue.LifoQueue()


@contextmanager
def connection():
    taken = pool.get()
    try:
        yield taken
    finally:
        pool.put(taken)


def balance(database, account):
    return database.execute("SELECT cents FROM accounts WHERE id = %s", (account,)).fetchone()[0]


def ask():
    session.get(os.environ["BANK_URL"] + "/permission", timeout=10).raise_for_status()


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/permission")
def permission():
    time.sleep(0.03)
    return {"granted": True}


@app.post("/accounts/<int:account>/deposits")
def deposit(account):
    if FAULTY:
        with connection() as database:
            cents = balance(database, account)
            ask()
    else:
        with connection() as database:
            cents = balance(database, account)
        ask()
    return {"cents": cents + 100}, 201


if os.environ["ROLE"] == "deposits":
    for _ in range(CONNECTIONS):
        pool.put(psycopg.connect(os.environ["DATABASE_URL"], autocommit=True))
serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=32)
