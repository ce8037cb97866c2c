//! The values that `{{name}}` stands for, drawn per iteration: one row of each source that its steps use.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use narrows_model::load::{DataSource, DataValues, Pick};

use crate::part::LoadPart;
use crate::random::Random;

/// The plan's data sources, shared by all threads of a process. Rows that are drawn in order belong to threads of the load in
/// turn, so that processes which share the load draw different ones.
pub(crate) struct Sources<'plan> {
    all: Vec<Source<'plan>>,
    part: LoadPart,
}

struct Source<'plan> {
    values: &'plan DataValues,
    next: AtomicU64,
}

/// Draw from one source: a row's number, or the bits of a whole number.
pub(crate) type Draw = u64;

impl<'plan> Sources<'plan> {
    pub(crate) fn new(sources: &'plan [DataSource], part: LoadPart) -> Self {
        Self { all: sources.iter().map(|s| Source { values: &s.values, next: AtomicU64::new(0) }).collect(), part }
    }

    /// Draws a row of each source in `used` into its place in `draws`; `None` if one of them has no row left. The
    /// sources have to exist.
    pub(crate) fn draw_all(&self, used: &[usize], random: &mut Random, draws: &mut Vec<Draw>) -> Option<()> {
        draws.resize(self.all.len(), 0);
        for source in used {
            draws[*source] = self.draw(*source, random)?;
        }
        Some(())
    }

    /// Draws a row; `None` if all were drawn that there are to draw. The source has to exist.
    fn draw(&self, source: usize, random: &mut Random) -> Option<Draw> {
        let source = &self.all[source];
        let next = || self.part.number_of(source.next.fetch_add(1, Ordering::Relaxed));
        Some(match source.values {
            DataValues::Integers { from, to } => random.between(*from, *to) as u64,
            DataValues::Rows { rows, pick: Pick::Random, .. } => random.below(rows.len() as u64),
            DataValues::Rows { rows, pick: Pick::Sequential, .. } => next() % (rows.len() as u64).max(1),
            DataValues::Rows { rows, pick: Pick::Once, .. } => {
                let next = next();
                return (next < rows.len() as u64).then_some(next);
            }
        })
    }

    /// Hands a drawn row's cell to `take`.
    pub(crate) fn with_cell(&self, source: usize, column: usize, draw: Draw, take: impl FnOnce(&[u8])) {
        match self.all[source].values {
            DataValues::Integers { .. } => {
                let mut digits = [0u8; 20];
                let mut rest = &mut digits[..];
                // 20 bytes hold every i64, so this cannot fail.
                let _ = write!(rest, "{}", draw as i64);
                let left = rest.len();
                take(&digits[..20 - left]);
            }
            DataValues::Rows { rows, .. } => {
                take(rows.get(draw as usize).and_then(|row| row.get(column)).map_or(b"", |cell| cell.as_bytes()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pick: Pick) -> DataSource {
        let rows = (0..5).map(|i| vec![format!("a{i}"), format!("b{i}")]).collect();
        DataSource {
            name: "owner".into(),
            values: DataValues::Rows { columns: vec!["a".into(), "b".into()], rows, pick },
        }
    }

    fn cell(sources: &Sources<'_>, column: usize, draw: Draw) -> String {
        let mut text = String::new();
        sources.with_cell(0, column, draw, |bytes| text = String::from_utf8(bytes.to_vec()).unwrap());
        text
    }

    #[test]
    fn sequential_rows_come_in_order_and_again() {
        let data = [rows(Pick::Sequential)];
        let sources = Sources::new(&data, LoadPart::whole(1, 0));
        let mut random = Random::new(0, 0);
        let cells: Vec<String> = (0..7).map(|_| cell(&sources, 1, sources.draw(0, &mut random).unwrap())).collect();
        assert_eq!(cells, ["b0", "b1", "b2", "b3", "b4", "b0", "b1"]);
    }

    #[test]
    fn rows_to_be_taken_once_come_in_order_and_then_no_more() {
        let data = [rows(Pick::Once)];
        let sources = Sources::new(&data, LoadPart::whole(1, 0));
        let (mut random, mut draws) = (Random::new(0, 0), Vec::new());
        let mut drawn = || sources.draw_all(&[0], &mut random, &mut draws).map(|()| draws[0]);
        let all: Vec<Option<Draw>> = (0..7).map(|_| drawn()).collect();
        assert_eq!(all, [Some(0), Some(1), Some(2), Some(3), Some(4), None, None]);
    }

    #[test]
    fn random_rows_are_all_drawn_and_columns_belong_together() {
        let data = [rows(Pick::Random)];
        let sources = Sources::new(&data, LoadPart::whole(1, 0));
        let mut random = Random::new(0, 0);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            let draw = sources.draw(0, &mut random).unwrap();
            seen[draw as usize] += 1;
            assert_eq!(cell(&sources, 0, draw)[1..], cell(&sources, 1, draw)[1..]);
        }
        assert!(seen.iter().all(|n| *n > 100), "{seen:?}");
    }

    #[test]
    fn the_widest_integers_are_written_whole() {
        let data = [DataSource { name: "n".into(), values: DataValues::Integers { from: i64::MIN, to: i64::MAX } }];
        let sources = Sources::new(&data, LoadPart::whole(1, 0));
        for n in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(cell(&sources, 0, n as u64), n.to_string());
        }
    }
}
