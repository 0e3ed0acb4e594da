//! A value in a note of the event log.

/// One value of a note.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// A number.
    Number(u64),
    /// Text, which is escaped where it is written.
    Text(String),
}

impl From<u64> for Field {
    fn from(n: u64) -> Field {
        Field::Number(n)
    }
}

impl From<String> for Field {
    fn from(s: String) -> Field {
        Field::Text(s)
    }
}

impl From<&str> for Field {
    fn from(s: &str) -> Field {
        Field::Text(s.to_owned())
    }
}
