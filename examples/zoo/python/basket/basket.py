"""Totals a basket with the tax rates of a MariaDB database.

FAULT=1 reads all tax rates again for every line of the basket.
"""

import os
import queue
from urllib.parse import urlsplit

import pymysql
from flask import Flask

POOL = 16
LINES = 6
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
            autocommit=True,
        )
    )
app = Flask("basket")


def tax_rates(connection) -> dict[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT category, per_mille FROM tax_rates")
        return dict(cursor.fetchall())


def total(connection) -> int:
    rates = tax_rates(connection)
    cents = 0
    for line in range(LINES):
        if FAULTY and line:
            rates = tax_rates(connection)
        cents += (1_000 + line) * (1_000 + rates[line]) // 1_000
    return cents


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/baskets/<int:number>")
def basket(number: int):
    connection = pool.get()
    try:
        return {"number": number, "cents": total(connection)}
    finally:
        pool.put(connection)


app.run(host="127.0.0.1", port=int(os.environ["PORT"]), threaded=True)
