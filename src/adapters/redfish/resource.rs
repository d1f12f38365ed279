//! The fields of Redfish resources: the service root, a collection, a computer system, an action's parameters. This module is
//! pure.

use std::fmt;

use serde_json::Value;

use super::quirks::{LIST_HABITS, ListHabit, NEXT_PAGE, POWER_WORDS, PowerWord};

/// The power state of a system, with the BMC's own word for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Power {
    /// A known value of `PowerState`: its meaning, and the value itself.
    Known(PowerWord, String),
    /// An unreliable power state: it is missing, empty, of the wrong type, or unknown. The field describes it.
    Unclear(String),
}

impl Power {
    /// Reads the value of `PowerState`. Ignores only blanks around it, because a value that is similar to "Off" is not Off.
    pub fn read(value: Option<&Value>) -> Self {
        match value {
            None => Self::Unclear("it has no PowerState".to_owned()),
            Some(Value::String(word)) => POWER_WORDS.iter().find(|(known, _, _)| *known == word.trim()).map_or_else(
                || Self::Unclear(format!("its PowerState is \"{word}\"")),
                |(known, meaning, _)| Self::Known(*meaning, (*known).to_owned()),
            ),
            Some(other) => Self::Unclear(format!("its PowerState is {other}")),
        }
    }

    /// Cleans the description of an unknown power state by `clean`, so that it is safe to show. Passes the whole text to `clean`.
    #[must_use]
    pub(super) fn cleaned(self, clean: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Unclear(why) => Self::Unclear(clean(&why)),
            known @ Self::Known(..) => known,
        }
    }

    pub fn is(&self, word: PowerWord) -> bool {
        matches!(self, Self::Known(known, _) if *known == word)
    }
}

impl fmt::Display for Power {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(_, word) => formatter.write_str(word),
            Self::Unclear(why) => write!(formatter, "unknown ({why})"),
        }
    }
}

/// A Redfish computer system, as far as fencing needs its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    pub id: Option<String>,
    pub name: Option<String>,
    pub uuid: Option<String>,
    pub serial: Option<String>,
    pub power: Power,
    /// The time of the last reset as the BMC writes it. The agent only compares it with an earlier value.
    pub last_reset: Option<String>,
    /// The system's reaction when power returns after an outage: `PowerRestorePolicy`.
    pub restore_policy: Option<String>,
    pub reset: Option<ResetAction>,
    /// The links to the system's chassis.
    pub chassis: Vec<String>,
    /// The values for the header `If-Match`, which some BMCs require: see [`etags`].
    pub etags: Vec<String>,
}

/// The key of the entity tag inside a resource.
const ETAG: &str = "@odata.etag";
/// The key under which the client stores the entity tag from an answer's header. No resource has a key of this name.
pub(super) const HEADER_ETAG: &str = "ETag (header)";
/// The value of the header `If-Match` that matches every state of a resource.
const ANY_STATE: &str = "*";

/// Returns the values for the header `If-Match`, in the order in which they are tried.
///
/// First come the entity tags of the answer's header and of the resource, as they are. Then comes `*`, because by RFC 9110 a weak tag
/// (`W/"..."`) never matches. Last come both tags in other spellings, with one pair of quotes and with none.
pub fn etags(document: &Value) -> Vec<String> {
    let said: Vec<String> = [HEADER_ETAG, ETAG].into_iter().filter_map(|key| text(document, key)).collect();
    let bare = |etag: &String| etag.trim().trim_start_matches("W/").trim_matches('"').to_owned();
    let spelled = said.iter().map(bare).filter(|bare| !bare.is_empty()).flat_map(|bare| [format!("\"{bare}\""), bare]);
    let mut etags: Vec<String> = Vec::new();
    for etag in said.iter().cloned().chain([ANY_STATE.to_owned()]).chain(spelled) {
        if !etags.contains(&etag) {
            etags.push(etag);
        }
    }
    etags
}

/// The `#ComputerSystem.Reset` action of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetAction {
    /// The URI to which a reset is posted; `None` if the BMC omits it, as some do.
    pub target: Option<String>,
    /// The allowed reset types; `None` if the action itself does not list them.
    pub allowed: Option<Vec<String>>,
    /// The link to another resource that lists the allowed reset types; `None` if there is none.
    pub action_info: Option<String>,
}

impl System {
    /// Reads a system from its resource. The error describes why the document is not a system.
    pub fn read(document: &Value) -> Result<Self, String> {
        if !document.is_object() {
            return Err(format!("is {} instead of a computer system", type_of(document)));
        }
        if document.get("PowerState").is_none() && document.get("Members").is_some() {
            return Err("is a collection instead of a computer system".to_owned());
        }
        Ok(Self {
            id: text(document, "Id"),
            name: text(document, "Name"),
            uuid: text(document, "UUID"),
            serial: text(document, "SerialNumber"),
            power: Power::read(document.get("PowerState")),
            last_reset: text(document, "LastResetTime"),
            restore_policy: text(document, "PowerRestorePolicy"),
            reset: document.pointer("/Actions/#ComputerSystem.Reset").and_then(ResetAction::read),
            chassis: document.pointer("/Links/Chassis").map(links).unwrap_or_default(),
            etags: etags(document),
        })
    }
}

impl ResetAction {
    fn read(action: &Value) -> Option<Self> {
        action.is_object().then(|| Self {
            target: text(action, "target"),
            allowed: action.get("ResetType@Redfish.AllowableValues").and_then(words),
            action_info: text(action, "@Redfish.ActionInfo"),
        })
    }
}

/// Returns the reset types that a resource `ActionInfo` allows; `None` if it lists none.
pub fn allowed_by_action_info(document: &Value) -> Option<Vec<String>> {
    document
        .get("Parameters")?
        .as_array()?
        .iter()
        .find(|parameter| parameter.get("Name").and_then(Value::as_str) == Some("ResetType"))
        .and_then(|parameter| parameter.get("AllowableValues"))
        .and_then(words)
}

/// One page of a collection: links to members, the link to the next page, and the number of members on all pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub members: Vec<String>,
    pub next: Option<String>,
    pub count: Option<u64>,
}

impl Page {
    /// Reads a page of a collection. The error describes the page's fault.
    pub fn read(document: &Value) -> Result<Self, String> {
        let members = match document.get("Members") {
            Some(Value::Array(members)) => members,
            Some(other) => return Err(format!("has {} as Members instead of a list", type_of(other))),
            None => return Err("has no Members".to_owned()),
        };
        let links: Option<Vec<String>> = members.iter().map(|member| text(member, "@odata.id")).collect();
        let members = links.ok_or("has a member without @odata.id")?;
        Ok(Self {
            members,
            next: NEXT_PAGE.iter().find_map(|(key, _)| text(document, key)),
            count: document.get("Members@odata.count").and_then(Value::as_u64),
        })
    }
}

/// Returns whether a chassis reports On and belongs only to the system at `path`.
pub fn is_own_chassis_on(chassis: &Value, path: &str) -> bool {
    let systems = chassis.pointer("/Links/ComputerSystems").map(links).unwrap_or_default();
    let is_own = systems.iter().all(|link| link.trim_end_matches('/') == path.trim_end_matches('/'));
    is_own && Power::read(chassis.get("PowerState")).is(PowerWord::On)
}

/// Returns the links in a list of references.
fn links(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|link| text(link, "@odata.id")).collect()
}

/// Returns the link `name` in a resource, such as `Systems` in the service root.
pub fn link(document: &Value, name: &str) -> Option<String> {
    document.get(name).and_then(|link| text(link, "@odata.id"))
}

/// Returns the text at `key` of a resource; `None` if it is missing or blank.
fn text(document: &Value, key: &str) -> Option<String> {
    document.get(key)?.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

fn words(list: &Value) -> Option<Vec<String>> {
    let list = list.as_array()?;
    let mut found = Vec::new();
    for word in list.iter().filter_map(Value::as_str).map(str::trim) {
        match LIST_HABITS.iter().find(|(ListHabit::RunTogether { entry, .. }, _)| *entry == word) {
            Some((ListHabit::RunTogether { means, .. }, _)) => found.extend(means.iter().map(ToString::to_string)),
            None => found.push(word.to_owned()),
        }
    }
    // An empty list counts as no list. Otherwise it would forbid everything.
    (!found.is_empty()).then_some(found)
}

/// Returns the type of a JSON value in words, for an error text.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_exact_word_is_a_power_state() {
        let read = |value: Value| Power::read(Some(&value));
        assert!(read(json!("On")).is(PowerWord::On));
        assert!(read(json!("Off")).is(PowerWord::Off));
        assert!(read(json!(" Off ")).is(PowerWord::Off));
        assert!(read(json!("PoweringOff")).is(PowerWord::Falling));
        assert!(read(json!("PoweringOn")).is(PowerWord::Rising));
        assert!(read(json!("Paused")).is(PowerWord::Held));
        for vague in
            [json!("off"), json!("OFF"), json!(""), json!("Unknown"), json!(null), json!(0), json!([]), json!({})]
        {
            assert!(matches!(read(vague.clone()), Power::Unclear(_)), "{vague}");
        }
        assert!(matches!(Power::read(None), Power::Unclear(_)));
    }

    #[test]
    fn a_system_without_anything_is_still_read() {
        let system = System::read(&json!({})).unwrap();
        assert_eq!(system.reset, None);
        assert!(matches!(system.power, Power::Unclear(_)));
        assert!(System::read(&json!([])).is_err());
        assert!(System::read(&json!(null)).is_err());
        assert!(System::read(&json!({"Members": []})).unwrap_err().contains("collection"));
    }

    #[test]
    fn wrong_types_are_as_good_as_nothing() {
        let system = System::read(&json!({
            "Id": 7, "UUID": "  ", "PowerState": "On",
            "Actions": {"#ComputerSystem.Reset": {"target": 1, "ResetType@Redfish.AllowableValues": "On"}}
        }))
        .unwrap();
        assert_eq!((system.id, system.uuid), (None, None));
        assert_eq!(system.reset, Some(ResetAction { target: None, allowed: None, action_info: None }));
    }

    #[test]
    fn a_state_has_a_name_in_every_spelling_that_servers_take() {
        let names = |document: Value| etags(&document);
        assert_eq!(names(json!({})), ["*"]);
        assert_eq!(names(json!({ ETAG: "\"7\"" })), ["\"7\"", "*", "7"]);
        assert_eq!(names(json!({ ETAG: "\"7\"", HEADER_ETAG: "\"\"7\"\"" })), ["\"\"7\"\"", "\"7\"", "*", "7"]);
        assert_eq!(names(json!({ ETAG: "W/\"7\"", HEADER_ETAG: "8" })), ["8", "W/\"7\"", "*", "\"8\"", "\"7\"", "7"]);
    }

    #[test]
    fn allowed_reset_types_are_read_with_their_habits() {
        let system = System::read(&json!({"Actions": {"#ComputerSystem.Reset": {
            "target": "/x", "ResetType@Redfish.AllowableValues": ["On", "GracefulShutdownGracefulRestart"]}}}))
        .unwrap();
        assert_eq!(system.reset.unwrap().allowed.unwrap(), ["On", "GracefulShutdown", "GracefulRestart"]);
        let info = json!({"Parameters": [{"Name": "Other"}, {"Name": "ResetType", "AllowableValues": ["ForceOff"]}]});
        assert_eq!(allowed_by_action_info(&info).unwrap(), ["ForceOff"]);
        assert_eq!(allowed_by_action_info(&json!({"Parameters": 1})), None);
    }

    #[test]
    fn a_page_is_whole_or_refused() {
        let good = json!({"Members": [{"@odata.id": "/a"}], "Members@odata.nextLink": "/b"});
        assert_eq!(
            Page::read(&good).unwrap(),
            Page { members: vec!["/a".into()], next: Some("/b".into()), count: None }
        );
        let old = json!({"Members": [], "@odata.nextLink": "/b", "Members@odata.count": 3});
        assert_eq!(Page::read(&old).unwrap(), Page { members: vec![], next: Some("/b".into()), count: Some(3) });
        for bad in [json!({}), json!({"Members": {}}), json!({"Members": [{}]}), json!({"Members": [1]}), json!(null)] {
            assert!(Page::read(&bad).is_err(), "{bad}");
        }
    }
}
