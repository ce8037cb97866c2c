//! What `offered-load-limited` rests on.

use serde::{Deserialize, Serialize};

/// The data of a finding of this kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OfferedLoadLimited {}
