//! Formats that are recognised but not read, so that an error can name them and suggest what to do.

/// A JSON object that is recognised by its members.
struct Foreign {
    /// Members that it must have, all of them.
    marks: &'static [&'static str],
    /// Its description, as it follows "it is".
    name: &'static str,
}

const FOREIGN: &[Foreign] = &[
    Foreign { marks: &["traceEvents"], name: "a trace of Chrome's trace viewer, which has no requests" },
    Foreign { marks: &["log"], name: "a HAR file" },
    Foreign {
        marks: &["traces", "metrics"],
        name: "a result of Tempo's search, which has no spans (`/api/traces/ID` has them)",
    },
    Foreign { marks: &["status", "data"], name: "a response of Prometheus' API, but not to a range query" },
    Foreign { marks: &["type", "metric", "data"], name: "k6's JSON output, which has no spans" },
    Foreign { marks: &["metrics", "root_group"], name: "k6's summary, which has no spans" },
    Foreign { marks: &["Traces"], name: "AWS X-Ray's JSON" },
    Foreign { marks: &["TraceSummaries"], name: "AWS X-Ray's list of traces, which has no spans" },
    Foreign { marks: &["trace_id", "id", "start_time"], name: "a segment of AWS X-Ray" },
    Foreign { marks: &["trace_id", "span_id", "resource"], name: "Datadog's JSON" },
    Foreign { marks: &["context", "kind", "parent_id"], name: "the output of Python's ConsoleSpanExporter" },
    Foreign { marks: &["transaction"], name: "Elastic APM's JSON" },
    Foreign { marks: &["metadata", "span"], name: "Elastic APM's JSON" },
    Foreign { marks: &["Profile"], name: "a profile" },
];

/// Maximum number of member names that are listed for an unknown object.
const NAMES_MAX: usize = 5;

/// A description of an object with these members.
pub(in super::super) fn described(members: &[String]) -> String {
    let has = |mark: &&str| members.iter().any(|member| member == mark);
    if let Some(foreign) = FOREIGN.iter().find(|foreign| foreign.marks.iter().all(&has)) {
        return foreign.name.to_owned();
    }
    match members {
        [] => "an object without members".to_owned(),
        [shown @ .., _] if members.len() > NAMES_MAX => format!("an object with {}, …", shown[..NAMES_MAX].join(", ")),
        members => format!("an object with {}", members.join(", ")),
    }
}

/// A description of a file with these first bytes, and a hint; `None` if it may be JSON.
pub(in super::super) fn of_first_bytes(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let begins = |with: &[u8]| bytes.starts_with(with);
    let word = |word: &str| {
        bytes.trim_ascii_start().get(..word.len()).is_some_and(|b| b.eq_ignore_ascii_case(word.as_bytes()))
    };
    match () {
        () if begins(b"SQLite format 3\0") => {
            Some(("an SQLite file, as run files are", "`narrows diagnose FILE` reads a run file"))
        }
        () if begins(&[0x28, 0xb5, 0x2f, 0xfd]) => Some(("compressed with Zstandard", "decompress it with `zstd -d`")),
        () if begins(&[0xfd, b'7', b'z', b'X', b'Z']) => Some(("compressed with xz", "decompress it with `xz -d`")),
        () if begins(b"PK\x03\x04") => Some(("a ZIP archive", "unpack it")),
        () if begins(&[0xff, 0xfe]) || begins(&[0xfe, 0xff]) => {
            Some(("UTF-16 text", "convert it with `iconv -f UTF-16 -t UTF-8`"))
        }
        () if word("<!doctype") || word("<html") => {
            Some(("a web page", "look at it: it may be a login page or an error"))
        }
        () if word("<?xml") => Some(("XML", "export JSON")),
        () if is_protobuf(bytes) => {
            Some(("binary, perhaps OTLP in protobuf", "the Collector's file exporter writes JSON with `format: json`"))
        }
        () => None,
    }
}

/// Whether these bytes may be protobuf messages: a length-delimited field first, and control characters that no text
/// contains.
fn is_protobuf(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(64)];
    head.iter().any(|byte| *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')) && !head.starts_with(&[0x1f, 0x8b])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recognised_is_named_and_the_rest_is_described() {
        let cases: [(&[&str], &str); 5] = [
            (&["traceEvents", "displayTimeUnit"], "a trace of Chrome's trace viewer, which has no requests"),
            (&["name", "context", "kind", "parent_id"], "the output of Python's ConsoleSpanExporter"),
            (&["a", "b"], "an object with a, b"),
            (&[], "an object without members"),
            (&["a", "b", "c", "d", "e", "f"], "an object with a, b, c, d, e, …"),
        ];
        for (members, expected) in cases {
            let members: Vec<String> = members.iter().map(|member| (*member).to_owned()).collect();
            assert_eq!(described(&members), expected);
        }
        let name = |bytes: &[u8]| of_first_bytes(bytes).map(|(name, _)| name);
        assert_eq!(name(b"SQLite format 3\0\x10"), Some("an SQLite file, as run files are"));
        assert_eq!(name(b"\xff\xfe{\0"), Some("UTF-16 text"));
        assert_eq!(name(b"\n <!DOCTYPE html>"), Some("a web page"));
        assert_eq!(name(b"\x0a\x90\x01\x0a\x12"), Some("binary, perhaps OTLP in protobuf"));
        for text in ["", "{\n\t\"a\": 1}\r\n", "[]", "hello"] {
            assert_eq!(name(text.as_bytes()), None, "{text}");
        }
    }
}
