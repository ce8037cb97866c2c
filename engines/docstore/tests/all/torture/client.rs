//! A client of a few lines: one connection, one request at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(60);
const CONTAINER: &str = "/dbs/dronedelivery/colls/utilization";

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Some(Self { stream: BufReader::new(stream) })
    }

    /// Status and body; `None` if the server is gone before all of it has come.
    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Option<(u16, String)> {
        let length = body.len();
        let request = format!(
            "{method} {CONTAINER}/{path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let status = self.line()?.get(9..12)?.parse().ok()?;
        let mut length = 0;
        loop {
            let line = self.line()?.to_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        Some((status, String::from_utf8(body).ok()?))
    }

    /// The ids of all documents, sorted, by a list or a feed of every range.
    pub(crate) fn list(&mut self, path: &str, feed: Option<&str>) -> Vec<String> {
        let (_, body) = self.send("GET", "pkranges", "", "").unwrap();
        let ranges: Value = serde_json::from_str(&body).unwrap();
        let mut ids = Vec::new();
        for range in ranges["PartitionKeyRanges"].as_array().unwrap() {
            let range = range["id"].as_str().unwrap();
            let feed = feed.map_or(String::new(), |kind| format!("a-im: {kind}\r\n"));
            let headers =
                format!("x-ms-documentdb-partitionkeyrangeid: {range}\r\nx-ms-max-item-count: 1000\r\n{feed}");
            let (status, body) = self.send("GET", path, &headers, "").unwrap();
            if status == 304 {
                continue;
            }
            let page: Value = serde_json::from_str(&body).unwrap();
            let documents = page["Documents"].as_array().unwrap().iter();
            ids.extend(documents.map(|document| document["id"].as_str().unwrap().to_owned()));
        }
        ids.sort_unstable();
        ids
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        line.strip_suffix("\r\n").map(str::to_owned)
    }
}
