//! Findings as data in lines of text, for tests that compare them with earlier findings.

use narrows_model::finding::Finding;

/// One finding in each line: role, kind, place, operation, cost, confidence; effects below their causes. No wording is
/// in it. `depth` is how far the lines are indented.
pub fn findings_in_lines(findings: &[Finding], depth: usize) -> String {
    let line = |finding: &Finding| {
        let operation = finding.operation.as_deref().unwrap_or("-");
        format!(
            "{:indent$}{:?} {} at {} | {operation} | {:.2} | {}\n{}",
            "",
            finding.role,
            finding.kind(),
            finding.resource,
            finding.cost_share,
            finding.confidence.as_str(),
            findings_in_lines(&finding.effects, depth + 1),
            indent = 2 * depth
        )
    };
    findings.iter().map(line).collect()
}
