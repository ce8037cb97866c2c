"""A small order service: FastAPI in front of SQLAlchemy and a SQLite file.

Listing orders reads the lines of the whole page with one query, and writes a check digit beside each total.

Environment:
    DATABASE  path of the SQLite file, made new at every start; default: orders.db in the system's temporary directory
    FAULT     what is wrong with the service; nothing, or one of
              n-plus-one  reads each order's lines when they are first touched: one query for every order on the page
              cpu         works out the check digits with far too many rounds
"""

import datetime
import gc
import os
import pathlib
import random
import tempfile
from typing import Annotated

from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel
from sqlalchemy import Engine, ForeignKey, create_engine, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload

CUSTOMERS = 200
ORDERS = 2_000
ORDERS_PER_DAY = 6
LINES_PER_ORDER_MAX = 3
PRODUCTS = ("bolt", "bracket", "cable", "filter", "gasket", "hinge", "lamp", "pump", "relay", "valve")

DATABASE = pathlib.Path(os.environ.get("DATABASE", pathlib.Path(tempfile.gettempdir(), "orders.db")))
FAULT = os.environ.get("FAULT", "")
CHECK_ROUNDS = 2_000 if FAULT == "cpu" else 1


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    placed_on: Mapped[datetime.date] = mapped_column(index=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id"))
    customer: Mapped[Customer] = relationship(lazy="joined", innerjoin=True)
    lines: Mapped[list["Line"]] = relationship(order_by="Line.id")


class Line(Base):
    __tablename__ = "lines"

    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey("orders.id"), index=True)
    product: Mapped[str]
    quantity: Mapped[int]
    price_cents: Mapped[int]


class OrderSummary(BaseModel):
    id: int
    placed_on: datetime.date
    customer: str
    total_cents: int
    check_digit: int


class OrderLine(BaseModel):
    product: str
    quantity: int
    price_cents: int


class OrderDetails(OrderSummary):
    lines: list[OrderLine]


def create_database(path: pathlib.Path) -> Engine:
    """Makes the file anew, with the same rows every time."""
    path.unlink(missing_ok=True)
    engine = create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    dice = random.Random(ORDERS)
    numbers = range(1, ORDERS + 1)
    with engine.begin() as connection:
        connection.execute(insert(Customer), [customer(number) for number in range(1, CUSTOMERS + 1)])
        connection.execute(insert(Order), [random_order(dice, number) for number in numbers])
        connection.execute(insert(Line), [line for number in numbers for line in random_lines(dice, number)])
    return engine


def customer(number: int) -> dict:
    return {"id": number, "name": f"customer-{number:03}"}


def random_order(dice: random.Random, number: int) -> dict:
    placed_on = datetime.date(2024, 1, 1) + datetime.timedelta(days=number // ORDERS_PER_DAY)
    return {"id": number, "placed_on": placed_on, "customer_id": dice.randint(1, CUSTOMERS)}


def random_lines(dice: random.Random, order_id: int) -> list[dict]:
    return [
        {
            "order_id": order_id,
            "product": dice.choice(PRODUCTS),
            "quantity": dice.randint(1, 9),
            "price_cents": dice.randint(100, 9_999),
        }
        for _ in range(dice.randint(1, LINES_PER_ORDER_MAX))
    ]


engine = create_database(DATABASE)
app = FastAPI(title="orders")


def check_digit(total_cents: int) -> int:
    """A sum of digits with changing weights, modulo 11."""
    digit = 0
    for turn in range(CHECK_ROUNDS):
        digit = (sum((place + turn) * int(figure) for place, figure in enumerate(str(total_cents))) + digit) % 11
    return digit


def summary(order: Order) -> dict:
    total_cents = sum(line.quantity * line.price_cents for line in order.lines)
    return {
        "id": order.id,
        "placed_on": order.placed_on,
        "customer": order.customer.name,
        "total_cents": total_cents,
        "check_digit": check_digit(total_cents),
    }


def details(order: Order) -> dict:
    lines = [
        {"product": line.product, "quantity": line.quantity, "price_cents": line.price_cents} for line in order.lines
    ]
    return summary(order) | {"lines": lines}


# The handlers stay on the event loop: SQLite answers within microseconds, a hop to a thread would cost more.


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/orders", response_model=list[OrderSummary])
async def list_orders(limit: Annotated[int, Query(ge=1, le=100)] = 20) -> list[dict]:
    """The newest orders, each with its customer and what it comes to."""
    newest = select(Order).order_by(Order.placed_on.desc(), Order.id.desc()).limit(limit)
    if FAULT != "n-plus-one":
        newest = newest.options(selectinload(Order.lines))
    with Session(engine) as session:
        return [summary(order) for order in session.scalars(newest)]


@app.get("/orders/{order_id}", response_model=OrderDetails)
async def get_order(order_id: int) -> dict:
    """One order with its lines."""
    with Session(engine) as session:
        order = session.get(Order, order_id)
        if order is None:
            raise HTTPException(status_code=404, detail=f"no order {order_id}")
        return details(order)


# All of the above lives as long as the process: left to the collector, it is gone through again once a second under
# load, 60 ms each time.
gc.freeze()
