//! JUnit's XML, which most systems of continuous integration read: a suite for each variant, a case for each figure.
//!
//! A figure that noise hides is a passed case with its numbers as output; only one that is worse fails.

use narrows_model::baseline::{Check, FigureCheck, Grade, VariantCheck};
use narrows_model::printable::{REPLACEMENT, is_obeyed};

use crate::checked::{grade, line, name};

/// The document. Ends with a line feed.
pub fn junit(check: &Check) -> String {
    let suites: String = check.variants.iter().map(|variant| suite(check, variant)).collect();
    let tests: usize = check.variants.iter().map(|variant| variant.figures.len()).sum();
    let failures: usize = check.variants.iter().map(|variant| variant.worse().count()).sum();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"narrows\" tests=\"{tests}\" failures=\"{failures}\">\n{suites}</testsuites>\n"
    )
}

fn suite(check: &Check, variant: &VariantCheck) -> String {
    let name = xml(&format!("{}:{}", check.experiment, variant.variant));
    let cases: String = variant.figures.iter().map(|figure| case(&name, figure)).collect();
    format!(
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\">\n{cases}  </testsuite>\n",
        variant.figures.len(),
        variant.worse().count()
    )
}

fn case(suite: &str, figure: &FigureCheck) -> String {
    let (name, line) = (xml(&name(figure)), xml(&line(figure)));
    let body = match figure.grade {
        Grade::Worse => format!("<failure message=\"{line}\"/>"),
        Grade::Better | Grade::Same => format!("<system-out>{line}</system-out>"),
        Grade::Unclear => format!("<system-out>{line}: {}</system-out>", grade(figure.grade)),
    };
    format!("    <testcase classname=\"{suite}\" name=\"{name}\">{body}</testcase>\n")
}

/// Text for content and for attributes in double quotes. Characters that XML 1.0 has no place for are replaced.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            c if is_obeyed(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(REPLACEMENT),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_worse_figure_is_a_failed_case() {
        insta::assert_snapshot!(junit(&fixture::check()), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="narrows" tests="6" failures="3">
          <testsuite name="orders:as-is" tests="6" failures="3">
            <testcase classname="orders:as-is" name="throughput"><system-out>throughput: 100/s → 100/s (+0.2 %, interval −5.0 to +6.0 %)</system-out></testcase>
            <testcase classname="orders:as-is" name="mean latency"><failure message="mean latency: 12.0 ms → 17.0 ms (+42 %, interval +20 to +68 %)"/></testcase>
            <testcase classname="orders:as-is" name="99 % latency"><system-out>99 % latency: 40.0 ms → 44.0 ms (+10 %, interval −30 to +70 %): cannot tell</system-out></testcase>
            <testcase classname="orders:as-is" name="orders GET /orders|all"><failure message="orders GET /orders|all: 11.0 ms → 16.0 ms (+45 %, interval +20 to +70 %)"/></testcase>
            <testcase classname="orders:as-is" name="orders GET /health"><system-out>orders GET /health: 1.00 ms → 1.00 ms (±0 %, interval −10 to +10 %)</system-out></testcase>
            <testcase classname="orders:as-is" name="failed requests"><failure message="failed requests: 0 % → 3.0 %"/></testcase>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn nothing_keeps_a_meaning() {
        assert_eq!(xml("<a b=\"c\">&\u{1b}\n\u{ffff}"), "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd} \u{fffd}");
    }
}
