//! Where a NATS server is, who connects to it and with which protection, from one text such as
//! `nats://user:password@host:4222,other:4222/orders?replicas=3` or `tls://host?ca=ca.pem&creds=me.creds`.
//!
//! Errors and descriptions show no password, and no file's content.

mod address;
mod connect;

pub use address::{AddressParts, NatsAddress};
pub use connect::{SERVER_TIMEOUT, innermost};
