//! The end of a change, in either way.

use super::change::{Change, Kind, node_ip_map};
use super::facts::Look;
use super::plan::{Old, Step};
use super::{change, changed};
use crate::admin::exit::Failure;
use crate::admin::member::changed::Changed;
use crate::admin::member::words::Shared;
use crate::admin::prompt::Prompt;
use crate::command::Programs;
use crate::pacemaker::member_change;
use crate::setup::action::Action;
use crate::setup::apply;

/// It is done: nobody is kept from another one.
pub(super) fn close(programs: &Programs) -> Result<(), Failure> {
    // The file last: a lock without it would be nobody's.
    member_change::give_back(programs)?;
    change::close()
}

/// Takes back what can be taken back, and says what cannot.
pub(super) fn abort(existing: &Change, look: &Look, shared: &Shared) -> Result<Changed, Failure> {
    let seen = look.seen(existing);
    let forgotten = existing.has(Step::Forget) || seen.old == Old::Gone && existing.kind != Kind::Add;
    if seen.new_votes && existing.has(Step::Prepare) {
        return Err(Failure(format!(
            "{}, and the new node votes: nothing can be taken back; 'tandem member replace' ends it",
            existing.what()
        )));
    }
    let prompt = Prompt::new(&shared.answers, shared.form);
    if shared.dry_run || !prompt.leave(&format!("{}. Type 'yes' to take it back", existing.what()))? {
        return Err(Failure("nothing was done: 'yes' was not typed".to_owned()));
    }
    let programs = Programs::default();
    let mut made = Vec::new();
    let mut typed = |words: &[&str]| -> Result<(), Failure> {
        let command = Action::Command(words.iter().map(|word| (*word).to_owned()).collect());
        apply::apply(&programs, &command).map_err(Failure)?;
        made.push(command.to_string());
        Ok(())
    };
    let names_differ = !existing.keeps_name();
    if let Some(new) = existing.new.as_ref().filter(|_| names_differ) {
        if seen.new_is_known {
            typed(&["pcs", "cluster", "node", "remove", &new.name, "--skip-offline", "--force"])?;
        }
        for device in look.devices(&new.name) {
            typed(&["pcs", "stonith", "delete", &device.resource.id])?;
        }
    }
    let map = node_ip_map(&[&existing.here]);
    let resource = &look.context.resource;
    match &existing.old {
        Some(old) if !forgotten => {
            if matches!(seen.old, Old::Stopped) {
                typed(&["pcs", "cluster", "start", &old.name])?;
            }
            typed(&["pcs", "node", "unstandby", &old.name])?;
        }
        Some(old) => {
            typed(&["pcs", "resource", "update", resource, &map])?;
            made.push(format!(
                "{0} is forgotten, which cannot be taken back: 'tandem member add {0}={1} --fence ip=ADDRESS --fence username=USER \
                 --fence password_file=FILE' brings a second node",
                old.name, old.address
            ));
        }
        None => typed(&["pcs", "resource", "update", resource, &map])?,
    }
    close(&programs)?;
    Ok(changed(existing, look, made, 0))
}
