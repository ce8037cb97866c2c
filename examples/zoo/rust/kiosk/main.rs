//! Prints tickets on a machine that takes 12 ms for each; clients connect for each ticket.
//!
//! `FAULT=1` serves one connection at a time.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const MACHINE: Duration = Duration::from_millis(12);
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nticket";

fn serve(mut connection: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    thread::sleep(MACHINE);
    connection.write_all(RESPONSE)
}

fn main() -> std::io::Result<()> {
    let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(8080);
    let is_faulty = zoo::is_faulty();
    for connection in TcpListener::bind(("127.0.0.1", port))?.incoming() {
        let connection = connection?;
        if is_faulty {
            let _ = serve(connection);
        } else {
            thread::spawn(|| serve(connection));
        }
    }
    Ok(())
}
