//! Finds secrets in the arguments of a command: after a secret flag, in a short option of a known program, and in texts
//! such as `--password=X`.

use std::ops::Range;

use serde_json::Value;

use super::keys::is_secret_key;
use super::programs::{self, OptionValue, Program};
use super::{REDACTED, blank, find_in_text};

/// Flags that mean a password to many programs and something else to others, so their value is blanked where it stands
/// and is not taken for a secret elsewhere.
const PASSWORD_FLAGS: [&str; 3] = ["-p", "--key", "--pass"];
/// Flags before `user:password`.
const USER_FLAGS: [&str; 5] = ["-a", "-u", "--auth", "--proxy-user", "--user"];

/// Secret part of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// All of it: it follows a secret flag.
    Secret,
    /// The parts at these places, in bytes, if there are any.
    Parts(Vec<Range<usize>>),
    /// The part at this place, by a flag that may mean something else.
    Perhaps(Range<usize>),
}

/// Whether an argument is the name of a program whose short options hold passwords.
pub fn is_program(argument: &str) -> bool {
    programs::named(argument).is_some()
}

/// Secret part of each argument of a command.
pub fn find_in_arguments<T: AsRef<str>>(arguments: &[T]) -> Vec<Argument> {
    let (mut before, mut program) = ("", None);
    let mut found = Vec::with_capacity(arguments.len());
    for text in arguments.iter().map(AsRef::as_ref) {
        found.push(argument(program, before, text));
        program = programs::named(text).or(program);
        before = text;
    }
    found
}

fn argument(program: Option<&Program>, flag: &str, text: &str) -> Argument {
    if is_secret_flag(flag) && !text.starts_with('-') {
        return Argument::Secret;
    }
    if let Some(places) = program.and_then(|program| by_program(program, flag, text)) {
        return Argument::Parts(places);
    }
    let places = find_in_text(text);
    if !places.is_empty() {
        return Argument::Parts(places);
    }
    if PASSWORD_FLAGS.contains(&flag) && !is_address_or_path(text) {
        return Argument::Perhaps(0..text.len());
    }
    if let Some((flag, value)) = text.split_once('=')
        && PASSWORD_FLAGS.contains(&flag)
    {
        return Argument::Perhaps(text.len() - value.len()..text.len());
    }
    match password_of_user(text, 0) {
        Some(password) if USER_FLAGS.contains(&flag) && !text[password.clone()].starts_with('/') => {
            Argument::Perhaps(password)
        }
        _ => Argument::Parts(places),
    }
}

/// The password that a program's option holds in the same argument or, after `flag`, in the next.
fn by_program(program: &Program, flag: &str, text: &str) -> Option<Vec<Range<usize>>> {
    let held = program
        .held(flag)
        .filter(|held| matches!(held, OptionValue::Password(at) | OptionValue::User(at) if *at == flag.len()));
    let place = match (held, program.held(text)) {
        (Some(OptionValue::Password(_)), _) => 0..text.len(),
        (Some(OptionValue::User(_)), _) => password_of_user(text, 0)?,
        (None, Some(OptionValue::Password(at))) if at < text.len() => at..text.len(),
        (None, Some(OptionValue::User(at))) if at < text.len() => password_of_user(text, at)?,
        _ => return None,
    };
    Some(vec![place])
}

/// The password of `user:password`, which begins at `from`. Two numbers are a user id and a group id.
pub(super) fn password_of_user(text: &str, from: usize) -> Option<Range<usize>> {
    let (user, password) = text[from..].split_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (!is_number(user) || !is_number(password)).then(|| from + user.len() + 1..text.len())
}

/// Whether a value is a port, a port mapping (`127.0.0.1:80:8080/tcp`) or a path.
fn is_address_or_path(text: &str) -> bool {
    let ports = ["/tcp", "/udp"].iter().find_map(|protocol| text.strip_suffix(protocol)).unwrap_or(text);
    text.starts_with(['/', '.'])
        || ports.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-'))
}

/// Whether an argument says that the next one is a secret: `--db-password`, `-token`.
fn is_secret_flag(flag: &str) -> bool {
    flag.strip_prefix('-')
        .is_some_and(|name| !name.contains([' ', '=', ':']) && is_secret_key(name.trim_start_matches('-')))
}

/// Blanks the secrets in the arguments of a command.
pub fn redact_arguments(arguments: &mut [String]) {
    let found = find_in_arguments(arguments);
    arguments.iter_mut().zip(found).for_each(|(text, found)| redact_argument(text, found));
}

/// Redacts the secrets in a JSON list that may be the arguments of a command: one that contains flags.
pub(crate) fn redact_argument_list(items: &mut [Value]) {
    if !items.iter().any(|item| item.as_str().is_some_and(|text| text.starts_with('-'))) {
        return;
    }
    let texts: Vec<&str> = items.iter().map(|item| item.as_str().unwrap_or_default()).collect();
    let found = find_in_arguments(&texts);
    for (item, found) in items.iter_mut().zip(found) {
        if let Value::String(text) = item {
            redact_argument(text, found);
        }
    }
}

fn redact_argument(text: &mut String, found: Argument) {
    match found {
        Argument::Secret => *text = REDACTED.to_owned(),
        Argument::Parts(places) => blank(text, places),
        Argument::Perhaps(place) => blank(text, vec![place]),
    }
}
