//! The sending side: a queue and a thread for each node that is sent to.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::head::{Head, write_message};
use super::{MESSAGE_BYTES_MAX, TIMEOUT};

/// Bytes and messages that may wait for one node, after which messages are refused.
const QUEUE_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;
const QUEUE_MESSAGES_MAX: usize = 16 << 10;
/// How long nothing is sent to a node that could not be reached.
const QUIET: Duration = Duration::from_millis(50);
const BUFFER_BYTES: usize = 64 << 10;

/// A node that is sent to.
pub(super) struct Peer {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Bytes>,
    bytes: usize,
    /// Whether the thread is writing a message.
    is_writing: bool,
    is_closed: bool,
    /// Why the last connection ended, and when.
    failed: Option<(String, Instant)>,
}

impl Peer {
    /// Starts the thread; it connects when there is something to send.
    pub(super) fn start(address: &str, head: Head) -> io::Result<Arc<Self>> {
        let peer = Arc::new(Self { queue: Mutex::default(), changed: Condvar::new() });
        let of_thread = Arc::clone(&peer);
        let address = address.to_owned();
        std::thread::Builder::new().name("bus-sender".to_owned()).spawn(move || of_thread.run(&address, head))?;
        Ok(peer)
    }

    /// Queues a message.
    ///
    /// # Errors
    /// No room, or why the node could not be reached a moment ago.
    pub(super) fn send(&self, message: Bytes) -> Result<(), String> {
        let mut queue = self.lock();
        if queue.is_closed {
            return Err("the line is closed".to_owned());
        }
        if let Some((reason, _)) = queue.failed.as_ref().filter(|(_, at)| at.elapsed() < QUIET) {
            return Err(reason.clone());
        }
        if queue.bytes >= QUEUE_BYTES_MAX || queue.messages.len() >= QUEUE_MESSAGES_MAX {
            return Err(format!("{} messages of {} bytes wait already", queue.messages.len(), queue.bytes));
        }
        queue.bytes += message.len();
        queue.messages.push_back(message);
        drop(queue);
        self.changed.notify_one();
        Ok(())
    }

    /// Ends the thread if nothing waits or is being written, and says whether.
    pub(super) fn close_if_idle(&self) -> bool {
        let mut queue = self.lock();
        queue.is_closed |= queue.messages.is_empty() && !queue.is_writing;
        let is_closed = queue.is_closed;
        drop(queue);
        self.changed.notify_one();
        is_closed
    }

    /// Ends the thread. What waits is dropped.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, address: &str, mut head: Head) {
        let mut connection = None;
        while let Some(messages) = self.next() {
            head.connection += u64::from(connection.is_none());
            let written = write(&mut connection, address, &head, &messages);
            let mut queue = self.lock();
            queue.is_writing = false;
            queue.failed = None;
            if let Err(error) = written {
                connection = None;
                queue.messages.clear();
                queue.bytes = 0;
                queue.failed = Some((error.to_string(), Instant::now()));
            }
        }
    }

    /// All that waits; `None` once it is closed.
    fn next(&self) -> Option<VecDeque<Bytes>> {
        let queue = self.lock();
        let mut queue = self
            .changed
            .wait_while(queue, |queue| queue.messages.is_empty() && !queue.is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        if queue.is_closed {
            return None;
        }
        queue.bytes = 0;
        queue.is_writing = true;
        Some(std::mem::take(&mut queue.messages))
    }
}

fn write(
    connection: &mut Option<BufWriter<TcpStream>>,
    address: &str,
    head: &Head,
    messages: &VecDeque<Bytes>,
) -> io::Result<()> {
    if connection.is_none() {
        let mut made = BufWriter::with_capacity(BUFFER_BYTES, connect(address)?);
        head.write(&mut made)?;
        *connection = Some(made);
    }
    let Some(stream) = connection else { return Err(io::ErrorKind::NotConnected.into()) };
    messages.iter().try_for_each(|message| write_message(stream, message))?;
    stream.flush()
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for found in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&found, TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
