//! What scaled parameters do to the figures and bottlenecks of experiments: one table, and whether the conclusions hold.
//!
//! The conclusions of an experiment are the bottleneck of each variant and the order of the variants. They are those of its
//! runs without a change, of which there are two: what differs between those is noise, and no effect of a parameter.

mod conclusion;
mod judged;
mod markdown;
mod point;
mod table;
mod text;

pub use markdown::markdown;
pub use point::point;
pub use text::text;

use narrows_model::sensitivity::{Examined, Sensitivity};

/// `−20 %`, `+20 %`.
fn changes(sensitivity: &Sensitivity) -> [String; 2] {
    [-sensitivity.change, sensitivity.change].map(crate::figures::ratio)
}

/// When the experiment ran, and how long its load was beside the experiment's.
fn ran(examined: &Examined) -> String {
    let Some(first) = examined.as_is.first() else { return "did not run as it is".to_owned() };
    let length = match examined.time_scale {
        1.0 => String::new(),
        scale => format!(", load × {scale} of its length"),
    };
    format!("{}{length}", crate::figures::instant(first.started_ns))
}

/// The machines of all runs, each once.
fn machines(sensitivity: &Sensitivity) -> String {
    let scaled = |one: &Examined| {
        let sides = one.parameters.iter().flat_map(|parameter| [&parameter.lower, &parameter.higher]);
        one.as_is.iter().chain(sides.filter_map(|side| side.point.as_ref())).cloned().collect::<Vec<_>>()
    };
    let mut all: Vec<String> = Vec::new();
    for point in sensitivity.experiments.iter().flat_map(scaled) {
        let machine = crate::figures::machine(&point.machine);
        if !all.contains(&machine) {
            all.push(machine);
        }
    }
    all.join("; ")
}

#[cfg(test)]
mod fixture;
