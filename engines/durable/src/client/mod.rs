//! Requests to a hub from outside of orchestrations, and their responses.
//!
//! Every request goes to the partition that owns the instance, which responds only once the result is durable. Waiting
//! costs nothing: the partition notifies those who wait.

mod calls;
mod request;
mod view;

pub use calls::Client;
pub(crate) use calls::{Carry, Repetition};
pub use request::Start;
pub use view::{Filter, InstanceView, Page, Status, Summary};
