//! Where addresses hold secrets: the user part, and the values of secret parameters in the query part and after a `#`.

use super::Places;
use super::keys::is_secret_parameter;

/// Finds the secrets of an address, or of a path with a query, that begins at `offset`.
pub(super) fn find(url: &str, offset: usize, places: &mut Places) {
    for (at, _) in url.match_indices("://") {
        find_user(url, at + 3, offset, places);
    }
    if let Some(at) = url.find(['?', '#']) {
        find_in_query(&url[at + 1..], offset + at + 1, places);
    }
}

/// Finds `user` and `password` of `user:password@host`, which begins at `start`.
fn find_user(url: &str, start: usize, offset: usize, places: &mut Places) {
    let authority = url[start..].find(['/', '?', '#']).map_or(&url[start..], |length| &url[start..start + length]);
    let Some(end) = authority.rfind('@') else { return };
    let user = &authority[..end];
    let from = offset + start;
    match user.find(':') {
        Some(colon) => places.extend([from..from + colon, from + colon + 1..from + end]),
        None => places.push(from..from + end),
    }
}

/// Finds the values of secret parameters in a query that begins at `offset`.
pub(super) fn find_in_query(query: &str, offset: usize, places: &mut Places) {
    let mut from = offset;
    for pair in query.split_inclusive(['&', '#']) {
        if let Some((name, value)) = pair.split_once('=')
            && is_secret_parameter(name)
        {
            let start = from + name.len() + 1;
            places.push(start..start + value.trim_end_matches(['&', '#']).len());
        }
        from += pair.len();
    }
}
