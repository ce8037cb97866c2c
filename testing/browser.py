"""A tab of headless Chromium, driven by its own protocol over a pipe, for tests of pages."""

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
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
        # Errors of scripts, and what the page's policy forbade.
        self.complaints = []
        self.numbers = itertools.count(1)
        self.session = None
        page = next(one for one in self.targets() if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Log.enable")

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
            self.complaints += complaints(response)
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

    def drag(self, start, end):
        """Moves the pointer with its button down."""
        for kind, (x, y) in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def look(self, path):
        """Keeps what the page looks like."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def complaints(event):
    """What an event of the browser says that went wrong in a page."""
    parameters = event.get("params", {})
    if event.get("method") == "Runtime.exceptionThrown":
        return [parameters["exceptionDetails"]["text"] + " " + str(parameters["exceptionDetails"].get("exception", {}).get("description"))]
    entry = parameters.get("entry", {})
    return [entry["text"]] if event.get("method") == "Log.entryAdded" and entry["level"] == "error" else []
