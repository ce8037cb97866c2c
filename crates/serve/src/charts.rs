//! Small charts, as SVG.

use maud::{Markup, html};
use narrows_model::units;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 8.0;

/// A trace in a scatter plot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dot {
    pub(crate) start_ns: i64,
    pub(crate) length_ns: f64,
    pub(crate) has_failed: bool,
    pub(crate) link: String,
}

/// Length over time, the length by its logarithm. The script lets a window be drawn; what it selects goes into the form.
pub(crate) fn scatter(dots: &[Dot]) -> Markup {
    let start_ns = dots.iter().map(|dot| dot.start_ns).min().unwrap_or(0);
    let end_ns = dots.iter().map(|dot| dot.start_ns).max().unwrap_or(0).max(start_ns + 1);
    let lengths = || dots.iter().map(|dot| dot.length_ns.max(1.0));
    let low = lengths().reduce(f64::min).unwrap_or(1.0).log10().floor();
    let high = lengths().fold(1.0, f64::max).log10().ceil().max(low + 1.0);
    let x = |ns: i64| LEFT + (ns - start_ns) as f64 / (end_ns - start_ns) as f64 * (WIDTH - LEFT - 10.0);
    let y = |ns: f64| TOP + (high - ns.max(1.0).log10()) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let decades = (low as i32)..=(high as i32);
    let seconds = (end_ns - start_ns) as f64 / 1e9;
    html! {
        figure.scatter data-start=(start_ns) data-end=(end_ns) data-low=(low) data-high=(high)
            data-box=(format!("{LEFT} {TOP} {} {}", WIDTH - 10.0, HEIGHT - BOTTOM)) {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
                aria-label=(format!("Latency of {} traces over {seconds:.0} s", dots.len())) {
                @for decade in decades {
                    @let at = y(10f64.powi(decade));
                    path.grid d=(format!("M{LEFT} {at:.1}H{WIDTH}")) {}
                    text.end x=(LEFT - 8.0) y=(format!("{:.1}", at + 4.0)) { (units::duration(10f64.powi(decade))) }
                }
                text x=(LEFT) y=(HEIGHT - 6.0) { "0 s" }
                text.end x=(WIDTH - 10.0) y=(HEIGHT - 6.0) { (format!("{seconds:.0} s")) }
                @for dot in dots {
                    a href=(dot.link) tabindex="-1" {
                        circle.failed[dot.has_failed] cx=(format!("{:.1}", x(dot.start_ns)))
                            cy=(format!("{:.1}", y(dot.length_ns))) r="3.2" {
                            title { (units::duration(dot.length_ns)) }
                        }
                    }
                }
            }
        }
    }
}

/// Bars of figures beside each other, each as high as it is of the highest.
pub(crate) fn sparkline(values: &[Option<f64>]) -> Markup {
    const BAR: f64 = 7.0;
    const HIGH: f64 = 24.0;
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let width = BAR * values.len() as f64;
    html! {
        @if most > 0.0 {
            svg.spark viewBox=(format!("0 0 {width} {HIGH}")) width=(width) height=(HIGH) aria-hidden="true" {
                @for (at, value) in values.iter().enumerate() {
                    @let high = value.unwrap_or(0.0) / most * HIGH;
                    rect x=(BAR * at as f64) y=(format!("{:.1}", HIGH - high)) width=(BAR - 2.0) height=(format!("{high:.1}")) {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_stand_inside_whatever_they_are() {
        let dot = |start_ns, length_ns| Dot { start_ns, length_ns, has_failed: true, link: "/a".into() };
        for dots in [vec![], vec![dot(5, 0.0)], vec![dot(i64::MIN / 4, 1.0), dot(i64::MAX / 4, 1e18)]] {
            let drawn = scatter(&dots).into_string();
            assert_eq!(drawn.matches("<circle class=\"failed\"").count(), dots.len());
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
    }
}
