//! Pacemaker in the model: the membership, the CIB and its replicas, fencing, and the schedule of actions.

mod fencing;
mod machines;
mod membership;
mod schedule;

pub use fencing::{confirm_down, fence, is_confirmed_down, may_fence};
pub use machines::{boot, end_stack, forget_node, power_off, stack_is_back};
pub use membership::{
    are_lasting_parts_equal, are_together, catch_up, erase, heal, hear, holds_writes_back, is_up, meet, notice, part,
    restore, write,
};
pub use schedule::{BEGINNINGS, Begin, answered, ask_to_shut_down, begin, may_begin};
