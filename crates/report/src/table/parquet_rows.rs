//! Rows of a view as Apache Parquet, which ClickHouse, DuckDB, Spark and pandas read.
//!
//! Rows are written in groups as they come, so a file may be larger than memory. Parquet wants to know the type of a column
//! before its first value and SQLite does not say it: it is the type of the values in the first group.

use std::io::{self, Write};
use std::sync::Arc;

use narrows_model::table::Cell;
use narrows_model::trace::hex;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// Rows of a group.
const GROUP_ROWS: usize = 32_768;
/// Bytes of text that a group may have before it is written early.
const GROUP_TEXT_BYTES: usize = 64 << 20;
/// Columns of instants, in nanoseconds since the Unix epoch.
const INSTANTS: [&str; 6] = ["time_ns", "start_ns", "end_ns", "intended_ns", "sent_ns", "done_ns"];

/// Type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Integer,
    Real,
    Text,
}

/// Values of a column in the group of rows that is gathered.
struct Column {
    name: String,
    kind: Kind,
    cells: Vec<Cell>,
}

/// A Parquet file that is being written, compressed with Snappy. Every column may have nulls; instants are timestamps in UTC with
/// nanoseconds, bytes are hexadecimal text.
pub struct ParquetRows<'w> {
    view: String,
    columns: Vec<Column>,
    text_bytes: usize,
    /// Where it goes, until its types are known.
    out: Option<&'w mut (dyn Write + Send)>,
    writer: Option<SerializedFileWriter<&'w mut (dyn Write + Send)>>,
}

impl<'w> ParquetRows<'w> {
    /// An empty file for the rows of this view.
    pub fn new(view: &str, out: &'w mut (dyn Write + Send)) -> Self {
        Self { view: view.to_owned(), columns: Vec::new(), text_bytes: 0, out: Some(out), writer: None }
    }

    /// Takes the names of the columns; those of a later call are the same.
    pub fn name(&mut self, names: Vec<String>) {
        if self.columns.is_empty() {
            self.columns = names.into_iter().map(|name| Column { name, kind: Kind::Text, cells: Vec::new() }).collect();
        }
    }

    /// Adds a row, with a cell for each column.
    ///
    /// # Errors
    /// When the output cannot be written, or a column has text after numbers.
    pub fn push(&mut self, cells: Vec<Cell>) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            self.text_bytes += match &cell {
                Cell::Text(text) => text.len(),
                Cell::Bytes(bytes) => bytes.len(),
                _ => 0,
            };
            column.cells.push(cell);
        }
        let rows = self.columns.first().map_or(0, |column| column.cells.len());
        if rows >= GROUP_ROWS || self.text_bytes >= GROUP_TEXT_BYTES { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> io::Result<()> {
        self.text_bytes = 0;
        if let Some(out) = self.out.take() {
            self.columns.iter_mut().for_each(|column| column.kind = kind(&column.cells));
            self.writer = Some(self.begin(out)?);
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut group = writer.next_row_group().map_err(failed)?;
        for column in &mut self.columns {
            let Some(mut to) = group.next_column().map_err(failed)? else { break };
            column.write(&self.view, &mut to)?;
            to.close().map_err(failed)?;
        }
        group.close().map(|_| ()).map_err(failed)
    }

    fn begin(&self, out: &'w mut (dyn Write + Send)) -> io::Result<SerializedFileWriter<&'w mut (dyn Write + Send)>> {
        let fields = self.columns.iter().map(|column| column.field().map(Arc::new)).collect::<Result<_, _>>();
        let schema = fields.and_then(|fields| Type::group_type_builder(&self.view).with_fields(fields).build());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("narrows ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        schema.and_then(|schema| SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))).map_err(failed)
    }

    /// Writes the last rows and the end of the file.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn close(mut self) -> io::Result<()> {
        let is_rest = self.columns.iter().any(|column| !column.cells.is_empty());
        if is_rest || self.writer.is_none() {
            self.write_group()?;
        }
        self.writer.map_or(Ok(()), |writer| writer.close().map(|_| ()).map_err(failed))
    }
}

impl Column {
    fn field(&self) -> Result<Type, ParquetError> {
        let is_instant = INSTANTS.contains(&self.name.as_str());
        let (physical, logical) = match self.kind {
            Kind::Bool => (PhysicalType::BOOLEAN, None),
            Kind::Integer if is_instant => (PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            Kind::Integer => (PhysicalType::INT64, None),
            Kind::Real => (PhysicalType::DOUBLE, None),
            Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&self.name, physical).with_repetition(Repetition::OPTIONAL);
        field.with_logical_type(logical).build()
    }

    /// Writes the gathered values, and forgets them.
    fn write(&mut self, view: &str, to: &mut SerializedColumnWriter<'_>) -> io::Result<()> {
        let cells = std::mem::take(&mut self.cells);
        let (name, kind) = (self.name.as_str(), self.kind);
        let levels: Vec<i16> = cells.iter().map(|cell| i16::from(*cell != Cell::Null)).collect();
        let cells = cells.into_iter().filter(|cell| *cell != Cell::Null);
        let mixed = || {
            io::Error::other(format!(
                "column `{name}` of view `{view}` has a value that is not {kind:?} as the first are"
            ))
        };
        match kind {
            Kind::Bool => put::<BoolType>(to, cells.map(|cell| bool_of(&cell).ok_or_else(mixed)), &levels),
            Kind::Integer => put::<Int64Type>(to, cells.map(|cell| integer(&cell).ok_or_else(mixed)), &levels),
            Kind::Real => put::<DoubleType>(to, cells.map(|cell| real(&cell).ok_or_else(mixed)), &levels),
            Kind::Text => put::<ByteArrayType>(to, cells.map(|cell| Ok(ByteArray::from(text(cell).as_str()))), &levels),
        }
    }
}

fn put<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = io::Result<T::T>>,
    levels: &[i16],
) -> io::Result<()> {
    let values: Vec<T::T> = values.collect::<io::Result<_>>()?;
    to.typed::<T>().write_batch(&values, Some(levels), None).map(|_| ()).map_err(failed)
}

/// Common type of the cells; text if they have none or are all null.
fn kind(cells: &[Cell]) -> Kind {
    let of = |cell: &Cell| match cell {
        Cell::Null => None,
        Cell::Bool(_) => Some(Kind::Bool),
        Cell::Integer(_) | Cell::Instant(_) | Cell::Span(_) => Some(Kind::Integer),
        Cell::Real(_) => Some(Kind::Real),
        Cell::Text(_) | Cell::Bytes(_) => Some(Kind::Text),
    };
    let common = |a: Kind, b: Kind| match (a, b) {
        (a, b) if a == b => a,
        (Kind::Integer, Kind::Real) | (Kind::Real, Kind::Integer) => Kind::Real,
        _ => Kind::Text,
    };
    cells.iter().filter_map(of).reduce(common).unwrap_or(Kind::Text)
}

fn bool_of(cell: &Cell) -> Option<bool> {
    if let Cell::Bool(value) = cell { Some(*value) } else { None }
}

fn integer(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Integer(number) | Cell::Instant(number) | Cell::Span(number) => Some(*number),
        _ => None,
    }
}

fn real(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Real(number) => Some(*number),
        _ => integer(cell).map(|number| number as f64),
    }
}

fn text(cell: Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Bool(value) => value.to_string(),
        Cell::Integer(number) | Cell::Instant(number) | Cell::Span(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => text,
        Cell::Bytes(bytes) => hex(&bytes),
    }
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    fn written(names: &[&str], rows: Vec<Vec<Cell>>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = ParquetRows::new("spans", &mut bytes);
        file.name(names.iter().map(|name| (*name).to_owned()).collect());
        for row in rows {
            file.push(row)?;
        }
        file.close()?;
        Ok(bytes)
    }

    fn read(bytes: Vec<u8>) -> Vec<Vec<Field>> {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect()).collect()
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let names = ["a", "start_ns", "share", "name", "is_slow", "nothing"];
        let row = |start_ns: i64, share: Cell, name: &str| {
            vec![
                Cell::Integer(7),
                Cell::Integer(start_ns),
                share,
                Cell::Text(name.to_owned()),
                Cell::Bool(start_ns > 5),
                Cell::Null,
            ]
        };
        let rows = vec![row(5, Cell::Integer(1), "x"), row(6, Cell::Real(0.5), "é\n"), row(7, Cell::Null, "")];
        let read = read(written(&names, rows).unwrap());
        let second = [
            Field::Long(7),
            Field::Long(6),
            Field::Double(0.5),
            Field::Str("é\n".to_owned()),
            Field::Bool(true),
            Field::Null,
        ];
        assert_eq!(read[1], second);
        assert_eq!((&read[0][2], &read[2][2], read.len()), (&Field::Double(1.0), &Field::Null, 3));
    }

    #[test]
    fn groups_follow_each_other_and_no_row_is_a_file_too() {
        let count = GROUP_ROWS + 1;
        let rows = (0..count).map(|number| vec![Cell::Integer(number as i64)]).collect();
        let read_back = read(written(&["a"], rows).unwrap());
        assert_eq!((read_back.len(), &read_back[count - 1]), (count, &vec![Field::Long(count as i64 - 1)]));
        assert_eq!(read(written(&["a"], Vec::new()).unwrap()), Vec::<Vec<Field>>::new());
    }

    #[test]
    fn text_after_numbers_is_an_error() {
        let mut rows = vec![vec![Cell::Integer(1)]; GROUP_ROWS];
        rows.push(vec![Cell::Text("x".to_owned())]);
        let error = written(&["a"], rows).unwrap_err();
        assert!(error.to_string().starts_with("column `a` of view `spans` has a value"), "{error}");
    }
}
