//! A complete response, as every wire reports it.

/// The longest head of a response, and the longest trailer section, in bytes.
pub(in crate::drivers) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) struct Response {
    pub(in crate::drivers) status: u16,
    /// Whether the connection can carry another request.
    pub(in crate::drivers) reuse: Reuse,
    /// All bytes: heads, body, framing.
    pub(in crate::drivers) bytes: u64,
    /// The body's bytes without framing.
    pub(in crate::drivers) body_bytes: u64,
}

/// What may become of a connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum Reuse {
    /// Another request may follow.
    Open,
    /// The server closes it, or has sent bytes that no request is waiting for.
    Closed,
}
