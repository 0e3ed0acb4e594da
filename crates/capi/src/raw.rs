//! Where pointers of C become values of Rust and back, and the wall around each exported function.
//!
//! Keeps: what a caller must promise is what RocksDB's header asks for: a handle is one that the library
//! gave out and that was not destroyed, a pointer with a length has so many bytes behind it, a string ends
//! in NUL, a pointer for a result may be written. NULL is caught for all of them. Nothing unwinds out of
//! an exported function, and memory that goes out is the C library's.
//! Leaves to others: what the functions do. They are safe code between the conversions of [`export!`].

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use lithify::{Error, ErrorKind, Snapshot};

use crate::last::keep;
use crate::status::status;

/// What the safe part of an exported function gives.
pub(crate) type Res<T> = lithify::Result<T>;

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// Exports functions of the C interface. A parameter is one of
///
/// ```text
/// db: &T, db: &mut T       a handle; NULL is an error
/// db: maybe T              a handle or NULL
/// db: own T                a handle that the call takes, or NULL
/// (key, len): bytes        a pointer and a length; NULL only with length 0
/// (key, len): bound        the same; NULL is `None`
/// told db: &T              as without `told`, but what is wrong with the argument is for the body to see;
/// told (key, len): bytes   the same
/// name: text, dir: path    a string that ends in NUL
/// n: out T, all: outs T    where one or several results go, or NULL
/// all: many T              the start of an array, whose length another parameter tells
/// errptr                   where the error goes
/// n: T                     anything else, as it is
/// ```
///
/// The body gives a [`Res`]. On an error the function returns NULL, 0 or nothing.
macro_rules! export {
    ($($(#[$doc:meta])* fn $name:ident($($p:tt)*) $(-> $r:ty)? $body:block)*) => {
        $($crate::raw::one! { $name ($($r)?) $body () () (std::ptr::null_mut()) $($p)* , })*
    };
}

/// One function of [`export!`]: takes parameters one by one until none is left.
macro_rules! one {
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b ($($c)*) ($($v)*) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt errptr , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* errptr: *mut *mut std::ffi::c_char,) ($($v)*) (errptr) $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt ($x:ident, $l:ident): bytes , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *const std::ffi::c_char, $l: usize,)
            ($($v)* $crate::raw::known! { $x = $crate::raw::bytes($x, $l, stringify!($x))? }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt ($x:ident, $l:ident): bound , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *const std::ffi::c_char, $l: usize,)
            ($($v)* $crate::raw::known! { $x = $crate::raw::bound($x, $l)? }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt told ($x:ident, $l:ident): bytes , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *const std::ffi::c_char, $l: usize,)
            ($($v)* $crate::raw::known! { $x = $crate::raw::bytes($x, $l, stringify!($x)) }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt told $x:ident: & $t:ty , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *const $t,)
            ($($v)* $crate::raw::known! { $x = $crate::raw::borrow($x, stringify!($x)) }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: &mut $t:ty , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *mut $t,)
            ($($v)* $crate::raw::known! { $x = $crate::raw::borrow_mut($x, stringify!($x))? }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: & $t:ty , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *const $t,)
            ($($v)* $crate::raw::known! { $x = $crate::raw::borrow($x, stringify!($x))? }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: maybe $t:ty , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *const $t,) ($($v)* $crate::raw::known! { $x = $x.as_ref() }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: own $t:ty , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *mut $t,) ($($v)* $crate::raw::known! { $x = $crate::raw::take($x) }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: text , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *const std::ffi::c_char,)
            ($($v)* $crate::raw::known! { $x = $crate::raw::text($x, stringify!($x))? }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: path , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *const std::ffi::c_char,)
            ($($v)* $crate::raw::known! { $x = $crate::raw::path($x, stringify!($x))? }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: out $t:ty , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *mut $t,) ($($v)* $crate::raw::known! { $x = $crate::raw::Outs::at($x) }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: outs $t:ty , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *mut $t,) ($($v)* $crate::raw::known! { $x = $crate::raw::Outs::at($x) }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: many $t:ty , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b
            ($($c)* $x: *const $t,) ($($v)* $crate::raw::known! { $x = $crate::raw::Many::at($x) }) $e $($p)* }
    };
    ($n:ident $r:tt $b:block ($($c:tt)*) ($($v:tt)*) $e:tt $x:ident: $t:ty , $($p:tt)*) => {
        $crate::raw::one! { $n $r $b ($($c)* $x: $t,) ($($v)*) $e $($p)* }
    };
    ($n:ident () $b:block $c:tt $v:tt $e:tt) => {
        $crate::raw::one! { $n (()) $b $c $v $e }
    };
    ($n:ident ($r:ty) $b:block ($($c:tt)*) ($($v:tt)*) $e:tt) => {
        #[allow(unsafe_code, reason = "an exported function; the conversions are those of `raw`")]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $n($($c)*) -> $r {
            let call = move || -> $crate::raw::Res<$r> { $($v)* $b };
            // SAFETY: an `errptr` is NULL, or holds NULL or a string of the C library's memory.
            unsafe { $crate::raw::walled(stringify!($n), $e, call) }
        }
    };
}

/// One conversion of [`export!`].
macro_rules! known {
    ($x:ident = $e:expr) => {
        // SAFETY: the caller promises of each argument what RocksDB's header asks for.
        let $x = unsafe { $e };
    };
}
pub(crate) use {export, known, one};

/// Runs an exported function's inside: an error, or a panic, becomes the text at `errptr`.
///
/// # Safety
/// `errptr` is NULL, or points to NULL or to a string of the C library's memory.
#[inline]
pub(crate) unsafe fn walled<R: Neutral>(
    name: &str,
    errptr: *mut *mut c_char,
    call: impl FnOnce() -> Res<R>,
) -> R {
    let call = || {
        #[cfg(debug_assertions)]
        injected(name);
        call()
    };
    let error = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(result)) => return result,
        Ok(Err(error)) => Some(error),
        Err(_) => None,
    };
    // SAFETY: as the caller says.
    unsafe { failed(name, errptr, error) };
    R::NEUTRAL
}

/// Says what went wrong in function `name`: an error, or none if it panicked. Apart, so that what is around each call
/// stays small.
///
/// # Safety
/// As [`walled`].
#[cold]
unsafe fn failed(name: &str, errptr: *mut *mut c_char, error: Option<Error>) {
    let panicked = || Error::new(ErrorKind::Internal, format!("{name} panicked; please report it"));
    let error = error.unwrap_or_else(panicked);
    keep(&error);
    // SAFETY: as the caller says.
    unsafe { tell(errptr, &error) };
}

/// Panics if a test asks for it: `LITHIFY_CAPI_PANIC` names the function.
#[cfg(debug_assertions)]
fn injected(name: &str) {
    let wanted = std::env::var_os("LITHIFY_CAPI_PANIC");
    assert!(wanted.is_none_or(|wanted| wanted != name), "a test asked for it");
}

/// Puts the text of `error` in the place of what `errptr` points to, which is freed.
unsafe fn tell(errptr: *mut *mut c_char, error: &Error) {
    if errptr.is_null() {
        return;
    }
    let text = c_text(&status(error));
    // SAFETY: `errptr` may be read and written, and what it points to is ours or the caller's from malloc.
    unsafe {
        free((*errptr).cast());
        *errptr = text;
    }
}

/// What an exported function gives when it failed.
pub(crate) trait Neutral {
    const NEUTRAL: Self;
}
macro_rules! neutral {
    ($($t:ty = $e:expr),*) => { $(impl Neutral for $t { const NEUTRAL: $t = $e; })* };
}
neutral!(() = (), u8 = 0, u32 = 0, i32 = 0, u64 = 0, i64 = 0, usize = 0, f64 = 0.0, bool = false);
impl<T> Neutral for *mut T {
    const NEUTRAL: *mut T = std::ptr::null_mut();
}
impl<T> Neutral for *const T {
    const NEUTRAL: *const T = std::ptr::null();
}

#[cold]
fn null(what: &str) -> Error {
    Error::invalid(format!("the argument `{what}` is NULL"))
}

#[cold]
fn no_length(len: usize, what: &str) -> Error {
    Error::invalid(format!("the length {len} of `{what}` is no length"))
}

/// What a handle points to.
///
/// # Safety
/// `handle` is NULL or one that was given out and not destroyed.
pub(crate) unsafe fn borrow<'a, T>(handle: *const T, what: &str) -> Res<&'a T> {
    // SAFETY: as the caller says.
    unsafe { handle.as_ref() }.ok_or_else(|| null(what))
}

/// The same to change it.
///
/// # Safety
/// As [`borrow`], and no other thread uses it meanwhile.
pub(crate) unsafe fn borrow_mut<'a, T>(handle: *mut T, what: &str) -> Res<&'a mut T> {
    // SAFETY: as the caller says.
    unsafe { handle.as_mut() }.ok_or_else(|| null(what))
}

/// Takes a handle back.
///
/// # Safety
/// As [`borrow`], and it is not used again.
pub(crate) unsafe fn take<T>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: handles come from `give`.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}

/// Gives a handle out.
pub(crate) fn give<T>(inner: T) -> *mut T {
    Box::into_raw(Box::new(inner))
}

/// `len` bytes from `at` on.
///
/// # Safety
/// `at` is NULL or points to so many bytes, which stay as they are meanwhile.
pub(crate) unsafe fn bytes<'a>(at: *const c_char, len: usize, what: &str) -> Res<&'a [u8]> {
    if at.is_null() {
        return if len == 0 { Ok(&[]) } else { Err(null(what)) };
    }
    if isize::try_from(len).is_err() {
        return Err(no_length(len, what));
    }
    // SAFETY: as the caller says; the length is one that a slice may have.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) })
}

/// The same, or `None` for NULL.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn bound<'a>(at: *const c_char, len: usize) -> Res<Option<&'a [u8]>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller says.
    unsafe { bytes(at, len, "a bound") }.map(Some)
}

/// A string.
///
/// # Safety
/// `at` is NULL or points to bytes that end in NUL.
pub(crate) unsafe fn text<'a>(at: *const c_char, what: &str) -> Res<&'a str> {
    if at.is_null() {
        return Err(null(what));
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map_err(|_| Error::invalid(format!("`{what}` is not UTF-8")))
}

/// A path, of any bytes.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn path<'a>(at: *const c_char, what: &str) -> Res<&'a Path> {
    if at.is_null() {
        return Err(null(what));
    }
    // SAFETY: as the caller says.
    Ok(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(at) }.to_bytes())))
}

/// Copies bytes out into memory of the C library, which the caller frees; a NUL follows them. NULL if
/// there is no memory.
pub(crate) fn c_bytes(bytes: &[u8]) -> *mut c_char {
    // SAFETY: `malloc` takes any size; what it gives holds the bytes and one more.
    unsafe {
        let out: *mut u8 = malloc(bytes.len() + 1).cast();
        if !out.is_null() {
            out.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            out.add(bytes.len()).write(0);
        }
        out.cast()
    }
}

/// Copies text out; it ends at its first NUL for readers of strings.
pub(crate) fn c_text(text: &str) -> *mut c_char {
    c_bytes(text.as_bytes())
}

/// Copies a list of texts out: an array of pointers, each with memory of its own.
pub(crate) fn c_texts(texts: &[String]) -> *mut *mut c_char {
    // SAFETY: the array has room for a pointer to each text; a list without texts has a place, too.
    unsafe {
        let list: *mut *mut c_char = malloc(size_of::<*mut c_char>() * texts.len().max(1)).cast();
        if !list.is_null() {
            for (i, text) in texts.iter().enumerate() {
                list.add(i).write(c_text(text));
            }
        }
        list
    }
}

/// Copies a list of pointers out: an array that the caller frees.
pub(crate) fn c_array<T>(all: impl ExactSizeIterator<Item = *mut T>) -> *mut *mut T {
    // SAFETY: the array has room for all of them; a list of none has a place, too.
    unsafe {
        let list: *mut *mut T = malloc(size_of::<*mut T>() * all.len().max(1)).cast();
        if !list.is_null() {
            all.enumerate().for_each(|(i, at)| list.add(i).write(at));
        }
        list
    }
}

/// Frees memory that came from the C library.
///
/// # Safety
/// `memory` is NULL or came from `malloc` and was not freed.
pub(crate) unsafe fn release(memory: *mut c_void) {
    // SAFETY: as the caller says.
    unsafe { free(memory) }
}

/// Frees a list of [`c_texts`].
///
/// # Safety
/// `list` is NULL, or such a list of `len` texts that was not freed.
pub(crate) unsafe fn release_texts(list: *mut *mut c_char, len: usize) {
    if list.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    unsafe {
        for i in 0..len {
            free((*list.add(i)).cast());
        }
        free(list.cast());
    }
}

/// The start of an array whose length another argument tells.
pub(crate) struct Many<T>(*const T);

impl<T> Clone for Many<T> {
    fn clone(&self) -> Many<T> {
        *self
    }
}
impl<T> Copy for Many<T> {}

impl<T: Copy> Many<T> {
    /// # Safety
    /// `at` is NULL or the start of an array of as many elements as it is asked for, which stay as
    /// they are during the call; pointers among them are as those of an argument of their own.
    pub(crate) unsafe fn at(at: *const T) -> Many<T> {
        Many(at)
    }
    /// Its first `n` elements.
    pub(crate) fn first(self, n: usize, what: &str) -> Res<Vec<T>> {
        match self.0.is_null() {
            true if n == 0 => Ok(Vec::new()),
            true => Err(null(what)),
            // SAFETY: `at` was told that there are so many.
            false => Ok((0..n).map(|i| unsafe { self.0.add(i).read_unaligned() }).collect()),
        }
    }
}
impl<'a> Many<*const c_char> {
    /// Its first `n` strings.
    pub(crate) fn texts(self, n: usize, what: &str) -> Res<Vec<&'a str>> {
        // SAFETY: `at` was told so of the pointers.
        self.first(n, what)?.into_iter().map(|at| unsafe { text(at, what) }).collect()
    }
    /// Its first `n` strings of bytes, with these lengths.
    pub(crate) fn bytes(self, lens: Many<usize>, n: usize, what: &str) -> Res<Vec<&'a [u8]>> {
        let all = self.first(n, what)?.into_iter().zip(lens.first(n, what)?);
        // SAFETY: `at` was told so of the pointers.
        all.map(|(at, len)| unsafe { bytes(at, len, what) }).collect()
    }
}
impl<T> Many<*const T> {
    /// What its first `n` handles point to.
    pub(crate) fn handles<'a>(self, n: usize, what: &str) -> Res<Vec<&'a T>> {
        // SAFETY: `at` was told so of the pointers.
        self.first(n, what)?.into_iter().map(|at| unsafe { borrow(at, what) }).collect()
    }
}

/// Where results go; NULL takes none.
pub(crate) struct Outs<T>(*mut T);

impl<T> Outs<T> {
    /// # Safety
    /// `at` is NULL or has room for as many elements as are set.
    pub(crate) unsafe fn at(at: *mut T) -> Outs<T> {
        Outs(at)
    }
    /// True if nothing is taken.
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }
    /// Sets element `i`.
    pub(crate) fn set_at(&self, i: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: `at` was told that there is room.
            unsafe { self.0.add(i).write(value) }
        }
    }
    /// Sets the only element.
    pub(crate) fn set(&self, value: T) {
        self.set_at(0, value);
    }
}

/// `rocksdb_snapshot_t`: where a snapshot is. That of a database has it to itself, and is released as such;
/// that of a transaction shows the transaction's, and is plain memory that `rocksdb_free` releases.
#[repr(C)]
pub(crate) struct SnapshotHandle(*const Snapshot);

impl SnapshotHandle {
    /// One of a database.
    pub(crate) fn owned(snapshot: Snapshot) -> *mut SnapshotHandle {
        give(SnapshotHandle(Box::into_raw(Box::new(snapshot))))
    }
    /// One that shows `snapshot`, which stays while the handle is used. NULL if there is no memory.
    pub(crate) fn shown(snapshot: Option<&Snapshot>) -> *mut SnapshotHandle {
        let at = snapshot.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: what `malloc` gives has room for a pointer, and is aligned for any.
        unsafe {
            let handle: *mut SnapshotHandle = malloc(size_of::<SnapshotHandle>()).cast();
            if !handle.is_null() {
                handle.write(SnapshotHandle(at));
            }
            handle
        }
    }
    /// The snapshot; none for a transaction without.
    pub(crate) fn get(&self) -> Option<&Snapshot> {
        // SAFETY: it stays while the handle is used: RocksDB's header for both kinds.
        unsafe { self.0.as_ref() }
    }
    /// Lets go of one of a database.
    pub(crate) fn release(self) {
        // SAFETY: RocksDB's header: only those that `owned` gave come here, once.
        drop(unsafe { take(self.0.cast_mut()) });
    }
}

export! {
    fn rocksdb_free(memory: *mut c_void) {
        // SAFETY: RocksDB's header: memory that the library gave out as such, once.
        unsafe { release(memory) };
        Ok(())
    }
    fn rocksdb_list_column_families_destroy(list: *mut *mut c_char, len: usize) {
        // SAFETY: RocksDB's header: a list from `rocksdb_list_column_families` with its length, once.
        unsafe { release_texts(list, len) };
        Ok(())
    }
}
