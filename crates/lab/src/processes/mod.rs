//! Signals that reach only the process they are meant for.
//!
//! The kernel gives the number of an ended process to a new one. A signal by number can therefore hit a stranger,
//! unless the sender is the parent and has not waited for the process yet. Everything else goes through this module:
//! a [`Handle`] (a pidfd) is opened first, the property that makes the process ours is checked next, and the signal
//! goes through the handle. Should the process end in between, the handle refers to nothing, whoever has the number.
//!
//! An [`Identity`] is a process remembered for later: its number and its start time. The start time is in clock ticks
//! since boot, usually 10 ms long; the kernel would have to go through all its numbers within one tick to give two
//! processes the same identity. Identities are kept in memory and sent through a pipe, never to disk, so they need no
//! boot id.
//!
//! Linux 5.3 or newer is required, which introduced `pidfd_open`.

mod find;
mod handle;
mod identity;
mod signal_state;
mod stat;

pub(crate) use find::{
    carries, children, descendants, each, has_terminal, is_in_group, kill_each, now_ticks, numbers, works_in,
};
pub(crate) use handle::Handle;
pub(crate) use identity::Identity;
pub(crate) use signal_state::{SignalState, name_of};
