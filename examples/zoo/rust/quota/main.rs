//! Draws a small fractal.
//!
//! There is nothing wrong with the program: the experiment's faulty variant gives it a tenth of a core.

use axum::Router;
use axum::routing::get;

const SIDE: usize = 160;
const DEPTH: usize = 120;

fn depth(real: f64, imaginary: f64) -> usize {
    let (mut x, mut y) = (0.0_f64, 0.0_f64);
    for step in 0..DEPTH {
        if x * x + y * y > 4.0 {
            return step;
        }
        (x, y) = (x * x - y * y + real, 2.0 * x * y + imaginary);
    }
    DEPTH
}

async fn fractal() -> String {
    let scale = |at: usize| at as f64 * 3.0 / SIDE as f64;
    let row = |y: usize| (0..SIDE).map(move |x| if depth(scale(x) - 2.2, scale(y) - 1.5) == DEPTH { '#' } else { '.' });
    (0..SIDE).flat_map(|y| row(y).chain(['\n'])).collect()
}

fn main() -> std::io::Result<()> {
    zoo::serve(Router::new().route("/health", get(async || "ok")).route("/fractal", get(fractal)))
}
