//! A request to start an orchestration.

use crate::error::Error;
use crate::event::Version;
use crate::ids::{InstanceId, Name, Time};
use crate::message::Reuse;
use crate::payload::Payload;

/// Request to start an orchestration.
#[derive(Clone, Debug)]
pub struct Start {
    pub(crate) name: Name,
    pub(crate) version: Option<Version>,
    pub(crate) input: Payload,
    pub(crate) id: Option<InstanceId>,
    pub(crate) at: Option<Time>,
    pub(crate) reuse: Reuse,
}

impl Start {
    /// An orchestration by name, with an empty input, a random identifier and the newest version.
    #[must_use]
    pub fn new(name: Name) -> Self {
        Self { name, version: None, input: Payload::EMPTY, id: None, at: None, reuse: Reuse::default() }
    }

    /// Its input.
    #[must_use]
    pub fn input(mut self, input: Payload) -> Self {
        self.input = input;
        self
    }

    /// Who it is to be.
    ///
    /// # Errors
    /// [`Error::BadId`] if the text cannot be an identifier of an orchestration.
    pub fn id(mut self, id: impl AsRef<str>) -> Result<Self, Error> {
        self.id = Some(InstanceId::new(id)?);
        Ok(self)
    }

    /// The version of its code, in place of the newest.
    #[must_use]
    pub fn version(mut self, version: Version) -> Self {
        self.version = Some(version);
        self
    }

    /// Not before this moment.
    #[must_use]
    pub fn at(mut self, at: Time) -> Self {
        self.at = Some(at);
        self
    }

    /// Treatment of an identifier that is taken.
    #[must_use]
    pub fn reuse(mut self, reuse: Reuse) -> Self {
        self.reuse = reuse;
        self
    }
}
