//! Advice about errors.

/// An error of a system, and what to do about it.
pub trait Advice: std::error::Error {
    /// Advice, as a clause without a full stop; `None` where the message says enough.
    fn hint(&self) -> Option<&str> {
        None
    }
}
