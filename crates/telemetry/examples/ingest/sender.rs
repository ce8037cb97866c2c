//! The sender: requests over HTTP/1.1, the next when the one before has its response.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use crate::traffic::{SERVICES, requests_of};

/// Writes all requests to a file: for each its service, the number of its spans, its length, and its body.
pub(crate) fn write_bodies(path: &Path, traces: u64) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for service in 0..SERVICES.len() {
        requests_of(service, traces, |spans, body| {
            for number in [service, spans, body.len()] {
                file.write_all(&(number as u64).to_le_bytes()).unwrap();
            }
            file.write_all(body).unwrap();
        });
    }
    file.flush().unwrap();
}

/// Sends what [`write_bodies`] wrote, each service on its connection, and says how many spans that were.
pub(crate) fn send_bodies(address: SocketAddr, path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap();
    let mut rest = &bytes[..];
    let mut requests = [const { Vec::new() }; SERVICES.len()];
    while !rest.is_empty() {
        let [service, spans, length] = [0; 3].map(|_: i32| {
            let (number, after) = rest.split_first_chunk::<8>().unwrap();
            rest = after;
            u64::from_le_bytes(*number)
        });
        let (body, after) = rest.split_at(length as usize);
        rest = after;
        requests[service as usize].push((spans, body));
    }
    std::thread::scope(|scope| {
        let senders = requests.map(|requests| {
            scope.spawn(move || {
                let mut connection = Connection::open(address);
                requests.iter().map(|(spans, body)| (connection.post(body), *spans).1).sum::<u64>()
            })
        });
        senders.into_iter().map(|sender| sender.join().unwrap()).sum()
    })
}

/// Makes and sends all spans of one service, and says how many.
pub(crate) fn send(address: SocketAddr, service: usize, traces: u64) -> u64 {
    let mut connection = Connection::open(address);
    let mut sent = 0;
    requests_of(service, traces, |spans, body| {
        connection.post(body);
        sent += spans as u64;
    });
    sent
}

struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    responses: BufReader<TcpStream>,
}

impl Connection {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let responses = BufReader::new(stream.try_clone().unwrap());
        Self { address, stream, responses }
    }

    /// Sends a body and waits until it is accepted.
    fn post(&mut self, body: &[u8]) {
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nhost: {}\r\ncontent-type: application/x-protobuf\r\n\
             content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        self.stream.write_all(head.as_bytes()).unwrap();
        self.stream.write_all(body).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        self.responses.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line != "\r\n" {
            line.clear();
            self.responses.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        self.responses.read_exact(&mut vec![0; length]).unwrap();
    }
}
