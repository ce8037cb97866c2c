//! An experiment of three variants with one parameter, as the tests see it.

use narrows_model::run::Environment;
use narrows_model::sensitivity::{
    Examined, FORMAT, LeftOut, Point, PointConclusion, PointFigure, PointOfVariant, Scaled, ScaledParameter,
    Sensitivity,
};

/// A run of three variants with these rates, which decide its conclusions; the second one's is fitted.
pub(super) fn point(throughput: [f64; 3]) -> Point {
    let variant =
        |name: &str| PointOfVariant { variant: name.to_owned(), bottleneck: "throttling at store".to_owned() };
    Point {
        started_ns: 1_763_728_200_000_000_000,
        machine: Environment {
            kernel: "Linux 6.1".to_owned(),
            cpu_model: "A Processor".to_owned(),
            cores: 2,
            memory_bytes: 4 << 30,
        },
        variants: ["first", "second", "third"].map(variant).to_vec(),
        figures: vec![PointFigure {
            name: "throughput".to_owned(),
            values: throughput.map(Some).to_vec(),
            fitted: vec![false, true, false],
            bases: vec![0; 3],
        }],
        conclusions: conclusions(throughput),
    }
}

fn conclusions([first, second, third]: [f64; 3]) -> Vec<PointConclusion> {
    let ratio = second / first;
    let instead = format!("throughput of second to first ×{ratio:.2}, not at least ×1.10");
    let conclusion = |claim: &str, holds: bool, instead: &str| PointConclusion {
        claim: claim.to_owned(),
        comes_back: Some(holds),
        instead: if holds { String::new() } else { instead.to_owned() },
    };
    vec![
        conclusion("The third is the fastest.", third > second, "it is not"),
        conclusion("The second gains a tenth.", ratio >= 1.1, &instead),
        conclusion("The third is beyond 47/s.", third > 47.0, "it is not"),
    ]
}

/// The second variant gains nothing with the lower value, and has another bottleneck with the higher one.
pub(super) fn examined() -> Examined {
    let mut higher = point([20.0, 27.0, 60.0]);
    higher.variants[1].bottleneck = "cpu-saturation at shop".to_owned();
    let scaled = |value: &str, point| Scaled { value: value.to_owned(), point: Some(point) };
    Examined {
        experiment: "shop".to_owned(),
        time_scale: 0.1,
        as_is: vec![point([20.0, 26.0, 46.0]), point([20.0, 26.2, 48.0])],
        parameters: vec![ScaledParameter {
            name: "store_delay_ms".to_owned(),
            value: "25".to_owned(),
            lower: scaled("20", point([26.0, 26.0, 46.0])),
            higher: scaled("30", higher),
        }],
        left_out: vec![LeftOut { what: "prices of the store".to_owned(), reason: "names no parameter".to_owned() }],
    }
}

pub(super) fn sensitivity() -> Sensitivity {
    Sensitivity { format: FORMAT.to_owned(), change: 0.2, experiments: vec![examined()] }
}
