//! The accept loop of every server in this workspace: bounded, and never full of connections that request nothing.
//!
//! A connection counts as *waiting* until its first request is complete and between two requests, and as *busy* while a
//! request is in progress. Three rules keep waiting connections from starving other clients:
//!
//! 1. A connection whose first request is not complete within [`Limits::first_request_timeout`] is closed, however
//!    many bytes it sends meanwhile. One that waits longer than [`Limits::idle_timeout`] between requests is closed too.
//! 2. When all places are taken, a newcomer replaces the connection that has waited longest. Those that never completed
//!    a request go first. Only when all connections are busy does the newcomer wait, and later ones stay in the kernel's
//!    backlog. The same happens when the process runs out of file descriptors.
//! 3. An address beyond loopback has at most [`Limits::peer_connections_max`] connections; a further one replaces the one
//!    of its own that has waited longest. Clients on loopback share one address, so only the first two rules apply to them.
//!
//! The crate deliberately does not limit how long a request takes, because only the server knows that. [`TimelyBody`] limits
//! the time that a request's body takes to arrive.
//!
//! Where a server may listen is one rule for all of them, in [`Listen`]: beyond loopback only with something that keeps
//! strangers out.
//!
//! The path of a request stays short: servers on it are measured. Waiting is timed in ticks of a second or less, which
//! one timer per listener counts; a request costs three uncontended atomic writes and reads no clock.

mod accept;
mod connection;
mod listen;
mod places;
mod timely_body;
mod token;

use std::pin::Pin;

pub use accept::{Limits, serve};
pub use connection::{Connection, InProgress, drive};
pub use listen::{CannotListen, Exposed, Guard, Listen, advice, is_loopback};
pub use places::Places;
pub use timely_body::{TimelyBody, TooSlow};
pub use token::{NotAToken, Token};

/// A server at work. In a box, what handles a request is compiled with the crate that makes the box and by that crate's
/// profile; the body of an `async fn` is compiled with the crate that awaits it.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;
