//! Load threads: one [`Worker`] for all of them, and a [`transport::Transport`] for each way to send and receive.
//!
//! Plain HTTP/1.1, which is most of what is sent and where the cost of a request shows, has a transport of its own over
//! epoll. TLS and HTTP/2 cost so much by themselves that a library adds little, and are too much to get right a second
//! time.

mod alarm;
#[cfg(test)]
mod contract;
mod http1;
mod hyper;
mod socket;
mod transport;
pub(crate) mod worker;

use http1::Epoll;
use hyper::Library;
use narrows_model::load::{LoadPlan, Protocol};
use worker::{LoadContext, ThreadReport, Worker};

use crate::Error;
use crate::clock::Clock;
use crate::recorder::Recorder;
use crate::tls::Encryption;

/// The driver of one load thread, made ready before the thread begins.
pub(crate) enum Driver {
    /// For plain HTTP/1.1.
    Epoll(Epoll),
    /// For all else.
    Library(Box<hyper::Setup>),
}

impl Driver {
    /// The driver for the protocol of a plan.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel gives no descriptor for it, [`Error::Plan`] when a request cannot be said in its
    /// protocol.
    pub(crate) fn prepare(plan: &LoadPlan, encryption: Option<&Encryption>, clock: Clock) -> Result<Self, Error> {
        match (plan.protocol, encryption) {
            (Protocol::Http1, None) => {
                let epoll = Epoll::new(clock);
                Ok(Driver::Epoll(epoll.map_err(|errno| Error::system("create an epoll descriptor", errno))?))
            }
            (protocol, encryption) => {
                hyper::check(plan)?;
                let prepared = hyper::Setup::new(protocol, encryption.cloned(), clock);
                let prepared = prepared.map_err(|source| Error::system("start a runtime for a load thread", source))?;
                Ok(Driver::Library(Box::new(prepared)))
            }
        }
    }

    /// Runs a thread's part of the load to its end.
    pub(crate) fn run(self, shared: &LoadContext<'_>, thread: usize, recorder: Recorder<'_>) -> ThreadReport {
        match self {
            Driver::Epoll(epoll) => Worker::new(shared, thread, recorder, epoll).run(),
            Driver::Library(prepared) => Worker::new(shared, thread, recorder, Library::new(*prepared)).run(),
        }
    }
}
