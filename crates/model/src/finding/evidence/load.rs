//! The load, as findings compare it.

use serde::{Deserialize, Serialize};

/// How much a part of the load offers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadLevel {
    /// Virtual users of closed models, from 0.
    pub users: u32,
    /// Arrivals per second of open models, from 0; `None` if the load is closed.
    pub arrivals: Option<f64>,
}
