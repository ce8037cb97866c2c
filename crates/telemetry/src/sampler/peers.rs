//! Who is at the other end of the sockets that threads wait at.
//!
//! `/proc/PID/net/tcp` and `tcp6` list all sockets of a network namespace, so they are read only when a socket is seen
//! that is not known yet, and at most once in [`REFRESH_INTERVAL`].

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use super::files::Files;
use super::text::lines;

/// The least time between two readings of a namespace's sockets.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// Peers remembered at most; beyond that all are forgotten.
const KNOWN_MAX: usize = 16_384;
/// How the kernel writes the state of a socket that listens.
const LISTENING: &str = "0A";

/// The other end of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Whoever connected to this service: a thread that waits here waits for a request.
    Client,
    /// Peers that this service connected to.
    Peer(SocketAddr),
    /// Not a TCP socket: of the host itself, or UDP.
    Elsewhere,
}

/// The sockets that were looked up, by inode.
#[derive(Debug, Default)]
pub(super) struct Peers {
    known: HashMap<u64, End>,
    refreshed: Option<Instant>,
}

impl Peers {
    /// The other end of a socket of a process; none while that cannot be looked up yet.
    pub(super) fn end(&mut self, files: &mut Files, pid: u32, inode: u64) -> Option<End> {
        if let Some(end) = self.known.get(&inode) {
            return Some(*end);
        }
        if self.refreshed.is_some_and(|at| at.elapsed() < REFRESH_INTERVAL) {
            return None;
        }
        self.refresh(files, pid);
        if self.known.len() > KNOWN_MAX {
            self.known.clear();
        }
        Some(*self.known.entry(inode).or_insert(End::Elsewhere))
    }

    fn refresh(&mut self, files: &mut Files, pid: u32) {
        let mut rows = Vec::new();
        for table in ["tcp", "tcp6"] {
            rows.extend(files.whole(format_args!("{pid}/net/{table}")).map(rows_of).unwrap_or_default());
        }
        self.known.extend(ends(&rows));
        self.refreshed = Some(Instant::now());
    }
}

/// One line of such a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    local: SocketAddr,
    remote: SocketAddr,
    is_listening: bool,
    inode: u64,
}

/// A connection whose own port is listened at was made by the other side.
fn ends(rows: &[Row]) -> impl Iterator<Item = (u64, End)> {
    let listening: HashSet<u16> = rows.iter().filter(|row| row.is_listening).map(|row| row.local.port()).collect();
    let end = move |row: &Row| {
        let is_client = row.is_listening || listening.contains(&row.local.port());
        (row.inode, if is_client { End::Client } else { End::Peer(row.remote) })
    };
    // A socket that its process has closed has no inode any more.
    rows.iter().filter(|row| row.inode != 0).map(end)
}

fn rows_of(text: &[u8]) -> Vec<Row> {
    lines(text).filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    let is_listening = fields.next()? == LISTENING;
    Some(Row { local, remote, is_listening, inode: fields.nth(5)?.parse().ok()? })
}

/// An address in hexadecimal: words of four bytes in the order of this machine, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at * 8)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::tests::tree::Tree;
    use proptest::prelude::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0 0 10 0
   2: 0100007F:C351 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0 100 0 0 10 0
   3: 0100007F:C352 0100007F:1538 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0 100 0 0 10 0
";
    const TCP6: &str = "   0: 0000000000000000FFFF00000100007F:C353 0000000000000000FFFF00000100007F:1539 01 \
                        00000000:00000000 00:00000000 00000000     0        0 14 1 0 100 0 0 10 0\n";

    #[test]
    fn clients_and_peers_are_distinguished_by_the_port_that_is_listened_at() {
        let tree = Tree::new();
        tree.write("10/net/tcp", TCP);
        tree.write("10/net/tcp6", TCP6);
        let (mut sockets, mut files) = (Peers::default(), tree.files());
        let mut end = |inode| sockets.end(&mut files, 10, inode);
        let peer = |port| Some(End::Peer(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)));
        assert_eq!((end(12), end(13), end(14)), (Some(End::Client), peer(5432), peer(5433)));
        assert_eq!(end(99), None, "it was not there when the table was read");
        let mut fresh = Peers::default();
        assert_eq!(fresh.end(&mut tree.files(), 10, 99), Some(End::Elsewhere));
    }

    proptest! {
        #[test]
        fn random_tables_never_panic(text in "[0-9A-F: \n]{0,300}") {
            ends(&rows_of(text.as_bytes())).count();
        }
    }
}
