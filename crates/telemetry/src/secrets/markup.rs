//! Secrets between tags and in multipart forms: their name is on another line, or they end unlike any other value.

use std::ops::Range;

use super::Places;
use super::keys::is_secret_key;
use super::separate_names::{Role, role};

/// The longest tag with its attributes, and the longest header of a form part, in bytes.
const TAG_BYTES_MAX: usize = 1 << 10;
const HEADER_BYTES_MAX: usize = 1 << 10;
/// Beginning of the header of a form part.
const FORM: &str = "form-data";

/// Finds the secrets between tags and in forms.
pub(super) fn find(text: &str, places: &mut Places) {
    if text.contains("</") {
        find_in_elements(text, places);
    }
    if text.contains(FORM) {
        find_in_form(text, places);
    }
}

/// `<password>X</password>`, `<entry key="password">X</entry>` and `<key>password</key><string>X</string>`.
fn find_in_elements(text: &str, places: &mut Places) {
    let (mut from, mut end, mut is_named) = (0, 0, false);
    while let Some(tag) = next_tag(text, from) {
        from = tag.content;
        if end < tag.content {
            let Some(length) = text[tag.content..].find("</") else { return };
            end = tag.content + length;
        }
        let content = tag.content..end;
        if is_named || is_secret_key(tag.name) || tag.is_named_secret() {
            from = content.end;
            places.push(content_of(text, content));
            is_named = false;
            continue;
        }
        is_named =
            role(tag.name) == Some(Role::Name) && content.len() <= TAG_BYTES_MAX && is_secret_key(text[content].trim());
    }
}

/// The content without surrounding white space, and without a `CDATA` section around it.
fn content_of(text: &str, content: Range<usize>) -> Range<usize> {
    let inner = text[content.clone()].trim();
    let inner = inner.strip_prefix("<![CDATA[").map_or(inner, |inner| inner.strip_suffix("]]>").unwrap_or(inner));
    // Both are slices of the same text.
    let start = content.start + (inner.as_ptr() as usize - text[content].as_ptr() as usize);
    start..start + inner.len()
}

struct Tag<'a> {
    /// The name, without namespace.
    name: &'a str,
    attributes: &'a str,
    /// Start of its content.
    content: usize,
}

/// The next opening tag.
fn next_tag(text: &str, from: usize) -> Option<Tag<'_>> {
    let mut at = from;
    loop {
        at += text[at..].find('<')? + 1;
        let bytes = &text.as_bytes()[at..];
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
        let length = bytes.iter().take(TAG_BYTES_MAX).take_while(|byte| is_name(byte)).count();
        let end = bytes.iter().take(TAG_BYTES_MAX).position(|byte| matches!(byte, b'>' | b'<'));
        match end {
            Some(end) if length > 0 && bytes[end] == b'>' && bytes[end - 1] != b'/' => {
                let name = &text[at..at + length];
                let name = name.rsplit(':').next().unwrap_or(name);
                return Some(Tag { name, attributes: &text[at + length..at + end], content: at + end + 1 });
            }
            Some(end) => at += end,
            None => {}
        }
    }
}

impl Tag<'_> {
    /// Whether one of its attributes is a secret name.
    fn is_named_secret(&self) -> bool {
        self.attributes.split_ascii_whitespace().any(|attribute| {
            let Some((key, value)) = attribute.split_once('=') else { return false };
            role(key) == Some(Role::Name) && is_secret_key(value.trim_matches(['"', '\'']))
        })
    }
}

/// `Content-Disposition: form-data; name="password"`, an empty line, and the value up to the boundary.
fn find_in_form(text: &str, places: &mut Places) {
    let mut from = 0;
    while let Some(at) = text[from..].find(FORM) {
        let start = from + at + FORM.len();
        from = start;
        let header_end = (start..=text.len().min(start + HEADER_BYTES_MAX)).rev().find(|at| text.is_char_boundary(*at));
        let header = &text[start..header_end.unwrap_or(start)];
        let Some((length, blank)) = ["\r\n\r\n", "\n\n"].iter().find_map(|blank| Some((header.find(blank)?, blank)))
        else {
            continue;
        };
        let value = start + length + blank.len();
        if name_of_part(&header[..length]).is_some_and(is_secret_key) {
            let end = text[value..].find("\n--").map_or(text.len(), |length| value + length);
            places.push(value..value + text[value..end].trim_end_matches('\r').len());
            from = end;
        }
    }
}

fn name_of_part(header: &str) -> Option<&str> {
    let parameters = header.split([';', '\r', '\n']).map(str::trim);
    parameters.filter_map(|parameter| parameter.strip_prefix("name=")).map(|name| name.trim_matches(['"', '\\'])).next()
}
