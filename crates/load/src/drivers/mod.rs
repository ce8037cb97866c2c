//! Load threads: one [`Worker`] for all of them, and a [`Wire`] for each way to send and receive.
//!
//! Plain HTTP/1.1, which is most of what is sent and where the cost of a request shows, has a wire of its own over epoll.
//! TLS and HTTP/2 cost so much by themselves that a library adds little, and are too much to get right a second time.

mod alarm;
mod http1;
mod hyper;
mod socket;
pub(crate) mod worker;

use http1::Epoll;
use hyper::Library;
use narrows_model::load::{LoadPlan, Protocol};
use worker::{Shared, ThreadReport, Worker};

use crate::Error;
use crate::recorder::Recorder;
use crate::tls::Encryption;

/// How the users of a load thread send and receive. What they send when is the [`Worker`]'s.
pub(crate) trait Wire: Sized {
    /// What a connection is.
    type Socket;

    /// Sends a user's current request from its first byte, on a new connection if there is none. Sooner or later it is
    /// ended with [`Worker::complete`] or [`Worker::fail`].
    fn attempt(worker: &mut Worker<'_, Self>, slot: usize, now: i64);

    /// Lets connections end in good order that were closed just now. Nothing is sent after it.
    fn farewell(&mut self);

    /// Forgets what is under way for a user whose connection is closed.
    fn give_up(&mut self, slot: usize);

    /// Waits until something happens or it is `wake_ns`, which is `wait_ns` from now, and acts on it; 0 or less does not
    /// wait.
    fn wait(worker: &mut Worker<'_, Self>, wake_ns: i64, wait_ns: i64);
}

/// The driver of one load thread, made ready before the thread begins.
pub(crate) enum Driver {
    /// For plain HTTP/1.1.
    Epoll(Epoll),
    /// For all else.
    Library(Box<hyper::Prepared>),
}

impl Driver {
    /// The driver for the protocol of a plan.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel gives no descriptor for it, [`Error::Plan`] when a request cannot be said in its
    /// protocol.
    pub(crate) fn prepare(plan: &LoadPlan, encryption: Option<&Encryption>) -> Result<Self, Error> {
        match (plan.protocol, encryption) {
            (Protocol::Http1, None) => {
                Ok(Driver::Epoll(Epoll::new().map_err(|errno| Error::system("create an epoll descriptor", errno))?))
            }
            (protocol, encryption) => {
                hyper::check(plan)?;
                let prepared = hyper::Prepared::new(protocol, encryption.cloned());
                let prepared = prepared.map_err(|source| Error::system("start a runtime for a load thread", source))?;
                Ok(Driver::Library(Box::new(prepared)))
            }
        }
    }

    /// Runs a thread's part of the load to its end.
    pub(crate) fn run(self, shared: &Shared<'_>, thread: usize, recorder: Recorder<'_>) -> ThreadReport {
        match self {
            Driver::Epoll(epoll) => Worker::new(shared, thread, recorder, epoll).run(),
            Driver::Library(prepared) => {
                Worker::new(shared, thread, recorder, Library::new(*prepared, shared.clock)).run()
            }
        }
    }
}
