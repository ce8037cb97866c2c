"""A small order service with a common problem: listing orders takes one query more for each order."""

import os
import random
import sqlite3

from fastapi import FastAPI

CUSTOMERS, ORDERS, LINES = 200, 2_000, 5
PAGE = "SELECT id, customer FROM orders ORDER BY id DESC LIMIT ?"
TOTAL = "SELECT sum(quantity * price) FROM lines WHERE order_id = ?"
PAGE_WITH_TOTALS = """
    SELECT o.id, o.customer, sum(l.quantity * l.price)
    FROM (SELECT id, customer FROM orders ORDER BY id DESC LIMIT ?) o JOIN lines l ON l.order_id = o.id
    GROUP BY o.id ORDER BY o.id DESC"""

app = FastAPI()


def open_database():
    """A database in memory, with the same rows every time."""
    dice, database = random.Random(1), sqlite3.connect(":memory:")
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER)")
    database.execute("CREATE TABLE lines (order_id INTEGER, quantity INTEGER, price INTEGER)")
    database.execute("CREATE INDEX lines_of_order ON lines (order_id)")
    orders = [(number, dice.randint(1, CUSTOMERS)) for number in range(ORDERS)]
    lines = [(order, dice.randint(1, 9), dice.randint(100, 9_999)) for order, _ in orders for _ in range(LINES)]
    database.executemany("INSERT INTO orders VALUES (?, ?)", orders)
    database.executemany("INSERT INTO lines VALUES (?, ?, ?)", lines)
    return database


database = open_database()


@app.get("/health")
async def health():
    return {"status": "ok"}


@app.get("/orders")
async def list_orders(limit: int = 50):
    if os.environ.get("QUERY") == "join":
        rows = query(PAGE_WITH_TOTALS, limit)
    else:
        rows = [(order, customer, query(TOTAL, order)[0][0]) for order, customer in query(PAGE, limit)]
    return [{"id": order, "customer": customer, "total": cents} for order, customer, cents in rows]


def query(sql, value):
    return database.cursor().execute(sql, (value,)).fetchall()
