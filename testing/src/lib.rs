//! What tests report beside pass and fail, and what they read of the machine they run on.
//!
//! A test harness knows no "skipped at run time" and no "passed at the second try". [`skip`] and [`retry`] write both to
//! the file that `NARROWS_TEST_NOTES` names, where `./test` reads them for its summary, and to standard error. Every
//! workspace member may use this crate in its tests; it depends on nothing.

mod machine;
mod measure;
mod notes;
mod programs;

pub use machine::{CROWDED_SHARE, OtherPrograms};
pub use measure::measure;
pub use notes::{retry, skip};
pub use programs::{has_program, is_disabled};
