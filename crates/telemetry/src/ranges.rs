//! Ranges of the numbers in telemetry, which may come from anywhere.

/// The latest instant that is read, in nanoseconds since the Unix epoch: in the year 2116. Differences of instants, and
/// sums of one and a few hours, fit an `i64`.
pub(crate) const INSTANT_NS_MAX: i64 = 1 << 62;
/// The most that one span or trace may stand for. Larger weights are no sampling rates, and could not be added up.
pub(crate) const WEIGHT_MAX: f64 = 1e9;
/// The largest number that is added up.
pub(crate) const ADDEND_MAX: u64 = 1 << 40;
