//! The writer thread: takes what is queued, writes it in one transaction, then notifies all who wait.
//!
//! A job that finds its trial missing says so before it writes anything, and fails alone. When the database itself
//! fails (a full disk), the whole transaction is rolled back and every job in it gets the error: nothing is
//! acknowledged that was not committed. What the queue had to refuse is added to the counts of the same transaction;
//! there always is one more, since a queue is full only while a job waits in it.

use std::sync::Arc;

use super::error::{Error, Result};
use super::queue::{Job, Queue};
use super::rows::Rows;

/// Works until the queue is closed and empty, then gives the tables back.
pub(super) fn run(queue: &Arc<Queue>, mut rows: Rows) -> Rows {
    let _guard = AbandonOnPanic(queue.clone());
    while let Some(jobs) = queue.take_batch() {
        write(&mut rows, queue, jobs);
        rows.tidy();
    }
    rows
}

/// Wakes all who wait if the thread panics.
struct AbandonOnPanic(Arc<Queue>);

impl Drop for AbandonOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandon();
        }
    }
}

fn write(rows: &mut Rows, queue: &Queue, jobs: Vec<Job>) {
    let mut outcomes = Vec::with_capacity(jobs.len());
    let lost = queue.take_lost();
    let mut failure = rows.begin().and_then(|()| rows.count_lost(&lost)).err();
    for job in jobs {
        let outcome = match &failure {
            None => (job.apply)(rows),
            Some(error) => Err(error.clone()),
        };
        if failure.is_none() {
            failure = outcome.as_ref().err().filter(|error| is_of_database(error)).cloned();
        }
        outcomes.push((job.done, outcome));
    }
    let committed = match failure {
        Some(error) => Err(error),
        None => rows.commit(),
    };
    if let Err(error) = &committed {
        rows.roll_back();
        queue.note_failure(error);
        queue.put_back_lost(lost);
    }
    for (done, outcome) in outcomes {
        done(both(&committed, outcome));
    }
}

fn both<T>(committed: &Result<()>, outcome: Result<T>) -> Result<T> {
    committed.clone().and(outcome)
}

fn is_of_database(error: &Error) -> bool {
    !matches!(error, Error::UnknownTrial(_) | Error::NotFinite(_))
}
