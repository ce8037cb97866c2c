//! Searches for traces, as SQL.
//!
//! It reads the tables behind the view `spans`: over a million spans, the view would compute text for every row that is only
//! counted.

use crate::address::Parameters;
use crate::error::Refusal;
use crate::sql::literal;

/// Form's names of the order of results, with SQL's.
pub(crate) const ORDERS: [(&str, &str, &str); 4] = [
    ("slowest", "slowest first", "length_ns DESC"),
    ("fastest", "fastest first", "length_ns"),
    ("first", "first first", "start_ns"),
    ("last", "last first", "start_ns DESC"),
];

/// A search for traces of a trial. A trace is found if one of its spans is; the longest of those stands for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Search {
    pub(crate) trial: i64,
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) failed: bool,
    pub(crate) least_ms: Option<f64>,
    pub(crate) most_ms: Option<f64>,
    pub(crate) from_ns: Option<i64>,
    pub(crate) to_ns: Option<i64>,
    /// Name and value of an attribute; any value if that is empty.
    pub(crate) attribute: Option<(String, String)>,
    /// A detector whose findings show the trace.
    pub(crate) finding: String,
}

impl Search {
    /// The search that a form asks for.
    pub(crate) fn read(trial: i64, form: &Parameters) -> Result<Self, Refusal> {
        let text = |name: &str| form.get(name).unwrap_or_default().trim().to_owned();
        Ok(Self {
            trial,
            service: text("service"),
            name: text("name"),
            failed: form.get("status") == Some("failed"),
            least_ms: number(form, "least")?,
            most_ms: number(form, "most")?,
            from_ns: number(form, "from")?.map(|at: f64| at as i64),
            to_ns: number(form, "to")?.map(|at: f64| at as i64),
            attribute: form.get("attribute").map(|text| match text.split_once('=') {
                Some((name, value)) => (name.trim().to_owned(), value.trim().to_owned()),
                None => (text.trim().to_owned(), String::new()),
            }),
            finding: text("finding"),
        })
    }

    /// The traces that are found: `trace`, `start_ns`, `length_ns`, `shape`, `failed` and `spans`, the number of its spans that
    /// are.
    pub(crate) fn sql(&self) -> String {
        let mut of_shape = vec![format!("h.trial = {}", self.trial)];
        let named =
            |column: &str, text: &str| format!("(SELECT text FROM strings WHERE id = h.{column}) = {}", literal(text));
        if !self.service.is_empty() {
            of_shape.push(named("service", &self.service));
        }
        if !self.name.is_empty() {
            of_shape.push(format!("({} OR {})", named("name", &self.name), named("request_name", &self.name)));
        }
        if self.failed {
            of_shape.push(FAILED.to_owned());
        }
        let mut of_span: Vec<String> = Vec::new();
        of_span.extend(self.from_ns.map(|at| format!("s.start_ns >= {at}")));
        of_span.extend(self.to_ns.map(|at| format!("s.start_ns < {at}")));
        if let Some((name, value)) = &self.attribute {
            of_shape.push(format!(
                "instr((SELECT text FROM strings WHERE id = h.attributes), {}) > 0",
                literal(&format!("\"{}\"", name.replace('"', "")))
            ));
            if !value.is_empty() {
                let path = literal(&format!("$.\"{}\"", name.replace('"', "")));
                of_span.push(format!("CAST(json_extract({ATTRIBUTES}, {path}) AS TEXT) = {}", literal(value)));
            }
        }
        if !self.finding.is_empty() {
            of_span.push(format!(
                "s.trace IN (SELECT n.id FROM findings AS f, json_each(f.body, '$.exemplars') AS e \
                 JOIN trace_rows AS n ON n.trace_hex = json_extract(e.value, '$.trace_id') AND n.trial = f.trial \
                 WHERE f.trial = {} AND f.detector = {})",
                self.trial,
                literal(&self.finding)
            ));
        }
        let mut having: Vec<String> = Vec::new();
        having.extend(self.least_ms.map(|ms| format!("max(s.length_ns) >= {}", ms * 1e6)));
        having.extend(self.most_ms.map(|ms| format!("max(s.length_ns) < {}", ms * 1e6)));
        let all = |conditions: &[String], none: &str| {
            if conditions.is_empty() { none.to_owned() } else { conditions.join(" AND ") }
        };
        // Columns beside a single maximum are those of the row that has it, so there is no second one.
        format!(
            "SELECT s.trace, s.start_ns, max(s.length_ns) AS length_ns, s.shape, sum({FAILED}) > 0 AS failed, count(*) AS spans \
             FROM span_rows AS s JOIN span_shape_rows AS h ON h.id = s.shape \
             WHERE {} AND {} GROUP BY s.trace HAVING {}",
            of_shape.join(" AND "),
            all(&of_span, "1"),
            all(&having, "1"),
        )
    }
}

/// Condition on a span that has failed, as [`narrows_model::trace::SpanKind::has_failed`] says it.
const FAILED: &str = "(h.status = 2 OR coalesce(h.http_status, 0) >= CASE WHEN h.kind IN (3, 4) THEN 400 ELSE 500 END)";

const ATTRIBUTES: &str = "printf((SELECT text FROM strings WHERE id = h.attributes), \
                          s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, s.a8, s.a9)";

fn number(form: &Parameters, name: &str) -> Result<Option<f64>, Refusal> {
    let Some(text) = form.get(name) else { return Ok(None) };
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(Some).ok_or_else(|| Refusal::Invalid(format!("“{text}” is no number, which `{name}` has to be.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_and_text_in_it_stays_text() {
        let form =
            "service=a%27b&name=GET+%2F&status=failed&least=1.5&attribute=http.route%3D%2Fx%27&finding=n-plus-one";
        let search = Search::read(3, &Parameters::parse(Some(form))).unwrap();
        assert_eq!((search.service.as_str(), search.least_ms), ("a'b", Some(1.5)));
        let sql = search.sql();
        assert!(sql.contains("= 'a''b'") && sql.contains("= '/x'''") && sql.contains(">= 1500000"), "{sql}");
        assert!(Search::read(1, &Parameters::parse(Some("least=x"))).is_err());
        assert!(Search::read(1, &Parameters::parse(Some("least=inf"))).is_err());
    }
}
