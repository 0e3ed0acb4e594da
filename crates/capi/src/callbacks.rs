//! The program's own functions: comparators, merge operators, compaction filters, prefix extractors and
//! loggers, each behind the trait that the store calls.
//!
//! Keeps: a function's state is handed to its destructor once, when the last part of the library that may
//! call the function lets go of it. Names are copied when an object is made. What a function allocated is
//! released as RocksDB's header says.
//! Leaves to others: which database gets which (`options`).

use std::cell::Cell;
use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use lithify::prefix::FixedPrefix;
use lithify::{
    CompactionFilter, CompactionFilterRef, Comparator, ComparatorRef, Decision, Error,
    FilterContext, FilterJob, MergeOperator, MergeOperatorRef, PrefixExtractor, PrefixExtractorRef,
};

use crate::options::Options;
use crate::raw::{Res, export, give, release, take};
use crate::users::Turn;

pub(crate) type Destructor = unsafe extern "C" fn(*mut c_void);
pub(crate) type NameFn = unsafe extern "C" fn(*mut c_void) -> *const c_char;
pub(crate) type CompareFn =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
type FullMergeFn = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut u8,
    *mut usize,
) -> *mut c_char;
type PartialMergeFn = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut u8,
    *mut usize,
) -> *mut c_char;
type DeleteFn = unsafe extern "C" fn(*mut c_void, *const c_char, usize);
type FilterFn = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut u8,
) -> u8;
type TransformFn =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char;
type DomainFn = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> u8;
type CreateFilterFn = unsafe extern "C" fn(*mut c_void, *mut FilterAbout) -> *mut Filter;
pub(crate) type CompareWithoutFn =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, u8, *const c_char, usize, u8) -> c_int;
pub(crate) type ProgressFn = unsafe extern "C" fn(*mut c_void, u64, u64);

/// Tells the program how far something is.
pub(crate) fn progress(watch: Option<ProgressFn>, state: *mut c_void, done: u64, total: u64) {
    if let Some(watch) = watch {
        // SAFETY: the program's function with its own state, during the call that was given both.
        unsafe { watch(state, done, total) }
    }
}

pub(crate) type LogFn = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize);

/// A state of the program's, with what ends it.
pub(crate) struct State {
    state: *mut c_void,
    destructor: Option<Destructor>,
}

// SAFETY: RocksDB's header: functions are called from any thread, several at once, with this state.
unsafe impl Send for State {}
// SAFETY: the same.
unsafe impl Sync for State {}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: nothing calls a function with this state from here on.
            unsafe { destructor(self.state) }
        }
    }
}

/// What `name` says, copied.
///
/// # Errors
/// `InvalidArgument` if there is no function, or it gives NULL or what is not UTF-8.
fn name_of(state: &State, name: Option<NameFn>) -> Res<String> {
    let name = String::from_utf8(bytes_of_name(state, name)?);
    name.map_err(|_| Error::invalid("a name is not UTF-8"))
}

/// The same of a filter or what makes filters, whose name decides nothing: any bytes will do.
///
/// # Errors
/// `InvalidArgument` if there is no function, or it gives NULL.
fn filter_name_of(state: &State, name: Option<NameFn>) -> Res<String> {
    Ok(String::from_utf8_lossy(&bytes_of_name(state, name)?).into_owned())
}

fn bytes_of_name(state: &State, name: Option<NameFn>) -> Res<Vec<u8>> {
    let name = given(name, "name")?;
    // SAFETY: the program's function with its own state.
    let at = unsafe { name(state.state) };
    if at.is_null() {
        return Err(Error::invalid("the function `name` gave NULL"));
    }
    // SAFETY: it gives a string, which is copied at once.
    Ok(unsafe { CStr::from_ptr(at) }.to_bytes().to_vec())
}

/// Objects of the program's that options take, and NULL for none.
#[derive(Clone, Copy)]
enum Made {
    Operator,
    Factory,
    Prefix,
}

thread_local! {
    /// Of each kind, whether this thread's last one could not be made.
    static MISSED: Cell<[bool; 3]> = const { Cell::new([false; 3]) };
}

/// What an object of this kind is made of. A function that makes one has no place for an error: that there was one is
/// remembered until the next is made.
fn made<T>(kind: Made, parts: impl FnOnce() -> Res<T>) -> Res<T> {
    let parts = parts();
    let mut missed = MISSED.get();
    missed[kind as usize] = parts.is_err();
    MISSED.set(missed);
    parts
}

const NOT_MADE: &str =
    "NULL: it could not be made, as its name is not UTF-8 or a function of it is missing";

/// Why an open is refused whose options were given NULL where one could not be made: to go on without the object would
/// read and write other data than the program means. Other NULLs mean none, as in RocksDB.
fn not_made<T>(kind: Made, object: Option<&T>) -> Option<String> {
    (object.is_none() && MISSED.get()[kind as usize]).then(|| NOT_MADE.to_owned())
}

fn given<F>(function: Option<F>, what: &str) -> Res<F> {
    function.ok_or_else(|| Error::invalid(format!("the function `{what}` is NULL")))
}

/// Bytes for a function of the program's.
fn at(bytes: &[u8]) -> (*const c_char, usize) {
    (bytes.as_ptr().cast(), bytes.len())
}

/// `rocksdb_comparator_t`.
pub(crate) struct Order {
    inner: ComparatorRef,
    /// Keys have timestamps of the program's, which no database here takes.
    has_times: bool,
}

/// A comparator of keys with timestamps: the open that is given it is refused.
pub(crate) fn order_with_times(
    state: *mut c_void,
    destructor: Option<Destructor>,
    compare: Option<CompareFn>,
    name: Option<NameFn>,
) -> Res<*mut Order> {
    let state = State { state, destructor };
    let (name, compare) = (name_of(&state, name)?, given(compare, "compare")?);
    Ok(give(Order { inner: Arc::new(Compares { state, name, compare }), has_times: true }))
}

struct Compares {
    state: State,
    name: String,
    compare: CompareFn,
}

impl Comparator for Compares {
    fn name(&self) -> &str {
        &self.name
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // No order tells equal bytes apart, and a call costs more than to look.
        if a == b {
            return Ordering::Equal;
        }
        let ((a, a_len), (b, b_len)) = (at(a), at(b));
        // SAFETY: the program's function with its own state, and bytes that stay during the call.
        let order = unsafe { (self.compare)(self.state.state, a, a_len, b, b_len) };
        order.cmp(&0)
    }
}

/// `rocksdb_mergeoperator_t`.
pub(crate) struct Operator(MergeOperatorRef);

struct Merges {
    state: State,
    name: String,
    full: FullMergeFn,
    partial: Option<PartialMergeFn>,
    delete: Option<DeleteFn>,
}

impl Merges {
    /// The bytes that a function gave, which are released; `None` if it did not succeed.
    ///
    /// # Safety
    /// `value` is NULL or has `len` bytes, and may be released.
    unsafe fn taken(&self, value: *mut c_char, len: usize, success: u8) -> Option<Vec<u8>> {
        let bytes = match (value.is_null(), success) {
            (_, 0) => None,
            (true, _) => (len == 0).then(Vec::new),
            // SAFETY: as the caller says.
            (false, _) => Some(unsafe { std::slice::from_raw_parts(value.cast(), len) }.to_vec()),
        };
        match self.delete {
            // SAFETY: the program's function with its own state, for its own bytes.
            Some(delete) => unsafe { delete(self.state.state, value, len) },
            // SAFETY: without one, the bytes are from the C library.
            None => unsafe { release(value.cast()) },
        }
        bytes
    }
}

/// Operands as the program's functions take them.
fn lists(operands: &[&[u8]]) -> (Vec<*const c_char>, Vec<usize>, c_int) {
    let count = c_int::try_from(operands.len()).unwrap_or(c_int::MAX);
    let operands = &operands[..count as usize];
    (
        operands.iter().map(|o| o.as_ptr().cast()).collect(),
        operands.iter().map(|o| o.len()).collect(),
        count,
    )
}

impl MergeOperator for Merges {
    fn name(&self) -> &str {
        &self.name
    }
    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Res<Vec<u8>> {
        let (pointers, lens, count) = lists(operands);
        if count as usize != operands.len() {
            return Err(Error::invalid("more operands than a C `int` counts"));
        }
        let (key, key_len) = at(key);
        let (old, old_len) = existing.map_or((std::ptr::null(), 0), at);
        let (mut success, mut len) = (0, 0);
        // SAFETY: the program's function with its own state; lists and bytes stay during the call.
        let merged = unsafe {
            let value = (self.full)(
                self.state.state,
                key,
                key_len,
                old,
                old_len,
                pointers.as_ptr(),
                lens.as_ptr(),
                count,
                &mut success,
                &mut len,
            );
            self.taken(value, len, success)
        };
        merged.ok_or_else(|| Error::invalid("it did not succeed"))
    }
    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let partial = self.partial?;
        let (pointers, lens, count) = lists(&[older, newer]);
        let (key, key_len) = at(key);
        let (mut success, mut len) = (0, 0);
        // SAFETY: as in `full_merge`.
        unsafe {
            let value = partial(
                self.state.state,
                key,
                key_len,
                pointers.as_ptr(),
                lens.as_ptr(),
                count,
                &mut success,
                &mut len,
            );
            self.taken(value, len, success)
        }
    }
}

/// `rocksdb_compactionfilter_t`.
pub(crate) struct Filter(CompactionFilterRef);

struct Filters {
    state: State,
    name: String,
    filter: FilterFn,
}

impl CompactionFilter for Filters {
    fn name(&self) -> &str {
        &self.name
    }
    fn filter<'a>(&self, context: &FilterContext, key: &[u8], value: &'a [u8]) -> Decision<'a> {
        let ((key, key_len), (old, old_len)) = (at(key), at(value));
        let (mut new, mut new_len, mut changed) = (std::ptr::null_mut::<c_char>(), 0, 0);
        // SAFETY: the program's function with its own state, and bytes that stay during the call.
        let remove = unsafe {
            (self.filter)(
                self.state.state,
                c_int::from(context.level),
                key,
                key_len,
                old,
                old_len,
                &mut new,
                &mut new_len,
                &mut changed,
            )
        };
        if remove != 0 {
            return Decision::Remove;
        }
        if changed == 0 || (new.is_null() && new_len > 0) {
            return Decision::Keep;
        }
        if new.is_null() {
            return Decision::Change(Vec::new().into());
        }
        // SAFETY: it gave so many bytes, which stay the program's: RocksDB copies them, too.
        Decision::Change(
            unsafe { std::slice::from_raw_parts(new.cast::<u8>(), new_len) }.to_vec().into(),
        )
    }
}

/// `rocksdb_compactionfiltercontext_t`: what a compaction is that a filter is made for.
pub(crate) struct FilterAbout(FilterJob);

/// `rocksdb_compactionfilterfactory_t`.
pub(crate) struct FilterFactory(CompactionFilterRef);

struct MakesFilters {
    state: State,
    name: String,
    create: CreateFilterFn,
}

impl CompactionFilter for MakesFilters {
    fn name(&self) -> &str {
        &self.name
    }
    /// Without a filter of its own, a compaction keeps all.
    fn filter<'a>(&self, _: &FilterContext, _: &[u8], _: &'a [u8]) -> Decision<'a> {
        Decision::Keep
    }
    fn for_compaction(&self, job: &FilterJob) -> Option<CompactionFilterRef> {
        let mut about = FilterAbout(*job);
        // SAFETY: the program's function with its own state, and a context that stays during the call. What
        // it gives is a filter that was made here and that it hands over, as RocksDB's header says.
        let made = unsafe { take((self.create)(self.state.state, &mut about)) };
        Some(Arc::new(OneByOne { filter: made?.0, turn: Turn::default() }))
    }
}

/// Asks a filter from one thread at a time: a factory's filters need not be made for more.
struct OneByOne {
    filter: CompactionFilterRef,
    turn: Turn,
}

impl CompactionFilter for OneByOne {
    fn name(&self) -> &str {
        self.filter.name()
    }
    fn filter<'a>(&self, context: &FilterContext, key: &[u8], value: &'a [u8]) -> Decision<'a> {
        self.turn.take(|| self.filter.filter(context, key, value))
    }
}

/// `rocksdb_slicetransform_t`.
pub(crate) struct Prefix(Option<PrefixExtractorRef>);

struct Transforms {
    state: State,
    name: String,
    transform: TransformFn,
    domain: DomainFn,
}

impl PrefixExtractor for Transforms {
    fn name(&self) -> &str {
        &self.name
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let (start, len) = at(key);
        let mut taken = 0;
        // SAFETY: the program's functions with their own state, and bytes that stay during the calls.
        let prefix = unsafe {
            if (self.domain)(self.state.state, start, len) == 0 {
                return None;
            }
            (self.transform)(self.state.state, start, len, &mut taken)
        };
        // A transform gives a part of the key; only its first bytes are a prefix.
        (std::ptr::eq(prefix, start)).then(|| key.get(..taken)).flatten()
    }
}

/// A function that takes lines of a log.
#[derive(Clone)]
pub(crate) struct LogCall {
    log: LogFn,
    state: Arc<State>,
}

impl LogCall {
    pub(crate) fn new(log: LogFn, state: *mut c_void) -> LogCall {
        LogCall { log, state: Arc::new(State { state, destructor: None }) }
    }
    pub(crate) fn say(&self, level: c_uint, text: &str) {
        let mut text = text.as_bytes().to_vec();
        text.push(0);
        // SAFETY: the program's function with its own state, and a line of our own.
        unsafe { (self.log)(self.state.state, level, text.as_mut_ptr().cast(), text.len() - 1) }
    }
}

export! {
    fn rocksdb_comparator_create(
        state: *mut c_void, destructor: Option<Destructor>, compare: Option<CompareFn>, name: Option<NameFn>
    ) -> *mut Order {
        let state = State { state, destructor };
        let (name, compare) = (name_of(&state, name)?, given(compare, "compare")?);
        Ok(give(Order { inner: Arc::new(Compares { state, name, compare }), has_times: false }))
    }
    fn rocksdb_comparator_destroy(order: own Order) {
        drop(order);
        Ok(())
    }
    fn rocksdb_options_set_comparator(options: &mut Options, order: maybe Order) {
        options.parts.order = order.map(|order| order.inner.clone());
        let times = order.is_some_and(|order| order.has_times);
        let times = times.then(|| "with timestamps: there are none here; put the time into the key".to_owned());
        let none = order.is_none().then(|| NOT_MADE.to_owned());
        options.kept.refuse("comparator", times.or(none));
        Ok(())
    }
    fn rocksdb_mergeoperator_create(
        state: *mut c_void, destructor: Option<Destructor>, full: Option<FullMergeFn>,
        partial: Option<PartialMergeFn>, delete: Option<DeleteFn>, name: Option<NameFn>
    ) -> *mut Operator {
        let state = State { state, destructor };
        let parts = || Ok((name_of(&state, name)?, given(full, "full_merge")?));
        let (name, full) = made(Made::Operator, parts)?;
        Ok(give(Operator(Arc::new(Merges { state, name, full, partial, delete }))))
    }
    fn rocksdb_mergeoperator_destroy(operator: own Operator) {
        drop(operator);
        Ok(())
    }
    fn rocksdb_options_set_merge_operator(options: &mut Options, operator: own Operator) {
        options.kept.refuse("merge_operator", not_made(Made::Operator, operator.as_ref()));
        options.parts.operator = operator.map(|operator| operator.0);
        Ok(())
    }
    fn rocksdb_options_set_uint64add_merge_operator(options: &mut Options) {
        options.kept.refuse("merge_operator", None);
        options.parts.operator = Some(Arc::new(lithify::merge::Add));
        Ok(())
    }
    fn rocksdb_compactionfilter_create(
        state: *mut c_void, destructor: Option<Destructor>, filter: Option<FilterFn>, name: Option<NameFn>
    ) -> *mut Filter {
        let state = State { state, destructor };
        let (name, filter) = (filter_name_of(&state, name)?, given(filter, "filter")?);
        Ok(give(Filter(Arc::new(Filters { state, name, filter }))))
    }
    fn rocksdb_compactionfilter_destroy(filter: own Filter) {
        drop(filter);
        Ok(())
    }
    fn rocksdb_options_set_compaction_filter(options: &mut Options, filter: maybe Filter) {
        options.parts.filter = filter.map(|filter| filter.0.clone());
        Ok(())
    }
    fn rocksdb_compactionfilterfactory_create(
        state: *mut c_void, destructor: Option<Destructor>, create: Option<CreateFilterFn>, name: Option<NameFn>
    ) -> *mut FilterFactory {
        let state = State { state, destructor };
        let parts = || Ok((filter_name_of(&state, name)?, given(create, "create_compaction_filter")?));
        let (name, create) = made(Made::Factory, parts)?;
        Ok(give(FilterFactory(Arc::new(MakesFilters { state, name, create }))))
    }
    fn rocksdb_compactionfilterfactory_destroy(factory: own FilterFactory) {
        drop(factory);
        Ok(())
    }
    fn rocksdb_compactionfiltercontext_is_full_compaction(about: &FilterAbout) -> u8 {
        Ok(u8::from(about.0.full))
    }
    fn rocksdb_compactionfiltercontext_is_manual_compaction(about: &FilterAbout) -> u8 {
        Ok(u8::from(about.0.manual))
    }
    fn rocksdb_options_set_compaction_filter_factory(options: &mut Options, factory: own FilterFactory) {
        options.kept.refuse("compaction_filter_factory", not_made(Made::Factory, factory.as_ref()));
        // As in RocksDB, a filter goes before a factory.
        options.parts.factory = factory.map(|factory| factory.0);
        Ok(())
    }
    fn rocksdb_slicetransform_create(
        state: *mut c_void, destructor: Option<Destructor>, transform: Option<TransformFn>,
        domain: Option<DomainFn>, name: Option<NameFn>
    ) -> *mut Prefix {
        let state = State { state, destructor };
        let parts =
            || Ok((name_of(&state, name)?, given(transform, "transform")?, given(domain, "in_domain")?));
        let (name, transform, domain) = made(Made::Prefix, parts)?;
        Ok(give(Prefix(Some(Arc::new(Transforms { state, name, transform, domain })))))
    }
    fn rocksdb_slicetransform_create_fixed_prefix(len: usize) -> *mut Prefix {
        Ok(give(Prefix(Some(Arc::new(FixedPrefix::new(len))))))
    }
    fn rocksdb_slicetransform_create_noop() -> *mut Prefix {
        Ok(give(Prefix(None)))
    }
    fn rocksdb_slicetransform_destroy(prefix: own Prefix) {
        drop(prefix);
        Ok(())
    }
    fn rocksdb_options_set_prefix_extractor(options: &mut Options, prefix: own Prefix) {
        options.kept.refuse("prefix_extractor", not_made(Made::Prefix, prefix.as_ref()));
        options.parts.prefixes = prefix.and_then(|prefix| prefix.0);
        Ok(())
    }
}

pub(crate) type Put = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
pub(crate) type Deleted = unsafe extern "C" fn(*mut c_void, *const c_char, usize);
pub(crate) type PutIn =
    unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize);
pub(crate) type DeletedIn = unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize);

/// Tells a put of a batch.
pub(crate) fn put(call: Option<Put>, state: *mut c_void, key: &[u8], value: &[u8]) {
    let ((key, key_len), (value, len)) = (at(key), at(value));
    if let Some(call) = call {
        // SAFETY: the program's function with its own state, and bytes that stay during the call.
        unsafe { call(state, key, key_len, value, len) }
    }
}
/// Tells a deletion of a batch.
pub(crate) fn deleted(call: Option<Deleted>, state: *mut c_void, key: &[u8]) {
    let (key, len) = at(key);
    if let Some(call) = call {
        // SAFETY: as in `put`.
        unsafe { call(state, key, len) }
    }
}
/// Tells a put of a batch, or an operand, with its family.
pub(crate) fn put_in(call: Option<PutIn>, state: *mut c_void, cf: u32, key: &[u8], value: &[u8]) {
    let ((key, key_len), (value, len)) = (at(key), at(value));
    if let Some(call) = call {
        // SAFETY: as in `put`.
        unsafe { call(state, cf, key, key_len, value, len) }
    }
}
/// Tells a deletion of a batch with its family.
pub(crate) fn deleted_in(call: Option<DeletedIn>, state: *mut c_void, cf: u32, key: &[u8]) {
    let (key, len) = at(key);
    if let Some(call) = call {
        // SAFETY: as in `put`.
        unsafe { call(state, cf, key, len) }
    }
}
