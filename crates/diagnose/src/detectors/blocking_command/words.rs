//! Texts of `blocking-command` findings.

use narrows_model::finding::evidence::blocking_command::BlockingCommand;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level};

impl Words for BlockingCommand {
    fn title(&self, finding: &Finding) -> String {
        format!(
            "{}: {} holds the one thread for {}, {}",
            finding.resource,
            self.command,
            units::duration(self.call_ns),
            how_often(self.calls)
        )
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the time, in which the server executes nothing else".to_owned()
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let longest = self.longest_ns.map_or(String::new(), |ns| format!(", {} at most", units::duration(ns)));
        let mut reasons = vec![format!(
            "At {}, {} is called {} and takes {} each time (mean{longest}): its calls hold the thread of {} for {} of the \
             time.",
            level(&self.load),
            self.command,
            how_often(self.calls),
            units::duration(self.call_ns),
            finding.resource,
            units::percent(self.thread_share)
        )];
        reasons.extend(self.other_call_ns.map(|ns| {
            format!(
                "The other commands, {}, take {} each (mean) and wait meanwhile.",
                units::rate(self.other_calls),
                units::duration(ns)
            )
        }));
        match &self.clients[..] {
            [] => {}
            [client] => reasons.push(format!("Only {client} connects to {}.", finding.resource)),
            clients => reasons.push(format!("{} connect to {}.", clients.join(", "), finding.resource)),
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("one call, mean", self.call_ns, "ns"),
            Figure::new("calls", self.calls, "/s"),
            Figure::new("share of the thread's time", self.thread_share * 100.0, "%"),
        ];
        figures.extend(self.longest_ns.map(|ns| Figure::new("the longest call", ns, "ns")));
        figures.push(Figure::new("calls of other commands", self.other_calls, "/s"));
        figures.extend(self.other_call_ns.map(|ns| Figure::new("one of these, mean", ns, "ns")));
        figures
    }

    fn source_text(&self) -> Option<String> {
        Some(self.command.clone())
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec!["A slow network: the server's own clock shows the time on its thread.".to_owned()]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("Without {}, requests that use {} are as slow.", self.command, finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let server = &finding.resource;
        match self.command.as_str() {
            "KEYS" => format!(
                "Do not list keys by pattern in requests: keep a set or a sorted set of what is looked for, or walk the keys \
                 in small steps with SCAN, beside the load. `rename-command KEYS \"\"` keeps {server} from it."
            ),
            "EVAL" | "EVALSHA" | "FCALL" | "EVAL_RO" | "EVALSHA_RO" | "FCALL_RO" => format!(
                "Make the script shorter: bound its loops, read fewer keys in one call, and compute in the service, which \
                 may have several threads. {server} runs nothing else while a script runs."
            ),
            command => format!(
                "Read less in one {command}: keep values small, page through large ones (SCAN, HSCAN, SSCAN, ZRANGE with \
                 limits), delete them with UNLINK, or send such commands to a replica of {server}."
            ),
        }
    }
}

/// `twice a second`, `12.5/s`, `once every 5.0 s`.
fn how_often(calls: f64) -> String {
    match calls {
        calls if (0.95..1.05).contains(&calls) => "once a second".to_owned(),
        calls if (1.9..2.1).contains(&calls) => "twice a second".to_owned(),
        calls if calls > 0.0 && calls < 1.0 => format!("once every {}", units::duration(1e9 / calls)),
        calls => units::rate(calls),
    }
}
