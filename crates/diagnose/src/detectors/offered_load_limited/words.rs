//! Texts of `offered-load-limited` findings.

use narrows_model::finding::evidence::offered_load_limited::{Hidden, OfferedLoadLimited, Pair, Room, RoomOf, Steps};
use narrows_model::finding::evidence::variant::VariantFigures;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level};

impl Words for OfferedLoadLimited {
    fn title(&self, _finding: &Finding) -> String {
        match &self.hidden {
            Hidden::Capacity(steps) => {
                let heaviest = level(&steps.heaviest.load);
                format!("the offered load ended at {heaviest}, below any limit, so the capacity is unknown")
            }
            Hidden::Others { first, .. } => format!(
                "{} completes the whole offered load, so throughput cannot show what others change",
                first.variant
            ),
            Hidden::Variant(pair) => format!(
                "{} completes the whole offered load, so throughput cannot show what {} changes",
                pair.first.variant, pair.other.variant
            ),
        }
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        match self.room.of {
            RoomOf::Thinking => "of the users, who are thinking at any time".into(),
            RoomOf::Completed => "of the offered load, which is completed".into(),
        }
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let room = room(self.room);
        match &self.hidden {
            Hidden::Capacity(steps) => vec![
                growth(steps),
                room,
                format!(
                    "The busiest service, {}, used {} of the CPU available to it.",
                    steps.busiest_service,
                    units::percent(steps.busiest_share)
                ),
            ],
            Hidden::Others { first, others } => vec![
                format!(
                    "Throughput is {} here and the same in {}, because it is what the load asks for.",
                    units::rate(first.rate),
                    others.join(", ")
                ),
                room,
            ],
            Hidden::Variant(pair) => {
                let same = format!(
                    "Throughput is the same in both, {} and {}, because it is what the load asks for.",
                    units::rate(pair.first.rate),
                    units::rate(pair.other.rate)
                );
                [same, room].into_iter().chain(latency(pair)).chain(cpu(pair)).collect()
            }
        }
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        match &self.hidden {
            Hidden::Capacity(steps) => vec![
                Figure::new("throughput under the heaviest load", steps.heaviest.rate, "/s"),
                Figure::new("time of a request under the lightest load", steps.lightest.service_ns, "ns"),
                Figure::new("time of a request under the heaviest load", steps.heaviest.service_ns, "ns"),
                Figure::new("CPU of the busiest service", steps.busiest_share * 100.0, "%"),
            ],
            Hidden::Others { first, .. } => figures_of(first, "this variant"),
            Hidden::Variant(pair) => {
                [figures_of(&pair.first, "first variant"), figures_of(&pair.other, "this variant")].concat()
            }
        }
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec![match &self.hidden {
            Hidden::Capacity(_) => {
                "A limit that was reached: throughput follows the load and no request takes longer.".into()
            }
            Hidden::Others { others, .. } => {
                format!("No difference at all: in {} it is more than noise.", others.join(", "))
            }
            Hidden::Variant(_) => "No difference at all: what the variant changes is more than noise.".into(),
        }]
    }

    fn clause(&self, _finding: &Finding) -> String {
        "the system completed the whole offered load, so throughput cannot show a gain".to_owned()
    }

    fn falsified_by(&self, _finding: &Finding) -> String {
        let same = |first: &str, others: &str| {
            format!("Under more load, {first} and {others} still have the same throughput.")
        };
        match &self.hidden {
            Hidden::Capacity(steps) => {
                format!("Under more load than {}, throughput does not grow.", level(&steps.heaviest.load))
            }
            Hidden::Others { first, others } => same(&first.variant, &others.join(", ")),
            Hidden::Variant(pair) => same(&pair.first.variant, &pair.other.variant),
        }
    }

    fn advice(&self, _finding: &Finding) -> String {
        match &self.hidden {
            Hidden::Capacity(_) => {
                "Offer more until throughput no longer follows (more users, less time to think, a higher rate, or a \
                 search for the capacity). Until then compare variants by latency, requests under way and CPU for each \
                 request."
                    .into()
            }
            Hidden::Others { first, others } => format!(
                "Compare {} with {} by latency, by requests under way and by CPU for each request, not by throughput.",
                others.join(", "),
                first.variant
            ),
            Hidden::Variant(pair) => format!(
                "Compare {} with {} by latency, by requests under way and by CPU for each request. To compare what \
                 they can carry, offer more until throughput no longer follows: more users, less time to think, or a \
                 search for the capacity.",
                pair.other.variant, pair.first.variant
            ),
        }
    }
}

fn room(room: Room) -> String {
    match room.of {
        RoomOf::Thinking => format!(
            "At any time at least {} of the users think and send no request (Little's law: users less throughput × \
             latency), so throughput would grow by no more than {} if requests took no time at all.",
            units::percent(room.share),
            units::percent(1.0 / room.share - 1.0)
        ),
        RoomOf::Completed => {
            format!("At least {} of the arrivals that the load offers are completed.", units::percent(room.share))
        }
    }
}

fn growth(steps: &Steps) -> String {
    let (light, heavy) = (&steps.lightest, &steps.heaviest);
    format!(
        "From {} to {} throughput went from {} to {}, as the load did, and requests took {} and {}.",
        level(&light.load),
        level(&heavy.load),
        units::rate(light.rate),
        units::rate(heavy.rate),
        units::duration(light.service_ns),
        units::duration(heavy.service_ns)
    )
}

fn latency(pair: &Pair) -> Option<String> {
    let (first, other) = (&pair.first, &pair.other);
    pair.latency_differs.then(|| {
        format!(
            "Mean latency goes from {} to {}, and with it the requests under way from {} to {}.",
            units::duration(first.mean_ns),
            units::duration(other.mean_ns),
            units::number(first.under_way()),
            units::number(other.under_way())
        )
    })
}

fn cpu(pair: &Pair) -> Option<String> {
    let (before, now) = pair.first.cpu_seconds_per_request.zip(pair.other.cpu_seconds_per_request)?;
    let (before, now) = (units::duration(before * 1e9), units::duration(now * 1e9));
    pair.cpu_differs.then(|| format!("CPU for each request goes from {before} to {now}."))
}

fn figures_of(variant: &VariantFigures, side: &str) -> Vec<Figure> {
    let mut figures = vec![
        Figure::new(format!("throughput, {side}"), variant.rate, "/s"),
        Figure::new(format!("mean latency, {side}"), variant.mean_ns, "ns"),
        Figure::new(format!("requests under way, {side}"), variant.under_way(), ""),
    ];
    let cpu = variant.cpu_seconds_per_request;
    figures.extend(cpu.map(|seconds| Figure::new(format!("CPU for each request, {side}"), seconds, "s")));
    figures
}
