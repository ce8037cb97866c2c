//! Events of a run while it lasts. The lab says what happens; how it looks is the teller's business.

use std::path::Path;
use std::time::Duration;

use narrows_model::caveat::TrialCaveat;
use narrows_model::load::LoadSecond;
use narrows_model::run::Trial;

/// Something happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The run file is there and trials will follow.
    RunStarted {
        /// The run file.
        path: &'a Path,
        /// Trials still to do.
        trials: usize,
        /// Trials that an earlier, interrupted run did.
        already_done: usize,
        /// The parameters in which its trials differ.
        varied: &'a [String],
    },
    /// A trial begins.
    TrialStarted {
        /// The trial.
        trial: &'a Trial,
        /// Its place among those to do, from 1.
        position: usize,
        /// How many there are.
        of: usize,
    },
    /// A setup command begins; these may take minutes.
    SettingUp {
        /// The service.
        service: &'a str,
        /// The command.
        command: &'a str,
    },
    /// A replica was started and is being waited for.
    Starting {
        /// The service.
        service: &'a str,
        /// The replica, from 0.
        replica: u32,
    },
    /// A replica that somebody else has started is being waited for.
    Awaiting {
        /// The service.
        service: &'a str,
        /// Where it is, `HOST:PORT`.
        place: &'a str,
    },
    /// All replicas are ready; the load begins.
    LoadStarted {
        /// How long it will last, if its end is not the last request.
        duration: Option<Duration>,
    },
    /// A second of load is over.
    Second {
        /// Since the load began.
        elapsed: Duration,
        /// How long it will last, if its end is not the last request.
        duration: Option<Duration>,
        /// The second, once per scenario.
        rows: &'a [LoadSecond],
    },
    /// A probe of a search for the capacity is over: what became of it.
    Probed(&'a str),
    /// Some pairs of trials of a comparison are over: what they show.
    Looked(&'a str),
    /// The load is over; services are being stopped.
    Stopping,
    /// A trial is over.
    TrialEnded {
        /// The trial as it ended.
        trial: &'a Trial,
    },
    /// Something the user should know that is not about the run itself.
    Note(&'a str),
    /// Something a person should know and that is also kept as a caveat.
    Caveat(&'a TrialCaveat),
}

/// Someone who is told.
pub trait Progress {
    /// Is called on the thread of the run; must return soon.
    fn tell(&mut self, event: &Event<'_>);

    /// Keeps a caveat with its trial and tells it.
    fn note(&mut self, trial: &mut Trial, caveat: TrialCaveat) {
        self.tell(&Event::Caveat(&caveat));
        trial.caveats.push(caveat);
    }
}
