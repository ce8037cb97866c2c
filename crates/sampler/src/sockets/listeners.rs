//! Listening TCP sockets: how many connections wait in each to be accepted, and how many were dropped. A socket belongs to
//! the replica that has it open.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::diagnostics::{Diagnostics, LISTENING, Wanted};
use super::owners::{Listing, Owners};
use super::{Socket, listed};
use crate::PROC;
use crate::files::Files;
use crate::text::lines;

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) inode: u64,
    pub(crate) port: u16,
    /// Connections that wait to be accepted.
    pub(crate) queued: u64,
    /// The kernel's limit on these: the lesser of the program's own and the machine's. One more may wait. `None` without
    /// socket diagnostics, and so is the next.
    pub(crate) limit: Option<u64>,
    /// Attempts to connect that were dropped since the socket was opened.
    pub(crate) dropped: Option<u64>,
}

impl Listener {
    /// `None` of a socket that does not listen.
    pub(super) fn of(socket: &Socket) -> Option<Self> {
        let Socket { inode, queued, limit, dropped, .. } = *socket;
        (socket.state == LISTENING).then_some(Self { inode, port: socket.local.port(), queued, limit, dropped })
    }
}

/// The TCP ports that any of these processes listens on, as far as this user may see. Those of processes in another network
/// namespace than this one are left out.
pub fn listening_ports(pids: impl IntoIterator<Item = u32>) -> BTreeSet<u16> {
    let mut files = Files::new(PROC);
    let mut sockets = Vec::new();
    let dump = Diagnostics::open().and_then(|mut open| open.dump(Wanted::All, |socket| sockets.push(socket)));
    if dump.is_err() {
        sockets = listed::sockets(&mut files, format_args!("self"));
    }
    let mut owners = Owners::default();
    owners.look(&mut files, &pids.into_iter().collect(), |_| Listing::Closed);
    let listeners = sockets.iter().filter_map(Listener::of);
    listeners.filter(|listener| !owners.of(listener.inode).is_empty()).map(|listener| listener.port).collect()
}

/// Connections that the kernel dropped because an accept queue was full, since the namespace was made: `ListenOverflows`
/// of `/proc/PID/net/netstat`.
pub(crate) fn overflows(text: &[u8]) -> Option<u64> {
    counter(text, "TcpExt: ", "ListenOverflows")
}

/// Connections that programs opened, since the namespace was made: `ActiveOpens` of `/proc/PID/net/snmp`.
pub(super) fn opened(text: &[u8]) -> Option<u64> {
    counter(text, "Tcp: ", "ActiveOpens")
}

/// A counter of a file whose lines come in pairs of names and values.
fn counter(text: &[u8], group: &str, wanted: &str) -> Option<u64> {
    let mut rows = lines(text).filter_map(|line| line.strip_prefix(group));
    let (names, values) = (rows.next()?, rows.next()?);
    let at = names.split_ascii_whitespace().position(|name| name == wanted)?;
    values.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// `/proc/PID/net/sockstat`: TCP connections in the state TIME_WAIT.
pub(crate) fn time_wait(text: &[u8]) -> Option<u64> {
    let mut fields = lines(text).find_map(|line| line.strip_prefix("TCP:"))?.split_ascii_whitespace();
    fields.find(|field| *field == "tw")?;
    fields.next()?.parse().ok()
}

/// Path below `/proc` of the range of the namespace that a thread is in.
pub(crate) const PORT_RANGE: &str = "sys/net/ipv4/ip_local_port_range";

/// `ip_local_port_range`: how many ports it holds.
pub(crate) fn port_range(text: &[u8]) -> Option<u64> {
    let mut fields = lines(text).next()?.split_ascii_whitespace();
    let (first, last): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(last.checked_sub(first)? + 1)
}

/// The sockets of a replica by port; of several of one port, such as those of workers that each have their own, the
/// fullest with the drops of all.
pub(crate) fn by_port(listeners: impl IntoIterator<Item = Listener>) -> BTreeMap<u16, Listener> {
    let mut ports: BTreeMap<u16, Listener> = BTreeMap::new();
    let mut seen = HashSet::new();
    for listener in listeners.into_iter().filter(|one| seen.insert(one.inode)) {
        let known = ports.entry(listener.port).or_insert(Listener { dropped: None, ..listener });
        let dropped = known.dropped.unwrap_or(0).saturating_add(listener.dropped.unwrap_or(0));
        if listener.queued > known.queued {
            *known = listener;
        }
        known.dropped = known.dropped.or(listener.dropped).map(|_| dropped);
    }
    ports
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::super::owners::socket_inode;
    use super::*;

    #[test]
    fn a_queue_is_read_from_both_sources() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listening, 5).unwrap();
        let address = listening.local_addr().unwrap();
        let _waiting: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", listening.as_raw_fd())).unwrap();
        let inode = socket_inode(link.to_str().unwrap()).unwrap();
        let expected = Listener { inode, port: address.port(), queued: 3, limit: None, dropped: None };
        let listed = listed::sockets(&mut Files::new(PROC), format_args!("self"));
        assert!(listed.iter().filter_map(Listener::of).any(|one| one == expected));
        let Ok(mut diagnostics) = Diagnostics::open() else { return narrows_testing::skip("no socket diagnostics") };
        let mut found = Vec::new();
        diagnostics.dump(Wanted::All, |socket| found.extend(Listener::of(&socket))).unwrap();
        let expected = Listener { limit: Some(5), dropped: Some(0), ..expected };
        assert!(found.contains(&expected), "{found:?}");
    }

    #[test]
    fn the_ports_of_a_process_are_found() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listening.local_addr().unwrap().port();
        assert!(listening_ports([std::process::id()]).contains(&port));
        assert!(listening_ports([]).is_empty());
    }

    #[test]
    fn counters_are_found_by_name() {
        let text =
            b"TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 33\nIpExt: InNoRoutes\nIpExt: 4\n";
        assert_eq!(overflows(text), Some(22));
        assert_eq!(overflows(b"TcpExt: SyncookiesSent\nTcpExt: 1\n"), None);
        assert_eq!(overflows(b""), None);
        assert_eq!(opened(b"Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens\nTcp: 200 17\n"), Some(17));
    }

    #[test]
    fn closed_connections_and_ports_are_counted() {
        let text = b"sockets: used 5\nTCP: inuse 7 orphan 0 tw 28200 alloc 9 mem 1\nUDP: inuse 1 mem 0\n";
        assert_eq!(time_wait(text), Some(28_200));
        assert_eq!(time_wait(b"TCP: inuse 7\n"), None);
        assert_eq!(port_range(b"32768\t60999\n"), Some(28_232));
        assert_eq!(port_range(b"9 1\n"), None);
        let mut files = Files::new("/proc");
        assert!(files.once(format_args!("self/net/sockstat")).is_ok_and(|text| time_wait(text).is_some()));
    }

    #[test]
    fn the_fullest_socket_stands_for_its_port() {
        let one = |inode, queued, dropped| Listener { inode, port: 80, queued, limit: Some(5), dropped: Some(dropped) };
        let ports = by_port([one(1, 2, 10), one(2, 6, 1), one(2, 6, 1), one(3, 0, 4)]);
        assert_eq!(ports[&80], one(2, 6, 15));
    }
}
