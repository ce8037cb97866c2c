"""Uses the explorer of a store as a person would, in headless Chromium, and checks what it shows.

    python3 explorer.py http://127.0.0.1:8081/

The store has one container of generated documents. `look.png` is what the page looked like at the end.
"""

import sys
import tempfile

from browser import Browser


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

    browser.look("look.png")


def main():
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(folder)
        try:
            check(browser, sys.argv[1])
        finally:
            browser.close()


if __name__ == "__main__":
    main()
