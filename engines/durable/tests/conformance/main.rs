//! Scenarios that other engines of this kind test themselves with, under their names, held against this one.
//!
//! Each runs on the log in files, on the same with nothing kept in memory (so that every step replays the history
//! before it), and on the tables. The doc comment of a scenario gives the name it has in the suite of Netherite, or of
//! durabletask-go where it says `go`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

#[macro_use]
mod stage;

mod entities;
mod failures;
mod flows;
mod identities;
mod lifecycle;
mod payloads;
mod queries;
mod waits;
