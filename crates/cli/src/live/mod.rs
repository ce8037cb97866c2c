//! Progress of a run: on a terminal a small view that renews itself, else a plain line now and then.
//!
//! All of it goes to standard error, so that standard output stays data.

mod screen;
mod spark;
mod view;

use std::time::{Duration, Instant};

use narrows_diagnose::words::trial_caveat;
use narrows_lab::progress::{Event, Progress};
use narrows_model::load::LoadSecond;
use narrows_model::run::{Trial, TrialState};
use narrows_model::units;

pub(crate) use screen::{Screen, terminal_size};
pub(crate) use view::{Until, View};

/// Reports a run on standard error.
#[derive(Debug)]
pub(crate) struct Live {
    screen: Screen,
    /// The parameters that distinguish the trials.
    varied: Vec<String>,
    since: Instant,
    view: View,
    /// Requests of the trial's loads before this one, and how many of them failed.
    before: (u64, u64),
}

impl Live {
    pub(crate) fn new() -> Self {
        Self {
            screen: Screen::new(),
            varied: Vec::new(),
            since: Instant::now(),
            view: View::new(Until::Unknown),
            before: (0, 0),
        }
    }

    /// Takes the renewed lines away; what follows is the result.
    pub(crate) fn finish(&mut self) {
        self.screen.clear();
    }

    fn trial_started(&mut self, trial: &Trial, position: usize, of: usize) {
        self.view = View::new(Until::Unknown);
        self.before = (0, 0);
        self.since = Instant::now();
        self.screen.keep(&format!("[{position}/{of}] {}{}", trial.label(), setting(trial, &self.varied)));
    }

    fn load_started(&mut self, duration: Option<Duration>) {
        self.before = self.requests();
        self.view = View::new(duration.map_or(Until::Unknown, Until::Time));
        let time = duration
            .map_or_else(String::new, |duration| format!(" for {}", units::duration(duration.as_nanos() as f64)));
        self.screen.phase(&format!("  load{time}"));
    }

    fn second(&mut self, elapsed: Duration, rows: &[LoadSecond]) {
        self.view.add(elapsed, rows);
        show(&mut self.screen, &self.view);
    }

    fn trial_ended(&mut self, trial: &Trial) {
        let took = units::duration(self.since.elapsed().as_nanos() as f64);
        let how = match trial.state {
            TrialState::Done => "done",
            TrialState::Interrupted => "interrupted",
            _ => "failed",
        };
        let (requests, errors) = self.requests();
        self.screen.keep(&format!(
            "  {how} in {took}: {} requests, {} errors",
            units::count(requests),
            units::count(errors)
        ));
    }

    /// Requests of the trial that ended, and how many of them failed.
    fn requests(&self) -> (u64, u64) {
        (self.before.0 + self.view.ended, self.before.1 + self.view.errors.total())
    }
}

/// Shows a load as it stands: in place on a terminal, elsewhere on a line now and then.
pub(crate) fn show(screen: &mut Screen, view: &View) {
    match screen.width() {
        Some(width) => screen.show(&view.lines(width)),
        None => screen.say_now_and_then(|| view.line()),
    }
}

impl Progress for Live {
    fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::RunStarted { path, trials, already_done, varied } => {
                self.varied = varied.to_vec();
                let before = if *already_done > 0 { format!(" ({already_done} done before)") } else { String::new() };
                let noun = if *trials == 1 { "trial" } else { "trials" };
                self.screen.keep(&format!("{} → {trials} {noun}{before}", path.display()));
            }
            Event::TrialStarted { trial, position, of } => self.trial_started(trial, *position, *of),
            Event::SettingUp { service, command } => {
                self.screen.keep(&format!("  setting up {service}: {command}"));
            }
            Event::Starting { service, replica } => {
                self.screen.phase(&format!("  starting {service}{}", nth(*replica)));
            }
            Event::Awaiting { service, place } => {
                self.screen.phase(&format!("  waiting for {service} at {place}"));
            }
            Event::LoadStarted { duration } => self.load_started(*duration),
            Event::Second { elapsed, rows, .. } => self.second(*elapsed, rows),
            Event::Probed(probe) => self.screen.keep(&format!("  {probe}")),
            Event::Looked(sentence) => self.screen.keep(&format!("  {sentence}")),
            Event::Stopping => self.screen.phase("  stopping services"),
            Event::TrialEnded { trial } => self.trial_ended(trial),
            Event::Note(note) => self.screen.keep(&format!("note: {note}")),
            Event::Caveat(caveat) => self.screen.keep(&format!("  caveat: {}", trial_caveat(caveat))),
        }
    }
}

/// `  (pool=5, cache=on)`: the value of each of these parameters in a trial.
fn setting(trial: &Trial, names: &[String]) -> String {
    let values = trial.parameters.iter().filter(|(name, _)| names.contains(name));
    let values: Vec<String> = values.map(|(name, value)| format!("{name}={value}")).collect();
    if values.is_empty() { String::new() } else { format!("  ({})", values.join(", ")) }
}

fn nth(replica: u32) -> String {
    if replica > 0 { format!("[{replica}]") } else { String::new() }
}
