//! `--from-address`: the client's addresses, given one by one or as ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most addresses of a load.
const ADDRESSES_MAX: u128 = 65_536;

/// Addresses of one family from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

/// Reads `127.0.0.2` or `127.0.0.2-127.0.0.9`.
pub(super) fn address_range(text: &str) -> Result<AddressRange, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let expected = || "expected an address such as 127.0.0.2, or a range such as 127.0.0.2-127.0.0.9".to_owned();
    let address = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| expected());
    let range = AddressRange { first: address(first)?, last: address(last)? };
    if range.first.is_ipv4() != range.last.is_ipv4() || range.first > range.last {
        return Err(expected());
    }
    if range.count() > ADDRESSES_MAX {
        return Err(format!("expected at most {ADDRESSES_MAX} addresses"));
    }
    Ok(range)
}

/// All addresses of some ranges, in order.
///
/// # Errors
/// In words, when they are too many.
pub(super) fn all_of(ranges: &[AddressRange]) -> Result<Vec<IpAddr>, String> {
    let count: u128 = ranges.iter().map(|range| range.count()).sum();
    if count > ADDRESSES_MAX {
        return Err(format!("--from-address names {count} addresses, expected at most {ADDRESSES_MAX}"));
    }
    Ok(ranges.iter().flat_map(AddressRange::addresses).collect())
}

impl AddressRange {
    fn count(&self) -> u128 {
        // All of IPv6 is one more than fits.
        (number(self.last) - number(self.first)).saturating_add(1)
    }

    fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let is_ipv4 = self.first.is_ipv4();
        (number(self.first)..=number(self.last)).map(move |number| match u32::try_from(number) {
            Ok(number) if is_ipv4 => Ipv4Addr::from_bits(number).into(),
            _ => Ipv6Addr::from_bits(number).into(),
        })
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ranges() {
        let read = |texts: &[&str]| {
            let ranges: Vec<AddressRange> = texts.iter().map(|text| address_range(text).unwrap()).collect();
            all_of(&ranges).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(read(&["127.0.0.2"]), "127.0.0.2");
        assert_eq!(
            read(&["127.0.0.9", "127.0.0.254-127.0.1.1"]),
            "127.0.0.9 127.0.0.254 127.0.0.255 127.0.1.0 127.0.1.1"
        );
        assert_eq!(read(&["::1-::2"]), "::1 ::2");
        assert_eq!(read(&[]), "");
    }

    #[test]
    fn what_is_no_address_is_reported() {
        for wrong in ["", "a", "127.0.0.3-127.0.0.2", "127.0.0.1-::1", "127.0.0.1-", "1.2.3.4-5", "10.0.0.0-10.255.0.0"]
        {
            assert!(address_range(wrong).is_err(), "{wrong}");
        }
        let most = address_range("10.0.0.0-10.0.255.255").unwrap();
        assert!(all_of(&[most]).is_ok());
        assert!(all_of(&[most, most]).unwrap_err().contains("131072"));
        assert!(address_range("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").is_err());
    }
}
