//! A change as it is written: `NAME=TARGET,AMOUNT`.

use std::fmt;

use narrows_model::prediction::{Change, ChangeKind};

use crate::changes::{Target, method};

/// A text that is no change: a clause without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// No change has this name.
    Name(String),
    /// It needs a target.
    Target(ChangeKind),
    /// Its amount is not a number above 0.
    Amount(ChangeKind, String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Name(name) => write!(f, "no change is called `{name}`"),
            Unreadable::Target(kind) => write!(f, "`{}` does not say what is changed", kind.name()),
            Unreadable::Amount(kind, text) => {
                let expected = match method(*kind).amount_max() {
                    Some(max) => format!("a share above 0 and up to {max}"),
                    None => "a number above 0".to_owned(),
                };
                write!(f, "`{}` has the amount `{text}`, expected {expected}", kind.name())
            }
        }
    }
}

impl Unreadable {
    /// Accepted alternatives.
    pub fn hint(&self) -> String {
        match self {
            Unreadable::Name(_) => {
                let names: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
                format!("there are {}", names.join(", "))
            }
            Unreadable::Target(kind) | Unreadable::Amount(kind, _) => {
                format!("write `{}={}`", kind.name(), crate::usage(*kind))
            }
        }
    }
}

impl std::error::Error for Unreadable {}

/// Reads a change.
///
/// # Errors
/// When its name is unknown, or it has no target or no amount where it needs one.
pub fn read_change(text: &str) -> Result<Change, Unreadable> {
    let (name, rest) = text.split_once('=').unwrap_or((text, ""));
    let kind = ChangeKind::ALL.iter().copied().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| Unreadable::Name(name.to_owned()))?;
    let (wanted, max) = (method(kind).target(), method(kind).amount_max());
    let number = |text: &str| match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 && max.is_none_or(|max| number <= max) => Ok(Some(number)),
        _ => Err(Unreadable::Amount(kind, text.to_owned())),
    };
    if wanted == Target::Load {
        return Ok(Change { kind, target: String::new(), amount: number(rest)? });
    }
    // A target may hold a comma itself: what follows the last one is an amount only if it is a number.
    let (target, amount) = match rest.rsplit_once(',') {
        Some((target, amount)) if amount.parse::<f64>().is_ok() => (target, number(amount)?),
        _ => (rest, None),
    };
    if target.is_empty() && wanted == Target::One {
        return Err(Unreadable::Target(kind));
    }
    Ok(Change { kind, target: target.to_owned(), amount })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_as_it_is_written() {
        for text in ["parallelize=GET /a,b", "speed-up=shop,2.5", "more-load=80", "raise-rate", "add-cpu=db"] {
            assert_eq!(read_change(text).expect("a change").to_string(), text);
        }
        let change = read_change("speed-up=shop,4").expect("a change");
        assert_eq!((change.target.as_str(), change.amount), ("shop", Some(4.0)));
    }

    #[test]
    fn what_is_no_change_is_refused() {
        assert_eq!(read_change("paralelize=x"), Err(Unreadable::Name("paralelize".into())));
        assert_eq!(read_change("speed-up"), Err(Unreadable::Target(ChangeKind::SpeedUp)));
        for text in
            ["speed-up=shop,0", "speed-up=shop,-2", "speed-up=shop,inf", "more-load=", "more-load=many", "cache=db,1.2"]
        {
            assert!(matches!(read_change(text), Err(Unreadable::Amount(..))), "{text}");
        }
    }
}
