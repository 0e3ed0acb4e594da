//! What a program set in an options object: the values for the getters, and what it will be told.

use std::collections::BTreeMap;

use lithify::Error;

use crate::raw::Res;

/// A value as it was set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Of an integer type, flags included.
    Whole(i128),
    /// Of type `double`.
    Real(f64),
}

/// The types that options have.
pub(crate) trait Scalar: Copy + PartialEq {
    fn kept(self) -> Number;
    /// The value again; `None` if it was of another type.
    fn from_kept(number: Number) -> Option<Self>;
}
macro_rules! whole {
    ($($t:ty)*) => { $(impl Scalar for $t {
        fn kept(self) -> Number {
            Number::Whole(self as i128)
        }
        fn from_kept(number: Number) -> Option<$t> {
            match number {
                Number::Whole(n) => <$t>::try_from(n).ok(),
                Number::Real(_) => None,
            }
        }
    })* };
}
whole!(u8 u32 i32 u64 i64 usize);
impl Scalar for bool {
    fn kept(self) -> Number {
        Number::Whole(i128::from(self))
    }
    fn from_kept(number: Number) -> Option<bool> {
        u8::from_kept(number).map(|n| n != 0)
    }
}
impl Scalar for f64 {
    fn kept(self) -> Number {
        Number::Real(self)
    }
    fn from_kept(number: Number) -> Option<f64> {
        match number {
            Number::Real(n) => Some(n),
            Number::Whole(_) => None,
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Whole(n) => write!(f, "{n}"),
            // As C prints it.
            Number::Real(n) => write!(f, "{n:.6}"),
        }
    }
}

/// What was set, noted and refused, by the option's name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    values: BTreeMap<&'static str, Number>,
    notes: BTreeMap<&'static str, String>,
    refused: BTreeMap<&'static str, String>,
}

impl Kept {
    /// Keeps a value for the getter.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Scalar) {
        self.values.insert(name, value.kept());
    }
    /// Keeps what one call sets of several options.
    pub(crate) fn set_all(&mut self, values: &[(&'static str, u64)]) {
        values.iter().for_each(|(name, value)| self.set(name, *value));
    }
    /// The value that was set last.
    pub(crate) fn get<T: Scalar>(&self, name: &'static str) -> Option<T> {
        self.values.get(name).copied().and_then(T::from_kept)
    }
    /// Keeps what an open is to say once: that a value has no effect, or another one than was asked for.
    pub(crate) fn note(&mut self, name: &'static str, value: String) {
        self.notes.insert(name, value);
    }
    /// Keeps why the next call that can fail will; `None` takes it back.
    pub(crate) fn refuse(&mut self, name: &'static str, why: Option<String>) {
        match why {
            Some(why) => self.refused.insert(name, why),
            None => self.refused.remove(name),
        };
    }
    /// `value`, or the nearest one that is taken here, which is noted then.
    pub(crate) fn within<T: Scalar + Ord + std::fmt::Display>(
        &mut self,
        name: &'static str,
        value: T,
        least: T,
        most: T,
    ) -> T {
        let taken = value.clamp(least, most);
        match taken == value {
            true => drop(self.notes.remove(name)),
            false => self.note(name, format!("{value} (taken as {taken})")),
        }
        taken
    }
    /// Takes all notes back.
    pub(crate) fn forget_notes(&mut self) {
        self.notes.clear();
    }
    /// Takes in what another object has to say, as that of the tables.
    pub(crate) fn join(&mut self, other: &Kept) {
        self.notes.extend(other.notes.clone());
        self.refused.extend(other.refused.clone());
    }
    /// All that is noted, one line; empty if there is nothing.
    pub(crate) fn told(&self) -> String {
        let all: Vec<String> =
            self.notes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        all.join(" ")
    }
    /// # Errors
    /// `Unsupported` naming an option that was refused.
    #[inline]
    pub(crate) fn check(&self) -> Res<()> {
        if self.refused.is_empty() { Ok(()) } else { self.refusal() }
    }
    #[cold]
    fn refusal(&self) -> Res<()> {
        match self.refused.first_key_value() {
            None => Ok(()),
            Some((name, why)) => Err(Error::unsupported(format!("{name}={why}"))),
        }
    }
}

/// An object that has [`Kept`].
pub(crate) trait Keeps {
    fn kept(&self) -> &Kept;
    fn kept_mut(&mut self) -> &mut Kept;
}
macro_rules! keeps {
    ($($t:ty)*) => { $(impl $crate::kept::Keeps for $t {
        fn kept(&self) -> &$crate::kept::Kept {
            &self.kept
        }
        fn kept_mut(&mut self) -> &mut $crate::kept::Kept {
            &mut self.kept
        }
    })* };
}
pub(crate) use keeps;

/// An option as text has it: by a name, with a value that is read and shown.
pub(crate) struct TextRow<O> {
    /// The name of its setter.
    pub(crate) setter: &'static str,
    /// `exact`, `noted` or `refused`.
    pub(crate) class: &'static str,
    /// Sets it to what the text says, as the setter does.
    pub(crate) set: fn(&mut O, &str) -> Res<()>,
    /// The value that was set, or RocksDB's default.
    pub(crate) get: fn(&O) -> Number,
}

/// An object whose options text may name.
pub(crate) trait Texts: Sized + 'static {
    /// All of them.
    const ROWS: &'static [TextRow<Self>];
}

/// A value as text has it.
///
/// # Errors
/// `InvalidArgument` if it is none of the type.
pub(crate) fn value<T: Scalar>(text: &str) -> Res<T> {
    let number = match text.trim() {
        "true" | "on" => Some(Number::Whole(1)),
        "false" | "off" => Some(Number::Whole(0)),
        text => whole(text).map(Number::Whole),
    };
    let real = || text.trim().parse().ok().map(Number::Real).and_then(T::from_kept);
    let of_whole = |number: Number| match number {
        Number::Whole(n) => T::from_kept(number).or_else(|| T::from_kept(Number::Real(n as f64))),
        Number::Real(_) => None,
    };
    let value = number.and_then(of_whole).or_else(real);
    value.ok_or_else(|| Error::invalid(format!("`{text}` is no value of this option")))
}

/// A whole number; `k`, `m`, `g` and `t` behind it are powers of 1024.
fn whole(text: &str) -> Option<i128> {
    let text = text.strip_suffix("iB").unwrap_or(text);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" | "B" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return None,
    };
    digits.trim().parse::<i128>().ok()?.checked_mul(1 << shift)
}

/// Exports setters and getters of plain values. A row is
///
/// ```text
/// exact set get: type = default, effect;      the effect is a function of object and value
/// noted set get: type = default;              has no effect; RocksDB's default is noted silently
/// refused set get: type = harmless, "why";    every other value than the harmless one is refused
/// ```
///
/// with `_` where RocksDB has no getter.
macro_rules! rows {
    ($o:ty; $($class:ident $set:ident $get:tt : $t:ty = $default:expr $(, $effect:expr)?;)*) => {
        $($crate::kept::row! { $class $o, $set $get $t, $default $(, $effect)? })*
        impl $crate::kept::Texts for $o {
            const ROWS: &'static [$crate::kept::TextRow<$o>] = &[$($crate::kept::TextRow {
                setter: stringify!($set),
                class: stringify!($class),
                set: |object, text| {
                    let value: $t = $crate::kept::value(text)?;
                    $crate::kept::take! { $class $o, object, $set $t, value, $default $(, $effect)? }
                    Ok(())
                },
                get: |object| {
                    use $crate::kept::Keeps;
                    let value: $t = object.kept().get(stringify!($set)).unwrap_or($default);
                    $crate::kept::Scalar::kept(value)
                },
            }),*];
        }
    };
}
/// One row of [`rows!`].
macro_rules! row {
    ($class:ident $o:ty, $set:ident _ $t:ty, $default:expr $(, $effect:expr)?) => {
        $crate::kept::row! { @$class $o, $set $t, $default $(, $effect)? }
    };
    ($class:ident $o:ty, $set:ident $get:ident $t:ty, $default:expr $(, $effect:expr)?) => {
        $crate::kept::row! { @$class $o, $set $t, $default $(, $effect)? }
        $crate::raw::export! {
            fn $get(object: &$o) -> $t {
                use $crate::kept::Keeps;
                Ok(object.kept().get(stringify!($set)).unwrap_or($default))
            }
        }
    };
    (@$class:ident $o:ty, $set:ident $t:ty, $default:expr $(, $effect:expr)?) => {
        $crate::raw::export! {
            fn $set(object: &mut $o, value: $t) {
                $crate::kept::take! { $class $o, object, $set $t, value, $default $(, $effect)? }
                Ok(())
            }
        }
    };
}
/// What a setter of a row does.
macro_rules! take {
    (exact $o:ty, $object:ident, $set:ident $t:ty, $value:ident, $default:expr, $effect:expr) => {
        $crate::kept::Keeps::kept_mut($object).set(stringify!($set), $value);
        let effect: fn(&mut $o, $t) = $effect;
        effect($object, $value);
    };
    (noted $o:ty, $object:ident, $set:ident $t:ty, $value:ident, $default:expr) => {
        $crate::kept::Keeps::kept_mut($object).set(stringify!($set), $value);
        let default: $t = $default;
        if $value != default {
            $crate::kept::Keeps::kept_mut($object).note(stringify!($set), $value.to_string());
        }
    };
    (refused $o:ty, $object:ident, $set:ident $t:ty, $value:ident, $harmless:expr, $why:expr) => {
        $crate::kept::Keeps::kept_mut($object).set(stringify!($set), $value);
        let harmless: $t = $harmless;
        let why = ($value != harmless).then(|| format!("{}: {}", $value, $why));
        $crate::kept::Keeps::kept_mut($object).refuse(stringify!($set), why);
    };
}
pub(crate) use {row, rows, take};
