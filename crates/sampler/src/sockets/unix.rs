//! Connections over Unix sockets, of which the kernel records no times: only how many there are.

use crate::files::Files;
use crate::text::lines;

/// State of a connection in `/proc/net/unix`.
const CONNECTED: &str = "03";
/// Fewer connections may be Narrows' own, by which it observes servers.
const CONNECTIONS_MIN: u64 = 3;

/// Connections at named Unix sockets that replicas accepted; 0 if they are few. `is_of_replica` says whether a replica has
/// the socket of an inode open.
pub(super) fn accepted(files: &mut Files, is_of_replica: impl Fn(u64) -> bool) -> u64 {
    let text = files.whole(format_args!("self/net/unix")).unwrap_or_default();
    let count = lines(text).filter_map(named_connection).filter(|inode| is_of_replica(*inode)).count() as u64;
    if count < CONNECTIONS_MIN { 0 } else { count }
}

/// The inode of a connection whose own end has a name, as the accepting end has.
fn named_connection(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace().skip(5);
    let (state, inode, _name) = (fields.next()?, fields.next()?, fields.next()?);
    (state == CONNECTED).then(|| inode.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_connections_are_those_that_were_accepted() {
        let line = |state: &str, end: &str| format!("ffff8: 00000003 00000000 00000000 0001 {state} 4711{end}");
        assert_eq!(named_connection(&line("03", " /run/postgresql/.s.PGSQL.5432")), Some(4711));
        assert_eq!(named_connection(&line("03", "")), None, "the connecting end");
        assert_eq!(named_connection(&line("01", " /run/postgresql/.s.PGSQL.5432")), None, "the listening socket");
        assert_eq!(named_connection("Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }
}
