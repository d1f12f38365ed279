//! Small numbers for large values: states stay compact, and equal values have equal numbers.

use std::collections::HashMap;
use std::hash::Hash;

/// The number of a value.
pub type Id = u32;

/// A table of values.
#[derive(Clone, Debug)]
pub struct Interner<T> {
    values: Vec<T>,
    ids: HashMap<T, Id>,
}

impl<T: Clone + Eq + Hash + Default> Default for Interner<T> {
    /// Number 0 is the default value.
    fn default() -> Self {
        let mut table = Self { values: Vec::new(), ids: HashMap::new() };
        table.id(T::default());
        table
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// The number of `value`.
    pub fn id(&mut self, value: T) -> Id {
        if let Some(id) = self.ids.get(&value) {
            return *id;
        }
        let id = Id::try_from(self.values.len()).unwrap_or(Id::MAX);
        self.values.push(value.clone());
        self.ids.insert(value, id);
        id
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of a number that [`Self::id`] gave.
    pub fn get(&self, id: Id) -> &T {
        &self.values[id as usize]
    }
}

impl<T: Clone + Eq + Hash + Default> Interner<T> {
    /// Lets number 0 stand for "none", so that the default value gets a number of its own.
    pub fn reserve_default(&mut self) {
        self.ids.clear();
        self.values.truncate(1);
    }
}
