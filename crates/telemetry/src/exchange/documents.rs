//! JSON files, split into elements that fit into memory.
//!
//! There are two kinds, distinguished by their first lines. In a file of lines each line is a document: a damaged line
//! is skipped and the next one read. Any other file is read as one stream, so that a single object may be larger than
//! memory: its long lists are read element by element. In both cases at most [`ELEMENT_BYTES_MAX`] of text is held at
//! once.
//!
//! [`super::document`] interprets the documents. Invalid Unicode is replaced in both kinds ([`crate::unicode`]).

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::de::IgnoredAny;

use super::document::Document;
pub(super) use super::document::{Item, Place, Visit};
use crate::unicode::{self, BYTE_ORDER_MARK, Unicode};

/// The largest line, and the largest element of a list, in bytes.
pub const ELEMENT_BYTES_MAX: usize = 64 << 20;

/// Why reading ended before its time.
#[derive(Debug)]
pub(super) enum Interruption {
    Read(io::Error),
    /// Decision of the visitor.
    Visitor(String),
}

/// Calls `visit` for what a file holds; says whether it holds anything but white space.
pub(super) fn each(reader: &mut dyn BufRead, visit: Visit<'_>) -> Result<bool, Interruption> {
    if reader.fill_buf().map_err(Interruption::Read)?.starts_with(BYTE_ORDER_MARK) {
        reader.consume(BYTE_ORDER_MARK.len());
    }
    let mut head = Vec::new();
    let mut lines = 0;
    // The first line that says something decides, with the one after it.
    while head.trim_ascii().is_empty() {
        head.clear();
        lines += 1;
        if !read_line(reader, &mut head)? {
            return Ok(false);
        }
    }
    let first = head.len();
    let (is_whole, begins_with) = (is_document(&head), begins_with(&head));
    let mut is_followed =
        || Ok::<_, Interruption>(ended(&head) && read_line(reader, &mut head)? && is_document(&head[first..]));
    let is_lines = match begins_with {
        Some(b'{') => is_whole || is_followed()?,
        // A list that is the whole file may be larger than memory, so it is streamed.
        Some(b'[') => is_whole && is_followed()?,
        _ => false,
    };
    if is_lines {
        let mut rest = io::Cursor::new(head).chain(reader);
        each_line(&mut rest, lines, visit)?;
    } else {
        stream(io::Cursor::new(head).chain(reader), visit)?;
    }
    Ok(true)
}

fn is_document(line: &[u8]) -> bool {
    matches!(begins_with(line), Some(b'{' | b'[')) && serde_json::from_str::<IgnoredAny>(&unicode::text(line)).is_ok()
}

fn begins_with(line: &[u8]) -> Option<u8> {
    line.trim_ascii_start().first().copied()
}

fn ended(line: &[u8]) -> bool {
    line.ends_with(b"\n")
}

/// Appends a line with its end, cut off at the limit; false at the end of the file.
fn read_line(reader: &mut dyn BufRead, line: &mut Vec<u8>) -> Result<bool, Interruption> {
    let read = reader.take(ELEMENT_BYTES_MAX as u64).read_until(b'\n', line).map_err(Interruption::Read)?;
    Ok(read > 0)
}

fn each_line(reader: &mut dyn BufRead, first: u64, visit: Visit<'_>) -> Result<(), Interruption> {
    let mut line = Vec::new();
    let mut number = first;
    while read_line(reader, &mut line)? {
        let place = Place::Line(number);
        if line.len() >= ELEMENT_BYTES_MAX && !ended(&line) {
            skip_line(reader)?;
            let what = format!("longer than {} MiB, the most that is read at once", ELEMENT_BYTES_MAX >> 20);
            visit(Item::Broken { what, place }).map_err(Interruption::Visitor)?;
        } else if !line.trim_ascii().is_empty() {
            let text = unicode::text(&line);
            let mut json = serde_json::Deserializer::from_str(&text);
            let mut document = Document { visit: &mut *visit, place, failed: None, passed: &|| {} };
            let read = document.read(&mut json).and_then(|()| json.end());
            if let Some(failed) = document.failed {
                return Err(Interruption::Visitor(failed));
            }
            if let Err(error) = read {
                visit(Item::Broken { what: what_of(&error), place }).map_err(Interruption::Visitor)?;
            }
        }
        line.clear();
        number += 1;
    }
    Ok(())
}

fn skip_line(reader: &mut dyn BufRead) -> Result<(), Interruption> {
    loop {
        let buffer = reader.fill_buf().map_err(Interruption::Read)?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (used, is_over) = (end.map_or(buffer.len(), |at| at + 1), end.is_some() || buffer.is_empty());
        reader.consume(used);
        if is_over {
            return Ok(());
        }
    }
}

/// Documents one after the other, of which none needs to fit into memory.
fn stream(reader: impl Read, visit: Visit<'_>) -> Result<(), Interruption> {
    let meter = Meter::default();
    let mut json =
        serde_json::Deserializer::from_reader(MeteredReader { inner: Unicode::new(reader), meter: meter.clone() });
    let passed = || meter.reset();
    for number in 1.. {
        let place = if number == 1 { Place::Anywhere } else { Place::Document(number) };
        let mut document = Document { visit: &mut *visit, place, failed: None, passed: &passed };
        meter.reset();
        let read = document.read(&mut json);
        if let Some(failed) = document.failed {
            return Err(Interruption::Visitor(failed));
        }
        let Err(error) = read else {
            match json.end() {
                Ok(()) => return Ok(()),
                // There is another document; what is wrong with it, it will say itself.
                Err(_) => continue,
            }
        };
        if let Some(error) = meter.0.failed.take() {
            return Err(Interruption::Read(error));
        }
        let what = match meter.is_exceeded() {
            true => format!(
                "an element before line {}, column {} is larger than {} MiB, the most that is read at once",
                error.line(),
                error.column(),
                ELEMENT_BYTES_MAX >> 20
            ),
            false => format!("line {}, column {}: {}", error.line(), error.column(), what_of(&error)),
        };
        return visit(Item::Broken { what, place: Place::Anywhere }).map_err(Interruption::Visitor);
    }
    Ok(())
}

/// The message without its place, which counts from the start of a line or of the file as the case may be.
fn what_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

/// How much was read since the last element.
#[derive(Debug, Clone, Default)]
struct Meter(Rc<Gauge>);

#[derive(Debug, Default)]
struct Gauge {
    read: Cell<usize>,
    failed: RefCell<Option<io::Error>>,
}

impl Meter {
    fn reset(&self) {
        self.0.read.set(0);
    }

    fn is_exceeded(&self) -> bool {
        self.0.read.get() > ELEMENT_BYTES_MAX
    }
}

/// Ends an element that is too large, as an error of reading.
struct MeteredReader<R> {
    inner: R,
    meter: Meter,
}

impl<R: Read> Read for MeteredReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.meter.is_exceeded() {
            return Err(io::Error::other("an element is too large"));
        }
        let read = self.inner.read(buffer).map_err(|error| {
            let kind = error.kind();
            self.meter.0.failed.replace(Some(error));
            io::Error::from(kind)
        })?;
        self.meter.0.read.set(self.meter.0.read.get() + read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &[u8]) -> (bool, Vec<String>) {
        let mut all = Vec::new();
        let mut visit = |found: Item<'_>| {
            all.push(match found {
                Item::Part { path, text, place, .. } => format!("{place}{path} {text}"),
                Item::Unknown { what, path, place } => format!("{place}{path}unknown: {what}"),
                Item::Broken { what, place } => format!("{place}broken: {what}"),
            });
            Ok(())
        };
        let has_content = each(&mut io::BufReader::with_capacity(3, text), &mut visit).unwrap();
        (has_content, all)
    }

    #[test]
    fn a_document_may_be_laid_out_in_any_way() {
        let expected = ["data[0] {\"a\":[1,2]}", "data[1] 3"];
        for text in [
            "{\"total\":0,\"data\":[{\"a\":[1,2]},3],\"errors\":null}",
            "\n \n{\n\"total\": 0,\n\"data\": [\n{\"a\":[1,2]}, 3\n]}\n",
        ] {
            let (has_content, all) = found(text.as_bytes());
            let all: Vec<&str> = all.iter().map(|line| line.trim_start_matches("line 1: ")).collect();
            assert!(has_content);
            assert_eq!(all, expected, "{text}");
        }
        let bare = "{\"traceID\":\"1\",\n\"spans\":[],\n\"other\":0,\"processes\":{}}";
        let whole = "{\"traceID\":\"1\",\"spans\":[],\"processes\":{}}";
        assert_eq!(found(bare.as_bytes()).1, [format!(" {whole}")]);
        assert_eq!(found(format!("[{bare},\n{bare}]").as_bytes()).1, [format!("[0] {whole}"), format!("[1] {whole}")]);
        assert_eq!(found(b"{\"data\":[],\"errors\":null}").1, [""; 0]);
    }

    #[test]
    fn documents_stand_in_lists_and_in_wrappers() {
        let cases: [(&str, &[&str]); 6] = [
            (
                "[{\"resourceSpans\":[1,2]},\n{\"resourceLogs\":[3]}]",
                &["[0].resourceSpans[0] 1", "[0].resourceSpans[1] 2", "[1].resourceLogs[0] 3"],
            ),
            ("[[{\"traceId\":\"1\",\"id\":\"2\"}],\n[]]", &["[0][0] {\"traceId\":\"1\",\"id\":\"2\"}"]),
            ("{\"trace\":{\"batches\":[1]},\n\"metrics\":{}}", &["trace.batches[0] 1"]),
            ("{\"result\":{\"resourceSpans\":[1]}\n}", &["result.resourceSpans[0] 1"]),
            ("{\"data\":null,\n\"errors\":[{}]}", &[" {\"errors\":[{}]}"]),
            (
                "[1,\n[[[[2]]]]]",
                &[
                    "[0]unknown: a value that is neither an object nor a list",
                    "[1][0][0][0]unknown: a value that is neither an object nor a list",
                ],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text.as_bytes()).1, expected, "{text}");
        }
    }

    #[test]
    fn lines_may_be_lists_and_text_that_is_no_unicode_is_replaced() {
        let lines = "[{\"traceId\":\"1\",\"id\":\"2\"}]\n[{\"traceId\":\"1\",\"id\":\"3\"}]\n";
        let expected = ["line 1: [0] {\"traceId\":\"1\",\"id\":\"2\"}", "line 2: [0] {\"traceId\":\"1\",\"id\":\"3\"}"];
        assert_eq!(found(lines.as_bytes()).1, expected);
        let half = br#"{"\ud800":0,"data":["\ud800"]}"#;
        assert_eq!(found(half).1, [r#"line 1: data[0] "\ufffd""#]);
        assert_eq!(found(b"\xef\xbb\xbf{\n\"data\":[\"\xf0\"]}").1, ["data[0] \"\u{fffd}\""]);
    }

    #[test]
    fn lines_are_documents_of_their_own_and_a_damaged_one_costs_only_itself() {
        let text = "{\"resourceSpans\":[1]}\n\n{\"resourceSpans\":[2\n{\"resourceLogs\":[3]}x\n{\"a\":0,\"b\":0}\n{\"resourceMetrics\":[4]}";
        let expected = [
            "line 1: resourceSpans[0] 1",
            "line 3: resourceSpans[0] 2",
            "line 3: broken: EOF while parsing a list",
            "line 4: resourceLogs[0] 3",
            "line 4: broken: trailing characters",
            "line 5: unknown: an object with a, b",
            "line 6: resourceMetrics[0] 4",
        ];
        assert_eq!(found(text.as_bytes()).1, expected);
        let damaged_first = "{\"resourceSpans\":[1\n{\"resourceSpans\":[2]}\n";
        assert_eq!(found(damaged_first.as_bytes()).1.last().unwrap(), "line 2: resourceSpans[0] 2");
    }

    #[test]
    fn documents_may_follow_each_other() {
        let text = "{\n\"data\":[1]}\n{\"data\":[2]} {\"data\":[3]}";
        assert_eq!(found(text.as_bytes()).1, ["data[0] 1", "document 2: data[0] 2", "document 3: data[0] 3"]);
    }

    #[test]
    fn what_is_no_json_is_said_with_its_place() {
        let cases: [(&[u8], u32, &str); 8] = [
            (b"hello", 1, "expected value"),
            (b"{\n\"data\": [1, 2,, 3]}", 2, "expected value"),
            (b"{\n\"data\": 5}", 2, "invalid type: integer `5`, expected a list as \"data\""),
            (b"{\n\"data\": \"secret\"}", 2, "invalid type: a string, expected a list as \"data\""),
            (b"\"secret\"", 1, "invalid type: a string, expected an object or a list"),
            (b"5", 1, "invalid type: integer `5`, expected an object or a list"),
            (b"\x1f\x8b\x08", 1, "expected value"),
            (b"{\"x\":", 1, "EOF while parsing a value"),
        ];
        for (text, line, expected) in cases {
            let said = found(text).1.pop().unwrap();
            let place = format!("broken: line {line}, column ");
            assert!(said.starts_with(&place) && said.ends_with(&format!(": {expected}")), "{said}");
        }
        assert_eq!(found(b" \n\t\n"), (false, Vec::new()));
        assert_eq!(found(b""), (false, Vec::new()));
    }

    /// Endless text of an object whose single element never ends.
    struct Endless(usize);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let head = b"{\n\"data\":[\"";
            let take = |at: usize| head.get(at).copied().unwrap_or(b'x');
            buffer.iter_mut().enumerate().for_each(|(i, byte)| *byte = take(self.0 + i));
            self.0 += buffer.len();
            Ok(buffer.len())
        }
    }

    #[test]
    fn an_element_without_end_is_given_up() {
        let mut said = Vec::new();
        let mut visit = |found: Item<'_>| {
            said.push(format!("{found:?}"));
            Ok(())
        };
        each(&mut io::BufReader::new(Endless(0)), &mut visit).unwrap();
        assert!(said.len() == 1 && said[0].contains("larger than 64 MiB"), "{said:?}");
    }

    #[test]
    fn what_the_visitor_says_ends_it() {
        let mut visit = |_: Item<'_>| Err("full".to_owned());
        let stopped = each(&mut io::Cursor::new(b"{\"data\":[1,2]}"), &mut visit).unwrap_err();
        assert!(matches!(stopped, Interruption::Visitor(what) if what == "full"));
    }
}
