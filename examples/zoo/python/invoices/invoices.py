"""Finds a customer's invoices by e-mail address, in PostgreSQL.

FAULT=1 leaves out the index on the address.
"""

import os
import queue

import psycopg
from flask import Flask

POOL = 8
INVOICES = 1_500_000
FAULTY = bool(os.environ.get("FAULT"))

pool: queue.Queue = queue.Queue()
for _ in range(POOL):
    pool.put(psycopg.connect(os.environ["DATABASE_URL"], autocommit=True))
app = Flask("invoices")


def create_table() -> None:
    connection = pool.get()
    connection.execute("CREATE TABLE invoices (id int PRIMARY KEY, email text NOT NULL, cents int NOT NULL)")
    connection.execute(
        "INSERT INTO invoices SELECT n, 'Customer' || n % 50000 || '@example.com', n % 9000"
        f" FROM generate_series(1, {INVOICES}) n"
    )
    if not FAULTY:
        connection.execute("CREATE INDEX invoices_email ON invoices (lower(email))")
    connection.execute("VACUUM ANALYZE invoices")
    pool.put(connection)


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/customers/<int:number>/invoices")
def invoices(number: int):
    connection = pool.get()
    try:
        email = f"customer{number}@example.com"
        rows = connection.execute("SELECT id, cents FROM invoices WHERE lower(email) = %s", (email,))
        return [{"id": invoice, "cents": cents} for invoice, cents in rows]
    finally:
        pool.put(connection)


create_table()
app.run(host="127.0.0.1", port=int(os.environ["PORT"]), threaded=True)
