//! Scenarios that other engines of this kind test themselves with, under their names, held against this one.
//!
//! Each runs on the log in files, on the same with nothing kept in memory (so that every step replays the history
//! before it), on the tables, and on three nodes that share a hub on a NATS server, two of which come and go all the
//! time. `NARROWS_TEST_HUBS=postgres://…` has the nodes share hubs on that server instead. The doc comment of a scenario gives the name it has in the suite of Netherite, or of
//! durabletask-go where it says `go`.

#[macro_use]
mod stage;

mod nodes;

mod entities;
mod failures;
mod flows;
mod identities;
mod lifecycle;
mod payloads;
mod queries;
mod waits;
