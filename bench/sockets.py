#!/usr/bin/env python3
"""Compares what Narrows reads from a program's sockets with the program's own clock.

    cargo build --release
    bench/sockets.py                        # all rows, about 15 minutes
    bench/sockets.py --only python          # the rows whose client or protocol has this in its name

A client of a real library calls a server on loopback, with eight workers unless the row says otherwise, and adds up how
long its calls take: their mean number under way. `narrows attach --pid` watches it meanwhile, as it would any program.
What its sockets say is the sum of `process.network.request.outstanding` and `process.network.response.unread`, because
the client's clock counts a response that it has not read yet. Where `process.network.request.undecided` is below 2 % of
the calls under way, the row is settled and must be within 8 % of the clock; otherwise the clock must lie in the interval
that this leaves open, widened by 8 %. Exit code 1 when a row is wrong.

The client's clock also counts its own work before it sends and after it has read, so clients have calls that take long
beside that work. Needs PostgreSQL, Go, Node with npm, Python with venv, and a JDK with Maven; each client is
built from pinned packages by its language's own tools, once, in the folder that --build names. Other programs that use the
machine delay clients between the kernel and their clock: the machine should do nothing else.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from customer_360 import Process, postgres, responds
from load import NARROWS, free_port

SOURCES = Path(__file__).resolve().parent / "sockets"
PYTHON_PACKAGES = ["psycopg[binary]==3.3.9", "pg8000==1.31.6", "requests==2.34.2"]
POSTGRESQL_JDBC = "org.postgresql:postgresql:42.7.7"
TOLERANCE = 0.08
SETTLED_SHARE = 0.02
OUTSTANDING = "process.network.request.outstanding"
UNDECIDED = "process.network.request.undecided"
UNREAD = "process.network.response.unread"


@dataclasses.dataclass
class Row:
    """Calls of one client. A delay below zero is 5 ms in four of five calls and as long as it says in the others."""

    language: str
    client: str
    delay_ms: float
    think_ms: float
    bytes: int = 100
    workers: int = 8

    @property
    def name(self):
        return f"{self.language} {self.client}"

    @property
    def is_database(self):
        return self.client in ("postgres", "psycopg", "pg8000")

    @property
    def delay(self):
        return f"{self.delay_ms:g} ms" if self.delay_ms >= 0 else f"5, {-self.delay_ms:g} ms"


ROWS = [
    Row("go", "raw", 0.2, 0.5),
    Row("go", "raw", 2, 2, bytes=20_000),
    Row("go", "raw", 60, 0),
    Row("go", "http", 1, 1),
    Row("go", "http", 10, 10),
    Row("go", "http", 100, 100),
    Row("go", "http", 60, 0),
    Row("go", "http", -100, 5, bytes=20_000),
    Row("go", "postgres", 5, 5),
    Row("go", "postgres", 60, 0),
    Row("node", "http", 10, 10),
    Row("node", "post", 10, 10),
    Row("node", "fetch", 10, 10),
    Row("node", "http", 60, 0),
    Row("node", "http", 10, 10, bytes=20_000),
    Row("node", "postgres", 5, 5),
    Row("node", "postgres", 60, 0),
    Row("python", "requests", 30, 30, workers=4),
    Row("python", "requests", 60, 0, workers=4),
    Row("python", "churn", 30, 30, workers=4),
    Row("python", "psycopg", 5, 5, workers=4),
    Row("python", "psycopg", 60, 0),
    Row("python", "pg8000", 30, 30, workers=4),
    Row("java", "http", 10, 10),
    Row("java", "http", 60, 0),
    Row("java", "url", 10, 10),
    Row("java", "postgres", 5, 5),
    Row("java", "postgres", 60, 0),
]


def build_go(folder):
    subprocess.run(["go", "build", "-C", SOURCES, "-o", folder / "calls", "."], check=True)


def build_node(folder):
    shutil.copy(SOURCES / "package.json", folder)
    shutil.copy(SOURCES / "client.js", folder)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)


def build_python(folder):
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    subprocess.run([folder / "venv/bin/pip", "install", "-q", "--disable-pip-version-check", *PYTHON_PACKAGES], check=True)


def build_java(folder):
    copy = ["dependency:copy", f"-Dartifact={POSTGRESQL_JDBC}", "-Dmdep.stripVersion=true", f"-DoutputDirectory={folder}"]
    subprocess.run(["mvn", "-q", "-B", *copy], check=True)
    subprocess.run(["javac", "-d", folder, SOURCES / "Client.java"], check=True)


# For each language: how it is built into a folder, and the command of its client.
LANGUAGES = {
    "go": (build_go, "{folder}/calls"),
    "node": (build_node, "node {folder}/client.js"),
    "python": (build_python, "{folder}/venv/bin/python {sources}/client.py"),
    "java": (build_java, "java -cp {folder}:{folder}/postgresql.jar Client"),
}


def command(language, folder):
    text = LANGUAGES[language][1]
    return [word.format(folder=folder / language, sources=SOURCES) for word in text.split()]


def build(languages, folder):
    for language in languages:
        target = folder / language
        target.mkdir(parents=True, exist_ok=True)
        is_built = target / ".built"
        if not is_built.exists() or language == "go":
            print(f"building {language}", file=sys.stderr)
            LANGUAGES[language][0](target)
            is_built.touch()


def measure(row, address, options, folder):
    """The client's own clock, and the means of the series of its connections to the address."""
    numbers = [f"{row.delay_ms:g}", f"{row.think_ms:g}", row.bytes, row.workers, options.seconds]
    words = [*command(row.language, options.build), row.client, address, *map(str, numbers)]
    client = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        if client.stdout.readline().strip() != "measuring":
            sys.exit(f"error: {row.name} ended with status {client.wait()} before it measured")
        run = folder / "calls.narrows"
        attach = [options.narrows, "attach", "--otlp", "none", "--for", f"{options.seconds - 1}s", "--out", run]
        subprocess.run([*attach, "--pid", f"client={client.pid}"], check=True, capture_output=True)
        own = json.loads(client.stdout.readline())
    finally:
        client.kill()
        client.wait()
    query = (
        "select name, avg(value) as mean from metrics where service = 'client' and name like 'process.network.re%'"
        f" and json_extract(labels, '$.\"network.peer\"') = '{address}' group by name"
    )
    answer = subprocess.run([options.narrows, "query", run, query, "--format", "json"], check=True, capture_output=True)
    run.unlink()
    return own, {series["name"]: series["mean"] for series in json.loads(answer.stdout)}


def judge(own, low, high):
    """The verdict on an interval of calls under way beside the client's own clock."""
    if high - low <= SETTLED_SHARE * own:
        return "within 8 %" if abs(low / own - 1) <= TOLERANCE else "WRONG"
    return "inside" if low * (1 - TOLERANCE) <= own <= high * (1 + TOLERANCE) else "WRONG"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="part of a row's client or language")
    parser.add_argument("--seconds", type=int, default=30, help="measured in each row")
    parser.add_argument("--build", type=Path, default=Path(tempfile.gettempdir()) / "narrows-bench-sockets")
    parser.add_argument("--narrows", type=Path, default=NARROWS)
    options = parser.parse_args()
    rows = [row for row in ROWS if not options.only or any(part in row.name for part in options.only)]
    build(sorted({"go", *(row.language for row in rows)}), options.build)
    wrong = 0
    with contextlib.ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="narrows-bench-")))
        server = f"127.0.0.1:{free_port()}"
        process = Process([*command("go", options.build), "server", server], folder / "server.log")
        cleanup.callback(process.end)
        process.wait_until(lambda: responds(f"http://{server}/"), "the server")
        database = f"127.0.0.1:{postgres(folder, cleanup)[1]}" if any(row.is_database for row in rows) else ""
        print(f"{'client':17} {'delay':>9} {'think':>6} {'bytes':>6} {'own clock':>10} {'sockets':>8} {'differ':>8}"
              f" {'unread':>7} {'up to':>7}  verdict")
        for row in rows:
            own, means = measure(row, database if row.is_database else server, options, folder)
            clock = own["outstanding"]
            low = means.get(OUTSTANDING, 0) + means.get(UNREAD, 0)
            high = low + means.get(UNDECIDED, 0)
            verdict = judge(clock, low, high)
            wrong += verdict == "WRONG"
            print(f"{row.name:17} {row.delay:>9} {row.think_ms:>3g} ms {row.bytes:>6} {clock:>10.3f} {low:>8.3f}"
                  f" {low / clock - 1:>+8.1%} {means.get(UNREAD, 0):>7.3f} {high:>7.3f}  {verdict}", flush=True)
    print(f"{len(rows) - wrong} of {len(rows)} rows are right; load average {os.getloadavg()[0]:.1f}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
