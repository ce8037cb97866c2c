//! Traffic of a connection, seen from between HTTP and the encryption: bytes, and when requests were written.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::events::{Events, Flight, Report};
use crate::clock::Clock;
use crate::drivers::transport::Event;

/// Protocol of a server's first bytes on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Awaited,
    OfHttp1,
    OfAnother,
}

/// The figures of the current exchange. Times are Unix nanoseconds, 0 when they have not come yet.
pub(super) struct Meter {
    clock: Clock,
    events: Rc<Events>,
    flight: Cell<Option<Flight>>,
    read: Cell<u64>,
    opening: Cell<Opening>,
    /// When bytes would be written if the load thread cost nothing.
    ready_ns: Cell<i64>,
    is_writing: Cell<bool>,
    written_ns: Cell<i64>,
}

impl Meter {
    pub(super) fn new(clock: Clock, events: Rc<Events>) -> Self {
        Self {
            clock,
            events,
            flight: Cell::new(None),
            read: Cell::new(0),
            opening: Cell::new(Opening::Awaited),
            ready_ns: Cell::new(0),
            is_writing: Cell::new(false),
            written_ns: Cell::new(0),
        }
    }

    /// Begins to measure an exchange, which would be written at `ready_ns` if the load thread cost nothing.
    pub(super) fn begin(&self, flight: Flight, ready_ns: i64) {
        self.ready_ns.set(ready_ns);
        self.flight.set(Some(flight));
        self.read.set(0);
        self.is_writing.set(false);
        self.written_ns.set(0);
    }

    /// Bytes that came.
    pub(super) fn read(&self) -> u64 {
        self.read.get()
    }

    /// Whether the server speaks HTTP/1, whatever protocol was requested.
    pub(super) fn hears_http1(&self) -> bool {
        self.opening.get() == Opening::OfHttp1
    }

    fn heard(&self, bytes: &[u8]) {
        if self.opening.get() == Opening::Awaited && !bytes.is_empty() {
            let is_http1 = bytes.starts_with(b"HTTP/1.");
            self.opening.set(if is_http1 { Opening::OfHttp1 } else { Opening::OfAnother });
        }
        self.read.set(self.read.get() + bytes.len() as u64);
    }

    /// Whether any byte was written since the exchange began.
    pub(super) fn has_written(&self) -> bool {
        self.is_writing.get()
    }

    /// When bytes were last written.
    pub(super) fn written_ns(&self) -> i64 {
        self.written_ns.get()
    }

    /// Takes note of a write that began at a moment and has just been done.
    fn wrote(&self, begun_ns: i64) {
        let Some(flight) = self.flight.get() else { return };
        if !self.is_writing.replace(true) {
            let delay_ns = begun_ns - self.ready_ns.get();
            self.events.push(flight, Report::On(Event::Sent { at_ns: begun_ns, delay_ns }));
        }
        self.written_ns.set(self.clock.now_ns());
    }
}

/// A stream with a meter.
pub(super) struct MeteredStream<S> {
    stream: S,
    meter: Rc<Meter>,
}

impl<S> MeteredStream<S> {
    pub(super) fn new(stream: S, meter: Rc<Meter>) -> Self {
        Self { stream, meter }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let done = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        self.meter.heard(&buffer.filled()[before..]);
        Poll::Ready(done)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let begun_ns = self.meter.clock.now_ns();
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.meter.wrote(begun_ns);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let begun_ns = self.meter.clock.now_ns();
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices))?;
        self.meter.wrote(begun_ns);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
