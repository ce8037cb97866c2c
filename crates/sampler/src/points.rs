//! Points under construction: whose they are and when, said once.

use narrows_model::series::{Point, SeriesKey, names};

/// Where the points of one replica, or of the host, are put.
pub(super) struct Points<'a> {
    out: &'a mut Vec<(SeriesKey, Point)>,
    whose: (&'a str, u32),
    time_ns: i64,
}

impl<'a> Points<'a> {
    pub(super) fn new(out: &'a mut Vec<(SeriesKey, Point)>, whose: (&'a str, u32), time_ns: i64) -> Self {
        Self { out, whose, time_ns }
    }

    pub(super) fn push(&mut self, name: &'static str, value: f64) {
        self.push_labelled(name, &[], value);
    }

    /// The unit is the one that [`names::SAMPLED`] says.
    pub(super) fn push_labelled(&mut self, name: &'static str, labels: &[(&str, &str)], value: f64) {
        let unit = names::SAMPLED.iter().find(|(sampled, _)| *sampled == name).map_or("", |(_, unit)| unit);
        let key = SeriesKey {
            name: name.to_owned(),
            unit: unit.to_owned(),
            service: self.whose.0.to_owned(),
            replica: self.whose.1,
            labels: labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect(),
        };
        self.out.push((key, Point { time_ns: self.time_ns, value }));
    }
}
