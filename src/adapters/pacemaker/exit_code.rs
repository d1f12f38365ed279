//! Exit codes of Pacemaker's tools that mean something else than a failure (`crm_exit_t`).

/// CRM_EX_DISCONNECT: the tool reached no daemon, for example because Pacemaker is stopped.
pub const DISCONNECTED: i32 = 102;
/// CRM_EX_NOSUCH: the object of the question does not exist.
pub const NO_SUCH: i32 = 105;
/// The codes of `attrd_updater` for an attribute that no node has: CRM_EX_CONFIG in 2.1 and 3.0, and CRM_EX_NOSUCH by its
/// meaning.
pub const NO_ATTRIBUTE: [i32; 2] = [78, NO_SUCH];
