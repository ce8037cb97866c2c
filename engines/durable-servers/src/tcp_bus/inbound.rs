//! The receiving side: a thread that lets connections in, and one for each.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_durable::store::Receive;
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepidle};

use super::head::{Head, read_message};
use super::{MESSAGE_BYTES_MAX, TIMEOUT};

/// Connections that are open at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 512;
/// How long a connection is silent before the system checks whether the other side is there.
const KEEPALIVE: Duration = Duration::from_secs(30);
const BUFFER_BYTES: usize = 64 << 10;

/// Lets connections in until it is dropped.
pub(super) struct Listener {
    address: String,
    reached: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State that the threads of a listener share.
struct Shared {
    secret: String,
    receive: Receive,
    is_closed: AtomicBool,
    connections: Mutex<HashMap<u64, Connection>>,
    senders: Mutex<HashMap<u64, Arc<Mutex<u64>>>>,
}

struct Connection {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(super) fn start(ip: IpAddr, secret: &str, receive: Receive) -> io::Result<Self> {
        let listener = TcpListener::bind((ip, 0))?;
        let reached = listener.local_addr()?;
        let shared = Arc::new(Shared {
            secret: secret.to_owned(),
            receive,
            is_closed: AtomicBool::new(false),
            connections: Mutex::default(),
            senders: Mutex::default(),
        });
        let of_thread = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("bus-listener".to_owned()).spawn(move || accept(&of_thread, &listener))?;
        Ok(Self { address: reached.to_string(), reached, shared, thread: Some(thread) })
    }

    /// Where others reach it.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        // Wakes the thread, which then sees that it is over.
        let _ = TcpStream::connect_timeout(&self.reached, TIMEOUT);
        join(self.thread.take());
        let connections = std::mem::take(&mut *lock(&self.shared.connections));
        for connection in connections.into_values() {
            // One that has ended already cannot be shut down.
            let _ = connection.stream.shutdown(Shutdown::Both);
            join(connection.thread);
        }
    }
}

/// Waits for a thread, unless it is this one: a receiver may drop its own line.
fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
        let _ = thread.join();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    for number in 0.. {
        let accepted = listener.accept();
        if shared.is_closed.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok((stream, _)) => {
                // A connection for which there is no thread or file is closed; its sender tries again.
                let _ = let_in(shared, number, stream);
            }
            // Out of files, most likely: others may be closed in the meantime.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn let_in(shared: &Arc<Shared>, number: u64, stream: TcpStream) -> io::Result<()> {
    let mut connections = lock(&shared.connections);
    if connections.len() >= CONNECTIONS_MAX {
        return Ok(());
    }
    let kept = stream.try_clone()?;
    let of_thread = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("bus-receiver".to_owned()).spawn(move || {
        // However it ended, the sender makes a new one.
        let _ = of_thread.receive_all(&stream);
        let _ = stream.shutdown(Shutdown::Both);
        lock(&of_thread.connections).remove(&number);
    })?;
    connections.insert(number, Connection { stream: kept, thread: Some(thread) });
    Ok(())
}

impl Shared {
    /// Receives until the connection ends, or a newer one of the same sender has begun.
    fn receive_all(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
        let (sender, connection) = Head::read(&mut reader, &self.secret)?;
        stream.set_read_timeout(None)?;
        // The connection of a machine that has vanished ends, and frees its place.
        set_socket_keepalive(stream, true)?;
        set_tcp_keepidle(stream, KEEPALIVE)?;
        let newest = Arc::clone(lock(&self.senders).entry(sender).or_default());
        let received = self.receive_from(&mut reader, &newest, connection);
        let mut senders = lock(&self.senders);
        // The map's and this one.
        if Arc::strong_count(&newest) <= 2 {
            senders.remove(&sender);
        }
        received
    }

    fn receive_from(&self, reader: &mut BufReader<&TcpStream>, newest: &Mutex<u64>, connection: u64) -> io::Result<()> {
        {
            let mut newest = lock(newest);
            *newest = connection.max(*newest);
        }
        loop {
            let message = read_message(reader, MESSAGE_BYTES_MAX)?;
            let newest = lock(newest);
            if *newest != connection || self.is_closed.load(Ordering::SeqCst) {
                return Ok(());
            }
            (self.receive)(message.into());
        }
    }
}
