//! The addresses that load comes from: `127.0.0.2`, `127.0.0.10-127.0.0.60`, `127.1.0.0/24`.
//!
//! A block is all of its addresses, its first and last included: on loopback, where tests of one machine take place,
//! every one of them can be bound. That the machine has an address is for the load to find out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::json;

use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report, shortened};
use crate::experiment::grammar::key::{Value, optional, parameter};
use crate::experiment::grammar::kind::{AS_TEXT, Simple, no_hint};
use crate::experiment::grammar::shape::{Field, Shape};
use crate::experiment::grammar::values::LISTED_MAX;

/// Most addresses of a load.
const ADDRESSES_MAX: u128 = 65_536;

/// The first and last address of a run of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    first: IpAddr,
    last: IpAddr,
}

/// An address, `FIRST-LAST` or `ADDRESS/BITS`.
static ADDRESS_RANGE: Simple<Range> = Simple {
    expected: "an address, `FIRST-LAST` or `ADDRESS/BITS`",
    name: "address range",
    written: AS_TEXT,
    read: |text| range(text).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^[0-9A-Fa-f.:]+([-/][0-9A-Fa-f.:]+)?$" }),
};

/// An item of `client_addresses`.
const ADDRESSES: Value<Range> = parameter(&ADDRESS_RANGE);

pub(crate) const CLIENT_ADDRESSES: Field = optional(
    "client_addresses",
    Shape::List { item: &ADDRESSES.shape(), least: 1, most: LISTED_MAX },
    "The addresses to connect from, which users take in turn: single ones, `FIRST-LAST` or `ADDRESS/BITS`. \
     Without it, the kernel chooses.",
);

impl Range {
    fn count(self) -> u128 {
        (number(self.last) - number(self.first)).saturating_add(1)
    }

    fn addresses(self) -> impl Iterator<Item = IpAddr> {
        (number(self.first)..=number(self.last)).map(move |n| match self.first {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(n as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(n)),
        })
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Reads one item of the list.
pub(crate) fn range(text: &str) -> Result<Range, Problem> {
    let expected = || {
        let shown = shortened(text);
        Problem::new(format!("expected an address, `FIRST-LAST` or `ADDRESS/BITS`, found \"{shown}\""))
    };
    let address = |text: &str| text.parse::<IpAddr>().map_err(|_| expected());
    if let Some((block, bits)) = text.split_once('/') {
        return block_of(address(block)?, bits).unwrap_or_else(|| Err(expected()));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (address(first.trim())?, address(last.trim())?);
    if first.is_ipv4() != last.is_ipv4() || number(first) > number(last) {
        return Err(expected().hint("put the lower address first; both must be of one family"));
    }
    within_limit(Range { first, last })
}

fn block_of(address: IpAddr, bits: &str) -> Option<Result<Range, Problem>> {
    let width: u32 = if address.is_ipv4() { 32 } else { 128 };
    let is_plain = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    let free = width.checked_sub(bits.parse().ok().filter(|_| is_plain)?)?;
    let host = 1u128.checked_shl(free).map_or(u128::MAX, |size| size.wrapping_sub(1));
    let (first, last) = (number(address) & !host, number(address) | host);
    let of = |n: u128| match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(n as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(n)),
    };
    Some(within_limit(Range { first: of(first), last: of(last) }))
}

fn within_limit(range: Range) -> Result<Range, Problem> {
    if range.count() <= ADDRESSES_MAX { Ok(range) } else { Err(too_many(range.count())) }
}

fn too_many(count: u128) -> Problem {
    Problem::new(format!("expected at most {ADDRESSES_MAX} addresses, found {count}"))
}

/// All addresses of the list, which are of one family: that of `like`, when it is known.
pub(crate) fn expand(at: At<'_>, like: Option<IpAddr>, report: &mut Report) -> Option<Vec<IpAddr>> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    let mut is_whole = true;
    for item in at.items() {
        let Some(range) = item.value(ADDRESSES) else {
            is_whole = false;
            continue;
        };
        let family = like.or(addresses.first().copied());
        if let Some(other) = family.filter(|other| other.is_ipv4() != range.first.is_ipv4()) {
            let problem = Problem::new(format!("{} cannot be used beside {other}", range.first));
            report.add(item.place(), item.path(), problem.hint("an address connects to others of its own family only"));
            is_whole = false;
            continue;
        }
        let count = addresses.len() as u128 + range.count();
        if count > ADDRESSES_MAX {
            report.add(at.key_place(), at.path(), too_many(count));
            return None;
        }
        addresses.extend(range.addresses());
    }
    is_whole.then_some(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(text: &str) -> Result<(String, String, u128), String> {
        let range = range(text).map_err(|problem| problem.message)?;
        Ok((range.first.to_string(), range.last.to_string(), range.count()))
    }

    #[test]
    fn an_item_is_an_address_a_run_or_a_block() {
        let cases = [
            ("127.0.0.2", ("127.0.0.2", "127.0.0.2", 1)),
            ("127.0.0.10-127.0.0.60", ("127.0.0.10", "127.0.0.60", 51)),
            ("127.0.0.10 - 127.0.1.9", ("127.0.0.10", "127.0.1.9", 256)),
            ("127.1.0.0/24", ("127.1.0.0", "127.1.0.255", 256)),
            ("127.1.2.3/16", ("127.1.0.0", "127.1.255.255", 65_536)),
            ("127.1.2.3/32", ("127.1.2.3", "127.1.2.3", 1)),
            ("::1", ("::1", "::1", 1)),
            ("fd00::/120", ("fd00::", "fd00::ff", 256)),
        ];
        for (text, (first, last, count)) in cases {
            assert_eq!(ends(text), Ok((first.to_owned(), last.to_owned(), count)), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_reported() {
        for text in ["", "localhost", "127.0.0", "127.0.0.9-127.0.0.1", "127.0.0.1-::1", "127.0.0.0/33", "::/-1", "::/"]
        {
            let expected = format!("expected an address, `FIRST-LAST` or `ADDRESS/BITS`, found \"{text}\"");
            assert_eq!(ends(text), Err(expected));
        }
        let limit = |count: &str| Err(format!("expected at most 65536 addresses, found {count}"));
        assert_eq!(ends("127.0.0.0/8"), limit("16777216"));
        assert_eq!(ends("0.0.0.0-255.255.255.255"), limit("4294967296"));
        assert_eq!(ends("::/0"), limit(&u128::MAX.to_string()));
    }

    proptest! {
        #[test]
        fn a_range_has_as_many_addresses_as_it_says(first in any::<u32>(), more in 0..300u32, bits in 20..=32u32) {
            let last = first.saturating_add(more);
            let (a, b) = (Ipv4Addr::from_bits(first), Ipv4Addr::from_bits(last));
            for text in [format!("{a}-{b}"), format!("{a}/{bits}")] {
                let range = range(&text).unwrap();
                let all: Vec<IpAddr> = range.addresses().collect();
                prop_assert_eq!(all.len() as u128, range.count());
                prop_assert!(all.contains(&IpAddr::V4(a)) && all.is_sorted());
            }
        }

        #[test]
        fn no_text_panics(text in "[0-9a-f.:/-]{0,30}") {
            let _ = range(&text);
        }
    }
}
