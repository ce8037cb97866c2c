//! Branches of joins and selects, so that a result wakes only the branch whose future waits for it.
//!
//! Without it, each of a thousand results would poll a thousand branches. A branch is known by its place; waking it
//! puts the place on the list of its combinator, and that combinator's own branch on the list above, to the top.

use std::cell::RefCell;
use std::rc::Rc;

/// The list of a combinator: places of branches that have something new.
pub(super) struct Ready {
    places: RefCell<Vec<u32>>,
    above: RefCell<Option<Branch>>,
}

/// One branch of a combinator.
#[derive(Clone)]
pub(super) struct Branch {
    ready: Rc<Ready>,
    place: u32,
}

impl Ready {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self { places: RefCell::default(), above: RefCell::default() })
    }

    /// Says which branch the combinator itself is; it may have moved since it was last polled.
    pub(super) fn set_above(&self, above: &Option<Branch>) {
        self.above.borrow_mut().clone_from(above);
    }

    /// Takes the list; `spare` takes its place, so that the memory is used again.
    pub(super) fn take(&self, spare: Vec<u32>) -> Vec<u32> {
        self.places.replace(spare)
    }

    pub(super) fn branch(self: &Rc<Self>, place: u32) -> Branch {
        Branch { ready: Rc::clone(self), place }
    }
}

impl Branch {
    pub(super) fn wake(&self) {
        let mut branch = Some(self.clone());
        while let Some(Self { ready, place }) = branch {
            ready.places.borrow_mut().push(place);
            branch = ready.above.borrow().clone();
        }
    }
}
