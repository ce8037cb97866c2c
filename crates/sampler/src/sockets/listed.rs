//! The sockets that `/proc/PID/net/tcp` and `tcp6` list: addresses and states, without what socket diagnostics say of
//! data. They stand for the diagnostics in a network namespace that this user may not enter, and where there are none.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Socket;
use crate::files::Files;
use crate::text::lines;

/// The sockets of a process's network namespace.
pub(super) fn sockets(files: &mut Files, pid: fmt::Arguments<'_>) -> Vec<Socket> {
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = files.whole(format_args!("{pid}/net/{table}")).unwrap_or_default();
        found.extend(lines(text).filter_map(socket));
    }
    found
}

fn socket(line: &str) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    let queued = u64::from_str_radix(fields.next()?.split_once(':')?.1, 16).ok()?;
    let inode = fields.nth(4)?.parse().ok()?;
    Some(Socket { state, local, remote, cookie: inode, inode, queued, limit: None, dropped: None, snapshot: None })
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
    use proptest::prelude::*;

    use super::super::diagnostics::{ESTABLISHED, LISTENING};
    use super::*;
    use crate::tests::tree::Tree;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000011 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: garbled
";
    const TCP6: &str = "   0: 0000000000000000FFFF00000100007F:C353 0000000000000000FFFF00000100007F:1539 01 \
                        00000000:00000000 00:00000000 00000000     0        0 14 1 0 100 0 0 10 0\n";

    #[test]
    fn sockets_of_both_families_are_read() {
        let tree = Tree::new();
        tree.write("7/net/tcp", TCP);
        tree.write("7/net/tcp6", TCP6);
        let found = sockets(&mut tree.files(), format_args!("7"));
        let rows: Vec<_> =
            found.iter().map(|one| (one.state, one.local.to_string(), one.remote.to_string(), one.queued)).collect();
        let row = |state, local: &str, remote: &str, queued| (state, local.to_owned(), remote.to_owned(), queued);
        let expected = [
            row(LISTENING, "127.0.0.1:8080", "0.0.0.0:0", 17),
            row(ESTABLISHED, "127.0.0.1:50003", "127.0.0.1:5433", 0),
        ];
        assert_eq!(rows, expected);
        assert_eq!(found.iter().map(|one| one.inode).collect::<Vec<_>>(), [11, 14]);
    }

    proptest! {
        #[test]
        fn random_lines_never_panic(line in "[0-9A-F: ]{0,200}") {
            let _ = socket(&line);
        }
    }
}
