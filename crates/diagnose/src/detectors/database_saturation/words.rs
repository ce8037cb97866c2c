//! Texts of `database-saturation` findings.

use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::database_saturation::{
    CpuDemand, DatabaseSaturation, FullCpu, SaturationSign, SlowedQueries, SlowedShape,
};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level, proof};
use crate::exemplars::clipped;

impl Words for DatabaseSaturation {
    fn title(&self, finding: &Finding) -> String {
        let name = &finding.resource;
        match &self.sign {
            SaturationSign::Cpu { cpu, .. } => {
                format!("{name} is saturated: {} of {}", units::percent(cpu.level), limit(cpu))
            }
            SaturationSign::Queries { slowed, .. } => format!(
                "{name} is saturated: the same queries take {} times as long at {} as at {}",
                units::number(slowed.factor),
                level(&slowed.heavy),
                level(&slowed.light)
            ),
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        match &self.sign {
            SaturationSign::Cpu { cpu, .. } => format!("of what {} can use: {}", finding.resource, limit(cpu)),
            SaturationSign::Queries { slowed, .. } => {
                format!("of the time of its queries at {}, spent waiting in the database", level(&slowed.heavy))
            }
        }
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        match &self.sign {
            SaturationSign::Cpu { cpu, slowed } => {
                let mut reasons = vec![format!(
                    "Half of the time or more in {} it stood at {} of {} or above.",
                    cpu.interval,
                    units::percent(cpu.level),
                    limit(cpu)
                )];
                reasons.extend(cpu.demand.as_ref().map(law));
                reasons.push(proof(cpu.proof.as_ref()));
                reasons.extend(slowed.as_ref().map(slower));
                reasons
            }
            SaturationSign::Queries { slowed, cpu_share, .. } => [slower(slowed)]
                .into_iter()
                .chain(cpu_share.map(|share| format!("Its CPU stood at {}.", units::percent(share))))
                .collect(),
        }
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        match &self.sign {
            SaturationSign::Cpu { cpu, .. } => {
                let mut figures = vec![
                    Figure::new("share of the CPU limit, median", cpu.level * 100.0, "%"),
                    Figure::new("throughput at that time", cpu.rate, "/s"),
                    Figure::new("mean latency at that time", cpu.latency_ns, "ns"),
                ];
                figures.extend(cpu.demand.iter().flat_map(|demand| {
                    [
                        Figure::new("CPU of the database for each request", demand.each_ns() / 1e9, "s"),
                        Figure::new("throughput that its CPU allows at most", demand.rate_max(), "/s"),
                    ]
                }));
                figures
            }
            SaturationSign::Queries { slowed, .. } => slowed.shapes.iter().flat_map(medians).collect(),
        }
    }

    fn source_text(&self) -> Option<String> {
        self.query.clone()
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out: Vec<String> = match &self.sign {
            SaturationSign::Cpu { .. } => vec![
                "Waits for locks: a query that waits for another's lock uses no CPU.".into(),
                "Waits for a connection: they happen before a query is sent and cost the database no CPU.".into(),
                "A peak or a start: this is the median over an interval of counted load.".into(),
            ],
            SaturationSign::Queries { slowed, .. } => vec![
                format!(
                    "More work for each query: {}.",
                    if slowed.has_rows { "the same queries return as many rows" } else { "the queries are the same" }
                ),
                "Waits for locks: read-only queries are slower by as much.".into(),
                "Rejections: the database rejects hardly any query.".into(),
            ],
        };
        if !self.idle_clients.is_empty() {
            let each = self.idle_clients.iter();
            let each = each.map(|one| format!("{} uses {} of its own", one.service, units::percent(one.cpu_share)));
            ruled_out.push(format!("The CPU of those who ask: {}.", each.collect::<Vec<_>>().join(", ")));
        }
        if matches!(self.sign, SaturationSign::Queries { is_connected_first: true, .. }) {
            ruled_out.push(
                "Waits for a connection: they happen before a query's span begins, and the spans themselves are longer."
                    .into(),
            );
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let name = &finding.resource;
        match &self.sign {
            SaturationSign::Cpu { .. } => {
                format!("More CPU for {name}, or fewer queries per request, does not raise throughput.")
            }
            SaturationSign::Queries { slowed, .. } => format!(
                "{name} responds to the same queries as fast as at {} while they are sent as often as at {}.",
                level(&slowed.light),
                level(&slowed.heavy)
            ),
        }
    }

    fn advice(&self, finding: &Finding) -> String {
        let first = self.costliest.as_ref().map(|costliest| {
            format!(
                "Start with “{}”, {} of the time of all its queries: an index, fewer rows, or a cache. ",
                clipped(&costliest.shape, 120),
                units::percent(costliest.time_share)
            )
        });
        format!(
            "{}Then send {} fewer queries per request; then give it more CPU, or nodes that share the reads.",
            first.unwrap_or_default(),
            finding.resource
        )
    }
}

fn limit(cpu: &FullCpu) -> String {
    match cpu.limit {
        CpuLimit::Cap { cores } => format!("its {}", units::cores(cores)),
        CpuLimit::Thread => "the one core that its busiest thread can use".into(),
        CpuLimit::Machine | CpuLimit::Host => "the machine's cores".into(),
        CpuLimit::OtherMachine { .. } => "the cores of its machine".into(),
    }
}

fn law(demand: &CpuDemand) -> String {
    format!(
        "By the utilisation law each request costs it {} of CPU ({} ÷ {}), so {} can carry {} at most.",
        units::duration(demand.each_ns()),
        units::cores(demand.cores),
        units::rate(demand.rate),
        units::cores(demand.limit_cores),
        units::rate(demand.rate_max())
    )
}

fn slower(slowed: &SlowedQueries) -> String {
    let worst = slowed.shapes.first().map(|worst| {
        let rows = worst.rows.map_or_else(String::new, |rows| format!(", with {} rows each time", units::number(rows)));
        format!(
            "; “{}” takes {} instead of {}{rows}",
            clipped(&worst.shape, 80),
            units::duration(worst.heavy_median_ns),
            units::duration(worst.light_median_ns)
        )
    });
    format!(
        "Its queries take {} times as long at {} as at {}{}.",
        units::number(slowed.factor),
        level(&slowed.heavy),
        level(&slowed.light),
        worst.unwrap_or_default()
    )
}

fn medians(shape: &SlowedShape) -> [Figure; 2] {
    let name = clipped(&shape.shape, 60);
    [
        Figure::new(format!("median of “{name}” under the lightest load"), shape.light_median_ns, "ns"),
        Figure::new(format!("median of “{name}” under the heaviest load"), shape.heavy_median_ns, "ns"),
    ]
}
