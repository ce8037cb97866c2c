"""Waits for a printer to render a report, which takes 30 ms.

FAULT=1 waits with time.sleep, which blocks the event loop.
"""

import asyncio
import os
import time

from fastapi import FastAPI

RENDER_SECONDS = 0.03
FAULTY = bool(os.environ.get("FAULT"))

app = FastAPI(title="reports")


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/reports/{number}")
async def report(number: int) -> dict:
    if FAULTY:
        time.sleep(RENDER_SECONDS)
    else:
        await asyncio.sleep(RENDER_SECONDS)
    return {"number": number, "pages": 1 + number % 9}
