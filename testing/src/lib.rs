//! Support for tests: reports besides pass and fail, measurements of the machine, installed programs,
//! and random numbers.
//!
//! A test harness knows no "skipped at run time" and no "passed at the second try". [`skip`] and [`retry`] write both to
//! the file that `NARROWS_TEST_NOTES` names, where `./test` reads them for its summary, and to standard error.
//! [`has_programs`], [`has_galera`] and [`postgres_programs`] find programs that tests need and skip without them;
//! [`ForeignProgram`] installs one by the package client of its language. [`Chance`] has random numbers that repeat.
//! Every workspace member may use this crate in its tests; it depends on nothing.

mod chance;
mod databases;
mod foreign;
mod machine;
mod measure;
mod notes;
mod programs;
mod torture;

pub use chance::Chance;
pub use databases::{has_galera, postgres_programs};
pub use foreign::{ForeignProgram, NPM_INSTALL, PIP_INSTALL, foreign_command, succeed};
pub use machine::{CROWDED_SHARE, OtherPrograms};
pub use measure::measure;
pub use notes::{retry, skip};
pub use programs::{has_program, has_programs, is_disabled};
pub use torture::torture;
