//! What Pacemaker's tools exit with, as far as it means something else than a failure (`crm_exit_t`).

/// CRM_EX_DISCONNECT: the tool found no daemon to talk to, as where Pacemaker is stopped.
pub const DISCONNECTED: i32 = 102;
/// CRM_EX_NOSUCH: what was asked for is not there.
pub const NO_SUCH: i32 = 105;
/// What `attrd_updater` answers about an attribute that no node has: CRM_EX_CONFIG in 2.1 and 3.0; CRM_EX_NOSUCH means it.
pub const NO_ATTRIBUTE: [i32; 2] = [78, NO_SUCH];
