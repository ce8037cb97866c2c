//! Whether something that is used up grows under one load, and where it would level off.

use narrows_model::series::Point;

use crate::read::intervals::Interval;

/// An interval's readings in four parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quarters {
    /// The lowest reading of each, which is what is in use after a collection.
    floors: [f64; 4],
    /// The highest of the first.
    first_peak: f64,
    /// The highest of the last.
    pub(crate) end: f64,
}

impl Quarters {
    /// `None` if one of them has fewer than `least` readings.
    pub(crate) fn new(points: &[Point], interval: &Interval, least: usize) -> Option<Self> {
        let parts = quarters_of(interval).map(|(start_ns, end_ns)| {
            let here = points.iter().filter(|point| (start_ns..end_ns).contains(&point.time_ns));
            here.map(|point| point.value).collect::<Vec<f64>>()
        });
        if parts.iter().any(|part| part.len() < least.max(1)) {
            return None;
        }
        let lowest = |part: &Vec<f64>| part.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = |part: &Vec<f64>| part.iter().copied().fold(0.0, f64::max);
        Some(Self {
            floors: [lowest(&parts[0]), lowest(&parts[1]), lowest(&parts[2]), lowest(&parts[3])],
            first_peak: highest(&parts[0]),
            end: highest(&parts[3]),
        })
    }

    pub(crate) fn start(&self) -> f64 {
        self.floors[0]
    }

    /// From the first floor to the last, three quarters of the time later.
    pub(crate) fn gain(&self) -> f64 {
        self.floors[3] - self.floors[0]
    }

    /// True if each floor is above the one before, and the last above all that was read in the first quarter.
    pub(crate) fn rise_steadily(&self) -> bool {
        self.floors.is_sorted_by(|one, next| one < next) && self.floors[3] > self.first_peak
    }

    /// Where it would level off, given how many requests ended in each quarter: infinite when a request adds as much at
    /// the end as at the start. What each quarter adds is taken to shrink by the same factor from one to the next.
    pub(crate) fn level(&self, ended: [f64; 4]) -> f64 {
        let gain = |at: usize| self.floors[at + 1] - self.floors[at];
        let requests = |at: usize| if ended.iter().all(|ended| *ended > 0.0) { ended[at] } else { 1.0 };
        let shrinks = (gain(2) / requests(2) / (gain(0) / requests(0))).max(0.0).sqrt();
        if shrinks >= 1.0 { f64::INFINITY } else { self.floors[3] + gain(2) * shrinks / (1.0 - shrinks) }
    }
}

/// First instant, and first instant after, of each quarter of an interval.
pub(crate) fn quarters_of(interval: &Interval) -> [(i64, i64); 4] {
    let at = |i: i64| interval.start_ns + (interval.end_ns - interval.start_ns) / 4 * i;
    [(at(0), at(1)), (at(1), at(2)), (at(2), at(3)), (at(3), interval.end_ns)]
}

/// By how much the lowest reading of the second half is above that of the first; none without two readings in each.
pub(crate) fn rise(points: &[Point], interval: &Interval) -> Option<f64> {
    let half_ns = interval.start_ns + (interval.end_ns - interval.start_ns) / 2;
    let (first, second): (Vec<Point>, Vec<Point>) = points.iter().partition(|point| point.time_ns < half_ns);
    let lowest =
        |half: &[Point]| half.iter().map(|point| point.value).min_by(f64::total_cmp).filter(|_| half.len() > 1);
    Some(lowest(&second)? - lowest(&first)?)
}
