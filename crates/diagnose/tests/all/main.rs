//! The tests of this crate from outside, in one binary, which compiles and links once.

mod awkward;
mod corpus;
mod critical_path;
mod culprit;
mod drone_delivery;
mod pages;
mod recorded;
