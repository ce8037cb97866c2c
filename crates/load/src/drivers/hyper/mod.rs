//! All that is not plain HTTP/1.1: HTTP/1.1 over TLS, HTTP/2 over TLS or by prior knowledge.
//!
//! The [`Worker`] decides who sends what when, and counts, as it does for plain HTTP/1.1; only sending and receiving is
//! done by the `hyper` library here. Each load thread has a runtime of its own, and each exchange is a task on it. A
//! user has one connection and one request at a time, over HTTP/2 too. Templates render the same bytes as for the wire
//! of HTTP/1.1; the names of headers are sent in lower case.
//!
//! Not here: when requests are due, and what responses mean.

use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use narrows_model::load::{LoadPlan, Protocol};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{AbortHandle, LocalSet};

use super::Wire;
use super::worker::{Activity, Worker};
use crate::Error;
use crate::clock::Clock;
use crate::tls::Encryption;

mod dial;
mod events;
mod exchange;
mod failure;
mod meter;
mod translate;

use dial::{Dialer, Link};
use events::{Event, Events, Flight, Times, Waking};
use exchange::{Ended, Errand};

/// How often tasks are looked at after the load, so that connections that are open end in good order.
const FAREWELL_TURNS: usize = 64;

/// What can be made before the thread begins.
pub(crate) struct Prepared {
    runtime: Runtime,
    waking: Waking,
    protocol: Protocol,
    encryption: Option<Encryption>,
}

impl Prepared {
    /// # Errors
    /// When the kernel does not give what a runtime needs.
    pub(crate) fn new(protocol: Protocol, encryption: Option<Encryption>) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let waking = {
            let _within = runtime.enter();
            Waking::new()?
        };
        Ok(Self { runtime, waking, protocol, encryption })
    }
}

/// See the module.
pub(crate) struct Library {
    // Tasks go before the runtime that they need.
    tasks: LocalSet,
    waking: Waking,
    dialer: Rc<Dialer>,
    /// By slot, the exchange that is under way.
    under_way: Vec<Option<AbortHandle>>,
    runtime: Runtime,
}

impl Library {
    pub(crate) fn new(prepared: Prepared, clock: Clock) -> Self {
        let Prepared { runtime, waking, protocol, encryption } = prepared;
        let dialer = Dialer { protocol, encryption, clock, events: Rc::new(Events::default()) };
        Self { tasks: LocalSet::new(), waking, dialer: Rc::new(dialer), under_way: Vec::new(), runtime }
    }

    /// Lets tasks run until an exchange is over or it is time to wake up.
    fn wait(&mut self, wake_ns: i64, wait_ns: i64) {
        let Self { tasks, waking, dialer, runtime, .. } = self;
        // When time is short, or there is no timer to be had, tasks still get one turn.
        let mut turns = if wait_ns > 0 && waking.set(wake_ns, wait_ns).is_ok() { usize::MAX } else { 1 };
        let woken = std::future::poll_fn(|context| {
            if turns == 0 || dialer.events.poll(context).is_ready() {
                return Poll::Ready(());
            }
            if turns == 1 {
                turns = 0;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            waking.poll(context)
        });
        tasks.block_on(runtime, woken);
    }
}

/// Checks what HTTP/2 requires of a plan beyond HTTP/1.1.
///
/// # Errors
/// [`Error::Plan`] when the host of a request cannot be an `:authority`.
pub(crate) fn check(plan: &LoadPlan) -> Result<(), Error> {
    let is_host = |host: &str| host.parse::<http::uri::Authority>().is_ok();
    for scenario in &plan.scenarios {
        let mut steps = scenario.flows.iter().flat_map(|flow| &flow.steps);
        if let Some(step) = steps.find(|step| plan.protocol == Protocol::Http2 && !is_host(&step.request.host)) {
            let problem = format!("{:?}, expected a name or an address, and a port if any", step.request.host);
            return Err(Error::plan(format!("scenario {}: host", scenario.name), problem));
        }
    }
    Ok(())
}

impl Wire for Library {
    type Socket = Link;

    fn attempt(worker: &mut Worker<'_, Self>, slot: usize, _: i64) {
        let user = &mut worker.users[slot];
        user.generation = user.generation.wrapping_add(1);
        let wanted = worker.shared.flows.steps()[user.position.row].rules.wanted;
        let errand = Errand {
            flight: Flight { slot, generation: user.generation },
            dialer: worker.wire.dialer.clone(),
            connection: user.connection.take(),
            target: user.target,
            from: worker.shared.client_address(user.vu),
            request: Bytes::copy_from_slice(&user.request),
            capture: user.session.as_mut().map(|session| std::mem::take(session.capture.want(wanted))),
        };
        let task = worker.wire.tasks.spawn_local(errand.run());
        let under_way = &mut worker.wire.under_way;
        if under_way.len() <= slot {
            under_way.resize_with(slot + 1, || None);
        }
        under_way[slot] = Some(task.abort_handle());
    }

    fn give_up(&mut self, slot: usize) {
        if let Some(task) = self.under_way.get_mut(slot).and_then(Option::take) {
            task.abort();
        }
    }

    fn farewell(&mut self) {
        let mut turns = FAREWELL_TURNS;
        let waved = std::future::poll_fn(|context| {
            turns -= 1;
            context.waker().wake_by_ref();
            if turns == 0 { Poll::Ready(()) } else { Poll::Pending }
        });
        self.tasks.block_on(&self.runtime, waved);
    }

    fn wait(worker: &mut Worker<'_, Self>, wake_ns: i64, wait_ns: i64) {
        worker.wire.wait(wake_ns, wait_ns);
        while let Some((flight, event)) = worker.wire.dialer.events.pop() {
            let user = &worker.users[flight.slot];
            if user.is_busy() && user.generation == flight.generation {
                worker.take_note(flight.slot, event);
            }
        }
    }
}

impl Worker<'_, Library> {
    fn take_note(&mut self, slot: usize, event: Event) {
        let user = &mut self.users[slot];
        match event {
            Event::Connected(Times { opened_ns, connected_ns, secured_ns }) => {
                let phases = &mut self.recorder.totals.phases;
                phases.connect.add(opened_ns, connected_ns);
                if let Some(secured_ns) = secured_ns {
                    phases.tls.add(connected_ns, secured_ns);
                }
            }
            Event::Sent { at_ns, dialled_ns } => {
                // A redirected request, or one that is sent once more, counts once.
                if user.sent_ns == 0 {
                    user.sent_ns = at_ns;
                    // The runtime's own delay counts, what the server does to a new connection does not.
                    let lateness_ns = at_ns - user.intended_ns - dialled_ns;
                    self.recorder.sent(user.position.row, lateness_ns.max(0) as u64);
                }
            }
            Event::Retried => self.recorder.totals.reconnects += 1,
            Event::Ended(ended) => self.land(slot, *ended),
        }
    }

    /// Hands over what came of an exchange.
    fn land(&mut self, slot: usize, ended: Ended) {
        self.wire.under_way[slot] = None;
        let user = &mut self.users[slot];
        user.connection = ended.connection;
        if let (Some(session), Some(capture)) = (&mut user.session, ended.capture) {
            session.capture = capture;
        }
        user.activity = Activity::Receiving;
        match ended.result {
            Ok(whole) => {
                (user.writing_ns, user.written_ns) = (whole.writing_ns, whole.written_ns);
                user.first_byte_ns = whole.head_ns;
                user.received = whole.response.bytes;
                self.complete(slot, whole.response, whole.done_ns);
            }
            Err(broken) => {
                user.received = broken.bytes;
                self.fail(slot, broken.kind, broken.cause);
            }
        }
    }
}
