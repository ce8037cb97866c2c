//! Where the arguments of a command hold secrets: after a secret flag, and in texts such as `--password=X`.

use std::ops::Range;

use super::keys::is_secret_key;
use super::{REDACTED, blank, find_in_text};

/// Flags that mean a password to many programs and something else to others, so their value is blanked where it stands
/// and is not taken for a secret elsewhere.
const PASSWORD_FLAGS: [&str; 3] = ["-p", "--key", "--pass"];
/// Flags before `user:password`.
const USER_FLAGS: [&str; 5] = ["-a", "-u", "--auth", "--proxy-user", "--user"];

/// What of an argument is a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// All of it: it follows a secret flag.
    Secret,
    /// What stands at these places, in bytes, if at any.
    Parts(Vec<Range<usize>>),
    /// What stands here, by a flag that may mean something else.
    Perhaps(Range<usize>),
}

/// What of each argument of a command is a secret.
pub fn find_in_arguments<T: AsRef<str>>(arguments: &[T]) -> Vec<Argument> {
    let before = |at: usize| at.checked_sub(1).map_or("", |before| arguments[before].as_ref());
    arguments.iter().enumerate().map(|(at, text)| argument(before(at), text.as_ref())).collect()
}

fn argument(flag: &str, text: &str) -> Argument {
    if is_secret_flag(flag) && !text.starts_with('-') {
        return Argument::Secret;
    }
    let places = find_in_text(text);
    if !places.is_empty() {
        return Argument::Parts(places);
    }
    if PASSWORD_FLAGS.contains(&flag) && !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Argument::Perhaps(0..text.len());
    }
    if let Some((flag, value)) = text.split_once('=')
        && PASSWORD_FLAGS.contains(&flag)
    {
        return Argument::Perhaps(text.len() - value.len()..text.len());
    }
    match text.split_once(':') {
        Some((user, password)) if USER_FLAGS.contains(&flag) && !password.starts_with('/') => {
            Argument::Perhaps(user.len() + 1..text.len())
        }
        _ => Argument::Parts(places),
    }
}

/// Whether an argument says that the next one is a secret: `--db-password`, `-token`.
fn is_secret_flag(flag: &str) -> bool {
    flag.strip_prefix('-')
        .is_some_and(|name| !name.contains([' ', '=', ':']) && is_secret_key(name.trim_start_matches('-')))
}

/// Blanks the secrets in the arguments of a command.
pub fn redact_arguments(arguments: &mut [String]) {
    let found = find_in_arguments(arguments);
    for (text, found) in arguments.iter_mut().zip(found) {
        match found {
            Argument::Secret => *text = REDACTED.to_owned(),
            Argument::Parts(places) => blank(text, places),
            Argument::Perhaps(place) => blank(text, vec![place]),
        }
    }
}
