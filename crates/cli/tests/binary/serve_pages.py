"""Uses the pages of `narrows serve` as a person would, in headless Chromium, and checks what they show.

    python3 pages.py http://127.0.0.1:9797/ RUN

The run has 600 traces, of which one in twenty takes 300 ms and the others 5 ms. `look.png` is what the last page looked like.
"""

import sys
import tempfile

from browser import Browser

TEXT = "document.querySelector('%s').textContent"


def check(browser, address, run):
    def go(path, what, expression):
        browser.call("Page.navigate", url=address + path)
        browser.until(what, f"document.readyState === 'complete' && {expression}")

    # The list, and its filter.
    go("", "the run is listed", f"document.querySelector('.runs a').textContent === '{run}'")
    browser.evaluate("document.getElementById('filter').value = 'no such run'")
    browser.evaluate("document.querySelector('form.search').requestSubmit()")
    browser.until("nothing is left", "document.querySelector('main').textContent.includes('0 of ')")

    # The report: a chart tells its values to the pointer, and can be saved.
    go(f"runs/{run}", "the report has findings or none", "document.querySelectorAll('.chart .export button').length > 0")
    browser.evaluate("document.querySelector('.chart').scrollIntoView({ block: 'center', behavior: 'instant' })")
    box = browser.evaluate("(({ x, y, width, height }) => [x, y, width, height])(document.querySelector('.chart svg').getBoundingClientRect())")
    shown = False
    for step in range(10, 90):
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] * step / 100, y=box[1] + box[3] / 2)
        shown = shown or browser.evaluate("document.querySelector('.chart .tip') !== null")
    assert shown, "no value is shown"

    # A window that is drawn in the plot is searched.
    go(f"runs/{run}/traces", "all traces are found", f"{TEXT % '.note'}.includes('600 traces')")
    browser.evaluate("document.querySelector('.scatter').scrollIntoView({ block: 'center', behavior: 'instant' })")
    box = browser.evaluate("(({ x, y, width, height }) => [x, y, width, height])(document.querySelector('.scatter svg').getBoundingClientRect())")
    # The slow ones are in the upper part.
    browser.drag((box[0] + box[2] * 0.05, box[1] + 4), (box[0] + box[2] * 0.995, box[1] + box[3] * 0.45))
    browser.until("only slow ones are found", f"{TEXT % '.note'}.includes('30 traces')")
    browser.evaluate("document.querySelector('table a').click()")
    browser.until("a trace is shown", "document.querySelectorAll('.waterfall .span').length > 0")
    browser.evaluate("document.querySelector('.waterfall summary').click()")
    browser.until("a span opens", "document.querySelector('.waterfall details[open]') !== null")

    # Slow against fast.
    go(f"runs/{run}/distinct", "what slow ones have is named", "document.querySelector('table').textContent.includes('customer.size')")

    # A question, with completion of a name.
    go(f"runs/{run}/ask", "there are examples", "document.querySelectorAll('ul li a').length >= 5")
    browser.evaluate("document.querySelector('[name=in][value=kql]').click()")
    browser.evaluate("document.getElementById('question').focus()")
    browser.call("Input.insertText", text="reques")
    browser.until("names are offered", "!document.getElementById('completions').hidden")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    browser.until("the name is taken", "document.getElementById('question').value === 'requests'")
    browser.call("Input.insertText", text=" | summarize n = count() by bin(timestamp, 1s) | render timechart")
    browser.evaluate("document.querySelector('form.ask').requestSubmit()")
    browser.until("rows and a chart come", "document.querySelectorAll('tbody tr').length > 1 && document.querySelector('figure.chart path.line') !== null")
    browser.look("look.png")

    # Every field has a name, every picture too.
    for path in ("", f"runs/{run}/traces", f"runs/{run}/distinct", f"runs/{run}/ask"):
        go(path, "the page is there", "document.querySelector('main') !== null")
        nameless = browser.evaluate(
            "[...document.querySelectorAll('input:not([type=hidden]), select, textarea, svg[role=img]')]"
            ".filter((one) => !(one.labels?.length || one.ariaLabel)).map((one) => one.outerHTML.slice(0, 100))"
        )
        assert not nameless, f"{path}: no name for {nameless}"
    assert not browser.complaints, browser.complaints


def main():
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(folder)
        try:
            check(browser, *sys.argv[1:])
        finally:
            browser.close()


if __name__ == "__main__":
    main()
