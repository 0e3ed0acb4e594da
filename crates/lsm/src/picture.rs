//! The text picture.
