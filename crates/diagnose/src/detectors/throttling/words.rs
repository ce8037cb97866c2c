//! Texts of `throttling` findings.

use narrows_model::finding::evidence::throttling::{SleepsBetweenCalls, Throttling};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, operation};

impl Words for Throttling {
    fn title(&self, finding: &Finding) -> String {
        if let Some(sleeps) = &self.sleeps {
            return format!(
                "{} limits the rate of calls: {} sleeps for {} of each request and calls again",
                finding.resource,
                sleeps.caller,
                units::duration(sleeps.sleep_ns)
            );
        }
        format!(
            "{} rejects {} of the calls of {}, which then wait and retry",
            finding.resource,
            units::percent(self.rejected_share()),
            operation(finding)
        )
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        if self.sleeps.is_some() {
            return "of the time of all requests".into();
        }
        "of the time of the slower half of these requests".into()
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        if let Some(sleeps) = &self.sleeps {
            return reasons_of_sleeps(sleeps, &finding.resource);
        }
        let mut reasons = vec![
            format!(
                "{} of {} attempts were rejected (status 429 or similar), and the slower half of the requests of {} \
                 spent {} of its time waiting for the next attempt with no call in progress.",
                units::count(self.rejected.round() as u64),
                units::count(self.attempts.round() as u64),
                operation(finding),
                units::percent(self.wait_share)
            ),
            format!(
                "Attempts were rejected in {} of the {} seconds with attempts.",
                self.seconds_with_rejections, self.seconds_with_attempts
            ),
        ];
        reasons.extend(consumption(self));
        reasons.extend(self.waits_as_requested_share.map(|share| {
            format!("{} of the gaps are as long as the wait that the rejection requested.", units::percent(share))
        }));
        if !self.other_operations.is_empty() {
            reasons.push(format!("It also delays {}.", self.other_operations.join(", ")));
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        if let Some(sleeps) = &self.sleeps {
            return vec![
                Figure::new("sleep of a request, mean", sleeps.sleep_ns, "ns"),
                Figure::new("sleep of a request under the lightest load, mean", sleeps.lighter_sleep_ns, "ns"),
                Figure::new("calls for each request, mean", sleeps.calls_per_request, ""),
                Figure::new("wait for a call, mean", sleeps.call_ns, "ns"),
            ];
        }
        let mut figures = vec![
            Figure::new("rejected attempts", self.rejected, ""),
            Figure::new("share of all attempts", self.rejected_share() * 100.0, "%"),
            Figure::new("seconds with rejections", self.seconds_with_rejections as f64, ""),
            Figure::new("seconds with attempts", self.seconds_with_attempts as f64, ""),
            Figure::new("wait after a rejection, median", self.wait_median_ns, "ns"),
        ];
        figures.extend(self.attempts_per_success.map(|times| Figure::new("attempts per success", times, "")));
        let units_of = |name: &str, value: Option<f64>| value.map(|value| Figure::new(name, value, "{RU}/s"));
        if self.peak.is_some() {
            figures.extend(units_of("highest consumption of a partition in a second with rejections", self.peak));
            figures.extend(units_of("provisioned per partition", self.provisioned));
        }
        figures.extend(units_of("consumption of a partition, mean", self.mean));
        figures.extend(units_of("demand on a partition in its busiest second", self.demand));
        figures
    }

    fn ruled_out(&self, finding: &Finding) -> Vec<String> {
        if let Some(sleeps) = &self.sleeps {
            return vec![
                "A sleep of a fixed length: it would be as long under each load.".into(),
                format!("Slow calls: {} responds within {}.", finding.resource, units::duration(sleeps.call_ns)),
            ];
        }
        let waits = match self.waits_as_requested_share {
            Some(_) if self.waits_as_requested() => {
                "A pause of the program (garbage collection, no CPU) or a wait for a connection: the gaps follow the \
                 wait time in each rejection, and at most twice that time was counted."
            }
            Some(_) => {
                "A pause of the program (garbage collection, no CPU) or a wait for a connection: gaps shorter than the \
                 wait time in the rejection were not counted, and longer ones only up to twice that time."
            }
            None => {
                "Work of the program between two attempts is not ruled out, because the rejections have no wait time."
            }
        };
        vec![
            waits.to_owned(),
            "Other calls in the meantime: time counts only while no call of the request is in progress.".into(),
            "Rejections that cost nothing: their number alone does not make a finding.".into(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        if let Some(sleeps) = &self.sleeps {
            return format!(
                "{} gets no response with status 429, 503 or another error from {}.",
                sleeps.caller, finding.resource
            );
        }
        format!(
            "With more throughput provisioned for {}, no attempt is rejected, and the slower half of {} takes as long \
             as before.",
            finding.resource,
            operation(finding)
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        if let Some(sleeps) = &self.sleeps {
            return format!(
                "Look at what {0} responds to {1} (status 429, `Retry-After`). Ask for a higher rate, or call it less: cache \
                 its responses, or fetch several things with one call.",
                finding.resource, sleeps.caller
            );
        }
        let is_more = |demand: &f64| self.provisioned.is_none_or(|provisioned| *demand > provisioned);
        let amount = self.demand.filter(is_more).map(|demand| {
            format!(
                ": the demand on its busiest partition was {} units in one second, so at least {} for all {}",
                units::number(demand.ceil()),
                units::count((demand.ceil() * self.partitions as f64) as u64),
                self.partitions
            )
        });
        format!(
            "Provision more throughput for {}{}; or spend fewer units in each {}, by a query that goes only to the \
             partition that has the rows, an index, or fewer rows; or spread the requests over time, because only single \
             seconds exceed the limit.",
            finding.resource,
            amount.unwrap_or_default(),
            operation(finding)
        )
    }
}

fn reasons_of_sleeps(sleeps: &SleepsBetweenCalls, peer: &str) -> Vec<String> {
    vec![
        format!(
            "In {}, {} of {} requests under way sleep in {}: {} per request, and {} under the lightest load.",
            sleeps.reading.interval,
            units::number(sleeps.reading.waiting.middle()),
            units::number(sleeps.reading.in_flight),
            sleeps.caller,
            units::duration(sleeps.sleep_ns),
            units::duration(sleeps.lighter_sleep_ns)
        ),
        format!(
            "Each request calls {peer} {} times on average, and a call takes {}.",
            units::number(sleeps.calls_per_request),
            units::duration(sleeps.call_ns)
        ),
        "More load brought longer sleeps and no more throughput.".to_owned(),
    ]
}

fn consumption(evidence: &Throttling) -> Option<String> {
    let (peak, provisioned, mean) = (evidence.peak?, evidence.provisioned?, evidence.mean?);
    Some(format!(
        "In those seconds a partition consumed up to {} of its {} units; the mean over the run, {} of {}, hides that.",
        units::number(peak),
        units::number(provisioned),
        units::number(mean),
        units::number(provisioned)
    ))
}
