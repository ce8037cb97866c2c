//! Requests that wait somewhere, as sockets show them.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;
use crate::call_graph::Bounds;

/// Requests that wait for one thing under one load, as sockets show it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SocketReading {
    /// The interval in which it was measured, for people.
    pub interval: String,
    /// The load at that time.
    pub load: LoadLevel,
    /// Requests that wait at any moment.
    pub waiting: Bounds,
    /// Requests of the load under way at any moment.
    pub in_flight: f64,
}

impl SocketReading {
    /// Share of the requests that wait, 0 to 1: by the lower bound.
    pub fn share(&self) -> f64 {
        if self.in_flight > 0.0 { (self.waiting.low / self.in_flight).min(1.0) } else { 0.0 }
    }
}

/// Connections that a service keeps, all in use while requests wait for one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SocketPool {
    /// The peer that they go to.
    pub peer: String,
    /// Their number.
    pub connections: f64,
    /// Of these, connections with a request outstanding.
    pub in_use: f64,
    /// Calls that each request makes over them, several at once; `None` if it makes one at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_at_once: Option<f64>,
    /// Other peer that is called while they are held; `None` if they are in use themselves.
    pub held_for: Option<String>,
    /// Loads under which there were as many.
    pub loads: usize,
    /// Requests in front of them.
    pub reading: SocketReading,
}
