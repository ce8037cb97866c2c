//! `blocking-command`: a command holds the one thread of a server for long, and all other commands wait meanwhile.
//!
//! Redis executes commands one after another. `KEYS`, a script that loops, or `SMEMBERS` of a large set is fine alone and
//! holds up everyone else. The server counts the calls and the time of each command, so the mean time of a call and the
//! share of the time that such calls hold the thread follow, without any span.
//!
//! Many quick commands that fill the thread are `cpu-saturation`. A command that ran once or twice, as for maintenance,
//! is no finding.

use narrows_model::finding::evidence::blocking_command as evidence;
use narrows_model::finding::{Confidence, Finding, FindingKind};

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::machine::is_crowded_out;
use crate::read::periods::period_of;
use crate::read::runtimes::machine_caveats;
use crate::read::servers::{Command, clients, commands, servers};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Mean time of one call on the server's thread, nanoseconds.
    blocking_command_ns: f64 = 5e6;
    /// Share of the time that its calls hold the thread.
    blocking_command_share: f64 = 0.05;
    /// Calls in an interval that must show it.
    blocking_command_calls: f64 = 5.0;
}

/// See the module.
#[derive(Debug)]
pub struct BlockingCommand;

impl Detector for BlockingCommand {
    fn kind(&self) -> FindingKind {
        FindingKind::BlockingCommand
    }

    fn version(&self) -> u32 {
        1
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        servers(reading.trial).into_iter().filter_map(|server| of_server(self, reading, server)).collect()
    }
}

/// The finding for the command and the interval in which it holds the thread for the largest share of the time.
fn of_server(detector: &BlockingCommand, reading: &Reading<'_>, server: (&str, u32)) -> Option<Finding> {
    let thresholds = &reading.thresholds.blocking_command;
    let slow_in = |at: usize| {
        let interval = &reading.intervals[at];
        let commands = commands(reading.trial, server, interval);
        let is_slow = |command: &&Command<'_>| {
            command.call_ns() >= thresholds.blocking_command_ns
                && command.thread_share >= thresholds.blocking_command_share
                && command.calls * interval.seconds() >= thresholds.blocking_command_calls
        };
        let slowest = commands.iter().filter(is_slow).max_by(|a, b| a.thread_share.total_cmp(&b.thread_share))?;
        let slowest = slowest.clone();
        (!is_crowded_out(reading, at)).then_some((interval, commands, slowest))
    };
    let found = (0..reading.intervals.len()).filter_map(slow_in);
    let (interval, commands, slowest) = found.max_by(|a, b| a.2.thread_share.total_cmp(&b.2.thread_share))?;
    Some(finding(detector, reading, server, interval, &commands, &slowest))
}

fn finding(
    detector: &BlockingCommand,
    reading: &Reading<'_>,
    server: (&str, u32),
    interval: &Interval,
    commands: &[Command<'_>],
    slowest: &Command<'_>,
) -> Finding {
    let others = || commands.iter().filter(|command| command.name != slowest.name);
    let other_calls: f64 = others().map(|command| command.calls).sum();
    let other_share: f64 = others().map(|command| command.thread_share).sum();
    let evidence = evidence::BlockingCommand {
        command: slowest.name.to_owned(),
        interval: interval.label.clone(),
        load: interval.load_level(),
        calls: finite(slowest.calls),
        call_ns: finite(slowest.call_ns()),
        longest_ns: slowest.longest_ns,
        thread_share: finite(slowest.thread_share).min(1.0),
        other_calls: finite(other_calls),
        other_call_ns: (other_calls > 0.0).then(|| finite(other_share / other_calls * 1e9)),
        clients: clients(reading.trial, server.0).into_iter().map(str::to_owned).collect(),
    };
    Finding {
        resource: server.0.to_owned(),
        cost_share: finite(slowest.thread_share).min(1.0),
        confidence: Confidence::High,
        caveats: machine_caveats(&Cpu::new(reading), interval),
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

#[cfg(test)]
mod tests;
