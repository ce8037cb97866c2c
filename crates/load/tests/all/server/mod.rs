//! A small HTTP server on loopback that responds as a test wants, and records the requests that it received.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The connection it came on, from 0.
    pub(crate) connection: usize,
    /// Its position on that connection, from 0.
    pub(crate) position: usize,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Reaction of the server to a request.
pub(crate) enum Reply {
    /// Writes this and waits for the next request.
    Keep(Vec<u8>),
    /// Writes this and closes the connection.
    Close(Vec<u8>),
    /// Sends nothing and waits until the client closes.
    Silence,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    ends: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(respond: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let ends = Arc::new(AtomicBool::new(false));
        let (log, over, respond) = (asked.clone(), ends.clone(), Arc::new(respond));
        let acceptor = std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (log, respond) = (log.clone(), respond.clone());
                let stream = stream.unwrap();
                std::thread::spawn(move || serve(stream, connection, &log, &*respond));
            }
        });
        Self { address, asked, ends, acceptor: Some(acceptor) }
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        self.acceptor.take().unwrap().join().unwrap();
    }
}

/// A plain response.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn serve(
    stream: TcpStream,
    connection: usize,
    log: &Mutex<Vec<ReceivedRequest>>,
    respond: &dyn Fn(&ReceivedRequest) -> Reply,
) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    let mut position = 0;
    while let Some(asked) = read(&mut reader, connection, position) {
        position += 1;
        log.lock().unwrap().push(asked.clone());
        let whole = match respond(&asked) {
            Reply::Keep(bytes) => writer.write_all(&bytes).is_ok(),
            Reply::Close(bytes) => {
                let _ = writer.write_all(&bytes);
                false
            }
            Reply::Silence => {
                let _ = reader.read_to_end(&mut Vec::new());
                false
            }
        };
        if !whole {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>, connection: usize, position: usize) -> Option<ReceivedRequest> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        match header.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None => break,
        }
    }
    let mut asked =
        ReceivedRequest { line: line.trim_end().to_owned(), headers, body: Vec::new(), connection, position };
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body.resize(length, 0);
    reader.read_exact(&mut asked.body).ok()?;
    Some(asked)
}
