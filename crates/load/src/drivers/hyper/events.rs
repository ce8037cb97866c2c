//! The queue of what tasks report to the load thread, in the order in which it happened, and how the thread waits for it.
//!
//! The queue is bounded by what it carries: a user has one exchange at a time, and an exchange reports a few events.
//! The clock of the runtime counts in milliseconds, so the time to wake up is kept by a timer of the kernel.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::exchange::ExchangeEnd;
use crate::drivers::alarm::Alarm;
use crate::drivers::transport::Event;

/// Which exchange something is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) slot: usize,
    /// Distinguishes the slot's exchanges.
    pub(super) generation: u32,
}

/// Report of a task.
pub(super) enum Report {
    /// The exchange goes on.
    On(Event),
    /// The exchange is over.
    Ended(Box<ExchangeEnd>),
}

/// See the module.
#[derive(Default)]
pub(super) struct Events {
    queue: RefCell<VecDeque<(Flight, Report)>>,
    /// Whether an exchange is over that nobody has looked at.
    has_ended: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl Events {
    pub(super) fn push(&self, flight: Flight, report: Report) {
        // All else can wait until the thread wakes up anyway.
        if matches!(report, Report::Ended(_)) {
            self.has_ended.set(true);
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
        self.queue.borrow_mut().push_back((flight, report));
    }

    /// The oldest report. All have to be taken before waiting for more.
    pub(super) fn pop(&self) -> Option<(Flight, Report)> {
        self.has_ended.set(false);
        self.queue.borrow_mut().pop_front()
    }

    /// Ready when an exchange is over.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        if self.has_ended.get() {
            return Poll::Ready(());
        }
        self.waker.set(Some(context.waker().clone()));
        Poll::Pending
    }
}

/// The time to wake up, for tasks to wait for.
pub(super) struct WakeTimer {
    alarm: AsyncFd<Alarm>,
}

impl WakeTimer {
    /// # Errors
    /// When the kernel gives no timer. Needs a runtime around it.
    pub(super) fn new() -> std::io::Result<Self> {
        // SAFETY: the alarm owns its descriptor and never replaces it.
        #[allow(unsafe_code)]
        let alarm = unsafe { AsyncFd::register(Alarm::new()?) }?;
        Ok(Self { alarm })
    }

    /// See [`Alarm::set`].
    pub(super) fn set(&mut self, at_ns: i64, wait_ns: i64) -> Result<(), Errno> {
        self.alarm.get_mut().set(at_ns, wait_ns)
    }

    /// Ready when it has rung since it was set.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(ready) = self.alarm.poll_read_ready(context) {
            // An alarm that cannot be waited for is looked at again with the next tick.
            let Ok(mut ready) = ready else { return Poll::Ready(()) };
            let rung = ready.try_io(|alarm| {
                let mut rings = [0; 8];
                Ok(rustix::io::read(alarm.get_ref(), &mut rings)?)
            });
            if rung.is_ok() {
                self.alarm.get_mut().has_rung();
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::transport::Failure;
    use crate::recorder::Cause;
    use narrows_model::load::ErrorKind;
    use tokio::runtime::{Builder, Runtime};

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_io().build().unwrap()
    }

    #[test]
    fn an_alarm_rings_once_whenever_it_is_set() {
        let runtime = runtime();
        let _within = runtime.enter();
        let mut waking = WakeTimer::new().unwrap();
        for at_ns in 1..4 {
            waking.set(at_ns, 1_000).unwrap();
            runtime.block_on(std::future::poll_fn(|context| waking.poll(context)));
            let mut context = Context::from_waker(Waker::noop());
            assert!(waking.poll(&mut context).is_pending(), "it has rung");
        }
    }

    #[test]
    fn an_alarm_that_is_put_off_does_not_ring_for_what_it_was_set_to_before() {
        let runtime = runtime();
        let _within = runtime.enter();
        let mut waking = WakeTimer::new().unwrap();
        waking.set(1, 1).unwrap();
        waking.set(2, i64::MAX / 4).unwrap();
        runtime.block_on(tokio::task::yield_now());
        assert!(waking.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }

    #[test]
    fn only_the_end_of_an_exchange_is_waited_for_and_all_comes_in_order() {
        let (events, context) = (Events::default(), Context::from_waker(Waker::noop()));
        let flight = Flight { slot: 3, generation: 1 };
        events.push(flight, Report::On(Event::Written { at_ns: 1 }));
        assert!(events.poll(&context).is_pending());
        let outcome = Err(Failure::new(ErrorKind::Reset, Cause::Text("")));
        events.push(flight, Report::Ended(Box::new(ExchangeEnd { outcome, link: None, capture: None })));
        assert!(events.poll(&context).is_ready());
        assert!(matches!(events.pop(), Some((taken, Report::On(Event::Written { at_ns: 1 }))) if taken == flight));
        assert!(matches!(events.pop(), Some((_, Report::Ended(_)))) && events.pop().is_none());
        assert!(events.poll(&context).is_pending());
    }
}
