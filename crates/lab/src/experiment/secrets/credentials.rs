//! The parts of a secret value that are secrets by themselves.

use std::ops::Range;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use narrows_telemetry::secrets::find_in_text;

use crate::experiment::placeholders::syntax::{self, RequestPiece, TrialPiece};

/// Words before a credential in a header.
const SCHEMES: [&str; 4] = ["apikey", "basic", "bearer", "token"];

/// Whether nothing of a text is written here: `${token}`, `Bearer {{token}}`.
pub(super) fn is_open(text: &str) -> bool {
    let Ok(pieces) = syntax::trial_pieces(text) else { return false };
    let written: String =
        pieces.iter().map(|piece| if let TrialPiece::Text(text) = piece { text.as_ref() } else { "" }).collect();
    let is_bound = pieces.iter().any(|piece| matches!(piece, TrialPiece::Name(_)));
    let (pieces, end) = syntax::request_pieces(&written);
    let is_drawn = pieces.iter().any(|piece| matches!(piece, RequestPiece::Field(..)));
    let written: String =
        pieces.iter().map(|piece| if let RequestPiece::Text(text) = piece { text.as_ref() } else { "" }).collect();
    let written = written.trim();
    let is_scheme = SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(written));
    end.is_ok() && (is_bound || is_drawn) && (is_scheme || !written.contains(char::is_alphanumeric))
}

/// A secret value, and the parts of it that are secrets by themselves: after a scheme, in Base64, in a cookie.
pub(super) fn credentials(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut all = vec![value.to_owned()];
    if let Some((scheme, rest)) = value.split_once(' ')
        && SCHEMES.iter().any(|one| one.eq_ignore_ascii_case(scheme))
    {
        // Some leave the padding out.
        all.push(rest.trim().trim_end_matches('=').to_owned());
        let decoded = BASE64_STANDARD.decode(rest.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        all.extend(decoded.as_deref().and_then(|text| text.split_once(':')).map(|(_, password)| password.to_owned()));
    }
    all.extend(value.split(';').filter_map(|cookie| Some(cookie.split_once('=')?.1.trim().to_owned())));
    all.extend(parts(value, &find_in_text(value)));
    // In a block, each line is printed by itself.
    all.extend(value.lines().map(|line| line.trim().to_owned()));
    all
}

/// The texts at these places. A user before a password is no secret where it stands alone.
pub(super) fn parts(text: &str, places: &[Range<usize>]) -> Vec<String> {
    let mut parts = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let is_user =
            text[place.end..].starts_with(':') && places.get(at + 1).is_some_and(|next| next.start == place.end + 1);
        match (is_user, places.get(at + 1)) {
            (true, Some(password)) => parts.push(text[place.start..password.end].to_owned()),
            _ => parts.extend(credentials_of_part(&text[place.clone()])),
        }
    }
    parts
}

fn credentials_of_part(part: &str) -> Vec<String> {
    match part.split_once(' ') {
        Some((_, rest)) => vec![part.to_owned(), rest.trim().to_owned()],
        None => vec![part.to_owned()],
    }
}
