//! The waker that orchestrations are polled with, which must not be used.
//!
//! Everything an orchestration may await works without a waker. A future of another runtime keeps a clone of it, or
//! calls it: both show here, so that such an await is a failure with a name and never a hang.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

struct Bell {
    is_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_rung.store(true, Ordering::Relaxed);
    }
}

struct Sentry {
    bell: Arc<Bell>,
    waker: Waker,
}

impl Sentry {
    fn post() -> Rc<Self> {
        let bell = Arc::new(Bell { is_rung: AtomicBool::new(false) });
        Rc::new(Self { waker: Waker::from(Arc::clone(&bell)), bell })
    }
}

thread_local! {
    static ON_DUTY: RefCell<Rc<Sentry>> = RefCell::new(Sentry::post());
}

/// The result of a poll, and whether something in it asked to be woken.
pub(super) struct PollResult<T> {
    pub(super) value: T,
    pub(super) is_waker_used: bool,
}

/// Runs a poll with the waker of this thread.
pub(super) fn watch<T>(poll: impl FnOnce(&mut Context<'_>) -> T) -> PollResult<T> {
    let sentry = ON_DUTY.with(|on_duty| Rc::clone(&on_duty.borrow()));
    let before = Arc::strong_count(&sentry.bell);
    let value = poll(&mut Context::from_waker(&sentry.waker));
    let is_waker_used = Arc::strong_count(&sentry.bell) != before || sentry.bell.is_rung.load(Ordering::Relaxed);
    if is_waker_used {
        ON_DUTY.with(|on_duty| *on_duty.borrow_mut() = Sentry::post());
    }
    PollResult { value, is_waker_used }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_that_is_kept_or_called_shows_and_the_next_poll_is_clean() {
        let mut kept = None;
        assert!(!watch(|_| ()).is_waker_used);
        assert!(watch(|context| kept = Some(context.waker().clone())).is_waker_used);
        assert!(!watch(|_| ()).is_waker_used);
        assert!(watch(|context| context.waker().wake_by_ref()).is_waker_used);
        assert!(!watch(|_| kept.take()).is_waker_used);
    }
}
