"""Numbers invoices without gaps, in MariaDB.

FAULT=1 renders the invoice before it commits, while no other invoice can get its number.
"""

import os
import queue
import time
from urllib.parse import urlsplit

import pymysql
from flask import Flask
from waitress import serve

POOL = 16
RENDER_SECONDS = 0.015
FAULTY = bool(os.environ.get("FAULT"))

database = urlsplit(os.environ["DATABASE_URL"])
pool: queue.Queue = queue.Queue()
for _ in range(POOL):
    pool.put(
        pymysql.connect(
            host=database.hostname,
            port=database.port,
            user=database.username,
            database=database.path.strip("/"),
        )
    )
app = Flask("numbering")


def render(number: int) -> None:
    """Stands for the call to a service that makes a document."""
    time.sleep(RENDER_SECONDS)


def next_number(connection) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT next FROM series WHERE name = 'invoices' FOR UPDATE")
        (number,) = cursor.fetchone()
        cursor.execute("UPDATE series SET next = %s WHERE name = 'invoices'", (number + 1,))
    return number


@app.get("/health")
def health():
    return {"status": "ok"}


@app.post("/invoices")
def invoice():
    connection = pool.get()
    try:
        number = next_number(connection)
        if FAULTY:
            render(number)
        connection.commit()
    finally:
        pool.put(connection)
    if not FAULTY:
        render(number)
    return {"number": number}, 201


serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=POOL)
