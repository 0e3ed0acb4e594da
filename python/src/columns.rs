//! A range as columns, handed over by Arrow's C stream interface in a capsule: pyarrow, polars, DuckDB and pandas
//! read it, and this package depends on none of them. It is the one way past the interpreter's cost per entry.
//!
//! Keeps: a batch has as many rows as were asked for, but for the last one, and for one whose bytes come to 256 MiB;
//! an error while reading ends the stream and reaches the one who reads it.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, LargeBinaryArray, RecordBatch, RecordBatchReader};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use lithify::DbIter;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyCapsule};

use crate::database::Shared;
use crate::errors::closed;

/// Memory of columns that readers have let go of, for the next ones: fresh memory costs a page fault for each 4 KiB.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Vec<Vec<u8>>>);

/// Columns that are kept at most, and bytes of all of them.
const SPARE: usize = 4;
const SPARE_BYTES: usize = 32 << 20;

impl Spare {
    /// The smallest that has room for `bytes`, or else new memory.
    fn take(&self, bytes: usize) -> Vec<u8> {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |column: &&(usize, usize)| column.1 >= bytes;
        let all: Vec<(usize, usize)> = spare.iter().map(Vec::capacity).enumerate().collect();
        match all.iter().filter(fits).min_by_key(|column| column.1) {
            Some(&(at, _)) => spare.swap_remove(at),
            None => Vec::with_capacity(bytes),
        }
    }
    fn give(&self, mut column: Vec<u8>) {
        column.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = spare.iter().map(Vec::capacity).sum();
        if spare.len() < SPARE && kept + column.capacity() <= SPARE_BYTES {
            spare.push(column);
        }
    }
    /// Lets go of all of it: the database is closed.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The bytes of a column that a reader has.
struct Lent {
    bytes: Vec<u8>,
    of: Arc<Shared>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.of.is_closed() {
            self.of.spare.give(std::mem::take(&mut self.bytes));
        }
    }
}

/// Bytes of keys and values of a batch, but for its last entry.
const MOST_BYTES: usize = 256 << 20;

/// Rows that tell how much room the first batch needs.
const FIRST_ROWS: usize = 256;
/// Rows of a batch as a multiple of those that its room was told by, at most: what is asked for may be any number.
const SPAN: usize = 1024;

/// A range as a stream of batches with the binary columns `key` and `value`. It is read once.
#[pyclass(frozen, module = "lithify")]
pub(crate) struct Columns {
    /// `None` once it was handed over.
    reader: Mutex<Option<Reader>>,
    shared: Arc<Shared>,
}

/// What makes the batches.
struct Reader {
    /// `None` once it is over.
    cursor: Option<DbIter>,
    /// Whether the cursor stands at an entry or the end.
    placed: bool,
    reverse: bool,
    left: u64,
    rows: usize,
    /// What the next batch will have, by the one before.
    room: Option<Room>,
    schema: SchemaRef,
    shared: Arc<Shared>,
}

/// One column under construction: bytes one after another, and where each value ends.
struct Column {
    bytes: Vec<u8>,
    offsets: Vec<i64>,
}

impl Column {
    fn with_room(bytes: Vec<u8>, rows: usize) -> Column {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Column { bytes, offsets }
    }
    #[inline]
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len() as i64);
    }
    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }
    /// Adds all rows of `other` to an empty column.
    fn append(&mut self, other: &Column) {
        self.bytes.extend_from_slice(&other.bytes);
        self.offsets.clone_from(&other.offsets);
    }
    fn array(self, of: &Arc<Shared>) -> Result<ArrayRef, ArrowError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let bytes = bytes::Bytes::from_owner(Lent { bytes: self.bytes, of: of.clone() });
        Ok(Arc::new(LargeBinaryArray::try_new(offsets, Buffer::from(bytes), None)?))
    }
}

/// Room of the columns of a batch.
#[derive(Clone, Copy)]
struct Room {
    rows: usize,
    /// Of keys and of values.
    bytes: [usize; 2],
}

impl Room {
    /// For `most` rows like those of `columns`, and a little more.
    fn of(columns: &[Column; 2], most: usize) -> Room {
        let seen = columns[0].rows().max(1);
        let all = columns[0].bytes.len() + columns[1].bytes.len();
        let rows = most.min(MOST_BYTES * seen / all.max(1)).min(seen.saturating_mul(SPAN));
        let bytes = [&columns[0], &columns[1]].map(|column| {
            let bytes = column.bytes.len() * rows / seen;
            bytes + bytes / 16
        });
        Room { rows, bytes }
    }
    fn columns(self, spare: &Spare) -> [Column; 2] {
        self.bytes.map(|bytes| Column::with_room(spare.take(bytes), self.rows))
    }
}

/// Adds entries from `cursor` on to the columns of keys and values, until they have `most` rows or enough bytes.
fn fill(cursor: &mut DbIter, reverse: bool, columns: &mut [Column; 2], most: usize) {
    let [keys, values] = columns;
    let mut take = |key: &[u8], value: &[u8]| {
        if keys.rows() == most || keys.bytes.len() + values.bytes.len() >= MOST_BYTES {
            return ControlFlow::Break(());
        }
        keys.push(key);
        values.push(value);
        ControlFlow::Continue(())
    };
    if reverse {
        while cursor.valid() && take(cursor.key(), cursor.value()).is_continue() {
            cursor.prev();
        }
    } else {
        cursor.walk(take);
    }
}

impl Columns {
    /// The columns of a cursor whose bounds are the range's.
    pub(crate) fn over(
        cursor: Option<DbIter>,
        shared: &Arc<Shared>,
        reverse: bool,
        limit: Option<u64>,
        rows: usize,
    ) -> Columns {
        let column = |name| Field::new(name, DataType::LargeBinary, false);
        let schema = Arc::new(Schema::new(vec![column("key"), column("value")]));
        let left = limit.unwrap_or(u64::MAX);
        let shared = shared.clone();
        let (placed, room) = (false, None);
        let reader =
            Reader { cursor, placed, reverse, left, rows, room, schema, shared: shared.clone() };
        Columns { reader: Mutex::new(Some(reader)), shared }
    }
}

impl Reader {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        if self.shared.is_closed() {
            return Err(ArrowError::ComputeError("this database is closed".to_owned()));
        }
        if !self.placed {
            if self.reverse {
                cursor.seek_to_last()
            } else {
                cursor.seek_to_first()
            }
            self.placed = true;
        }
        let most = self.left.min(self.rows as u64) as usize;
        // Columns that grow are copied, into fresh memory each time. Of the first batch a few rows tell what to expect.
        let mut columns = match self.room {
            Some(room) => room.columns(&self.shared.spare),
            None => [(); 2].map(|()| Column::with_room(Vec::new(), FIRST_ROWS)),
        };
        if self.room.is_none() {
            fill(cursor, self.reverse, &mut columns, most.min(FIRST_ROWS));
        }
        if self.room.is_none() && columns[0].rows() == FIRST_ROWS {
            let first = columns;
            columns = Room::of(&first, most).columns(&self.shared.spare);
            for (column, first) in columns.iter_mut().zip(first) {
                column.append(&first);
            }
        }
        fill(cursor, self.reverse, &mut columns, most);
        let count = columns[0].rows() as u64;
        self.room = Some(Room::of(&columns, most));
        self.left -= count;
        if count == 0 {
            cursor.status().map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
            return Ok(None);
        }
        let [keys, values] = columns.map(|column| column.array(&self.shared));
        RecordBatch::try_new(self.schema.clone(), vec![keys?, values?]).map(Some)
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        let batch = self.batch().transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.cursor = None;
        }
        batch
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

#[pymethods]
impl Columns {
    /// The stream, in the capsule that Arrow's interface asks for. The schema is always the same.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // the interface allows to leave a wish unmet
        self.shared.check(py)?;
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reader = reader.ok_or_else(|| closed(py, "stream of columns"))?;
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
