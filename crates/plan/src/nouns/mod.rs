//! Nouns: the values that planning is about. Settings, wishes and jobs, the view of a moment, target
//! sizes, requests, guards and scores. They know `base` and `lsm` and nothing of the layers above.

pub mod files;
pub mod guard;
pub mod levels;
pub mod load;
pub mod options;
pub mod places;
pub mod pri;
pub mod request;
pub mod score;
pub mod spec;
pub(crate) mod stretch;
pub mod view;
