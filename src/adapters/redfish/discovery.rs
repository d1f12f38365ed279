//! The search for the configured system, from the service root.

use std::collections::BTreeSet;

use serde_json::Value;

use super::failure::{Failure, FailureKind};
use super::quirks::{HABITS, Habit};
use super::resource::{Page, System, link};
use super::select::{self, Candidate, NotChosen, Wanted};
use super::service::Service;
use crate::adapters::https::address::Location;

/// The greatest number of pages of one list that are read, so that a BMC cannot keep the agent reading.
const PAGES: usize = 16;
/// The greatest number of systems that are read, so that a BMC cannot keep the agent reading.
const MEMBERS: usize = 64;

/// The configured options that identify a system behind a BMC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    pub redfish_uri: String,
    pub systems_uri: Option<String>,
    pub wanted: Wanted,
    /// The UUID that the system must have; `None` if it is not configured.
    pub uuid: Option<String>,
    /// True if a 404 for the configured system must be checked: the system may be missing, or a BMC that is starting may answer 404 to
    /// everything.
    pub confirm_missing: bool,
}

impl Pointer {
    /// Returns whether the options identify `candidate`. Otherwise `candidate` can only be chosen if it is the only system.
    fn is_sure_of(&self, candidate: &Candidate) -> bool {
        match &self.wanted {
            _ if self.uuid.is_some() => true,
            Wanted::Named(name) | Wanted::Node(name) => candidate.is_called(name),
            Wanted::Any => false,
        }
    }
}

/// A system that was found on the BMC, with its location and its state at that moment.
#[derive(Clone, Debug)]
pub struct Found {
    pub place: Location,
    pub system: System,
}

/// Finds the one system that `pointer` identifies.
pub fn locate(service: &mut Service, pointer: &Pointer) -> Result<Found, Failure> {
    let Some(uri) = &pointer.systems_uri else {
        let collection = systems_collection(service, &pointer.redfish_uri)?;
        return choose(service, &collection, pointer);
    };
    let place = service.place(uri)?;
    match service.get(&place) {
        // The URI is of the collection itself, where a system's was expected. It is good enough to choose from.
        Ok(document) if is_collection(&document) => choose(service, &place, pointer),
        Ok(document) => named_as_wanted(Found { system: read_system(service, &place, &document)?, place }, pointer),
        Err(failure) if failure.kind == FailureKind::Missing => Err(explain_missing(service, pointer, &place, failure)),
        Err(failure) => Err(failure),
    }
}

/// Checks that the system at `systems_uri` also has the name in `plug`, if both are configured.
fn named_as_wanted(found: Found, pointer: &Pointer) -> Result<Found, Failure> {
    let Wanted::Named(name) = &pointer.wanted else { return Ok(found) };
    if Candidate::read(&found.place.path, found.system.clone()).is_called(name) {
        return Ok(found);
    }
    let text = format!("plug={name} does not fit the system at systems_uri={}; remove one of them", found.place.path);
    Err(Failure::new(FailureKind::WrongSystem, text))
}

/// Lists every system behind the BMC, with its location.
pub fn candidates(service: &mut Service, pointer: &Pointer) -> Result<Vec<(Location, Candidate)>, Failure> {
    if let Some(uri) = &pointer.systems_uri {
        let place = service.place(uri)?;
        let document = service.get(&place)?;
        if !is_collection(&document) {
            let system = read_system(service, &place, &document)?;
            return Ok(vec![(place.clone(), Candidate::read(place.path, system))]);
        }
        return members(service, &place, &document);
    }
    let collection = systems_collection(service, &pointer.redfish_uri)?;
    let document = service.get(&collection)?;
    members(service, &collection, &document)
}

/// Reads a system from its resource. Cleans the text of an unknown power state, so that it is safe to show.
pub fn read_system(service: &Service, place: &Location, document: &Value) -> Result<System, Failure> {
    match System::read(document) {
        Ok(system) => Ok(System { power: system.power.cleaned(|text| service.clean(text)), ..system }),
        Err(why) => Err(Failure::new(FailureKind::Garbled, format!("{} {why}", service.clean(&place.path)))),
    }
}

/// Reads the service root, with or without a trailing slash, as this BMC expects it.
pub fn service_root(service: &mut Service, redfish_uri: &str) -> Result<(Location, Value), Failure> {
    let place = service.place(redfish_uri)?;
    match service.get(&place) {
        Ok(document) => Ok((place, document)),
        Err(failure) if failure.kind == FailureKind::Missing && picky_about_slash() => {
            let path = match place.path.strip_suffix('/') {
                Some(shorter) => shorter.to_owned(),
                None => format!("{}/", place.path),
            };
            let other = Location { path, ..place };
            match service.get(&other) {
                Ok(document) => Ok((other, document)),
                Err(second) if second.kind == FailureKind::Missing => Err(Failure {
                    text: format!("{failure}; is Redfish enabled on the BMC, and is redfish_uri right?"),
                    ..failure
                }),
                Err(second) => Err(second),
            }
        }
        Err(failure) if failure.kind == FailureKind::Disliked && service.client().address().is_a_name() => {
            Err(Failure {
                text: format!(
                    "{failure}; where the BMC answers at its IP address, give that as ip, or have it take this name (an iDRAC: \
                 WebServer.1.ManualDNSEntry, or WebServer.1.HostHeaderCheck=Disabled)"
                ),
                ..failure
            })
        }
        Err(failure) => Err(failure),
    }
}

fn picky_about_slash() -> bool {
    HABITS.iter().any(|(habit, _)| matches!(habit, Habit::PickyAboutRootSlash { .. }))
}

fn systems_collection(service: &mut Service, redfish_uri: &str) -> Result<Location, Failure> {
    if let Some(known) = service.systems() {
        return Ok(known);
    }
    let (root, document) = service_root(service, redfish_uri)?;
    let link = link(&document, "Systems").ok_or_else(|| {
        Failure::new(
            FailureKind::Garbled,
            format!("the service root {} names no Systems; check redfish_uri", root.path),
        )
    })?;
    let place = service.follow(&root, &link)?;
    service.remember_systems(place.clone());
    Ok(place)
}

fn is_collection(document: &Value) -> bool {
    document.get("PowerState").is_none() && document.get("Members").is_some()
}

fn choose(service: &mut Service, collection: &Location, pointer: &Pointer) -> Result<Found, Failure> {
    let document = service.get(collection)?;
    let listing = list(service, collection, &document)?;
    let hidden = listing.hides(collection);
    let found = read_all(service, collection, listing.links)?;
    let (places, candidates): (Vec<Location>, Vec<Candidate>) = found.into_iter().unzip();
    let chosen = select::choose(&candidates, &pointer.wanted, pointer.uuid.as_deref());
    let is_named = chosen.as_ref().ok().and_then(|at| candidates.get(*at)).is_some_and(|it| pointer.is_sure_of(it));
    if let Some(hidden) = hidden.filter(|_| !is_named) {
        return Err(hidden);
    }
    let at = chosen.map_err(|why| match why {
        NotChosen::Ambiguous(text) => Failure::new(FailureKind::WrongSystem, service.clean(&text)),
        NotChosen::NotYetClear(text) => Failure::new(FailureKind::Busy { retry_after: None }, service.clean(&text)),
        NotChosen::NoSuchSystem(text) => Failure::new(FailureKind::NoSuchSystem, service.clean(&text)),
    })?;
    let (Some(place), Some(candidate)) = (places.into_iter().nth(at), candidates.into_iter().nth(at)) else {
        return Err(Failure::new(FailureKind::WrongSystem, "the chosen system is not on the list"));
    };
    if let Some(system) = candidate.system {
        log::debug!("system {} was chosen", place.path);
        return Ok(Found { place, system });
    }
    // The system was chosen by its URI, but could not be read a moment ago. Now the reason counts.
    let document = listed(service, &place)?;
    Ok(Found { system: read_system(service, &place, &document)?, place })
}

fn members(
    service: &mut Service,
    collection: &Location,
    document: &Value,
) -> Result<Vec<(Location, Candidate)>, Failure> {
    let listing = list(service, collection, document)?;
    read_all(service, collection, listing.links)
}

fn read_all(
    service: &mut Service,
    collection: &Location,
    links: Vec<String>,
) -> Result<Vec<(Location, Candidate)>, Failure> {
    let alone = links.len() == 1;
    let mut found = Vec::with_capacity(links.len());
    for link in links {
        let place = service.follow(collection, &link)?;
        let read = listed(service, &place).and_then(|document| read_system(service, &place, &document));
        let candidate = match read {
            Ok(system) => Candidate::read(&place.path, system),
            // One unreadable system of several does not end the search, and the choice takes it into account. A failure that
            // concerns all of them ends it.
            Err(failure) if !alone && concerns_one(&failure) => {
                log::debug!("system {} could not be read: {failure}", place.path);
                Candidate { uri: place.path.clone(), system: None, may_return: failure.is_passing() }
            }
            Err(failure) => return Err(failure),
        };
        found.push((place, candidate));
    }
    Ok(found)
}

/// Reads a resource that the BMC has listed. A 404, or a 400 without a reason, contradicts the BMC's list. It counts as temporary, because
/// some BMCs answer in this way while their server starts.
fn listed(service: &mut Service, place: &Location) -> Result<Value, Failure> {
    service.get(place).map_err(|failure| match failure.kind {
        FailureKind::Missing | FailureKind::Disliked => Failure {
            kind: FailureKind::Busy { retry_after: None },
            text: format!("{failure}, although the BMC lists it"),
        },
        _ => failure,
    })
}

fn concerns_one(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        FailureKind::Busy { .. }
            | FailureKind::Missing
            | FailureKind::Garbled
            | FailureKind::Forbidden
            | FailureKind::Refused
    )
}

/// The members of a collection from all its pages.
struct Listing {
    links: Vec<String>,
    /// The number of links in the collection, duplicates included.
    shown: usize,
    /// The number of members that the BMC reports; `None` if it reports none.
    count: Option<u64>,
}

impl Listing {
    /// Returns the failure of an incomplete list, if the BMC reports more members than it lists. Such a list does not prove that a system
    /// is missing.
    fn hides(&self, collection: &Location) -> Option<Failure> {
        let count = self.count.filter(|count| usize::try_from(*count).is_ok_and(|count| count > self.shown))?;
        let text = format!(
            "the systems collection {} counts {count} systems but lists {}; set systems_uri, or plug to one of: {}",
            collection.path,
            self.shown,
            self.links.join(", ")
        );
        Some(Failure::new(FailureKind::Garbled, text))
    }
}

fn list(service: &mut Service, collection: &Location, document: &Value) -> Result<Listing, Failure> {
    let garbled =
        |why: String| Failure::new(FailureKind::Garbled, format!("the systems collection {} {why}", collection.path));
    let mut page = Page::read(document).map_err(&garbled)?;
    let count = page.count;
    let mut links = std::mem::take(&mut page.members);
    let mut shown = links.len();
    without_repetition(&mut links);
    for _ in 0..PAGES {
        let Some(next) = page.next.take() else { return Ok(Listing { links, shown, count }) };
        let place = service.follow(collection, &next)?;
        let document = service.get(&place)?;
        page = Page::read(&document).map_err(&garbled)?;
        shown += page.members.len();
        links.append(&mut page.members);
        without_repetition(&mut links);
        if links.len() > MEMBERS {
            return Err(garbled(format!("has more than {MEMBERS} members; set systems_uri")));
        }
    }
    Err(garbled(format!("has more than {PAGES} pages; set systems_uri")))
}

/// Removes duplicate links, because a BMC may list a system twice or on two pages.
fn without_repetition(links: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    links.retain(|link| seen.insert(link.trim_end_matches('/').to_owned()));
}

/// Explains a 404 on the configured system: the system is missing, or the BMC answers 404 to everything.
fn explain_missing(service: &mut Service, pointer: &Pointer, place: &Location, failure: Failure) -> Failure {
    let hint = Failure { text: format!("{failure}; check systems_uri"), ..failure };
    if !pointer.confirm_missing {
        return hint;
    }
    match others(service, pointer, place) {
        Ok(Some(others)) if others.iter().any(|(_, other)| other.system.is_some()) => {
            Failure { kind: FailureKind::NoSuchSystem, ..hint }
        }
        Ok(Some(_)) => Failure::new(
            FailureKind::Busy { retry_after: None },
            format!("{hint}, or wait: the BMC lists no other system that can be read either"),
        ),
        Ok(None) => hint,
        Err(other) => other,
    }
}

/// Lists the systems other than the one at `place`. Returns `None` if the BMC also lists the one at `place`.
///
/// A BMC that is starting may list no systems for a while, or systems that it cannot show yet. So only a BMC that shows another system
/// proves that the one at `place` is missing.
fn others(
    service: &mut Service,
    pointer: &Pointer,
    place: &Location,
) -> Result<Option<Vec<(Location, Candidate)>>, Failure> {
    let collection = systems_collection(service, &pointer.redfish_uri)?;
    let document = service.get(&collection)?;
    let listing = list(service, &collection, &document)?;
    if let Some(hidden) = listing.hides(&collection) {
        return Err(hidden);
    }
    let path = place.path.trim_end_matches('/');
    if listing.links.iter().any(|link| link.trim_end_matches('/') == path) {
        return Ok(None);
    }
    read_all(service, &collection, listing.links).map(Some)
}
