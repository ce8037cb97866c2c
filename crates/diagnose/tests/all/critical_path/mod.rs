//! The critical path against what other programs publish of theirs, in cases of our own and, where checkouts of them are
//! named, in their own cases.
//!
//! `NARROWS_CRISP` names a checkout of uber-research/CRISP, `NARROWS_JAEGER_UI` one of jaegertracing/jaeger-ui; without
//! them those tests say that they are skipped. Where our result is another one on purpose, the case says so;
//! `docs/reference/critical-path.md` says why.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod crisp;
mod drag_and_slack;
mod jaeger_ui;
mod literal;
mod shapes;
mod told;
