//! Which texts are secrets, and how they are redacted. Narrows has no such rules elsewhere.
//!
//! The name of a value decides, never its form: a pattern that guesses secrets would be wrong both ways. `keys` is the
//! table of names. `url`, `text`, `statement` and `arguments` find the values of such names, each in its kind of text,
//! in the text as written and decoded (`decoding`). They only return places; `blank` writes. `marks` decides for most
//! texts that they need no search. `known` finds values that an experiment's keys declare as secrets, wherever they
//! occur.
//!
//! Every search is linear in the length of the text: names and the text after a separator are examined up to a limited
//! number of bytes.

use std::ops::Range;

mod arguments;
mod attributes;
mod decoding;
mod dsn;
mod keys;
mod known;
mod marks;
mod markup;
mod programs;
mod separate_names;
mod statement;
mod text;
mod url;

pub(crate) use arguments::redact_argument_list;
pub use arguments::{Argument, find_in_arguments, is_program, redact_arguments};
pub(crate) use attributes::{TextKind, are_public};
pub(crate) use keys::is_count;
pub use keys::is_secret_key;
pub use known::KnownSecrets;
pub(crate) use separate_names::secret_field;
pub(crate) use statement::is_plain_statement;
pub(crate) use text::is_plain_text;

/// Mark in the place of a secret. The word of OpenTelemetry's conventions for `url.full`.
pub const REDACTED: &str = "REDACTED";

/// Where secrets stand in a text, in bytes, at character boundaries.
type Places = Vec<Range<usize>>;

/// Most searches of one text. It is searched again after something was blanked, because the shorter text can show a name
/// that a bracket or an address hid. A text that still changes then is blanked as a whole.
const PASSES_MAX: usize = 8;

/// Blanks the secrets of an address, or of a path with a query: its user part and the values of secret parameters, those
/// after a `#` included.
pub fn redact_url(url: &mut String) {
    blank_all(url, url::find_encoded);
}

/// Blanks the secrets of what follows the `?` of an address.
pub fn redact_query(query: &mut String) {
    blank_all(query, url::find_in_encoded_query);
}

/// Redacts only the secrets of URLs in a text.
pub fn redact_addresses(text: &mut String) {
    blank_all(text, url::find_in_text);
}

/// Blanks the secrets of free text, such as a message or lines of output.
pub fn redact_text(text: &mut String) {
    blank_all(text, text::find);
}

/// Where the secrets of free text stand, in order and apart from each other.
pub fn find_in_text(text: &str) -> Vec<Range<usize>> {
    let mut places = Places::new();
    text::find(text, &mut places);
    merged(places)
}

/// Blanks the passwords that a database statement sets or shows. What it compares or stores stays: whether that is a
/// secret its name does not say.
pub fn redact_statement(text: &mut String) {
    blank_all(text, statement::find);
}

/// Blanks what a search finds until it finds nothing more.
fn blank_all(text: &mut String, find: impl Fn(&str, &mut Places)) {
    for _ in 0..PASSES_MAX {
        let mut places = Places::new();
        find(text, &mut places);
        places.retain(|place| !place.is_empty() && &text[place.clone()] != REDACTED);
        if places.is_empty() {
            return;
        }
        blank(text, places);
    }
    REDACTED.clone_into(text);
}

/// Replaces what stands at these places.
fn blank(text: &mut String, places: Places) {
    if places.is_empty() {
        return;
    }
    let mut blanked = String::with_capacity(text.len());
    let mut from = 0;
    for place in merged(places) {
        blanked.push_str(&text[from..place.start]);
        blanked.push_str(REDACTED);
        from = place.end;
    }
    blanked.push_str(&text[from..]);
    *text = blanked;
}

/// The places in order, those that overlap made one, without empty ones.
fn merged(mut places: Places) -> Places {
    places.retain(|place| !place.is_empty());
    places.sort_by_key(|place| place.start);
    let mut merged: Places = Vec::with_capacity(places.len());
    for place in places {
        match merged.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => merged.push(place),
        }
    }
    merged
}

#[cfg(test)]
mod tests;
