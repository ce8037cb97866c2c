//! The system of an experiment: its services, who reaches whom at which port, and faults of replicas.

pub(crate) mod cluster;
pub(crate) mod compose;
pub(crate) mod faults;
pub(crate) mod missing_programs;
pub(crate) mod needs;
pub(crate) mod network;
pub(crate) mod service;
pub(crate) mod sidecar;
