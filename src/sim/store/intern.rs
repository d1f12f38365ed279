//! Small numbers for large values: states stay compact, and equal values have equal numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hash::Fast;

/// The number of a stored value. Equal values have equal numbers.
pub type Id = u32;

/// A table that gives a small number to each distinct value. Several threads may have a table each, and a value has the same number in
/// all of them. If a value is new to a thread, the thread gets the number from a table that all share.
#[derive(Clone, Debug)]
pub struct Interner<T> {
    own: Table<T>,
    shared: Arc<Mutex<Table<T>>>,
}

#[derive(Clone, Debug)]
struct Table<T> {
    values: Vec<T>,
    marks: Vec<u16>,
    ids: HashMap<T, Id, BuildHasherDefault<Fast>>,
}

impl<T: Clone + Eq + Hash + Default> Default for Interner<T> {
    /// Creates a table in which the default value has number 0.
    fn default() -> Self {
        let own = Table { values: Vec::new(), marks: Vec::new(), ids: HashMap::default() };
        let mut table = Self { shared: Arc::new(Mutex::new(own.clone())), own };
        table.id(T::default());
        table
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// Returns the number of `value`, and assigns one if the value is new.
    pub fn id(&mut self, value: T) -> Id {
        if let Some(id) = self.own.ids.get(&value) {
            return *id;
        }
        let id = lock(&self.shared).id(value);
        self.catch_up();
        id
    }

    /// Adds the values that other threads have numbered since the last call. After that, this table has the value of every number that
    /// was assigned.
    pub fn catch_up(&mut self) {
        let shared = lock(&self.shared);
        for value in &shared.values[self.own.values.len()..] {
            self.own.add(value.clone());
        }
    }

    /// Returns the number of stored values.
    pub fn len(&self) -> usize {
        self.own.values.len()
    }

    /// Returns whether the table stores no values.
    pub fn is_empty(&self) -> bool {
        self.own.values.is_empty()
    }

    /// Returns the value to which [`Self::id`] has assigned this number.
    pub fn get(&self, id: Id) -> &T {
        &self.own.values[id as usize]
    }

    /// Returns the fingerprint of the value with this number. The fingerprint is the same in every run. The number is not, because it
    /// depends on which thread found a value first.
    pub fn mark(&self, id: Id) -> u16 {
        self.own.marks[id as usize]
    }
}

impl<T: Clone + Eq + Hash + Default> Interner<T> {
    /// Reserves number 0 for "no value", so that the default value gets a number of its own.
    pub fn reserve_default(&mut self) {
        for table in [&mut self.own, &mut *lock(&self.shared)] {
            table.ids.clear();
            table.values.truncate(1);
            table.marks.truncate(1);
        }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn id(&mut self, value: T) -> Id {
        if let Some(id) = self.ids.get(&value) {
            return *id;
        }
        self.add(value)
    }

    fn add(&mut self, value: T) -> Id {
        let id = Id::try_from(self.values.len()).unwrap_or(Id::MAX);
        let mut hasher = Fast::default();
        value.hash(&mut hasher);
        self.marks.push(u16::try_from(hasher.finish() >> 48).unwrap_or_default());
        self.values.push(value.clone());
        self.ids.insert(value, id);
        id
    }
}

fn lock<T>(table: &Mutex<Table<T>>) -> MutexGuard<'_, Table<T>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
