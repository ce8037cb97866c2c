//! Which agents are alive: pure, told what was heard and when.
//!
//! While the servers cannot be reached, silence says nothing about agents; it counts anew from the moment that they can be.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// An agent that is silent for longer is lost.
const SILENT_MAX: Duration = Duration::from_millis(1_500);
/// How long servers that were away may take until agents have found them again.
const BACK_WITHIN: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(super) struct Silence {
    heard: HashMap<String, Instant>,
    /// Silence counts from here on.
    since: Instant,
    is_connected: bool,
    /// How often the servers were connected to.
    connects: u64,
}

impl Silence {
    pub(super) fn new(now: Instant, connects: u64) -> Self {
        Self { heard: HashMap::new(), since: now, is_connected: true, connects }
    }

    pub(super) fn hear(&mut self, agent: &str, now: Instant) {
        match self.heard.get_mut(agent) {
            Some(heard) => *heard = now,
            None => _ = self.heard.insert(agent.to_owned(), now),
        }
    }

    /// Notes whether the servers can be reached and how often they were connected to; whether the former has changed.
    pub(super) fn connection(&mut self, is_connected: bool, connects: u64, now: Instant) -> Option<bool> {
        if std::mem::replace(&mut self.connects, connects) != connects {
            // Agents may still be looking for the servers, even where this was too short to be seen otherwise.
            self.since = now + BACK_WITHIN;
        }
        if std::mem::replace(&mut self.is_connected, is_connected) == is_connected {
            return None;
        }
        Some(is_connected)
    }

    /// How long an agent has been silent, if for too long.
    pub(super) fn of(&self, agent: &str, now: Instant) -> Option<Duration> {
        let since = self.heard.get(agent).copied().unwrap_or(self.since).max(self.since);
        let silence = now.saturating_duration_since(since);
        (self.is_connected && silence > SILENT_MAX).then_some(silence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_noticed_and_not_while_the_servers_are_away() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut silence = Silence::new(start, 1);
        assert_eq!(silence.of("a", at(1_500)), None);
        assert_eq!(silence.of("a", at(2_100)), Some(Duration::from_millis(2_100)));
        silence.hear("a", at(5_000));
        assert_eq!((silence.of("a", at(6_500)), silence.of("b", at(6_500)).is_some()), (None, true));
        assert_eq!(silence.connection(true, 1, at(7_000)), None);
        assert_eq!(silence.connection(false, 1, at(7_000)), Some(false));
        assert_eq!(silence.of("a", at(60_000)), None);
        assert_eq!(silence.connection(true, 2, at(60_000)), Some(true));
        assert_eq!(silence.of("a", at(71_000)), None);
        assert_eq!(silence.of("a", at(72_500)), Some(Duration::from_millis(2_500)));
        silence.hear("a", at(72_600));
        assert_eq!(silence.of("a", at(74_000)), None);
        assert_eq!((silence.connection(true, 3, at(80_000)), silence.of("a", at(91_000))), (None, None));
        assert!(silence.of("a", at(92_000)).is_some());
    }
}
