//! Which agents to use, from a text such as `3`, `zone=a` or `3,zone=a,disk=ssd`.

use std::collections::BTreeMap;
use std::fmt;

/// A text may name so many labels, and an agent may have so many.
pub(crate) const LABELS_MAX: usize = 16;
/// Agents of one load at most.
pub(crate) const AGENTS_MAX: usize = 256;
/// The longest name and label, in bytes.
pub(crate) const WORD_BYTES_MAX: usize = 63;

/// Choice of agents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    /// How many are needed, and used; `None` for all that are there.
    pub count: Option<usize>,
    /// Labels that each must have.
    pub labels: BTreeMap<String, String>,
}

impl Selector {
    /// Reads a text: at most one number and any labels, separated by commas.
    ///
    /// # Errors
    /// Its fault, and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut selector = Self::default();
        for word in text.split(',') {
            if let Ok(count) = word.parse::<usize>() {
                if !(1..=AGENTS_MAX).contains(&count) {
                    return Err(format!("{count} agents, expected 1 to {AGENTS_MAX}"));
                }
                if selector.count.replace(count).is_some() {
                    return Err(format!("`{text}` has two numbers of agents, expected one"));
                }
                continue;
            }
            let (key, value) = label(word)?;
            if selector.labels.insert(key, value).is_some() {
                return Err(format!("`{text}` has a label twice, expected each once"));
            }
        }
        Ok(selector)
    }

    /// Whether an agent has its labels.
    pub(crate) fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// The text it is read from, for people: `3 agents with zone=a`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            None => write!(f, "agents")?,
            Some(1) => write!(f, "1 agent")?,
            Some(count) => write!(f, "{count} agents")?,
        }
        for (at, (key, value)) in self.labels.iter().enumerate() {
            write!(f, "{}{key}={value}", if at == 0 { " with " } else { "," })?;
        }
        Ok(())
    }
}

/// A label, from `KEY=VALUE`.
///
/// # Errors
/// Its fault, and what was expected.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if is_word(key) && is_word(value) => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!(
            "`{}` is no label, expected KEY=VALUE, each 1 to {WORD_BYTES_MAX} characters of A-Z a-z 0-9 - _ . /",
            text.chars().take(WORD_BYTES_MAX).collect::<String>()
        )),
    }
}

fn is_word(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    (1..=WORD_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_known)
}

/// Whether this can name an agent: it becomes a part of subjects.
pub(crate) fn is_name(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=WORD_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_labels_choose_agents() {
        let selector = Selector::parse("3,zone=a").unwrap();
        assert_eq!((selector.count, selector.to_string().as_str()), (Some(3), "3 agents with zone=a"));
        let labels = |text: &str| Selector::parse(text).unwrap().labels;
        assert!(selector.fits(&labels("zone=a,disk=ssd")) && !selector.fits(&labels("zone=b")));
        assert_eq!(Selector::parse("1").unwrap().to_string(), "1 agent");
        assert!(Selector::parse("zone=a").unwrap().count.is_none());
    }

    #[test]
    fn what_chooses_nothing_is_refused() {
        for (text, said) in [
            ("0", "0 agents, expected 1 to 256"),
            ("257", "257 agents, expected 1 to 256"),
            ("2,3", "`2,3` has two numbers of agents, expected one"),
            ("a=1,a=2", "`a=1,a=2` has a label twice, expected each once"),
            ("", "`` is no label, expected KEY=VALUE, each 1 to 63 characters of A-Z a-z 0-9 - _ . /"),
            ("a", "`a` is no label, expected KEY=VALUE, each 1 to 63 characters of A-Z a-z 0-9 - _ . /"),
        ] {
            assert_eq!(Selector::parse(text).unwrap_err(), said);
        }
    }
}
