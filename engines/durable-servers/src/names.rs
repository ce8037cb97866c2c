//! Names of hubs on a server, where each is a schema, a stream or part of a subject; and the length of what nodes say.

use narrows_durable::store::{Location, StoreError};

use crate::calls::refused;

/// The longest name of a hub, in bytes.
pub(crate) const HUB_NAME_BYTES_MAX: usize = 40;
/// The most that a node may say, in bytes.
const SAID_BYTES_MAX: usize = 64 << 10;

/// Whether this can name a hub: 1 to 40 of `a-z 0-9 - _`.
pub(crate) fn check_hub_name(name: &str) -> Result<(), String> {
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if (1..=HUB_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_known) {
        return Ok(());
    }
    let shown: String = name.chars().take(HUB_NAME_BYTES_MAX).collect();
    Err(format!("{shown:?} cannot name a hub, expected 1 to {HUB_NAME_BYTES_MAX} characters of a-z 0-9 - and _"))
}

/// Checks the length of a node's report.
pub(crate) fn check_said(said: &[u8], place: impl FnOnce() -> Location) -> Result<(), StoreError> {
    if said.len() <= SAID_BYTES_MAX {
        return Ok(());
    }
    let reason = format!("{} bytes, expected at most {SAID_BYTES_MAX}", said.len());
    Err(refused("write", place(), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["a", "orders-2", "a_b", &"x".repeat(40)] {
            assert!(check_hub_name(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "a.b", "a\"b", "a b", "ä", &"x".repeat(41)] {
            assert!(check_hub_name(bad).is_err(), "{bad:?}");
        }
    }
}
