//! Where addresses hold secrets: the user part, and the values of secret parameters in the query part and after a `#`.

use super::keys::is_secret_parameter;
use super::{Places, decoding::DecodedText};

/// Characters that end a URL in a text, besides white space.
const ADDRESS_ENDS: [char; 7] = ['"', '\'', '`', '<', '>', ',', ';'];

/// The user in the forms of addresses that messages expect, such as `postgres://USER@HOST:PORT/DATABASE`.
const USER_PLACEHOLDER: &str = "USER";

/// Finds the secrets of a URL, also under percent-encoded names and in URLs inside it.
pub(super) fn find_encoded(url: &str, places: &mut Places) {
    as_it_reads(url, places, |url, places| find(url, 0, places));
}

/// Finds the values of secret parameters in a query, also under percent-encoded names.
pub(super) fn find_in_encoded_query(query: &str, places: &mut Places) {
    as_it_reads(query, places, |query, places| find_in_query(query, 0, places));
}

fn as_it_reads(text: &str, places: &mut Places, find: impl Fn(&str, &mut Places)) {
    find(text, places);
    if let Some(decoded) = DecodedText::of(text) {
        let mut found = Places::new();
        find(&decoded.text, &mut found);
        places.extend(found.into_iter().filter(|place| !place.is_empty()).map(|place| decoded.place(place)));
    }
}

/// Finds the secrets of the URLs in a text.
pub(super) fn find_in_text(text: &str, places: &mut Places) {
    let mut from = 0;
    while let Some(at) = text[from..].find("://") {
        let start = from + at;
        let is_end = |c: char| c.is_whitespace() || ADDRESS_ENDS.contains(&c);
        let end = start + text[start..].find(is_end).unwrap_or(text.len() - start);
        let mut found = Places::new();
        find_encoded(&text[start..end], &mut found);
        places.extend(found.into_iter().map(|place| start + place.start..start + place.end));
        from = end.max(start + 3);
    }
}

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
    let colon = user.find(':');
    let name = &user[..colon.unwrap_or(end)];
    let from = offset + start;
    if name != USER_PLACEHOLDER {
        places.push(from..from + name.len());
    }
    if let Some(colon) = colon {
        places.push(from + colon + 1..from + end);
    }
}

/// Finds the values of secret parameters in a query that begins at `offset`.
pub(super) fn find_in_query(query: &str, offset: usize, places: &mut Places) {
    let mut from = offset;
    for pair in query.split_inclusive(['&', '#']) {
        let end = from + pair.trim_end_matches(['&', '#']).len();
        // The value may be a URL that has a query itself.
        let mut start = from;
        for part in pair.split_inclusive('?') {
            match part.split_once('=') {
                Some((name, _)) if is_secret_parameter(name) => {
                    places.push(start + name.len() + 1..end);
                    break;
                }
                _ => start += part.len(),
            }
        }
        from += pair.len();
    }
}
