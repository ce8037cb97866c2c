//! The names of things: instances, entities, code, partitions, moments, positions in a log.
//!
//! Identifiers are cheap to clone (a count goes up) and are checked once, where they enter. An entity is an instance
//! whose identifier is `@name@key`, so that everything that finds an instance finds entities too.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;

/// The longest identifier of an instance, in bytes.
pub const INSTANCE_ID_BYTES_MAX: usize = 512;
/// The longest name of an orchestration, activity, entity, operation or external event, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// Who an orchestration or entity is, for as long as the hub exists. 1 to 512 bytes, without control characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// Checks and takes an identifier of an orchestration.
    ///
    /// # Errors
    /// [`Error::BadId`] if it is empty, too long, holds control characters or begins with `@`, which marks entities.
    pub fn new(id: impl AsRef<str>) -> Result<Self, Error> {
        let id = id.as_ref();
        if id.starts_with('@') {
            return Err(Error::bad_id(id, "an identifier that does not begin with '@' (entities do)"));
        }
        Self::parse(id)
    }

    /// Checks and takes an identifier of an orchestration or an entity.
    ///
    /// # Errors
    /// [`Error::BadId`] if it is empty, too long or holds control characters, or is `@` without a name and a key.
    pub fn parse(id: &str) -> Result<Self, Error> {
        if id.is_empty() || id.len() > INSTANCE_ID_BYTES_MAX || id.chars().any(char::is_control) {
            return Err(Error::bad_id(id, "1 to 512 bytes without control characters"));
        }
        if id.starts_with('@') && id[1..].find('@').is_none_or(|at| at == 0) {
            return Err(Error::bad_id(id, "an entity is written @name@key"));
        }
        Ok(Self(Arc::from(id)))
    }

    /// An identifier that was checked before, such as one read back from a log.
    pub(crate) fn trusted(id: &str) -> Self {
        Self(Arc::from(id))
    }

    /// The identifier as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name and key, if this is an entity.
    #[must_use]
    pub fn as_entity(&self) -> Option<(&str, &str)> {
        self.0.strip_prefix('@')?.split_once('@')
    }

    /// The partition it lives on, of `count`: 64-bit FNV-1a over the identifier, mixed as in SplitMix64.
    #[must_use]
    pub fn partition(&self, count: u16) -> PartitionId {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in self.0.as_bytes() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = hash ^ (hash >> 31);
        PartitionId(u16::try_from(mixed % u64::from(count.max(1))).unwrap_or(0))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

/// An entity: a name, which says the code, and a key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EntityId(InstanceId);

impl EntityId {
    /// Joins a name and a key.
    ///
    /// # Errors
    /// [`Error::BadId`] if the name is empty or holds `@`, or the whole is too long or holds control characters.
    pub fn new(name: &str, key: &str) -> Result<Self, Error> {
        if name.is_empty() || name.contains('@') {
            return Err(Error::bad_id(name, "an entity's name of 1 to 256 bytes without '@'"));
        }
        InstanceId::parse(&format!("@{name}@{key}")).map(Self)
    }

    /// The instance that it is.
    #[must_use]
    pub fn instance(&self) -> &InstanceId {
        &self.0
    }

    /// The name, which says the code.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.as_entity().map_or("", |(name, _)| name)
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        self.0.as_entity().map_or("", |(_, key)| key)
    }
}

impl TryFrom<InstanceId> for EntityId {
    type Error = Error;

    fn try_from(id: InstanceId) -> Result<Self, Error> {
        if id.as_entity().is_some() { Ok(Self(id)) } else { Err(Error::bad_id(id.as_str(), "an entity, @name@key")) }
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The name of code or of an external event: a constant of the program, or one read back from a log.
#[derive(Clone)]
pub enum Name {
    /// Written in the program; costs nothing to clone.
    Static(&'static str),
    /// Come from elsewhere.
    Shared(Arc<str>),
}

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Static(name) => name,
            Self::Shared(name) => name,
        }
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self::Shared(Arc::from(name))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl std::hash::Hash for Name {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// A partition of a hub, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PartitionId(pub u16);

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Microseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// This moment and `duration`, at most the end of time.
    #[must_use]
    pub fn plus(self, duration: std::time::Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)))
    }
}

/// How far a clock may be set back without a correction: shorter steps are hidden from code.
pub(crate) const SET_BACK_HIDDEN_MAX: std::time::Duration = std::time::Duration::from_secs(60);

impl Time {
    /// The next moment after this one where a clock says `now`: no earlier, unless the clock was set back far. Then this
    /// moment was wrong, and nothing may be held to it.
    pub(crate) fn followed_by(self, now: Self) -> Self {
        if now < self && self <= now.plus(SET_BACK_HIDDEN_MAX) { self } else { now }
    }
}

/// The number of a frame in the log of a partition, from 0. "Up to 5" leaves out 5.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Position(pub u64);

/// How often a partition has changed hands. An owner with a smaller epoch than the store has seen is fenced off.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Epoch(pub u64);
