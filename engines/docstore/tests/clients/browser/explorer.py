"""Uses the explorer of a store as a person would, in headless Chromium, and checks what it shows.

    python3 explorer.py http://127.0.0.1:8081/

The store has one container of generated documents. Chromium is driven by its own protocol over a pipe; `look.png` is what
the page looked like at the end.
"""

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

WAIT_S = 120
WIDTH, HEIGHT = 1280, 900


class Browser:
    """One tab of a browser that ends with the value."""

    def __init__(self, folder):
        # The browser reads commands from descriptor 3 and writes responses to 4, each ended by a zero byte.
        read_commands, self.commands = os.pipe()
        self.responses, write_responses = os.pipe()
        command = [shutil.which("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu"]
        command += ["--disable-dev-shm-usage", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={folder}", f"--window-size={WIDTH},{HEIGHT}", "about:blank"]
        shell = ["sh", "-c", f'exec "$@" 3<&{read_commands} 4>&{write_responses}', "sh"]
        self.process = subprocess.Popen(
            shell + command,
            pass_fds=(read_commands, write_responses),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(read_commands)
        os.close(write_responses)
        self.received = b""
        self.numbers = itertools.count(1)
        self.session = None
        page = next(one for one in self.targets() if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")

    def targets(self):
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            found = self.call("Target.getTargets")["targetInfos"]
            if any(one["type"] == "page" for one in found):
                return found
            time.sleep(0.1)
        raise SystemExit("the browser has no page")

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            response = self.response()
            if response.get("id") == number:
                if "error" in response:
                    raise SystemExit(f"{method}: {response['error']}")
                return response["result"]

    def response(self):
        while b"\0" not in self.received:
            read = os.read(self.responses, 1 << 16)
            if not read:
                raise SystemExit("the browser has ended")
            self.received += read
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, what, expression):
        """Waits until an expression holds, which may name parts of a page that is not there yet."""
        deadline = time.monotonic() + WAIT_S
        while not self.evaluate(f"(() => {{ try {{ return {expression}; }} catch {{ return false; }} }})()"):
            if time.monotonic() > deadline:
                raise SystemExit(f"not within {WAIT_S} s: {what}\n{self.evaluate('document.body.innerText')}")
            time.sleep(0.1)

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def check(browser, address):
    text = "document.getElementById('%s').textContent"
    items = "document.querySelectorAll('#items li').length"
    rows = "document.querySelectorAll('#partitions tbody tr')"
    browser.call("Page.navigate", url=address + "_explorer/")
    browser.until("the only container is shown", f"{text % 'name'} === 'dronedelivery / utilization'")
    browser.until("its first items are shown", f"{items} > 0 && {text % 'result'}.endsWith(' RU')")
    browser.until("each of its partitions is shown", f"{rows}.length === 9")
    before = browser.evaluate(items)
    browser.evaluate("document.getElementById('more').click()")
    browser.until("more items follow", f"{items} > {before}")

    # A query of a person that needs one document.
    browser.evaluate("document.getElementById('sql').value = 'SELECT VALUE c.id FROM c WHERE c.ownerId = \"o0007\"'")
    browser.evaluate("document.getElementById('query').requestSubmit()")
    browser.until("its result is shown", f"{items} > 0 && !document.querySelector('#items pre').textContent.includes('{{')")

    # A mistake in a query is said where it was made.
    browser.evaluate("document.getElementById('sql').value = 'SELECT nothing FROM'")
    browser.evaluate("document.getElementById('query').requestSubmit()")
    browser.until("the mistake is shown", f"{text % 'state'}.startsWith('400: ')")

    # More throughput for the container.
    assert browser.evaluate(f"{rows}[0].cells[2].textContent").endswith(" of 100"), "900 RU/s on nine partitions"
    browser.evaluate("document.getElementById('rate').value = 1800")
    browser.evaluate("document.getElementById('throughput').requestSubmit()")
    browser.until("the store said so", f"{text % 'state'} === 'The container provides 1800 RU/s now.'")
    browser.until("the partitions provide it", f"{rows}[0].cells[2].textContent.endsWith(' of 200')")

    look = browser.call("Page.captureScreenshot", format="png")["data"]
    with open("look.png", "wb") as file:
        file.write(base64.b64decode(look))


def main():
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(folder)
        try:
            check(browser, sys.argv[1])
        finally:
            browser.close()


if __name__ == "__main__":
    main()
