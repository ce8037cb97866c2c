//! What callers outside of orchestrations ask of a hub, and what they are told.
//!
//! Everything is said to the partition that owns the instance and answered only once it is durable. Waiting costs
//! nothing: the partition tells those who wait.

mod asking;
mod request;
mod view;

pub use asking::Client;
pub use request::Start;
pub use view::{Filter, InstanceView, Page, Status};
