//! All that is not plain HTTP/1.1: HTTP/1.1 over TLS, HTTP/2 over TLS or by prior knowledge.
//!
//! The `hyper` library sends and receives here. Each load thread has a runtime of its own, and each exchange is a task
//! on it, which borrows the slot's connection and gives it back. A user has one connection and one request at a time,
//! over HTTP/2 too. Templates render the same bytes as for plain HTTP/1.1; the names of headers are sent in lower case.
//!
//! Not here: when requests are due, and what responses mean.

use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use narrows_model::load::{LoadPlan, Protocol};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{AbortHandle, LocalSet};

use super::transport::{Event, Exchanges, Order, Transport};
use crate::Error;
use crate::clock::Clock;
use crate::session::Capture;
use crate::tls::Encryption;

mod dial;
mod events;
mod exchange;
mod failure;
mod meter;
mod translate;

use dial::{Dialer, Link};
use events::{Events, Flight, Report, WakeTimer};
use exchange::{Errand, ExchangeEnd};

/// How often tasks are looked at after the load, so that connections that are open end in good order.
const FAREWELL_TURNS: usize = 64;

/// Parts that are made before the thread begins.
pub(crate) struct Setup {
    runtime: Runtime,
    waking: WakeTimer,
    protocol: Protocol,
    encryption: Option<Encryption>,
    clock: Clock,
}

impl Setup {
    /// # Errors
    /// When the kernel does not give what a runtime needs.
    pub(crate) fn new(protocol: Protocol, encryption: Option<Encryption>, clock: Clock) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let waking = {
            let _within = runtime.enter();
            WakeTimer::new()?
        };
        Ok(Self { runtime, waking, protocol, encryption, clock })
    }
}

/// See the module.
pub(crate) struct Library {
    // Tasks go before the runtime that they need.
    tasks: LocalSet,
    waking: WakeTimer,
    dialer: Rc<Dialer>,
    /// By slot.
    lines: Vec<Line>,
    runtime: Runtime,
}

/// A slot's connection and exchange.
#[derive(Default)]
struct Line {
    /// Distinguishes the slot's exchanges.
    generation: u32,
    /// The connection while no exchange has it.
    link: Option<Link>,
    under_way: Option<AbortHandle>,
}

impl Library {
    pub(crate) fn new(prepared: Setup) -> Self {
        let Setup { runtime, waking, protocol, encryption, clock } = prepared;
        let dialer = Dialer { protocol, encryption, clock, events: Rc::new(Events::default()) };
        Self { tasks: LocalSet::new(), waking, dialer: Rc::new(dialer), lines: Vec::new(), runtime }
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

impl Transport for Library {
    fn send(&mut self, slot: usize, order: Order, exchanges: &mut impl Exchanges) {
        if self.lines.len() <= slot {
            self.lines.resize_with(slot + 1, Line::default);
        }
        let line = &mut self.lines[slot];
        line.generation = line.generation.wrapping_add(1);
        let errand = Errand {
            flight: Flight { slot, generation: line.generation },
            dialer: self.dialer.clone(),
            link: line.link.take(),
            order,
            request: Bytes::copy_from_slice(exchanges.request(slot)),
            capture: exchanges.capture(slot).map(std::mem::take),
        };
        line.under_way = Some(self.tasks.spawn_local(errand.run()).abort_handle());
    }

    fn close(&mut self, slot: usize) {
        let Some(line) = self.lines.get_mut(slot) else { return };
        line.link = None;
        if let Some(task) = line.under_way.take() {
            task.abort();
        }
    }

    fn has_dialled(&self, slot: usize) -> bool {
        self.lines.get(slot).is_some_and(|line| line.generation > 0)
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

    fn next(&mut self, exchanges: &mut impl Exchanges) -> Option<(usize, Event)> {
        while let Some((flight, report)) = self.dialer.events.pop() {
            // An exchange that was abandoned may have reported before its task ended.
            let line = &mut self.lines[flight.slot];
            if line.under_way.is_none() || line.generation != flight.generation {
                continue;
            }
            let event = match report {
                Report::On(event) => event,
                Report::Ended(ended) => line.land(*ended, exchanges.capture(flight.slot)),
            };
            return Some((flight.slot, event));
        }
        None
    }

    fn farewell(&mut self) {
        self.lines.iter_mut().for_each(|line| line.link = None);
        let mut turns = FAREWELL_TURNS;
        let waved = std::future::poll_fn(|context| {
            turns -= 1;
            context.waker().wake_by_ref();
            if turns == 0 { Poll::Ready(()) } else { Poll::Pending }
        });
        self.tasks.block_on(&self.runtime, waved);
    }
}

impl Line {
    /// Takes back what an exchange borrowed, and returns what came of it.
    fn land(&mut self, ended: ExchangeEnd, capture: Option<&mut Capture>) -> Event {
        self.under_way = None;
        self.link = ended.link;
        if let (Some(place), Some(capture)) = (capture, ended.capture) {
            *place = capture;
        }
        ended.outcome.unwrap_or_else(Event::Failed)
    }
}
