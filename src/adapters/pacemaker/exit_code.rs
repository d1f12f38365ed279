//! Exit codes of Pacemaker's tools that mean something else than a failure (`crm_exit_t`).

/// CRM_EX_DISCONNECT: the tool could not connect to a daemon, for example because Pacemaker is stopped.
pub const DISCONNECTED: i32 = 102;
/// CRM_EX_NOSUCH: the object that the command is about does not exist.
pub const NO_SUCH: i32 = 105;
/// The exit codes of `attrd_updater` for an attribute that no node has. In Pacemaker 2.1 and 3.0 the code is CRM_EX_CONFIG. By its meaning
/// it should be CRM_EX_NOSUCH.
pub const NO_ATTRIBUTE: [i32; 2] = [78, NO_SUCH];
