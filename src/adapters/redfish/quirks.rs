//! The differences between services, as data. Each row has the symptom, its meaning, and the source.
//!
//! The code that reads answers uses this table, so a new vendor's habit is a new row.

use super::failure::FailureKind;

/// The meaning of a message in a BMC's refusal, for a fence agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The request is impossible in the present power state, or the system is already in the wanted state. Reading the power state shows
    /// which is true.
    WrongState,
    /// The BMC cannot serve the request at present, and a retry may succeed.
    Busy,
    /// The BMC refuses the credentials.
    Unauthorised,
    /// The account lacks the right to perform the request.
    Forbidden,
    /// The BMC does not know the value of `ResetType`.
    ValueRefused,
    /// The request needs the header `If-Match`.
    Precondition,
    /// The BMC has executed the request. Some BMCs report this inside an `error` object.
    Success,
}

impl Meaning {
    /// Returns the kind of failure for a message with this meaning.
    pub fn kind(self) -> FailureKind {
        match self {
            Self::WrongState => FailureKind::WrongState,
            Self::Busy => FailureKind::Busy { retry_after: None },
            Self::Unauthorised => FailureKind::Unauthorised,
            Self::Forbidden => FailureKind::Forbidden,
            Self::ValueRefused => FailureKind::ValueRefused,
            Self::Precondition => FailureKind::Precondition,
            // A failure status with only success messages contradicts itself, and stays a refusal.
            Self::Success => FailureKind::Refused,
        }
    }
}

/// A known message of a BMC. `id` is the last part of its `MessageId`. Its meaning holds with any HTTP status.
#[derive(Debug)]
pub struct KnownMessage {
    pub id: &'static str,
    pub meaning: Meaning,
    /// A hint for the operator in addition to the BMC's own text; may be empty.
    pub hint: &'static str,
    pub source: &'static str,
}

const fn message(id: &'static str, meaning: Meaning, hint: &'static str, source: &'static str) -> KnownMessage {
    KnownMessage { id, meaning, hint, source }
}

/// The table of known messages. An id must match exactly, except for the case of its letters. If a body has several messages, the first
/// row that occurs decides.
pub const MESSAGES: &[KnownMessage] = &[
    message(
        "PasswordChangeRequired",
        Meaning::Forbidden,
        "log in to the BMC once and change the password",
        "DMTF Base registry; AMI MegaRAC after factory reset (libredfish)",
    ),
    message(
        "OemLicenseNotPassed",
        Meaning::Forbidden,
        "the BMC needs a licence for this",
        "Supermicro SMC.1.0 (ironic-image issue 688)",
    ),
    message("InsufficientPrivilege", Meaning::Forbidden, "give the user the Operator role", "DMTF Base registry"),
    message("AccessDenied", Meaning::Forbidden, "", "DMTF Base registry; Lenovo XCC"),
    message("RestrictedPrivilege", Meaning::Forbidden, "", "DMTF Base registry"),
    message("LicenseRequired", Meaning::Forbidden, "the BMC needs a licence for this", "DMTF Base registry"),
    message("ResourceAtUriUnauthorized", Meaning::Unauthorised, "", "DMTF Base registry"),
    message("NoValidSession", Meaning::Unauthorised, "", "DMTF Base registry"),
    message("SessionTerminated", Meaning::Unauthorised, "", "DMTF Base registry"),
    message(
        "SYS415",
        Meaning::Unauthorised,
        "the iDRAC says this also when its sessions are used up",
        "Dell iDRAC (hardware-observer-operator issue 136)",
    ),
    message(
        "RAC0218",
        Meaning::Busy,
        "all sessions of the iDRAC are in use",
        "Dell iDRAC (gofish issue 75, badfish issue 447)",
    ),
    message("SYS518", Meaning::Busy, "the iDRAC's data sources are starting", "Dell iDRAC (sushy connector)"),
    message(
        "SWC0700",
        Meaning::Busy,
        "the iDRAC is starting",
        "Dell iDRAC: 400 to a GET of Systems, for some minutes (badfish issue 129)",
    ),
    message("SessionLimitExceeded", Meaning::Busy, "all sessions of the BMC are in use", "DMTF Base registry"),
    message("CreateLimitReachedForResource", Meaning::Busy, "all sessions of the BMC are in use", "DMTF Base registry"),
    message("ServiceTemporarilyUnavailable", Meaning::Busy, "", "DMTF Base registry"),
    message("ServiceShuttingDown", Meaning::Busy, "", "DMTF Base registry"),
    message("ResourceInUse", Meaning::Busy, "", "DMTF Base registry"),
    message("ServiceInUnknownState", Meaning::Busy, "", "DMTF Base registry"),
    message("ResourceInStandby", Meaning::Busy, "", "DMTF Base registry"),
    message("ResourceExhaustion", Meaning::Busy, "", "DMTF Base registry"),
    message("OperationTimeout", Meaning::Busy, "", "DMTF Base registry"),
    message(
        "ResourceNotReadyRetry",
        Meaning::Busy,
        "",
        "HPE iLO: 400 or 404 while the server boots (metal-operator issue 167)",
    ),
    message("PSU501", Meaning::WrongState, "", "Dell iDRAC: 409 when already in that state (libredfish)"),
    message(
        "InvalidOperationForSystemState",
        Meaning::WrongState,
        "",
        "HPE iLO: 400 when already off, or too soon after the last power action (ansible-ilo issue 1)",
    ),
    message("NoOperation", Meaning::WrongState, "", "DMTF Base registry"),
    message("ChassisPowerStateOnRequired", Meaning::WrongState, "", "DMTF Base registry; OpenBMC (bmcweb) with 400"),
    message("ChassisPowerStateOffRequired", Meaning::WrongState, "", "DMTF Base registry; OpenBMC (bmcweb) with 400"),
    message("PreconditionHeaderMissing", Meaning::Precondition, "", "AMI MegaRAC, Ami.1.0 (gofish issue 171)"),
    message("PreconditionRequired", Meaning::Precondition, "", "DMTF Base registry"),
    message("PreconditionFailed", Meaning::Precondition, "", "DMTF Base registry"),
    message("ActionParameterValueNotInList", Meaning::ValueRefused, "", "DMTF Base registry"),
    message("ActionParameterNotSupported", Meaning::ValueRefused, "", "DMTF Base registry"),
    message("ActionParameterValueError", Meaning::ValueRefused, "", "DMTF Base registry"),
    message("ActionParameterValueFormatError", Meaning::ValueRefused, "", "DMTF Base registry"),
    message("ActionParameterUnknown", Meaning::ValueRefused, "", "DMTF Base registry"),
    message("PropertyValueNotInList", Meaning::ValueRefused, "", "DMTF Base registry"),
    message("PropertyValueFormatError", Meaning::ValueRefused, "", "DMTF Base registry"),
    message("PropertyValueTypeError", Meaning::ValueRefused, "", "DMTF Base registry"),
    message("Success", Meaning::Success, "", "DMTF Base registry; HPE iLO puts it into an 'error' object"),
];

/// Parts of a `MessageId`, in lower case, that ask for a retry.
pub const PATIENCE_IN_IDS: &[&str] = &["retry", "notready"];
/// Parts of a message's text that ask for a retry.
pub const PATIENCE_IN_WORDS: &[&str] = &["try again", "retry", "not ready"];

/// The kind of failure for each HTTP status of a refusal, if its messages are not known.
pub const STATUSES: &[(u16, FailureKind)] = &[
    (400, FailureKind::Disliked),
    (401, FailureKind::Unauthorised),
    (403, FailureKind::Forbidden),
    (404, FailureKind::Missing),
    // RFC 9110: any conflict with the resource's state, for example a running job or an update of the BMC. A service that means
    // "already in that state" sends a known message.
    (409, FailureKind::Disliked),
    // RFC 6585, and Huawei iBMC's own status for it (ansible issue 60031).
    (412, FailureKind::Precondition),
    (428, FailureKind::Precondition),
    (501, FailureKind::Refused),
    (505, FailureKind::Refused),
    // RFC 9110: too early and too many. The others are from a service that is starting, overloaded or restarting.
    (408, FailureKind::Busy { retry_after: None }),
    (425, FailureKind::Busy { retry_after: None }),
    (429, FailureKind::Busy { retry_after: None }),
    (500, FailureKind::Busy { retry_after: None }),
    (502, FailureKind::Busy { retry_after: None }),
    (503, FailureKind::Busy { retry_after: None }),
    (504, FailureKind::Busy { retry_after: None }),
];

/// The meaning of the value of `PowerState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerWord {
    On,
    Off,
    /// The system is powering on.
    Rising,
    /// The system is powering off.
    Falling,
    /// The system has power and is powering neither on nor off, for example `Paused`. It may continue to run at any moment.
    Held,
}

/// The known values of `PowerState`: value, meaning and source. Any other value is no reliable power state.
pub const POWER_WORDS: &[(&str, PowerWord, &str)] = &[
    ("On", PowerWord::On, "DMTF ComputerSystem"),
    ("Off", PowerWord::Off, "DMTF ComputerSystem"),
    ("PoweringOn", PowerWord::Rising, "DMTF ComputerSystem"),
    ("PoweringOff", PowerWord::Falling, "DMTF ComputerSystem"),
    ("Paused", PowerWord::Held, "DMTF ComputerSystem; OpenBMC says it for Standby"),
    ("Reset", PowerWord::Held, "HPE iLO while the host is in reset (libredfish)"),
];

/// The goal of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetGoal {
    Off,
    On,
    Cycle,
    Diag,
}

/// The Redfish reset types for each goal, best first.
///
/// Off has no second choice, because a graceful shutdown needs the cooperation of the node that must be fenced. The second choice of a
/// cycle is a restart without loss of power (OpenBMC maps it to a warm reboot).
pub const RESET_TYPES: &[(ResetGoal, &[&str])] = &[
    (ResetGoal::Off, &["ForceOff"]),
    (ResetGoal::On, &["On", "ForceOn"]),
    (ResetGoal::Cycle, &["PowerCycle", "ForceRestart"]),
    (ResetGoal::Diag, &["Nmi"]),
];

/// Returns the reset types that reach `wish`, best first.
pub fn reset_types(wish: ResetGoal) -> &'static [&'static str] {
    RESET_TYPES.iter().find(|(of, _)| *of == wish).map_or(&[], |(_, types)| types)
}

/// Returns whether a reset may be sent again after its answer was lost. This is the case if the reset leads to the same power state from
/// every state.
pub fn is_repeatable(reset_type: &str) -> bool {
    [ResetGoal::Off, ResetGoal::On].iter().any(|wish| reset_types(*wish).contains(&reset_type))
}

/// A mistake that some BMCs make in the list of allowed reset types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListHabit {
    /// The list has one entry that is two types without a separator.
    RunTogether { entry: &'static str, means: [&'static str; 2] },
}

pub const LIST_HABITS: &[(ListHabit, &str)] = &[(
    ListHabit::RunTogether { entry: "GracefulShutdownGracefulRestart", means: ["GracefulShutdown", "GracefulRestart"] },
    "Supermicro X12 firmware publishes two values as one string",
)];

/// The keys under which a page of a collection names the next page, each with its source.
pub const NEXT_PAGE: &[(&str, &str)] = &[
    ("Members@odata.nextLink", "DSP0266"),
    (
        "@odata.nextLink",
        "OData 4.0, which the first versions of Redfish took over; followed by sushy and redfishtool alike",
    ),
];

/// A deviation of some BMCs from HTTP or Redfish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// The BMC answers `status` to a request that declines compression. The agent asks again without `Accept-Encoding`.
    DislikesIdentity { status: u16 },
    /// The BMC redirects a POST with these statuses. The redirected request must be a POST again, also after 301 and 308.
    RedirectsPosts { statuses: [u16; 4] },
    /// The BMC silently closes idle connections. The agent repeats the request on a new connection. From then on it keeps no connection
    /// open.
    DropsIdleConnections,
    /// The BMC answers `status` to the service root with a trailing slash, or to the one without it.
    PickyAboutRootSlash { status: u16 },
}

pub const HABITS: &[(Habit, &str)] = &[
    (Habit::DislikesIdentity { status: 406 }, "HPE iLO 5 (sushy connector)"),
    (
        Habit::RedirectsPosts { statuses: [301, 302, 307, 308] },
        "Lenovo x3650 M5 to port 8080 (PegaProx issue 609), older Supermicro (check_redfish PR 187)",
    ),
    (Habit::DropsIdleConnections, "HPE iLO resets one that is used again (libredfish), several (sushy)"),
    (Habit::PickyAboutRootSlash { status: 404 }, "DSP0266 allows either form of the service root's URI"),
];

/// Returns the row of [`MESSAGES`] for a `MessageId` such as `Base.1.8.InsufficientPrivilege`.
pub fn known_message(message_id: &str) -> Option<&'static KnownMessage> {
    let name = message_id.rsplit('.').next().unwrap_or(message_id);
    MESSAGES.iter().find(|row| row.id.eq_ignore_ascii_case(name))
}

/// Returns the kind of failure for the HTTP status of a refusal, if its messages are not known.
pub fn status_kind(status: u16) -> FailureKind {
    STATUSES.iter().find(|(known, _)| *known == status).map_or_else(
        || if status >= 500 { FailureKind::Busy { retry_after: None } } else { FailureKind::Refused },
        |(_, kind)| kind.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_its_source() {
        assert!(MESSAGES.iter().all(|row| !row.source.is_empty()));
        assert!(POWER_WORDS.iter().all(|row| !row.2.is_empty()));
        assert!(HABITS.iter().all(|row| !row.1.is_empty()));
        assert!(LIST_HABITS.iter().all(|row| !row.1.is_empty()));
        assert!(NEXT_PAGE.iter().all(|row| !row.1.is_empty()));
    }

    #[test]
    fn no_message_stands_twice() {
        for (at, row) in MESSAGES.iter().enumerate() {
            assert!(MESSAGES[..at].iter().all(|other| other.id != row.id), "{}", row.id);
        }
    }

    #[test]
    fn off_is_never_graceful() {
        assert_eq!(reset_types(ResetGoal::Off), ["ForceOff"]);
        assert!(RESET_TYPES.iter().all(|(_, types)| types.iter().all(|name| !name.starts_with("Graceful"))));
    }

    #[test]
    fn message_ids_are_found_by_their_last_part() {
        assert_eq!(known_message("Base.1.8.InsufficientPrivilege").unwrap().meaning, Meaning::Forbidden);
        assert_eq!(known_message("IDRAC.2.8.PSU501").unwrap().meaning, Meaning::WrongState);
        assert_eq!(known_message("Base.v1_4_0.NoValidSession").unwrap().meaning, Meaning::Unauthorised);
        assert!(known_message("Base.1.8.GeneralError").is_none());
    }
}
