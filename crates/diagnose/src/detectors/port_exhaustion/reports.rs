//! Error reports of exhausted local ports: `EADDRNOTAVAIL`.
//!
//! A server gets the same code if it binds to an address that the machine does not have. That fails once, at its start.

use narrows_model::trace::Span;

use crate::read::error_words::ErrorWords;

/// Types and texts of such errors. `others` are those of a server that cannot listen.
const WORDS: ErrorWords = ErrorWords {
    types: &["EADDRNOTAVAIL"],
    texts: &[
        ("cannot assign requested address", "cannot assign requested address"),
        ("can't assign requested address", "can't assign requested address"),
        ("address not available", "address not available"),
        ("eaddrnotavail", "EADDRNOTAVAIL"),
        ("errno 99", "errno 99"),
        ("os error 99", "errno 99"),
        ("oserror(99", "errno 99"),
        ("only one usage of each socket address", "only one usage of each socket address"),
    ],
    others: &["bind", "listen"],
};

/// The name of the exhaustion error that a span reports, and its text if it has one; `None` if the span reports nothing
/// or something else.
pub(super) fn reported(span: &Span) -> Option<(&'static str, Option<&str>)> {
    WORDS.reported(span)
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::client;

    use super::*;

    fn of_text(text: &str) -> Option<&'static str> {
        reported(&client("GET").failed_with(text).trace(1).spans[0]).map(|(name, _)| name)
    }

    #[test]
    fn exhausted_ports_have_many_words() {
        for text in [
            "dial tcp 10.0.0.7:80: connect: cannot assign requested address",
            "connect EADDRNOTAVAIL 10.0.0.7:80 - Local (10.0.0.5:0)",
            "[Errno 99] Cannot assign requested address",
            "Cannot assign requested address (os error 99)",
            "java.net.NoRouteToHostException: Cannot assign requested address",
            "Only one usage of each socket address (protocol/network address/port) is normally permitted.",
        ] {
            assert!(of_text(text).is_some(), "{text}");
        }
        let typed = client("GET").failed().attribute("exception.type", "EADDRNOTAVAIL");
        assert_eq!(reported(&typed.trace(1).spans[0]), Some(("EADDRNOTAVAIL", None)));
    }

    #[test]
    fn other_words_mean_none() {
        for text in [
            "listen tcp 10.9.9.9:80: bind: cannot assign requested address",
            "connection refused",
            "the delivery address is not available",
            "errno 990",
        ] {
            assert_eq!(of_text(text), None, "{text}");
        }
        let fine = client("GET").attribute("exception.message", "cannot assign requested address");
        assert_eq!(reported(&fine.trace(1).spans[0]), None, "it did not fail");
    }
}
