//! Tests of the configurations that are accepted and refused, and of the defaults.

use super::*;
use crate::adapters::redfish::select::Wanted;
use crate::fence::input::from_lines;

const WHOLE: &str = "ip=bmc\nusername=admin\npassword=x\n";
const BY_HAND: Environment = Environment { under_fencer: false };
const FENCER: Environment = Environment { under_fencer: true };

fn read(action: Action, more: &str, environment: Environment) -> Result<Config, Vec<String>> {
    Config::read(action, &from_lines(format!("{WHOLE}{more}").as_bytes()), environment)
}

fn config(more: &str) -> Config {
    read(Action::Off, more, BY_HAND).unwrap()
}

fn fault(more: &str) -> String {
    read(Action::Off, more, BY_HAND).unwrap_err().join("; ")
}

#[test]
fn an_action_is_never_guessed() {
    assert!(Action::parse(None).is_err());
    assert!(Action::parse(Some("  ")).is_err());
    assert!(Action::parse(Some("bogus")).unwrap_err().contains("unsupported action 'bogus'"));
    assert_eq!(Action::parse(Some("OFF")), Ok(Action::Off));
    assert_eq!(Action::parse(Some("meta-data")), Ok(Action::Metadata));
}

#[test]
fn verification_is_on_unless_it_is_switched_off() {
    for more in
        ["", "ssl_insecure=0\n", "ssl-insecure=no\n", "ssl_insecure=off\n", "ssl_insecure=False\n", "ssl_secure=1\n"]
    {
        assert_eq!(config(more).trust, TrustSource::System, "{more}");
    }
    for more in ["ssl_insecure=1\n", "ssl_insecure=yes\n", "ssl_insecure=on\n", "ssl_insecure=TRUE\n"] {
        assert_eq!(config(more).trust, TrustSource::Anyone, "{more}");
    }
    assert!(fault("ssl_insecure=maybe\n").contains("ssl_insecure"));
    assert!(fault("ssl_insecure=\n").contains("ssl_insecure"));
    assert!(fault("ssl_insecure=1\nssl_ca_file=/x\n").contains("ssl_ca_file"));
    assert!(config("").check_name && !config("ssl_verify_hostname=0\n").check_name);
}

#[test]
fn switches_that_are_off_are_off() {
    let on = config("port_as_ip=1\nplug=other\n");
    assert_eq!(on.address.host(), "other");
    let off = config("port_as_ip=0\nplug=other\n");
    assert_eq!(off.address.host(), "bmc");
    assert!(!config("missing_as_off=0\n").missing_as_off);
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let faults = Config::read(Action::Off, &from_lines(b""), BY_HAND).unwrap_err().join("; ");
    for name in ["ip", "username", "password"] {
        assert!(faults.contains(&format!("{name} is missing")), "{faults}");
    }
}

#[test]
fn numbers_are_whole_and_in_range() {
    for more in [
        "delay=-1",
        "delay=3s",
        "delay=1.5",
        "delay=99999999999",
        "ipport=0",
        "ipport=70000",
        "retry_on=x",
        "power_timeout=ten",
        "action_timeout=0",
    ] {
        let option = more.split('=').next().unwrap();
        assert!(fault(&format!("{more}\n")).contains(option), "{more}");
    }
}

#[test]
fn the_nodes_name_is_no_selection() {
    let wanted = |more: &str| -> Vec<Wanted> { config(more).systems.into_iter().map(|one| one.wanted).collect() };
    assert_eq!(wanted(""), [Wanted::Any]);
    assert_eq!(wanted("nodename=n1\n"), [Wanted::Node("n1".into())]);
    assert_eq!(wanted("nodename=n1\nport=n1\n"), [Wanted::Node("n1".into())]);
    assert_eq!(wanted("nodename=n1\nport=sysA\n"), [Wanted::Named("sysA".into())]);
    assert_eq!(wanted("plug=a,b,a\n"), [Wanted::Named("a".into()), Wanted::Named("b".into())]);
    assert_eq!(wanted("plug=a;b\nplug_separator=;\n").len(), 2);
    assert!(config("plug=dynamic\n").dynamic);
    let uuid = "system_uuid=11111111-2222-3333-4444-555555555555\n";
    assert!(fault(&format!("plug=a,b\n{uuid}")).contains("system_uuid"));
    assert!(fault("system_uuid=x\n").contains("dmidecode"));
}

#[test]
fn an_action_ends_before_the_fencer_does() {
    let total = |action, more: &str, environment| read(action, more, environment).unwrap().timing.total.as_secs();
    assert_eq!(total(Action::Off, "", FENCER), 55);
    assert_eq!(total(Action::Reboot, "", FENCER), 55);
    assert_eq!(total(Action::Monitor, "", FENCER), 15);
    assert_eq!(total(Action::Status, "", BY_HAND), 30);
    assert_eq!(total(Action::Off, "delay=15\n", FENCER), 55);
    assert_eq!(total(Action::Off, "delay=40\n", FENCER), 70);
    assert_eq!(total(Action::Off, "power_timeout=120\n", FENCER), 135);
    assert_eq!(total(Action::Reboot, "power_timeout=60\nretry_on=2\n", BY_HAND), 195);
    assert_eq!(total(Action::Off, "action_timeout=5\n", BY_HAND), 5);
    assert!(fault("action_timeout=5\ndelay=5\n").contains("leaves nothing"));
}

#[test]
fn a_node_attribute_is_waited_for_under_the_fencer_where_the_target_is_switched_off() {
    let wait = |action, more: &str, environment| read(action, more, environment).unwrap().wait_attribute;
    for action in [Action::Off, Action::Reboot] {
        assert_eq!(wait(action, "", FENCER).as_deref(), Some("etcd_fence_wait"));
        assert_eq!(wait(action, "wait_attribute=yields\n", FENCER).as_deref(), Some("yields"));
        assert_eq!(wait(action, "wait_attribute=none\n", FENCER), None);
        assert_eq!(wait(action, "", BY_HAND), None);
    }
    assert_eq!(wait(Action::On, "", FENCER), None);
    assert!(fault("wait_attribute=--delete\n").contains("no name of a node attribute"));
    assert!(fault("wait_attribute=a b\n").contains("give etcd_fence_wait, or none"));
}

#[test]
fn time_outs_are_disabled_under_the_fencer_only() {
    let power = |more: &str, environment| read(Action::Off, more, environment).unwrap().timing.power;
    assert_eq!(power("", FENCER), None);
    assert_eq!(power("disable_timeout=0\n", FENCER), Some(Duration::from_secs(20)));
    assert_eq!(power("", BY_HAND), Some(Duration::from_secs(20)));
    assert_eq!(power("disable_timeout=true\n", BY_HAND), None);
    assert_eq!(power("power_timeout=0\n", BY_HAND), None);
}

#[test]
fn debug_output_has_no_password() {
    let config = Config::read(Action::Off, &from_lines(b"ip=b\nusername=u\npassword=hunter2\n"), BY_HAND).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
}
