//! Listening TCP sockets: how many connections wait in each to be accepted, and how many were dropped.
//!
//! The kernel's socket diagnostics say all of it for the sampler's own network namespace, in one request for listening
//! sockets only. In another namespace, and where the kernel has no diagnostics, `/proc/PID/net/tcp` says how many wait;
//! it lists listening sockets first, so its beginning is enough. A socket belongs to the replica that has it open. That
//! is looked up when a socket is new, and rarely otherwise; programs open their listening sockets early, so the lowest
//! descriptors are enough.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

use super::PROC;
use super::files::Files;
use super::limits::Depth;
use super::text::lines;

/// Listening sockets of one namespace and address family that are read at most.
const LISTENERS_MAX: usize = 4096;
/// Descriptors of a process that are looked at for sockets, the lowest.
const DESCRIPTORS_MAX: usize = 256;
/// Of a list of sockets, bytes: some 400 rows.
const LIST_BYTES_MAX: u64 = 64 << 10;
/// A part of a dump has up to 32 KiB.
const DUMP_BYTES: usize = 32 << 10;

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) inode: u64,
    pub(super) port: u16,
    /// Connections that wait to be accepted.
    pub(super) queued: u64,
    /// The kernel's limit on these: the lesser of the program's own and the machine's. One more may wait.
    pub(super) limit: Option<u64>,
    /// Attempts to connect that were dropped since the socket was opened.
    pub(super) dropped: Option<u64>,
}

/// Listening sockets by who has them open.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    /// By inode, the processes.
    owners: HashMap<u64, Vec<u32>>,
}

impl Listeners {
    /// The listening sockets of these processes, by process. `networks` are processes that live in other namespaces,
    /// one for each.
    pub(super) fn read(
        &mut self,
        files: &mut Files,
        depth: Depth,
        pids: &HashSet<u32>,
        networks: &[u32],
    ) -> HashMap<u32, Vec<Listener>> {
        let mut listeners: BTreeMap<u64, Listener> = BTreeMap::new();
        let own = diagnosed().unwrap_or_else(|| listed(files, format_args!("self")));
        let others = networks.iter().flat_map(|pid| listed(files, format_args!("{pid}")));
        listeners.extend(own.into_iter().chain(others).map(|one| (one.inode, one)));
        if depth == Depth::Rare || listeners.keys().any(|inode| !self.owners.contains_key(inode)) {
            self.find_owners(files, pids, &listeners);
        }
        let mut by_process: HashMap<u32, Vec<Listener>> = HashMap::new();
        for listener in listeners.values() {
            for pid in self.owners.get(&listener.inode).into_iter().flatten() {
                by_process.entry(*pid).or_default().push(*listener);
            }
        }
        by_process
    }

    fn find_owners(&mut self, files: &mut Files, pids: &HashSet<u32>, listeners: &BTreeMap<u64, Listener>) {
        self.owners = listeners.keys().map(|inode| (*inode, Vec::new())).collect();
        for pid in pids {
            let (descriptors, _) = files.numbered(format_args!("{pid}/fd"), DESCRIPTORS_MAX).unwrap_or_default();
            for (descriptor, _) in descriptors {
                let link = files.link(format_args!("{pid}/fd/{descriptor}")).unwrap_or_default();
                if let Some(owners) = socket_inode(&link).and_then(|inode| self.owners.get_mut(&inode)) {
                    owners.push(*pid);
                }
            }
        }
    }
}

/// The TCP ports that any of these processes listens on, as far as this user may see. Those of processes in another network
/// namespace than this one are left out.
pub fn listening_ports(pids: impl IntoIterator<Item = u32>) -> BTreeSet<u16> {
    let pids: HashSet<u32> = pids.into_iter().collect();
    let found = Listeners::default().read(&mut Files::new(PROC), Depth::Rare, &pids, &[]);
    found.into_values().flatten().map(|listener| listener.port).collect()
}

/// The inode of a descriptor's link such as `socket:[12345]`.
fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// From `/proc/PID/net`.
fn listed(files: &mut Files, pid: std::fmt::Arguments<'_>) -> Vec<Listener> {
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = files.head(format_args!("{pid}/net/{table}"), LIST_BYTES_MAX).unwrap_or_default();
        found.extend(lines(text).skip(1).map_while(listing).flatten());
    }
    found
}

/// A row of `/proc/PID/net/tcp`. None at the first that does not listen; those that do come first.
fn listing(row: &str) -> Option<Option<Listener>> {
    const LISTEN: &str = "0A";
    let mut fields = row.split_ascii_whitespace();
    let local = fields.nth(1)?;
    if fields.nth(1)? != LISTEN {
        return None;
    }
    let mut read = || {
        let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
        let queued = u64::from_str_radix(fields.next()?.split_once(':')?.1, 16).ok()?;
        Some(Listener { inode: fields.nth(4)?.parse().ok()?, port, queued, limit: None, dropped: None })
    };
    Some(read())
}

/// From the kernel's socket diagnostics; `None` where it has none.
fn diagnosed() -> Option<Vec<Listener>> {
    let mut found = dump(AddressFamily::INET)?;
    found.extend(dump(AddressFamily::INET6).unwrap_or_default());
    Some(found)
}

/// Whether the kernel has socket diagnostics.
#[cfg(test)]
pub(super) fn has_diagnostics() -> bool {
    diagnosed().is_some()
}

/// The listening sockets of an address family. The socket is opened anew, so that nothing is left of an earlier dump.
fn dump(family: AddressFamily) -> Option<Vec<Listener>> {
    let kind = (AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC);
    let socket = socket_with(kind.0, kind.1, kind.2, Some(netlink::SOCK_DIAG)).ok()?;
    send(&socket, &request(u8::try_from(family.as_raw()).ok()?), SendFlags::empty()).ok()?;
    let mut found = Vec::new();
    let mut part = vec![0; DUMP_BYTES];
    while found.len() < LISTENERS_MAX {
        // The kernel has the response at once.
        let (length, _) = recv(&socket, &mut part[..], RecvFlags::DONTWAIT).ok()?;
        if !read_part(part.get(..length)?, &mut found)? {
            return Some(found);
        }
    }
    Some(found)
}

const MESSAGE_BYTES: usize = 16;
const REQUEST_BYTES: usize = 56;
/// Of `inet_diag_msg`, before its attributes.
const SOCKET_BYTES: usize = 72;

/// A message for `sock_diag`(7) that requests TCP's listening sockets with their drops.
fn request(family: u8) -> Vec<u8> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    /// `NLM_F_REQUEST` and `NLM_F_DUMP`.
    const FLAGS: u16 = 0x301;
    const TCP: u8 = 6;
    const LISTENING: u32 = 1 << 10;
    let mut message = Vec::with_capacity(MESSAGE_BYTES + REQUEST_BYTES);
    message.extend(((MESSAGE_BYTES + REQUEST_BYTES) as u32).to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(FLAGS.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([family, TCP, 1 << (MEMORY_ATTRIBUTE - 1), 0]);
    message.extend(LISTENING.to_ne_bytes());
    message.resize(MESSAGE_BYTES + REQUEST_BYTES, 0);
    message
}

/// `INET_DIAG_SKMEMINFO`: figures of the socket, of which the last counts drops.
const MEMORY_ATTRIBUTE: u8 = 7;
/// Where in it: `SK_MEMINFO_DROPS`.
const DROPS_AT: usize = 8 * 4;

/// Adds the sockets in a part of a dump. False when the dump is complete, `None` if the kernel reports an error.
fn read_part(mut part: &[u8], found: &mut Vec<Listener>) -> Option<bool> {
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    while part.len() >= MESSAGE_BYTES {
        let length = u32_at(part, 0)? as usize;
        let message = part.get(MESSAGE_BYTES..length)?;
        match u16_at(part, 4)? {
            ERROR => return None,
            DONE => return Some(false),
            _ => found.extend(socket(message)),
        }
        part = part.get(aligned(length)..).unwrap_or_default();
    }
    Some(true)
}

/// An `inet_diag_msg`.
fn socket(message: &[u8]) -> Option<Listener> {
    let mut attributes = message.get(SOCKET_BYTES..)?;
    let mut dropped = None;
    while attributes.len() >= 4 {
        let length = usize::from(u16_at(attributes, 0)?).max(4);
        if u16_at(attributes, 2)? == u16::from(MEMORY_ATTRIBUTE) {
            dropped = u32_at(attributes.get(4..length)?, DROPS_AT).map(u64::from);
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    Some(Listener {
        port: u16::from_be_bytes(message.get(4..6)?.try_into().ok()?),
        queued: u64::from(u32_at(message, 56)?),
        limit: Some(u64::from(u32_at(message, 60)?)),
        inode: u64::from(u32_at(message, 68)?),
        dropped,
    })
}

/// Messages and attributes begin at multiples of four bytes.
fn aligned(length: usize) -> usize {
    length.div_ceil(4) * 4
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Connections that the kernel dropped because an accept queue was full, since the namespace was made: `ListenOverflows`
/// of `/proc/PID/net/netstat`, whose lines come in pairs of names and values.
pub(super) fn overflows(text: &[u8]) -> Option<u64> {
    let mut rows = lines(text).filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (rows.next()?, rows.next()?);
    let at = names.split_ascii_whitespace().position(|name| name == "ListenOverflows")?;
    values.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// `/proc/PID/net/sockstat`: TCP connections in the state TIME_WAIT.
pub(super) fn time_wait(text: &[u8]) -> Option<u64> {
    let mut fields = lines(text).find_map(|line| line.strip_prefix("TCP:"))?.split_ascii_whitespace();
    fields.find(|field| *field == "tw")?;
    fields.next()?.parse().ok()
}

/// `ip_local_port_range`: how many ports it holds.
pub(super) fn port_range(text: &[u8]) -> Option<u64> {
    let mut fields = lines(text).next()?.split_ascii_whitespace();
    let (first, last): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(last.checked_sub(first)? + 1)
}

/// The sockets of a replica by port; of several of one port, such as those of workers that each have their own, the
/// fullest with the drops of all.
pub(super) fn by_port(listeners: impl IntoIterator<Item = Listener>) -> BTreeMap<u16, Listener> {
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
        let mut files = Files::new("/proc");
        assert!(listed(&mut files, format_args!("self")).contains(&expected));
        if let Some(found) = diagnosed() {
            let expected = Listener { limit: Some(5), dropped: Some(0), ..expected };
            assert!(found.contains(&expected), "{found:?}");
        } else {
            narrows_testing::skip("this kernel has no socket diagnostics");
        }
    }

    #[test]
    fn the_ports_of_a_process_are_found() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listening.local_addr().unwrap().port();
        assert!(listening_ports([std::process::id()]).contains(&port));
        assert!(listening_ports([]).is_empty());
    }

    #[test]
    fn a_list_is_read_up_to_the_first_connection() {
        let rows = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000011 00:00000000 00000000  0 0 4711 1 0 100 0 0 10 0\n\
            \x20  1: garbled\n\
            \x20  2: 0100007F:1F90 0100007F:9C40 01 00000000:00000005 00:00000000 00000000  0 0 4712 1 0 20 4 30 10 -1\n";
        let tree = crate::sampler::tests::tree::Tree::new();
        tree.write("7/net/tcp", rows);
        let found = listed(&mut tree.files(), format_args!("7"));
        assert_eq!(found, [Listener { inode: 4711, port: 8080, queued: 17, limit: None, dropped: None }]);
    }

    #[test]
    fn a_dump_that_is_cut_or_garbled_is_no_dump() {
        let mut found = Vec::new();
        assert_eq!(read_part(&request(2)[..20], &mut found), None);
        assert_eq!(read_part(&[], &mut found), Some(true));
        let message = |kind: u16, length: u32| [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10]].concat();
        assert_eq!(read_part(&message(2, 16), &mut found), None);
        assert_eq!(read_part(&message(3, 16), &mut found), Some(false));
        assert_eq!(read_part(&message(20, 0), &mut found), None);
        assert_eq!(read_part(&message(20, 16), &mut found), Some(true));
        assert!(found.is_empty());
    }

    #[test]
    fn overflows_are_found_by_name() {
        let text =
            b"TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 33\nIpExt: InNoRoutes\nIpExt: 4\n";
        assert_eq!(overflows(text), Some(22));
        assert_eq!(overflows(b"TcpExt: SyncookiesSent\nTcpExt: 1\n"), None);
        assert_eq!(overflows(b""), None);
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
