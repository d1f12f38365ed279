//! A counter of allocations, so that a test can limit them.

#![expect(unsafe_code, reason = "an allocator is unsafe to write; this one only counts on the way to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The net number of bytes that this thread has allocated since its last call of [`peak`], and the largest such
    /// number so far.
    static USED: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(change: isize) {
    // A thread that is ending has no counter any more.
    let _ = USED.try_with(|used| {
        let (now, peak) = used.get();
        used.set((now + change, peak.max(now + change)));
    });
}

/// Converts a size in bytes to a signed number. The sizes of layouts are at most `isize::MAX`.
fn size(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

// SAFETY: every call goes to the system's allocator unchanged; `realloc` and `alloc_zeroed` come through these two.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(size(layout.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-size(layout.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `work`. Returns the largest number of bytes that it had allocated at once, and its result.
pub(crate) fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    USED.set((0, 0));
    let result = work();
    (usize::try_from(USED.get().1).unwrap_or_default(), result)
}
