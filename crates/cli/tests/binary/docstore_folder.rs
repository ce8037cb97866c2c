//! The folder of `narrows engine docstore --dir`: it is gone on with, and what cannot be is refused.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Bench, TIMEOUT, free_port, text};

/// A store that is killed with the value.
struct Store(Child);

impl Store {
    /// Starts it on `data` and waits until that is open.
    fn start(bench: &Bench) -> Self {
        let port = free_port();
        let number = port.to_string();
        let arguments = ["engine", "docstore", "--port", &number, "--documents", "3", "--dir", "data"];
        let store = Self(bench.start_until(&arguments, "listens on").0);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 "), "{response}");
        store
    }

    fn end(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It has ended already, unless the test fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const ENGINE: [&str; 6] = ["engine", "docstore", "--port", "0", "--dir", "data"];

#[test]
fn a_folder_in_use_or_damaged_is_refused_and_a_good_one_opened_again() {
    let bench = Bench::new("");
    let store = Store::start(&bench);
    let refused = bench.run(&ENGINE);
    assert_eq!(refused.status.code(), Some(2));
    let expected = format!(
        "error: the folder data is in use by process {}\nhint: end the process that has it, or name another folder\n",
        store.0.id()
    );
    assert!(text(&refused.stderr).ends_with(&expected), "{}", text(&refused.stderr));
    store.end();
    Store::start(&bench).end();

    std::fs::write(bench.path("data/docstore.sqlite"), "something else").unwrap();
    let refused = bench.run(&ENGINE);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("error: data/docstore.sqlite is damaged: file is not a database\nhint: "), "{said}");
}

#[test]
fn options_of_the_folder_are_checked() {
    let bench = Bench::new("");
    let sometimes = bench.run(&["engine", "docstore", "--dir", "data", "--sync", "sometimes"]);
    assert_eq!(sometimes.status.code(), Some(2));
    assert!(text(&sometimes.stderr).contains("[possible values: always, never]"), "{}", text(&sometimes.stderr));
    let alone = bench.run(&["engine", "docstore", "--sync", "never"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("--dir <DIR>"), "{}", text(&alone.stderr));
}
