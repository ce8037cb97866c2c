//! Failures of user code: values that are stored in histories and sent to the waiting caller.
//!
//! Errors of the hub itself are an [`Error`](crate::Error) instead.

use std::fmt;

use crate::payload::Payload;

/// The longest message that is kept, in bytes; longer ones are cut at a character.
pub const FAILURE_MESSAGE_BYTES_MAX: usize = 16 << 10;

/// Kind of failure. Its number is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum FailureKind {
    /// User code returned an error.
    Application = 0,
    /// User code panicked.
    Panic = 1,
    /// A requested timeout ran out.
    Timeout = 2,
    /// There is no code of this name or version.
    Unregistered = 3,
    /// The code does not do what its history says it did.
    Nondeterminism = 4,
    /// The orchestration awaited something that is not of its context.
    ForeignAwait = 5,
    /// The orchestration was terminated.
    Terminated = 6,
    /// A value cannot be written or read as the type expected, or is too large.
    Payload = 7,
    /// A named limit was reached.
    Limit = 8,
    /// The request is not possible in this state, such as a second start under a taken identifier.
    Conflict = 9,
}

impl FailureKind {
    /// All kinds; the place is the number.
    pub const ALL: [Self; 10] = [
        Self::Application,
        Self::Panic,
        Self::Timeout,
        Self::Unregistered,
        Self::Nondeterminism,
        Self::ForeignAwait,
        Self::Terminated,
        Self::Payload,
        Self::Limit,
        Self::Conflict,
    ];

    /// The word for it, in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Panic => "panic",
            Self::Timeout => "timeout",
            Self::Unregistered => "unregistered",
            Self::Nondeterminism => "nondeterminism",
            Self::ForeignAwait => "foreign-await",
            Self::Terminated => "terminated",
            Self::Payload => "payload",
            Self::Limit => "limit",
            Self::Conflict => "conflict",
        }
    }
}

/// How user code failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Sort of failure.
    pub kind: FailureKind,
    /// Description for people.
    pub message: String,
    /// Details from the code, for programs.
    pub details: Option<Payload>,
}

impl Failure {
    /// A failure without details. A message above [`FAILURE_MESSAGE_BYTES_MAX`] is cut.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: bounded(message.into()), details: None }
    }

    /// The same with a message that is not too long: user code may have written it in itself.
    pub(crate) fn bounded(mut self) -> Self {
        self.message = bounded(self.message);
        self
    }

    /// A failure of user code's own, of kind [`FailureKind::Application`].
    #[must_use]
    pub fn application(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Application, message)
    }
}

/// A text of at most [`FAILURE_MESSAGE_BYTES_MAX`]; a longer one is cut at a character.
pub(crate) fn bounded(mut text: String) -> String {
    if text.len() > FAILURE_MESSAGE_BYTES_MAX {
        let cut = (0..=FAILURE_MESSAGE_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
    }
    text
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FailureKind::Application => f.write_str(&self.message),
            kind => write!(f, "{}: {}", kind.as_str(), self.message),
        }
    }
}

impl std::error::Error for Failure {}
