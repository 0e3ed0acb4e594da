//! A range as columns, handed over by Arrow's C stream interface in a capsule: pyarrow, polars, DuckDB and pandas
//! read it, and this package depends on none of them. It is the one way past the interpreter's cost per entry.
//!
//! Keeps: a batch has as many rows as were asked for, but for the last one, and for one whose bytes come to 256 MiB;
//! an error while reading ends the stream and reaches the one who reads it.

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

/// Bytes of keys and values of a batch, but for its last entry.
const MOST_BYTES: usize = 256 << 20;

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
    schema: SchemaRef,
    shared: Arc<Shared>,
}

/// One column under construction: bytes one after another, and where each value ends.
struct Column {
    bytes: Vec<u8>,
    offsets: Vec<i64>,
}

impl Column {
    fn new() -> Column {
        Column { bytes: Vec::new(), offsets: vec![0] }
    }
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len() as i64);
    }
    fn array(self) -> Result<ArrayRef, ArrowError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Ok(Arc::new(LargeBinaryArray::try_new(offsets, Buffer::from_vec(self.bytes), None)?))
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
        let reader =
            Reader { cursor, placed: false, reverse, left, rows, schema, shared: shared.clone() };
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
        let (mut keys, mut values) = (Column::new(), Column::new());
        let most = self.left.min(self.rows as u64);
        let mut count = 0;
        while count < most && keys.bytes.len() + values.bytes.len() < MOST_BYTES && cursor.valid() {
            keys.push(cursor.key());
            values.push(cursor.value());
            count += 1;
            if self.reverse { cursor.prev() } else { cursor.next() }
        }
        self.left -= count;
        if count == 0 {
            cursor.status().map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
            return Ok(None);
        }
        RecordBatch::try_new(self.schema.clone(), vec![keys.array()?, values.array()?]).map(Some)
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
