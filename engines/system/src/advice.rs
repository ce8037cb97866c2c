//! What to do about an error.

/// An error of a system, and what to do about it.
pub trait Advice: std::error::Error {
    /// What to try, as a clause without a full stop; none where the message says enough.
    fn hint(&self) -> Option<&str> {
        None
    }
}
