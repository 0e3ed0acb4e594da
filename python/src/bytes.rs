//! Bytes as Python hands them in: borrowed from `bytes`, copied from whatever else has a buffer.

use std::ops::Deref;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

/// A key or a value of the caller's.
pub(crate) enum Bytes<'a> {
    /// Of a `bytes` object, which cannot change.
    Borrowed(&'a [u8]),
    /// Of an object that another thread may change while the interpreter is let go of.
    Copied(Vec<u8>),
}

impl Deref for Bytes<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Copied(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Bytes<'a> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Bytes<'a>> {
        if object.is_instance_of::<PyBytes>() {
            return object.extract::<&'a [u8]>().map(Bytes::Borrowed).map_err(Into::into);
        }
        if let Ok(array) = object.cast::<PyByteArray>() {
            return Ok(Bytes::Copied(array.to_vec()));
        }
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(
                "keys and values are bytes; of a str, pass `.encode()`",
            ));
        }
        let Ok(view) = PyMemoryView::from(&object) else {
            let name = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("keys and values are bytes, not {name}")));
        };
        if !view.getattr("c_contiguous")?.extract::<bool>()? {
            let help = "keys and values are contiguous; of this view, pass `bytes(..)`";
            return Err(PyBufferError::new_err(help));
        }
        let copy = view.call_method0("tobytes")?;
        Ok(Bytes::Copied(copy.cast::<PyBytes>()?.as_bytes().to_vec()))
    }
}
