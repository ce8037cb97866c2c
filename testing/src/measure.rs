//! Tests that measure: their assertions hold only while nothing else uses the processors.
//!
//! An assertion is never weakened on a busy machine. The test runs again, which is noted, and where every attempt met a
//! busy machine by the reading of [`OtherPrograms`], it is skipped, which is noted too. One attempt that fails on a quiet
//! machine is enough for it to fail in the end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::{OtherPrograms, notes};

/// How often a test that measures is run at most.
const ATTEMPTS_MAX: usize = 3;

/// Runs a test that measures, again while its assertions fail.
///
/// # Panics
///
/// With the last failed assertion, when no attempt of three passes and at least one of them ran on a machine that
/// other programs left alone.
pub fn measure(test: impl Fn()) {
    let watch = || {
        let others = OtherPrograms::watch();
        move || others.crowded()
    };
    attempts(&test, watch, |note| match note {
        Note::Retried(reason) => notes::retry(&reason),
        Note::Skipped(reason) => notes::skip(&reason),
    });
}

/// Outcome of a failed attempt.
enum Note {
    Retried(String),
    Skipped(String),
}

/// `watch` begins to watch the machine and returns what tells, after the attempt, why it was too busy.
fn attempts<Told: FnOnce() -> Option<String>>(test: &impl Fn(), watch: impl Fn() -> Told, note: impl Fn(Note)) {
    let mut was_quiet = false;
    for attempt in 1..=ATTEMPTS_MAX {
        let crowded = watch();
        let Err(failure) = catch_unwind(AssertUnwindSafe(test)) else { return };
        let crowded = crowded();
        was_quiet |= crowded.is_none();
        let machine = crowded.unwrap_or_else(|| "the machine was quiet".to_owned());
        if attempt < ATTEMPTS_MAX {
            note(Note::Retried(format!("attempt {attempt} failed, {machine}: {}", first_line(&*failure))));
        } else if was_quiet {
            resume_unwind(failure);
        } else {
            note(Note::Skipped(format!("{ATTEMPTS_MAX} attempts failed, {machine}")));
        }
    }
}

/// The first line of a panic's message.
fn first_line(failure: &(dyn Any + Send)) -> &str {
    let message = failure.downcast_ref::<String>().map(String::as_str).or_else(|| failure.downcast_ref().copied());
    message.and_then(|message| message.lines().next()).unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum End {
        Passed,
        Skipped,
        Failed,
    }

    /// Runs a test whose first `failures` attempts fail, on a machine that is crowded in these attempts; returns how
    /// often it ran again and how it ended.
    fn ran(failures: usize, crowded: [bool; ATTEMPTS_MAX]) -> (usize, End) {
        let runs = Cell::new(0);
        let test = || {
            runs.set(runs.get() + 1);
            assert!(runs.get() > failures, "attempt {}", runs.get());
        };
        let watch = || {
            let is_crowded = crowded[runs.get()];
            move || is_crowded.then(|| "others used it".to_owned())
        };
        let (retries, is_skipped) = (Cell::new(0), Cell::new(false));
        let note = |note| match note {
            Note::Retried(_) => retries.set(retries.get() + 1),
            Note::Skipped(_) => is_skipped.set(true),
        };
        let end = match catch_unwind(AssertUnwindSafe(|| attempts(&test, watch, note))) {
            Err(_) => End::Failed,
            Ok(()) if is_skipped.get() => End::Skipped,
            Ok(()) => End::Passed,
        };
        (retries.get(), end)
    }

    #[test]
    fn a_test_runs_until_it_passes() {
        assert_eq!(ran(0, [false; 3]), (0, End::Passed));
        assert_eq!(ran(2, [false; 3]), (2, End::Passed));
    }

    #[test]
    fn only_a_machine_that_was_busy_every_time_excuses_a_failure() {
        assert_eq!(ran(3, [true; 3]), (2, End::Skipped));
        assert_eq!(ran(3, [true, false, true]), (2, End::Failed));
        assert_eq!(ran(3, [false; 3]), (2, End::Failed));
    }

    #[test]
    fn a_failure_is_told_by_its_first_line() {
        let failure = catch_unwind(|| panic!("{} is wrong\nmore", 7)).unwrap_err();
        assert_eq!(first_line(&*failure), "7 is wrong");
        assert_eq!(first_line(&*catch_unwind(|| panic!("plain")).unwrap_err()), "plain");
    }
}
