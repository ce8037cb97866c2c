//! The grammar of experiment files, as data.
//!
//! A shape (`shape`) lists keys (`key`), and a key's value is of a kind (`kind`). The sections declare theirs in the files that
//! read them, and `top` joins them. From that follow the check of a file (`check`), its defaults (`complete`), the JSON
//! Schema (`schema`) and the tables of `docs/reference/experiment.md` (`reference`).

pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod key;
pub(crate) mod kind;
mod reference;
mod schema;
pub(crate) mod shape;
pub(crate) mod top;
pub(crate) mod values;
