//! Text and HTML renderings of what a run found.
