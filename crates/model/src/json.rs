//! Values that are stored as JSON. The conversions are compiled once, here, and not in each crate that stores values:
//! those of the larger types are many thousand lines of machine code.

use std::collections::BTreeMap;

use serde_json::{Result, Value};

use crate::caveat::TrialCaveat;
use crate::evidence::RunEvidence;
use crate::load::LoadProgram;
use crate::run::Environment;

/// A value that is stored as JSON.
pub trait Stored: Sized {
    /// The value as JSON text. Numbers that are not finite become `null`, which is not read as a number again.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    fn to_json(&self) -> Result<String>;

    /// Reads what [`Self::to_json`] wrote. Numbers are as they stand there, whatever they are.
    ///
    /// # Errors
    /// When it is not JSON, or holds something else.
    fn from_json(json: &str) -> Result<Self>;
}

macro_rules! stored {
    ($($type:ty),* $(,)?) => {$(
        impl Stored for $type {
            fn to_json(&self) -> Result<String> {
                serde_json::to_string(self)
            }

            fn from_json(json: &str) -> Result<Self> {
                serde_json::from_str(json)
            }
        }
    )*};
}

stored! {
    BTreeMap<String, String>,
    Environment,
    LoadProgram,
    RunEvidence,
    TrialCaveat,
    Value,
    Vec<String>,
    Vec<TrialCaveat>,
    Vec<u16>,
    u64,
}
