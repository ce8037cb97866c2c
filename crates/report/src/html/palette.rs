//! Which service has which colour: the same on every chart and in every waterfall of the page.
//!
//! Seven colours that people with any colour vision can distinguish (after Okabe and Ito, Color Universal Design), then
//! grey for all the others together.

use narrows_model::evidence::RunEvidence;
use narrows_model::series::names;
use narrows_model::trace::Trace;

/// Services with a colour of their own.
const OWN_COLOURS: usize = 7;
/// Name of the group of the others.
const OTHERS: &str = "others";

/// The services of a run in the order of their colours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Palette {
    services: Vec<String>,
}

impl Palette {
    /// Started services first, then those that only sent spans or samples.
    pub(crate) fn new(evidence: &RunEvidence) -> Self {
        let trials = || evidence.trials.iter();
        let started = trials().flat_map(|trial| trial.services.iter().map(|service| &service.service));
        let sampled = trials().flat_map(|trial| trial.series.iter().map(|series| &series.key.service));
        let traced = trials().flat_map(|t| t.traces.iter().flat_map(|trace| trace.spans.iter().map(|s| &s.service)));
        let mut services: Vec<String> = Vec::new();
        for service in started.chain(sampled).chain(traced) {
            let known = service.is_empty() || service == names::GENERATOR || services.contains(service);
            if !known && services.len() < OWN_COLOURS {
                services.push(service.clone());
            }
        }
        Self { services }
    }

    /// The services of some requests, in the order in which they come.
    pub(crate) fn of_traces(traces: &[&Trace]) -> Self {
        let mut services: Vec<String> = Vec::new();
        for span in traces.iter().flat_map(|trace| &trace.spans) {
            if services.len() < OWN_COLOURS && !services.contains(&span.service) {
                services.push(span.service.clone());
            }
        }
        Self { services }
    }

    /// The position among the colours; the generator comes last of all.
    pub(crate) fn index(&self, service: &str) -> usize {
        if service == names::GENERATOR {
            return OWN_COLOURS + 1;
        }
        self.services.iter().position(|known| known == service).unwrap_or(OWN_COLOURS)
    }

    /// The style sheet's class of a service's colour.
    pub(crate) fn class(&self, service: &str) -> &'static str {
        ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "gen"][self.index(service).min(OWN_COLOURS + 1)]
    }

    /// True if a service has a colour of its own.
    pub(crate) fn has(&self, service: &str) -> bool {
        self.index(service) < OWN_COLOURS
    }

    /// The class of a colour that no service has, for the `position`th thing that needs one.
    pub(crate) fn free_class(&self, position: usize) -> &'static str {
        ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"][(self.services.len() + position).min(OWN_COLOURS)]
    }

    /// The name under which a service is drawn in charts.
    pub(crate) fn shown_as<'a>(&self, service: &'a str) -> &'a str {
        if self.index(service) == OWN_COLOURS { OTHERS } else { service }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_eighth_service_and_later_are_others() {
        let mut evidence = fixture::outcome().evidence;
        let template = evidence.trials[0].services[0].clone();
        for n in 0..20 {
            let mut service = template.clone();
            service.service = format!("extra-{n}");
            evidence.trials[0].services.push(service);
        }
        let palette = Palette::new(&evidence);
        let shown =
            ["gateway", "extra-3", "extra-4", "extra-19", "narrows"].map(|s| (palette.class(s), palette.shown_as(s)));
        let expected = [("c0", "gateway"), ("c6", "extra-3"), ("c7", "others"), ("c7", "others"), ("gen", "narrows")];
        assert_eq!(shown, expected);
    }
}
