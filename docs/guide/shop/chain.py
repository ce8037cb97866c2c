"""One of three services in a row: front asks cart, cart asks price. After a while, price takes longer."""

import os
import time
from urllib.request import urlopen

from fastapi import FastAPI

STARTED = time.monotonic()
NEXT = os.environ.get("NEXT")
SLOWER_AFTER_SECONDS = float(os.environ.get("SLOWER_AFTER", "inf"))

app = FastAPI()


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/items")
def items():
    is_slower = time.monotonic() - STARTED > SLOWER_AFTER_SECONDS
    time.sleep(0.040 if is_slower else 0.010)
    if NEXT:
        with urlopen(NEXT + "/items") as response:
            response.read()
    return {"items": 3}
