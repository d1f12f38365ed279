//! The figures of a run: times and counts that a scenario prints and that the file of results keeps.

use std::sync::{Mutex, PoisonError};

/// The figures that the present scenario has printed. A process runs one scenario at a time.
static PRINTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a figure below its scenario, and keeps it for [`take`].
pub fn print(figure: String) {
    println!("   {figure}");
    PRINTED.lock().unwrap_or_else(PoisonError::into_inner).push(figure);
}

/// Returns the figures that were printed since the last call, in their order.
pub fn take() -> Vec<String> {
    std::mem::take(&mut *PRINTED.lock().unwrap_or_else(PoisonError::into_inner))
}
