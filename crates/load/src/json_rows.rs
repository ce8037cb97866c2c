//! Reads the rows of a data source from a JSON file: an array of objects, or of single values.
//!
//! The file is read whole, within the limit of CSV files. Texts are taken as they are, numbers, `true` and `false` as
//! JSON writes them, and `null` as no text. Objects and arrays within rows are refused, since a cell is one text.

use std::fmt;
use std::io::Read;
use std::path::Path;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::Error;
use crate::csv_rows::FILE_BYTES_MAX;

/// A JSON file's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonRows {
    /// The keys of the first object, in its order; empty when the rows are single values.
    pub columns: Vec<String>,
    /// The rows, at least one, each with as many cells as there are columns, or with one.
    pub rows: Vec<Vec<String>>,
}

/// Reads a file.
///
/// # Errors
/// [`Error::DataFile`] when it cannot be read or is larger than [`FILE_BYTES_MAX`]; [`Error::DataRow`] with the line
/// when it is not JSON, not an array, has no row, or when a row has other keys than the first, a key twice, or an object
/// or array in it.
pub fn read(path: &Path) -> Result<JsonRows, Error> {
    let failed = |source| Error::DataFile { path: path.to_owned(), source };
    let file = narrows_files::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(std::io::Error::other(format!("it is larger than {FILE_BYTES_MAX} bytes"))));
    }
    parse(path, bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<JsonRows, Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        let text = error.to_string();
        let at = format!(" at line {} column {}", error.line(), error.column());
        let problem = text.strip_suffix(&at).unwrap_or(&text).to_owned();
        Error::DataRow { path: path.to_owned(), line: error.line().max(1) as u64, problem }
    })
}

impl<'de> Deserialize<'de> for JsonRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Table)
    }
}

struct Table;

impl<'de> Visitor<'de> for Table {
    type Value = JsonRows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonRows, A::Error> {
        let mut first: Option<Option<Vec<String>>> = None;
        let mut rows = Vec::new();
        while let Some(row) = items.next_element::<Row>()? {
            let columns = match &first {
                Some(columns) => columns,
                None => first.insert(row.keys()),
            };
            rows.push(row.into_cells(columns.as_deref()).map_err(de::Error::custom)?);
        }
        let columns = first.ok_or_else(|| de::Error::custom("at least one row is required"))?;
        Ok(JsonRows { columns: columns.unwrap_or_default(), rows })
    }
}

/// One item of the array.
enum Row {
    Object(Vec<(String, String)>),
    Single(String),
}

impl Row {
    fn keys(&self) -> Option<Vec<String>> {
        match self {
            Row::Object(cells) => Some(cells.iter().map(|(key, _)| key.clone()).collect()),
            Row::Single(_) => None,
        }
    }

    /// The cells in the order of `columns`, which single values have none of.
    fn into_cells(self, columns: Option<&[String]>) -> Result<Vec<String>, String> {
        match (self, columns) {
            (Row::Single(cell), None) => Ok(vec![cell]),
            (Row::Single(_), Some(_)) => Err("a single value, expected an object as in the first row".into()),
            (Row::Object(_), None) => Err("an object, expected a single value as in the first row".into()),
            (Row::Object(mut cells), Some(columns)) => {
                if let Some((key, _)) = cells.iter().find(|(key, _)| !columns.contains(key)) {
                    return Err(format!("key {key:?}, which the first row does not have"));
                }
                let mut take = |column: &String| {
                    let at = cells.iter().position(|(key, _)| key == column);
                    at.map(|at| cells.swap_remove(at).1)
                        .ok_or_else(|| format!("no key {column:?}, which the first row has"))
                };
                columns.iter().map(&mut take).collect()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RowVisitor)
    }
}

struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, text, a number, true, false or null")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Row, A::Error> {
        let mut cells: Vec<(String, String)> = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key.is_empty() {
                return Err(de::Error::custom("a key without a name"));
            }
            if cells.iter().any(|(other, _)| *other == key) {
                return Err(de::Error::custom(format!("key {key:?} appears twice")));
            }
            cells.push((key, entries.next_value::<Cell>()?.0));
        }
        if cells.is_empty() { Err(de::Error::custom("an object without keys")) } else { Ok(Row::Object(cells)) }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Row, E> {
        CellVisitor.visit_str(text).map(|cell| Row::Single(cell.0))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Row, E> {
        CellVisitor.visit_bool(value).map(|cell| Row::Single(cell.0))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Row, E> {
        CellVisitor.visit_i64(value).map(|cell| Row::Single(cell.0))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Row, E> {
        CellVisitor.visit_u64(value).map(|cell| Row::Single(cell.0))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Row, E> {
        CellVisitor.visit_f64(value).map(|cell| Row::Single(cell.0))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Row, E> {
        Ok(Row::Single(String::new()))
    }
}

/// One text of a row.
struct Cell(String);

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor)
    }
}

struct CellVisitor;

impl Visitor<'_> for CellVisitor {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, true, false or null")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Cell, E> {
        Ok(Cell(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Cell, E> {
        Ok(Cell(value.to_string()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Cell, E> {
        Ok(Cell(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Cell, E> {
        Ok(Cell(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Cell, E> {
        Ok(Cell(serde_json::Value::from(value).to_string()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Cell, E> {
        Ok(Cell(String::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &[u8]) -> Result<JsonRows, String> {
        parse(Path::new("data.json"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn objects_give_columns_and_single_values_none() {
        let rows = parsed(br#"[{"id":"o1","n":7},{"n":-1.5,"id":null},{"id":true,"n":18446744073709551615}]"#).unwrap();
        assert_eq!(rows.columns, ["id", "n"]);
        assert_eq!(rows.rows, [["o1", "7"], ["", "-1.5"], ["true", "18446744073709551615"]]);
        let single = parsed("[\"a\\nü\", 2, false, null, -3]".as_bytes()).unwrap();
        assert!(single.columns.is_empty());
        assert_eq!(single.rows, [["a\nü"], ["2"], ["false"], [""], ["-3"]]);
    }

    #[test]
    fn mistakes_name_file_and_line() {
        let cases = [
            ("", 1, "EOF while parsing a value"),
            ("{}", 1, "invalid type: map, expected an array of rows"),
            ("[]", 1, "at least one row is required"),
            ("[{\"a\":1},\n{\"b\":2}]", 2, "key \"b\", which the first row does not have"),
            ("[{\"a\":1,\"b\":2},\n{\"b\":2}]", 2, "no key \"a\", which the first row has"),
            ("[{\"a\":1},\n\n3]", 3, "a single value, expected an object as in the first row"),
            ("[3,\n{\"a\":1}]", 2, "an object, expected a single value as in the first row"),
            ("[{\"a\":1,\n\"a\":2}]", 2, "key \"a\" appears twice"),
            ("[{\"\":1}]", 1, "a key without a name"),
            ("[{}]", 1, "an object without keys"),
            ("[{\"a\":\n[1]}]", 2, "invalid type: sequence, expected text, a number, true, false or null"),
            ("[[1]]", 1, "invalid type: sequence, expected an object, text, a number, true, false or null"),
            ("[1] x", 1, "trailing characters"),
        ];
        for (text, line, expected) in cases {
            let expected = format!("data file data.json, line {line}: {expected}");
            assert_eq!(parsed(text.as_bytes()).unwrap_err(), expected, "{text}");
        }
        assert!(parsed(b"[\"\xff\"]").is_err());
    }

    #[test]
    fn a_file_is_read_past_its_byte_order_mark_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owners.json");
        std::fs::write(&path, "\u{feff}[\"o1\"]").unwrap();
        assert_eq!(read(&path).unwrap().rows, [["o1"]]);
        let missing = read(&folder.path().join("none.json")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read data file") && missing.ends_with("none.json"), "{missing}");
    }

    proptest! {
        #[test]
        fn any_bytes_give_whole_rows_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..100), text in r#"\[([\[\]{}:,"a-c0-9.e-]|"a":1|null){0,30}\]"#,
        ) {
            for bytes in [&bytes[..], text.as_bytes()] {
                if let Ok(rows) = parse(Path::new("data.json"), bytes) {
                    prop_assert!(rows.rows.iter().all(|row| row.len() == rows.columns.len().max(1)));
                }
            }
        }
    }
}
