//! A digest of an experiment, by which it is recognised. It protects nothing: it only shows that a text has changed.

/// Of an experiment's text and the factor on its durations, as sixteen hexadecimal digits. Lines that are empty or a
/// comment, and blanks at the end of a line, do not count. FNV-1a (Fowler, Noll and Vo), 64 bits.
pub(super) fn of(source: &str, time_scale: f64) -> String {
    let lines = source.lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty() && !line.trim_start().starts_with('#'));
    let scale = format!("time scale {time_scale}");
    let bytes = lines.chain([scale.as_str()]).flat_map(|line| line.bytes().chain([b'\n']));
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.fold(0xcbf2_9ce4_8422_2325, mix))
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn comments_do_not_count_and_values_do() {
        let text = "experiment: a\nload:\n  rate: 5\n";
        assert_eq!(of(text, 1.0), of("# why\nexperiment: a\n\nload:  \n  # so\n  rate: 5", 1.0));
        assert_ne!(of(text, 1.0), of("experiment: a\nload:\n  rate: 6\n", 1.0));
        assert_ne!(of(text, 1.0), of(text, 0.5));
        assert_ne!(of(text, 1.0), of("experiment: a\nload:\nrate: 5\n", 1.0), "indentation is meaning");
        assert_eq!(of(text, 1.0).len(), 16);
    }
}
