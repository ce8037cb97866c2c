"""Sells tickets. A payment provider takes 40 ms for each, and THREADS requests are served at a time."""

import os
import time
from contextlib import asynccontextmanager

import anyio
from fastapi import FastAPI

PAYMENT_SECONDS = 0.04


@asynccontextmanager
async def lifespan(_):
    anyio.to_thread.current_default_thread_limiter().total_tokens = int(os.environ["THREADS"])
    yield


app = FastAPI(lifespan=lifespan)


@app.get("/health")
async def health():
    return {"status": "ok"}


@app.post("/tickets")
def buy():
    time.sleep(PAYMENT_SECONDS)
    return {"paid": True}
