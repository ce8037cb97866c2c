//! How much a load asks for.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units;

/// What a load asks for in a window. It reads as `8 users` or `50.0/s`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Demand {
    /// Virtual users of closed models, from 0.
    pub users: u32,
    /// Arrivals per second of open models; none without any.
    pub arrivals: Option<f64>,
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.users, self.arrivals) {
            (users, None) => write!(f, "{users} users"),
            (0, Some(arrivals)) => f.write_str(&units::rate(arrivals)),
            (users, Some(arrivals)) => write!(f, "{users} users and {}", units::rate(arrivals)),
        }
    }
}
