//! The settings of a node.

use std::time::Duration;

use super::record::BEATS;
use crate::error::Error;
use crate::store::check_blob_name;

/// The longest name of a node, in bytes.
const NAME_BYTES_MAX: usize = 100;
/// The shortest lease.
const LEASE_MIN: Duration = Duration::from_millis(100);
/// The longest.
const LEASE_MAX: Duration = Duration::from_secs(3600);
/// The longest version, in bytes.
const VERSION_BYTES_MAX: usize = 100;

/// The settings of a node of a hub.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeOptions {
    /// Name of the node, 1 to 100 bytes of `a-z 0-9 - .`. A node that is opened under the name of another one
    /// permanently replaces it, and the other one ends, even if it was paused meanwhile. Default: a name that no other
    /// node has.
    pub name: String,
    /// How long a node may be silent before the others take its partitions, 100 ms to one hour; for all nodes of a hub
    /// the same. Default: 5 s. A node says five times as often that it is alive.
    pub lease: Duration,
    /// How long a request may wait for a partition that no node has. Default: 30 s.
    pub request_timeout: Duration,
    /// How many activities may wait for a thread on this node before more of them go to nodes on which none waits; `None`
    /// if all are to run on the node that has their partition, and none of other nodes here. Default: `None`.
    pub lend_beyond: Option<usize>,
    /// The version of the program, for people: at most 100 bytes. Default: empty.
    pub version: String,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            name: format!("node-{}-{:08x}", std::process::id(), super::random() >> 32),
            lease: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            lend_beyond: None,
            version: String::new(),
        }
    }
}

impl NodeOptions {
    /// How often the node says that it is alive.
    pub(crate) fn beat(&self) -> Duration {
        self.lease / BEATS
    }

    /// After so long without its own beat a node acts no more, and after so long without a beat of another it takes
    /// the other's partitions. Others see a beat one beat late at most.
    pub(crate) fn silence(&self) -> Duration {
        self.lease - self.beat()
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// [`Error::BadOption`] for the first that is outside its range.
    pub fn check(&self) -> Result<(), Error> {
        let is_name = check_blob_name(&self.name).is_ok() && !self.name.contains('/');
        if !is_name || self.name.len() > NAME_BYTES_MAX {
            let expected = format!("1 to {NAME_BYTES_MAX} characters of a-z 0-9 - and .");
            return Err(Error::BadOption { option: "name", value: self.name.chars().take(64).collect(), expected });
        }
        if !(LEASE_MIN..=LEASE_MAX).contains(&self.lease) {
            let (value, expected) = (format!("{:?}", self.lease), format!("{LEASE_MIN:?} to {LEASE_MAX:?}"));
            return Err(Error::BadOption { option: "lease", value, expected });
        }
        if self.version.len() > VERSION_BYTES_MAX {
            let (value, expected) = (format!("{} bytes", self.version.len()), format!("at most {VERSION_BYTES_MAX}"));
            return Err(Error::BadOption { option: "version", value, expected });
        }
        Ok(())
    }
}
