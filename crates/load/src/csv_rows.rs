//! Reads the rows of a data source from a CSV file (RFC 4180, UTF-8, first line = column names).
//!
//! The file is read whole: a data source is held in memory while the load runs. Its size is limited, so that a
//! mistaken path does not eat the machine. Numbers are not recognised; every cell is text.

use std::io::Read;
use std::path::Path;

use crate::Error;

/// The largest data file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// A CSV file's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRows {
    /// The names in the first line, at least one.
    pub columns: Vec<String>,
    /// The other lines, at least one, each with as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

/// Reads a file.
///
/// # Errors
/// [`Error::DataFile`] when it cannot be read or is larger than [`FILE_BYTES_MAX`]; [`Error::DataRow`] with the line when it is
/// not UTF-8, when a line has more or fewer cells than the first, when a column has no name or another's, and when
/// there is no row.
pub fn read(path: &Path) -> Result<CsvRows, Error> {
    let failed = |source| Error::DataFile { path: path.to_owned(), source };
    let file = narrows_files::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(std::io::Error::other(format!("it is larger than {FILE_BYTES_MAX} bytes"))));
    }
    parse(path, bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<CsvRows, Error> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(bytes);
    let columns: Vec<String> = reader.headers().map_err(|e| row_error(path, &e))?.iter().map(String::from).collect();
    check_columns(path, &columns)?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| row_error(path, &e))?;
        rows.push(record.iter().map(String::from).collect());
    }
    if rows.is_empty() {
        return Err(problem(path, 2, "at least one row below the column names is required"));
    }
    Ok(CsvRows { columns, rows })
}

fn check_columns(path: &Path, columns: &[String]) -> Result<(), Error> {
    if columns.is_empty() {
        return Err(problem(path, 1, "the file is empty, expected a line of column names"));
    }
    for (i, name) in columns.iter().enumerate() {
        if name.is_empty() {
            return Err(problem(path, 1, format!("column {} has no name", i + 1)));
        }
        if columns[..i].contains(name) {
            return Err(problem(path, 1, format!("column {name} appears twice")));
        }
    }
    Ok(())
}

fn row_error(path: &Path, error: &csv::Error) -> Error {
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            problem(path, line, format!("{len} cells, expected {expected_len} as in the first line"))
        }
        csv::ErrorKind::Utf8 { err, .. } => problem(path, line, format!("cell {} is not UTF-8", err.field() + 1)),
        _ => problem(path, line, error.to_string()),
    }
}

fn problem(path: &Path, line: u64, problem: impl Into<String>) -> Error {
    Error::DataRow { path: path.to_owned(), line, problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &[u8]) -> Result<CsvRows, String> {
        parse(Path::new("data.csv"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_come_in_order_with_quoted_cells_whole() {
        let rows = parsed(b"owner, city\r\no1,\"Bonn, am Rhein\"\r\n o2 ,\"a\nb\"\n").unwrap();
        assert_eq!(rows.columns, ["owner", "city"]);
        assert_eq!(rows.rows, [["o1", "Bonn, am Rhein"], [" o2 ", "a\nb"]]);
    }

    #[test]
    fn mistakes_name_file_and_line() {
        let cases: [(&[u8], &str); 6] = [
            (b"", "data file data.csv, line 1: the file is empty, expected a line of column names"),
            (b"a,,c\n1,2,3\n", "data file data.csv, line 1: column 2 has no name"),
            (b"a,b,a\n1,2,3\n", "data file data.csv, line 1: column a appears twice"),
            (b"a,b\n", "data file data.csv, line 2: at least one row below the column names is required"),
            (b"a,b\n1,2\n3\n", "data file data.csv, line 3: 1 cells, expected 2 as in the first line"),
            (b"a,b\n1,\xff\n", "data file data.csv, line 2: cell 2 is not UTF-8"),
        ];
        for (text, expected) in cases {
            assert_eq!(parsed(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_file_is_read_past_its_byte_order_mark_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owners.csv");
        std::fs::write(&path, "\u{feff}owner\no1\n").unwrap();
        assert_eq!(read(&path).unwrap().columns, ["owner"]);
        let missing = read(&folder.path().join("none.csv")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read data file") && missing.ends_with("none.csv"), "{missing}");
    }

    proptest! {
        #[test]
        fn any_bytes_give_whole_rows_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(rows) = parse(Path::new("data.csv"), &bytes) {
                prop_assert!(rows.rows.iter().all(|row| row.len() == rows.columns.len()));
            }
        }
    }
}
