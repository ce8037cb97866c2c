//! The kernel's socket diagnostics, `sock_diag`(7): dumps of the sockets of one network namespace.
//!
//! The messages are few and of fixed layout, so they are written and read here. A dump of TCP uses the older request
//! that covers both address families in one walk of the kernel's table of connections: that walk costs more than the
//! sockets where there are few.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::Socket;
use super::listeners::{PORT_RANGE, port_range};
use super::rules::Snapshot;
use crate::PROC;

/// Sockets that one dump reads at most.
pub(super) const DUMP_MAX: usize = 65_536;
/// A part of a dump has up to 32 KiB.
const PART_BYTES: usize = 32 << 10;

/// `TCP_ESTABLISHED` and the states that follow, as bits of a request.
pub(super) const ESTABLISHED: u8 = 1;
pub(super) const CONNECTING: u8 = 2;
pub(super) const CLOSE_WAIT: u8 = 8;
pub(super) const LISTENING: u8 = 10;

/// Kinds of sockets to dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted<'a> {
    /// TCP: listening and connected, with what listening ones dropped.
    All,
    /// TCP: listening, with what they dropped.
    Listening,
    /// TCP: connected, except those whose own port is one of these, ascending, at most [`EXCLUDED_MAX`].
    Connected { excluded: &'a [u16] },
    /// Connected UDP whose peer has this port.
    Udp { family: AddressFamily, peer_port: u16 },
}

/// Ports that a dump excludes at most.
pub(super) const EXCLUDED_MAX: usize = 64;

/// A socket for diagnostics of one network namespace.
#[derive(Debug)]
pub(super) struct Diagnostics {
    netlink: OwnedFd,
    sequence: u32,
    part: Vec<u8>,
    /// Ports that the namespace had for connections to one peer.
    pub(super) ephemeral_ports: Option<u64>,
}

impl Diagnostics {
    /// Of the network namespace of this thread.
    pub(super) fn open() -> io::Result<Self> {
        let netlink =
            socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
        let range = std::fs::read(format!("{PROC}/{PORT_RANGE}")).ok();
        let ephemeral_ports = range.as_deref().and_then(port_range);
        Ok(Self { netlink, sequence: 0, part: vec![0; PART_BYTES], ephemeral_ports })
    }

    /// Of another namespace, such as `/proc/PID/ns/net`. It needs `CAP_SYS_ADMIN`. A thread of its own enters it; the
    /// socket stays there.
    pub(super) fn open_in(namespace: &File) -> io::Result<Self> {
        let enter_and_open = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Self::open()
        };
        std::thread::scope(|scope| {
            let entered =
                std::thread::Builder::new().name("namespace".to_owned()).spawn_scoped(scope, enter_and_open)?;
            entered.join().unwrap_or_else(|_| Err(io::Error::other("the thread that enters the namespace failed")))
        })
    }

    /// Passes each wanted socket to `each`. Says how many there were beyond [`DUMP_MAX`], at least.
    pub(super) fn dump(&mut self, wanted: Wanted<'_>, mut each: impl FnMut(Socket)) -> io::Result<u64> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.netlink, &request(wanted, self.sequence), SendFlags::empty())?;
        let mut read = 0;
        loop {
            let (length, _) = recv(&self.netlink, self.part.as_mut_slice(), RecvFlags::DONTWAIT)?;
            let part = self.part.get(..length).unwrap_or_default();
            let is_complete = read_part(part, self.sequence, &mut |socket| {
                read += 1;
                each(socket);
            });
            match is_complete {
                Some(true) => return Ok(0),
                Some(false) if read < DUMP_MAX => {}
                Some(false) => return self.drain(),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Receives the rest of a dump without looking at the sockets.
    fn drain(&mut self) -> io::Result<u64> {
        let mut beyond = 0;
        loop {
            let (length, _) = recv(&self.netlink, self.part.as_mut_slice(), RecvFlags::DONTWAIT)?;
            let part = self.part.get(..length).unwrap_or_default();
            if read_part(part, self.sequence, &mut |_| beyond += 1) != Some(false) {
                return Ok(beyond);
            }
        }
    }
}

const HEADER_BYTES: usize = 16;
/// Of `inet_diag_msg`, before its attributes.
const SOCKET_BYTES: usize = 72;
/// Of `inet_diag_sockid`.
const ID_BYTES: usize = 48;

/// Attributes, which are numbers of bits in a request too.
const INFO: u16 = 2;
const MEMORY: u16 = 7;
/// Where in the latter: `SK_MEMINFO_DROPS`.
const DROPS_AT: usize = 8 * 4;

fn request(wanted: Wanted<'_>, sequence: u32) -> Vec<u8> {
    /// `TCPDIAG_GETSOCK`.
    const TCP_OF_BOTH_FAMILIES: u16 = 18;
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    /// `NLM_F_REQUEST` and `NLM_F_DUMP`.
    const FLAGS: u16 = 0x301;
    const UDP: u8 = 17;
    const CONNECTED: u32 = 1 << ESTABLISHED | 1 << CONNECTING | 1 << CLOSE_WAIT;
    let bit = |attribute: u16| 1_u8 << (attribute - 1);
    let mut body = Vec::with_capacity(SOCKET_BYTES);
    let (kind, filter) = match wanted {
        Wanted::All | Wanted::Listening => {
            let connected = if matches!(wanted, Wanted::All) { CONNECTED } else { 0 };
            body.extend([0, 0, 0, bit(INFO) | bit(MEMORY)]);
            body.extend([0; ID_BYTES]);
            body.extend((connected | 1 << LISTENING).to_ne_bytes());
            body.extend([0; 4]);
            (TCP_OF_BOTH_FAMILIES, Vec::new())
        }
        Wanted::Connected { excluded } => {
            body.extend([0, 0, 0, bit(INFO)]);
            body.extend([0; ID_BYTES]);
            body.extend(CONNECTED.to_ne_bytes());
            body.extend([0; 4]);
            (TCP_OF_BOTH_FAMILIES, own_port_is_not(excluded))
        }
        Wanted::Udp { family, peer_port } => {
            body.extend([family.as_raw() as u8, UDP, 0, 0]);
            body.extend((1_u32 << ESTABLISHED).to_ne_bytes());
            body.extend([0; ID_BYTES]);
            (SOCK_DIAG_BY_FAMILY, peer_port_is(peer_port))
        }
    };
    if !filter.is_empty() {
        /// `INET_DIAG_REQ_BYTECODE`.
        const BYTECODE: u16 = 1;
        body.extend((4 + filter.len() as u16).to_ne_bytes());
        body.extend(BYTECODE.to_ne_bytes());
        body.extend(filter);
    }
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    message.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(FLAGS.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(body);
    message
}

/// Operations of the kernel's filter (`INET_DIAG_BC_*`). Each says how many bytes further the next one is if it is true,
/// and if it is false; a socket is accepted if the program is left exactly at its end. The kernel accepts only programs
/// whose end is reached by "true" throughout.
mod operation {
    pub(super) const JUMP: u8 = 1;
    pub(super) const OWN_PORT_FROM: u8 = 2;
    pub(super) const OWN_PORT_UP_TO: u8 = 3;
    pub(super) const PEER_PORT_FROM: u8 = 4;
    pub(super) const PEER_PORT_UP_TO: u8 = 5;
    /// With the port that follows.
    pub(super) const COMPARISON_BYTES: u16 = 8;
    pub(super) const JUMP_BYTES: u16 = 4;
}

fn operation(code: u8, if_true: u16, if_false: u16) -> [u8; 4] {
    let [low, high] = if_false.to_ne_bytes();
    [code, if_true as u8, low, high]
}

fn comparison(code: u8, port: u16, if_false: u16) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (operation(code, operation::COMPARISON_BYTES, if_false), operation(0, 0, port));
    [a, b, c, d, e, f, g, h]
}

/// For each port: below it, or else above it, or else rejected.
fn own_port_is_not(ports: &[u16]) -> Vec<u8> {
    use operation::{COMPARISON_BYTES, JUMP, JUMP_BYTES, OWN_PORT_FROM, OWN_PORT_UP_TO};
    const EACH: u16 = 2 * COMPARISON_BYTES + JUMP_BYTES;
    let ports = ports.iter().filter(|port| (1..u16::MAX).contains(*port)).take(EXCLUDED_MAX);
    let ports: Vec<u16> = ports.copied().collect();
    let mut program = Vec::with_capacity(ports.len() * usize::from(EACH));
    for (port, left) in ports.iter().zip((1..=ports.len() as u16).rev()) {
        program.extend(comparison(OWN_PORT_UP_TO, port - 1, COMPARISON_BYTES + JUMP_BYTES));
        program.extend(operation(JUMP, JUMP_BYTES, JUMP_BYTES + COMPARISON_BYTES));
        let to_end = left * EACH - COMPARISON_BYTES - JUMP_BYTES;
        program.extend(comparison(OWN_PORT_FROM, port + 1, to_end + 4));
    }
    program
}

fn peer_port_is(port: u16) -> Vec<u8> {
    use operation::{COMPARISON_BYTES, PEER_PORT_FROM, PEER_PORT_UP_TO};
    let from = comparison(PEER_PORT_FROM, port, 2 * COMPARISON_BYTES + 4);
    [from, comparison(PEER_PORT_UP_TO, port, COMPARISON_BYTES + 4)].concat()
}

/// Passes on the sockets in a part of a dump. True when the dump is complete, `None` if the kernel reports an error or
/// the part is malformed. Parts of earlier dumps are skipped.
fn read_part(mut part: &[u8], sequence: u32, each: &mut impl FnMut(Socket)) -> Option<bool> {
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    while part.len() >= HEADER_BYTES {
        let length = u32_at(part, 0)? as usize;
        let message = part.get(HEADER_BYTES..length)?;
        let is_of_this_dump = u32_at(part, 8)? == sequence;
        match u16_at(part, 4)? {
            ERROR if is_of_this_dump => return None,
            DONE if is_of_this_dump => return Some(true),
            _ if is_of_this_dump => socket(message).into_iter().for_each(&mut *each),
            _ => {}
        }
        part = part.get(aligned(length)..).unwrap_or_default();
    }
    Some(false)
}

/// An `inet_diag_msg`.
fn socket(message: &[u8]) -> Option<Socket> {
    let mut attributes = message.get(SOCKET_BYTES..)?;
    let (mut dropped, mut info) = (None, None);
    while attributes.len() >= 4 {
        let length = usize::from(u16_at(attributes, 0)?).max(4);
        match u16_at(attributes, 2)? {
            MEMORY => dropped = u32_at(attributes.get(4..length)?, DROPS_AT).map(u64::from),
            INFO => info = attributes.get(4..length),
            _ => {}
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    let (family, state) = (*message.first()?, *message.get(1)?);
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let queued = u32_at(message, 56)?;
    Some(Socket {
        state,
        local: SocketAddr::new(address(family, message.get(8..24)?)?, port(4)?),
        remote: SocketAddr::new(address(family, message.get(24..40)?)?, port(6)?),
        cookie: u64_at(message, 44)?,
        queued: u64::from(queued),
        limit: Some(u64::from(u32_at(message, 60)?)),
        inode: u64::from(u32_at(message, 68)?),
        dropped,
        snapshot: info.filter(|_| state != LISTENING).map(|info| snapshot(info, state, queued)),
    })
}

fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    if family == AddressFamily::INET.as_raw() as u8 {
        let bytes: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        return Some(Ipv4Addr::from(bytes).into());
    }
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical())
}

/// A `tcp_info`. Older kernels have shorter ones; what they do not have is 0.
fn snapshot(info: &[u8], state: u8, unread_bytes: u32) -> Snapshot {
    let short = |at| u32_at(info, at).unwrap_or(0);
    let long = |at| u64_at(info, at).unwrap_or(0);
    Snapshot {
        is_connecting: state == CONNECTING,
        unread_bytes,
        unacknowledged: short(24),
        sent_ago_ms: short(44),
        received_ago_ms: short(52),
        acknowledged_ago_ms: short(56),
        received: short(152),
        sent: short(156),
        received_bytes: long(128),
        // Acknowledged bytes, where the kernel does not count those sent (before Linux 4.19).
        sent_bytes: u64_at(info, 200).unwrap_or_else(|| long(120)),
        busy_us: long(168),
    }
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

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_dump_that_is_cut_or_garbled_is_no_dump() {
        let read = |part: &[u8]| {
            let mut sockets = 0;
            (read_part(part, 7, &mut |_| sockets += 1), sockets)
        };
        let message = |kind: u16, length: u32, sequence: u32| {
            [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 2], &sequence.to_ne_bytes(), &[0; 4]].concat()
        };
        assert_eq!(read(&request(Wanted::All, 7)[..20]), (None, 0), "cut");
        assert_eq!(read(&[]), (Some(false), 0));
        assert_eq!(read(&message(2, 16, 7)), (None, 0), "an error");
        assert_eq!(read(&message(3, 16, 7)), (Some(true), 0), "the end");
        assert_eq!(read(&message(3, 16, 6)), (Some(false), 0), "the end of an earlier dump");
        assert_eq!(read(&message(20, 0, 7)), (None, 0));
        assert_eq!(read(&message(20, 16, 7)), (Some(false), 0), "a socket without content");
    }

    proptest! {
        #[test]
        fn random_parts_never_panic(mut part in prop::collection::vec(any::<u8>(), 0..400), length in 0_u32..400) {
            if let Some(head) = part.get_mut(..4) {
                head.copy_from_slice(&length.to_ne_bytes());
            }
            let sequence = u32_at(&part, 8).unwrap_or_default();
            read_part(&part, sequence, &mut |_| ());
        }
    }
}
