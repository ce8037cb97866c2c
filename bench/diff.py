#!/usr/bin/env python3
"""Measures how long `narrows diff` takes on two runs of a million spans each.

    cargo build --release
    bench/diff.py
    bench/diff.py --spans 100000 --narrows target/debug/narrows

Both runs are imported from OTLP's JSON: traces of nineteen spans over ten services in a row, which call each other, at 100
requests a second. In the second run one of the services takes twice as long, and must come first. The import is timed too,
and is no part of the figure. `diff` runs three times; the fastest counts.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from load import NARROWS

SERVICES = 10
SLOWER = 7
START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
TRACES_AT_ONCE = 100


def spans_of(number, slower):
    """The spans of one trace by service: each service takes 2 ms, and 0.2 ms are on the way."""
    trace = f"{number + 1:032x}"
    own = [2 * MS + (number * 7 + service * 13) % 11 * MS // 20 for service in range(SERVICES)]
    own[SLOWER] *= 2 if slower else 1
    start = START_NS + number * 10 * MS
    for service in range(SERVICES):
        length = sum(own[service:]) + (SERVICES - service - 1) * MS // 5
        server = {
            "traceId": trace, "spanId": f"{2 * service + 1:016x}", "name": f"GET /{service}", "kind": 2,
            "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + length),
            "attributes": [
                {"key": "http.request.method", "value": {"stringValue": "GET"}},
                {"key": "http.response.status_code", "value": {"intValue": "200"}},
            ],
        }
        if service:
            server["parentSpanId"] = f"{2 * service:016x}"
        yield service, server
        if service + 1 == SERVICES:
            break
        start += own[service] // 2
        call = {
            "traceId": trace, "spanId": f"{2 * service + 2:016x}", "parentSpanId": server["spanId"], "name": "GET",
            "kind": 3, "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + length - own[service]),
        }
        yield service, call
        start += MS // 10


def write(path, spans, slower):
    """Traces as lines of OTLP's JSON, a hundred to a line."""
    traces = spans // (2 * SERVICES - 1)
    with path.open("w") as out:
        for first in range(0, traces, TRACES_AT_ONCE):
            by_service = [[] for _ in range(SERVICES)]
            for number in range(first, min(first + TRACES_AT_ONCE, traces)):
                for service, span in spans_of(number, slower):
                    by_service[service].append(span)
            resources = [
                {
                    "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": f"service-{service}"}}]},
                    "scopeSpans": [{"spans": of_service}],
                }
                for service, of_service in enumerate(by_service)
            ]
            out.write(json.dumps({"resourceSpans": resources}) + "\n")


def timed(command, **arguments):
    """Seconds that pass, seconds of CPU, and what was printed."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, capture_output=True, text=True, **arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.monotonic() - began, cpu, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=int, default=1_000_000, help="spans of each run")
    parser.add_argument("--narrows", type=Path, default=NARROWS)
    arguments = parser.parse_args()
    narrows = arguments.narrows.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        for name, slower in [("before", False), ("after", True)]:
            traces = Path(scratch) / f"{name}.jsonl"
            write(traces, arguments.spans, slower)
            seconds, cpu, _ = timed([narrows, "import", traces, "--out", f"{name}.narrows"], cwd=scratch)
            traces.unlink()
            print(f"import of {name}: {seconds:.1f} s, {cpu:.1f} s of CPU")
        command = [narrows, "diff", "before.narrows", "after.narrows", "--json"]
        runs = [timed(command, cwd=scratch) for _ in range(3)]
        (seconds, cpu, output) = min(runs)
        first = json.loads(output)["services"][0]["service"]
        print(f"diff of {arguments.spans:,} spans each: {seconds:.2f} s, {cpu:.2f} s of CPU; first: {first}")
        if first != f"service-{SLOWER}":
            sys.exit(f"expected service-{SLOWER} first")


if __name__ == "__main__":
    main()
