//! A range as columns, handed over by Arrow's C stream interface in a capsule: pyarrow, polars, DuckDB and pandas
//! read it, and this package depends on none of them. It is the one way past the interpreter's cost per entry.
//!
//! Keeps: a batch has as many rows as were asked for, but for the last one, and for one whose bytes come to 256 MiB;
//! an error while reading ends the stream and reaches the one who reads it.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, LargeBinaryArray, RecordBatch, RecordBatchReader};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer, ToByteSlice};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use lithify::DbIter;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyCapsule};

use crate::database::Shared;
use crate::errors::closed;

/// Memory of columns that readers have let go of, for the next ones: fresh memory costs a page fault for each 4 KiB.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    bytes: Vec<Vec<u8>>,
    offsets: Vec<Vec<i64>>,
}

/// Columns that are kept at most, and bytes of all of them.
const SPARE: usize = 4;
const SPARE_BYTES: usize = 32 << 20;

/// The smallest of `kept` that has room for `most`, or else new memory.
fn take<T>(kept: &mut Vec<Vec<T>>, most: usize) -> Vec<T> {
    let all = kept.iter().map(Vec::capacity).enumerate();
    match all.filter(|column| column.1 >= most).min_by_key(|column| column.1) {
        Some((at, _)) => kept.swap_remove(at),
        None => Vec::with_capacity(most),
    }
}

impl Kept {
    fn has_room(&self, columns: usize, bytes: usize) -> bool {
        let held: usize = self.bytes.iter().map(Vec::capacity).sum();
        let ends: usize = self.offsets.iter().map(|column| column.capacity() * 8).sum();
        bytes > 0 && columns < SPARE && held + ends + bytes <= SPARE_BYTES
    }
}

impl Spare {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Room for so many bytes, and for the ends of so many values.
    fn take(&self, bytes: usize, rows: usize) -> (Vec<u8>, Vec<i64>) {
        let mut kept = self.kept();
        (take(&mut kept.bytes, bytes), take(&mut kept.offsets, rows + 1))
    }
    fn give_bytes(&self, mut column: Vec<u8>) {
        column.clear();
        let mut kept = self.kept();
        if kept.has_room(kept.bytes.len(), column.capacity()) {
            kept.bytes.push(column);
        }
    }
    fn give_offsets(&self, mut column: Vec<i64>) {
        column.clear();
        let mut kept = self.kept();
        if kept.has_room(kept.offsets.len(), column.capacity() * 8) {
            kept.offsets.push(column);
        }
    }
    /// Lets go of all of it: the database is closed.
    pub(crate) fn clear(&self) {
        *self.kept() = Kept::default();
    }
}

/// The bytes of a column that a reader has.
struct LentBytes(Vec<u8>, Arc<Shared>);

impl AsRef<[u8]> for LentBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for LentBytes {
    fn drop(&mut self) {
        if !self.1.is_closed() {
            self.1.spare.give_bytes(std::mem::take(&mut self.0));
        }
    }
}

/// Where the values of a column end, which a reader has.
struct LentOffsets(Vec<i64>, Arc<Shared>);

impl AsRef<[u8]> for LentOffsets {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice().to_byte_slice()
    }
}

impl Drop for LentOffsets {
    fn drop(&mut self) {
        if !self.1.is_closed() {
            self.1.spare.give_offsets(std::mem::take(&mut self.0));
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
    fn new((bytes, mut offsets): (Vec<u8>, Vec<i64>)) -> Column {
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
        self.offsets.clear();
        self.offsets.extend_from_slice(&other.offsets);
    }
    fn array(self, of: &Arc<Shared>) -> Result<ArrayRef, ArrowError> {
        let offsets = bytes::Bytes::from_owner(LentOffsets(self.offsets, of.clone()));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(Buffer::from(offsets)));
        let bytes = bytes::Bytes::from_owner(LentBytes(self.bytes, of.clone()));
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
        self.bytes.map(|bytes| Column::new(spare.take(bytes, self.rows)))
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
        // Memory that was taken for no rows would go to waste, instead of to the next batches.
        if most == 0 || !cursor.valid() {
            cursor.status().map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
            return Ok(None);
        }
        // Columns that grow are copied, into fresh memory each time. Of the first batch a few rows tell what to expect.
        let mut columns = match self.room {
            Some(room) => room.columns(&self.shared.spare),
            None => [(); 2].map(|()| Column::new((Vec::new(), Vec::new()))),
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
        self.room = Some(Room::of(&columns, most));
        self.left -= columns[0].rows() as u64;
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
