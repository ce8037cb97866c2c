//! A TCP connection of the epoll wire, and how far the current request and its response are on it.

use std::os::fd::OwnedFd;

use rustix::event::epoll::EventFlags;

use super::response::ResponseParser;
use crate::request::ResponseForm;

/// See the module.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub(super) socket: OwnedFd,
    pub(super) parser: ResponseParser,
    /// Bytes of the current request that it took.
    pub(super) written: usize,
    /// Just before the call that opened it, in Unix nanoseconds.
    pub(super) opened_ns: i64,
    /// Whether it took any byte, which shows that it is connected.
    pub(super) is_proven: bool,
    pub(super) watched: Watched,
}

/// What the poller watches a connection for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watched {
    Not,
    ForResponse,
    /// Room to write, and a response that comes before the request is whole.
    ForRoom,
}

impl Tcp {
    pub(super) fn new(socket: OwnedFd, opened_ns: i64) -> Self {
        let parser = ResponseParser::new();
        Self { socket, parser, written: 0, opened_ns, is_proven: false, watched: Watched::Not }
    }

    /// Makes ready for a request from its first byte, and for its response.
    pub(super) fn expect(&mut self, form: ResponseForm) {
        self.written = 0;
        self.parser.expect(form);
    }
}

impl Watched {
    pub(super) fn events(self) -> EventFlags {
        match self {
            Watched::Not => EventFlags::empty(),
            Watched::ForResponse => EventFlags::IN,
            Watched::ForRoom => EventFlags::IN | EventFlags::OUT,
        }
    }
}
