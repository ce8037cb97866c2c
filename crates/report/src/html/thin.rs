//! Fewer points for the same picture: each interval of a line keeps its lowest and its highest point, so a spike of one
//! second survives in an hour.

/// A point of a line: seconds, value. A value that is not a number is a gap.
pub(super) type Xy = (f64, f64);

/// At most `points_max` points (at least 2), in order.
pub(super) fn thin(points: &[Xy], points_max: usize) -> Vec<Xy> {
    let intervals = (points_max / 2).max(1);
    if points.len() <= intervals * 2 {
        return points.to_vec();
    }
    let mut kept = Vec::with_capacity(intervals * 2);
    for n in 0..intervals {
        let interval = &points[n * points.len() / intervals..(n + 1) * points.len() / intervals];
        let drawn = || interval.iter().enumerate().filter(|(_, point)| !point.1.is_nan());
        let low = drawn().min_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(index, _)| index);
        let high = drawn().max_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(index, _)| index);
        match (low, high) {
            (Some(low), Some(high)) if low != high => kept.extend([interval[low.min(high)], interval[low.max(high)]]),
            (Some(only), _) => kept.push(interval[only]),
            (None, _) => kept.extend(interval.first()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spikes_and_order_survive() {
        let mut line: Vec<Xy> = (0..10_000).map(|n| (f64::from(n), f64::from(n % 7))).collect();
        line[4321].1 = 99.0;
        line[8765].1 = -5.0;
        let kept = thin(&line, 600);
        assert!(kept.len() <= 600);
        assert!(kept.contains(&(4321.0, 99.0)) && kept.contains(&(8765.0, -5.0)));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn short_lines_stay_as_they_are_and_gaps_stay_gaps() {
        let line: Vec<Xy> = (0..600).map(|n| (f64::from(n), 1.0)).collect();
        assert_eq!(thin(&line, 600), line);
        let gap: Vec<Xy> = (0..100).map(|n| (f64::from(n), if n < 50 { 1.0 } else { f64::NAN })).collect();
        let kept = thin(&gap, 10);
        assert!(kept[0].1 == 1.0 && kept[kept.len() - 1].1.is_nan());
    }
}
