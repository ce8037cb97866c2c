//! Keeps the head and the body of a response that a step looks at, up to a limit.

/// The most of a body that is kept, in bytes, both as it came and decoded.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// Buffers that have grown larger than this are given back after each response.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Receiver of the parts of a response that are kept while it arrives. `()` keeps nothing and costs nothing.
pub(crate) trait Sink {
    /// The final head, whole.
    fn head(&mut self, bytes: &[u8]);
    /// More of the body, without framing.
    fn body(&mut self, bytes: &[u8]);
}

impl Sink for () {
    #[inline]
    fn head(&mut self, _: &[u8]) {}
    #[inline]
    fn body(&mut self, _: &[u8]) {}
}

/// Which parts of a response are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum ResponseParts {
    /// None.
    #[default]
    Nothing,
    /// The head.
    Head,
    /// The head and the body.
    All,
}

/// The parts of one response.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    pub(super) wanted: ResponseParts,
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// Whether the body went on after the limit.
    pub(super) is_cut: bool,
}

impl Capture {
    /// Sets what is to be kept of the next response.
    pub(crate) fn want(&mut self, wanted: ResponseParts) -> &mut Self {
        self.wanted = wanted;
        self
    }

    /// Forgets the response.
    pub(super) fn clear(&mut self) {
        self.is_cut = false;
        for buffer in [&mut self.head, &mut self.body] {
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES_MAX);
        }
    }
}

impl Sink for Capture {
    fn head(&mut self, bytes: &[u8]) {
        if self.wanted != ResponseParts::Nothing {
            self.head.extend_from_slice(bytes);
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        if self.wanted == ResponseParts::All {
            let room = BODY_BYTES_MAX - self.body.len();
            self.body.extend_from_slice(&bytes[..room.min(bytes.len())]);
            self.is_cut |= bytes.len() > room;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wanted_is_kept_and_no_more_than_the_limit() {
        for (wanted, head, body) in
            [(ResponseParts::Nothing, 0, 0), (ResponseParts::Head, 4, 0), (ResponseParts::All, 4, BODY_BYTES_MAX)]
        {
            let mut capture = Capture::default();
            capture.want(wanted).head(b"head");
            (0..3).for_each(|_| capture.body(&[b'x'; BODY_BYTES_MAX / 2]));
            assert_eq!((capture.head.len(), capture.body.len()), (head, body));
            assert_eq!(capture.is_cut, wanted == ResponseParts::All);
            capture.clear();
            assert_eq!((capture.head.len(), capture.body.len(), capture.is_cut), (0, 0, false));
            assert!(capture.body.capacity() <= KEPT_BYTES_MAX);
        }
    }
}
