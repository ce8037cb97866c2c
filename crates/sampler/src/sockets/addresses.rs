//! The addresses of a network namespace, from files that can be read without entering it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses beyond loopback, and beyond a single link: `/proc/PID/net/fib_trie` and `/proc/PID/net/if_inet6`.
pub(super) fn of(fib_trie: &str, if_inet6: &str) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    let mut last: Option<Ipv4Addr> = None;
    for line in fib_trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last.filter(|address| !address.is_loopback()).map(IpAddr::from)
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
    }
    addresses.extend(if_inet6.lines().filter_map(global).map(IpAddr::from));
    addresses
}

/// The address of a line of `if_inet6` if its scope is global: address, number of the interface, length of the prefix,
/// scope, flags, interface.
fn global(line: &str) -> Option<Ipv6Addr> {
    const GLOBAL: &str = "00";
    let mut fields = line.split_ascii_whitespace();
    let (address, scope) = (fields.next()?, fields.nth(2)?);
    (scope == GLOBAL).then(|| u128::from_str_radix(address, 16).ok().map(Ipv6Addr::from)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIB_TRIE: &str = "Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.89.0.0/24 2 0 2
        |-- 10.89.0.3
           /32 host LOCAL
        |-- 10.89.0.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
Local:
        |-- 10.89.0.3
           /32 host LOCAL
";
    const IF_INET6: &str = "fd00000000000000000000000000000a 02 40 00 80     eth0
fe800000000000000000000000000001 02 40 20 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
";

    #[test]
    fn addresses_that_others_can_reach_are_found() {
        let expected: Vec<IpAddr> = vec!["10.89.0.3".parse().unwrap(), "fd00::a".parse().unwrap()];
        assert_eq!(of(FIB_TRIE, IF_INET6), expected);
        assert_eq!(of("", "x\n1 2 3 00"), [IpAddr::from(Ipv6Addr::LOCALHOST)]);
        assert!(of("|-- x\n/32 host LOCAL\n", "").is_empty());
    }
}
