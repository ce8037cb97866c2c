"""Reports how many of a product are in stock, from PostgreSQL.

FAULT=1 connects to the database anew for each request.
"""

import os
import queue

import psycopg
from flask import Flask

POOL = 8
FAULTY = bool(os.environ.get("FAULT"))

app = Flask("stock")
pool: queue.Queue = queue.Queue()


def connect():
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def count(connection, product: int) -> int:
    return connection.execute("SELECT pieces FROM stock WHERE product = %s", (product,)).fetchone()[0]


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/stock/<int:product>")
def stock(product: int):
    if FAULTY:
        with connect() as connection:
            return {"product": product, "pieces": count(connection, product)}
    connection = pool.get()
    try:
        return {"product": product, "pieces": count(connection, product)}
    finally:
        pool.put(connection)


for _ in range(POOL):
    pool.put(connect())
app.run(host="127.0.0.1", port=int(os.environ["PORT"]), threaded=True)
