"""MkDocs hook: adds pages from outside `docs/` to the site, and rewrites the links of all pages.

Pages are written for readers of the repository, where a link is a path. On the site, a link to another page leads to that
page, and a link to any other file or folder becomes plain text. A link to a missing file stops a strict build.
"""

import os
import pathlib
import posixpath
import re

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Pages of the repository outside `docs/`, with their place on the site.
EXTRA = {
    "ARCHITECTURE.md": "code.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "systems/customer-360/README.md": "systems/customer-360.md",
    "systems/drone-delivery/README.md": "systems/drone-delivery.md",
    "systems/hello-cities/README.md": "systems/hello-cities.md",
    "systems/micron/README.md": "systems/micron.md",
    "examples/express-shop/README.md": "examples/express-shop.md",
    "examples/fastapi-orders/README.md": "examples/fastapi-orders.md",
    "examples/jdbc-library/README.md": "examples/jdbc-library.md",
}
SOURCES = {place: source for source, place in EXTRA.items()}
# A relative link, or a picture, with its text: no address of another site, no anchor alone.
LINK = re.compile(r"(!?)\[([^\]\[]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")

log = get_plugin_logger("links")


def on_files(files, config):
    for source, place in EXTRA.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown, page, config, files):
    source = SOURCES.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def rewrite(link):
        picture, text, target, anchor = link[1], link[2], link[3], link[4] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        place = EXTRA.get(path) or EXTRA.get(f"{path}/README.md") or path.removeprefix("docs/")
        if files.get_file_from_path(place):
            return f"{picture}[{text}]({os.path.relpath(place, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"
        if not (ROOT / path).exists():
            log.warning("%s links to %s, which is missing", source, path)
        return text

    return LINK.sub(rewrite, markdown)
