//! `narrows engine docstore` as a process.

mod clients;
mod folder;
mod matrix;

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Bench, TIMEOUT, free_port};

/// A store that is killed with the value.
struct Store {
    process: Child,
    port: u16,
    /// Its standard error, which stays open.
    _lines: BufReader<ChildStderr>,
}

impl Store {
    /// Starts it with these options and waits until it is open.
    fn start(bench: &Bench, options: &[&str]) -> Self {
        Self::start_at(free_port(), bench, options)
    }

    fn start_at(port: u16, bench: &Bench, options: &[&str]) -> Self {
        let number = port.to_string();
        let arguments = [&["engine", "docstore", "--port", &number], options].concat();
        let (process, lines) = bench.start_until(&arguments, "listens on");
        let store = Self { process, port, _lines: lines };
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        store
    }

    /// Kills it and starts another one with these options at the same port.
    fn killed_and_started_again(mut self, bench: &Bench, options: &[&str]) -> Self {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        Self::start_at(self.port, bench, options)
    }

    fn end(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It has ended already, unless the test fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
