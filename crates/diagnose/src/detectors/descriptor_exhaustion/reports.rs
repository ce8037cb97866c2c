//! Error reports of exhausted descriptors: `EMFILE` for the process, `ENFILE` for the machine.
//!
//! Linux also reports `EMFILE` if no inotify instance is left. That is another limit.

use narrows_model::trace::Span;

use crate::read::error_words::ErrorWords;

/// Types and texts of such errors. `others` are other uses of the same codes.
const WORDS: ErrorWords = ErrorWords {
    types: &["EMFILE", "ENFILE"],
    texts: &[
        ("too many open files", "too many open files"),
        ("no file descriptors available", "no file descriptors available"),
        ("emfile", "EMFILE"),
        ("enfile", "ENFILE"),
        ("errno 24", "errno 24"),
        ("errno: 24", "errno 24"),
        ("errcode: 24", "errno 24"),
        ("os error 24", "errno 24"),
        ("oserror(24", "errno 24"),
        ("os error 23", "errno 23"),
    ],
    others: &["inotify", "file watchers", "watch"],
};

/// The name of the exhaustion error that a span reports, and its text if it has one; `None` if the span reports nothing
/// or something else.
pub(super) fn reported(span: &Span) -> Option<(&'static str, Option<&str>)> {
    WORDS.reported(span)
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{client, internal};

    use super::*;

    fn of_text(text: &str) -> Option<&'static str> {
        reported(&internal("accept").failed_with(text).trace(1).spans[0]).map(|(name, _)| name)
    }

    #[test]
    fn exhausted_descriptors_have_many_words() {
        for text in [
            "dial tcp 10.0.0.7:5432: socket: too many open files",
            "[Errno 24] Too many open files: '/srv/7'",
            "EMFILE: too many open files, open '/srv/templates/7.html'",
            "Too many open files (os error 24)",
            "java.net.SocketException: Too many open files",
            "open /etc/hosts: too many open files in system",
            "No file descriptors available (os error 24)",
            "connect EMFILE 10.0.0.7:443 - Local (undefined:undefined)",
        ] {
            assert!(of_text(text).is_some(), "{text}");
        }
        let typed = client("call").failed().attribute("exception.type", "EMFILE");
        assert_eq!(reported(&typed.trace(1).spans[0]), Some(("EMFILE", None)));
    }

    #[test]
    fn other_words_mean_none() {
        for text in [
            "too many open orders",
            "EMFILE: too many open files, watch '/src'",
            "inotify_init: Too many open files",
            "GET /errors/EMFILE failed",
            "duplicate entry 'too many open files' for key 'text'",
            "errno 240",
        ] {
            assert_eq!(of_text(text), None, "{text}");
        }
        let fine = internal("accept").attribute("exception.message", "too many open files");
        assert_eq!(reported(&fine.trace(1).spans[0]), None, "it did not fail");
    }
}
