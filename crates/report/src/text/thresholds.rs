//! The table of thresholds as text.

use super::paint::{Paint, clean, wrap};
use super::{Style, WIDTH_MIN};

/// Left edge of what a threshold means.
const INDENT: usize = 4;

/// Name, value and meaning of each threshold. Ends with a line feed.
pub fn thresholds(rows: &[[String; 3]], style: Style) -> String {
    let (paint, width) = (Paint(style.color), style.width.max(WIDTH_MIN));
    let mut out = String::new();
    for [name, value, says] in rows {
        out += &format!("{} = {value}\n", paint.bold(&clean(name)));
        for line in wrap(&clean(&says.replace('`', "")), width - INDENT) {
            out += &format!("{}{}\n", " ".repeat(INDENT), paint.dim(&line));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Color;

    #[test]
    fn a_threshold_stands_above_what_it_means() {
        let rows =
            [["cpu_limit_share", "0.85", "`cpu-saturation`: share of a service's CPU limit."].map(str::to_owned)];
        let told = thresholds(&rows, Style { width: 80, color: Color::Never });
        assert_eq!(told, "cpu_limit_share = 0.85\n    cpu-saturation: share of a service's CPU limit.\n");
    }
}
