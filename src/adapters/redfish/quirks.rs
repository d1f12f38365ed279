//! What services do differently, as data: each row says what is seen, what it means, and where that is known from.
//!
//! The code that reads answers asks this table; a new vendor's habit is a new row.

use super::failure::FailureKind;

/// What a message in an error body means for a fence agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Already there, or not possible just now; the power state tells.
    WrongState,
    /// Try again in a moment.
    Busy,
    /// Credentials are not accepted.
    Unauthorised,
    /// We may not.
    Forbidden,
    /// The value of `ResetType` is not known there.
    ValueRefused,
    /// The request has to say for which state of the resource it is meant.
    Precondition,
    /// The request was carried out: some services say so inside an `error` object.
    Success,
}

impl Meaning {
    /// The kind of failure that it makes.
    pub fn kind(self) -> FailureKind {
        match self {
            Self::WrongState => FailureKind::WrongState,
            Self::Busy => FailureKind::Busy { retry_after: None },
            Self::Unauthorised => FailureKind::Unauthorised,
            Self::Forbidden => FailureKind::Forbidden,
            Self::ValueRefused => FailureKind::ValueRefused,
            Self::Precondition => FailureKind::Precondition,
            // A failing status with nothing but success messages is a contradiction, and stays a refusal.
            Self::Success => FailureKind::Refused,
        }
    }
}

/// A message of a registry (the last part of its `MessageId`), whatever the HTTP status around it.
#[derive(Debug)]
pub struct KnownMessage {
    pub id: &'static str,
    pub meaning: Meaning,
    /// What to tell the operator beyond the service's own words.
    pub hint: &'static str,
    pub source: &'static str,
}

const fn message(id: &'static str, meaning: Meaning, hint: &'static str, source: &'static str) -> KnownMessage {
    KnownMessage { id, meaning, hint, source }
}

/// Rows are matched exactly, ignoring case; the first match of a body wins in the order of this table.
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

/// What is in the id of a message, in small letters, that asks for another try.
pub const PATIENCE_IN_IDS: &[&str] = &["retry", "notready"];
/// What is in the words of one.
pub const PATIENCE_IN_WORDS: &[&str] = &["try again", "retry", "not ready"];

/// What an HTTP status means where no known message says more.
pub const STATUSES: &[(u16, FailureKind)] = &[
    (400, FailureKind::Disliked),
    (401, FailureKind::Unauthorised),
    (403, FailureKind::Forbidden),
    (404, FailureKind::Missing),
    // RFC 9110: any conflict with the state of the resource, also that a job runs or the BMC is being updated. A service
    // that means "in that state already" answers with a known message.
    (409, FailureKind::Disliked),
    // RFC 6585, and what Huawei iBMC says instead (ansible issue 60031).
    (412, FailureKind::Precondition),
    (428, FailureKind::Precondition),
    (501, FailureKind::Refused),
    (505, FailureKind::Refused),
    // RFC 9110: too early and too many; the rest is a service that is starting, overloaded or restarting.
    (408, FailureKind::Busy { retry_after: None }),
    (425, FailureKind::Busy { retry_after: None }),
    (429, FailureKind::Busy { retry_after: None }),
    (500, FailureKind::Busy { retry_after: None }),
    (502, FailureKind::Busy { retry_after: None }),
    (503, FailureKind::Busy { retry_after: None }),
    (504, FailureKind::Busy { retry_after: None }),
];

/// What a power state's word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerWord {
    On,
    Off,
    /// On its way up.
    Rising,
    /// On its way down.
    Falling,
    /// Powered, and neither: it may go on at any moment.
    Held,
}

/// Every word that is known; a word that is not here is no power state at all.
pub const POWER_WORDS: &[(&str, PowerWord, &str)] = &[
    ("On", PowerWord::On, "DMTF ComputerSystem"),
    ("Off", PowerWord::Off, "DMTF ComputerSystem"),
    ("PoweringOn", PowerWord::Rising, "DMTF ComputerSystem"),
    ("PoweringOff", PowerWord::Falling, "DMTF ComputerSystem"),
    ("Paused", PowerWord::Held, "DMTF ComputerSystem; OpenBMC says it for Standby"),
    ("Reset", PowerWord::Held, "HPE iLO while the host is in reset (libredfish)"),
];

/// What a fence agent wants of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetGoal {
    Off,
    On,
    Cycle,
    Diag,
}

/// The reset types that fulfil a wish, best first.
///
/// Off has no second choice: a graceful shutdown asks the very node that has to be fenced. For a cycle, a restart
/// without loss of power is second best (OpenBMC maps it to a warm reboot).
pub const RESET_TYPES: &[(ResetGoal, &[&str])] = &[
    (ResetGoal::Off, &["ForceOff"]),
    (ResetGoal::On, &["On", "ForceOn"]),
    (ResetGoal::Cycle, &["PowerCycle", "ForceRestart"]),
    (ResetGoal::Diag, &["Nmi"]),
];

/// The reset types that fulfil `wish`, best first.
pub fn reset_types(wish: ResetGoal) -> &'static [&'static str] {
    RESET_TYPES.iter().find(|(of, _)| *of == wish).map_or(&[], |(_, types)| types)
}

/// Whether a reset may be sent again where its answer was lost: it leads to a state, whatever the state is now.
pub fn is_repeatable(reset_type: &str) -> bool {
    [ResetGoal::Off, ResetGoal::On].iter().any(|wish| reset_types(*wish).contains(&reset_type))
}

/// How a service's list of allowed reset types is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListHabit {
    /// One entry holds two types run together.
    RunTogether { entry: &'static str, means: [&'static str; 2] },
}

pub const LIST_HABITS: &[(ListHabit, &str)] = &[(
    ListHabit::RunTogether { entry: "GracefulShutdownGracefulRestart", means: ["GracefulShutdown", "GracefulRestart"] },
    "Supermicro X12 firmware publishes two values as one string",
)];

/// Under which key a page of a collection names the next one.
pub const NEXT_PAGE: &[(&str, &str)] = &[
    ("Members@odata.nextLink", "DSP0266"),
    (
        "@odata.nextLink",
        "OData 4.0, which the first versions of Redfish took over; followed by sushy and redfishtool alike",
    ),
];

/// How a service wants to be spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Answers this status where it insists on choosing the encoding itself: ask again without `Accept-Encoding`.
    DislikesIdentity { status: u16 },
    /// Sends 301 or 308 also for a POST: the request goes there unchanged, it must not become a GET.
    RedirectsPosts { statuses: [u16; 4] },
    /// Closes a connection that was kept alive without a word: ask once more on a new one, and keep none any more.
    DropsIdleConnections,
    /// The service root answers 404 with, or without, its trailing slash.
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

/// The row of [`MESSAGES`] for a `MessageId` such as `Base.1.8.InsufficientPrivilege`.
pub fn known_message(message_id: &str) -> Option<&'static KnownMessage> {
    let name = message_id.rsplit('.').next().unwrap_or(message_id);
    MESSAGES.iter().find(|row| row.id.eq_ignore_ascii_case(name))
}

/// What a status means by itself.
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
