//! Braille dots, two across and four down in each character, and straight lines between them.

/// A drawing of so many characters.
pub(super) struct Canvas {
    columns: usize,
    rows: usize,
    /// The dots of each character, as the braille block of Unicode orders them.
    cells: Vec<u8>,
}

/// Bit of a dot, by its place in the character: `[across][down]`.
const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
/// The braille character without a dot.
const BLANK: u32 = 0x2800;

impl Canvas {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, cells: vec![0; columns * rows] }
    }

    /// Draws a line between two places, each 0 to 1 from the left and from the bottom.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (a, b) = (self.dot(from.0, from.1), self.dot(to.0, to.1));
        let steps = (b.0 - a.0).abs().max((b.1 - a.1).abs()).max(1.0);
        for step in 0..=steps as usize {
            let share = step as f64 / steps;
            self.set(a.0 + (b.0 - a.0) * share, a.1 + (b.1 - a.1) * share);
        }
    }

    /// The dot of a place, counted from the top left.
    fn dot(&self, x: f64, y: f64) -> (f64, f64) {
        let (across, down) = ((self.columns * 2 - 1) as f64, (self.rows * 4 - 1) as f64);
        ((x.clamp(0.0, 1.0) * across).round(), ((1.0 - y.clamp(0.0, 1.0)) * down).round())
    }

    fn set(&mut self, x: f64, y: f64) {
        let (x, y) = (x.round() as usize, y.round() as usize);
        if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
            *cell |= BITS[x % 2][y % 4];
        }
    }

    /// The lines of text, from the top. Blank characters are spaces.
    pub(super) fn lines(&self) -> Vec<String> {
        let character = |dots: &u8| match dots {
            0 => ' ',
            dots => char::from_u32(BLANK + u32::from(*dots)).unwrap_or(' '),
        };
        self.cells.chunks(self.columns.max(1)).map(|row| row.iter().map(character).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_from_corner_to_corner() {
        let mut canvas = Canvas::new(4, 2);
        canvas.line((0.0, 0.0), (1.0, 1.0));
        assert_eq!(canvas.lines(), ["  ⡠⠊", "⡠⠊  "]);
        let mut canvas = Canvas::new(2, 1);
        canvas.line((0.0, 1.0), (9.0, 1.0));
        canvas.line((0.0, -5.0), (0.0, -5.0));
        assert_eq!(canvas.lines(), ["⡉⠉"]);
    }
}
