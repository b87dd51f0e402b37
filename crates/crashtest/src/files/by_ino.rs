//! A value for files and folders, found by their numbers.

use std::ops::Index;

use super::atom::Ino;

/// Values of some files and folders. A table: numbers are given in turn, and each state asks for many of them.
#[derive(Clone, Debug)]
pub(crate) struct ByIno<T> {
    values: Vec<Option<T>>,
}

impl<T> ByIno<T> {
    pub(crate) const fn new() -> Self {
        Self { values: Vec::new() }
    }

    pub(crate) fn get(&self, ino: Ino) -> Option<&T> {
        self.values.get(ino.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, ino: Ino) -> Option<&mut T> {
        self.values.get_mut(ino.0 as usize)?.as_mut()
    }

    /// The value of `ino`; made by `new` if it has none.
    pub(crate) fn get_or_insert_with(&mut self, ino: Ino, new: impl FnOnce() -> T) -> &mut T {
        let index = ino.0 as usize;
        if index >= self.values.len() {
            self.values.resize_with(index + 1, || None);
        }
        self.values[index].get_or_insert_with(new)
    }

    /// Those that have a value, in order.
    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = Ino> + '_ {
        let values = self.values.iter().enumerate();
        values.filter_map(|(index, value)| value.is_some().then_some(Ino(index as u32)))
    }
}

impl<T> Index<Ino> for ByIno<T> {
    type Output = T;

    fn index(&self, ino: Ino) -> &T {
        self.get(ino).expect("it has a value")
    }
}
