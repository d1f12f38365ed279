//! The login with one of several passwords, where one is old or not yet valid, and it is not known which.
//!
//! BMCs lock an account after a few refusals in a row, so each password is refused once at most. A wrong choice between basic
//! authentication and sessions would cost each password a second refusal. So the kind of login that worked before is used again.
//! Where none is known, the service root shows whether there are sessions. Sessions accept the right password even if basic
//! authentication is disabled, as it is on many services.

use super::client::Client;
use super::failure::{Failure, FailureKind};
use super::request::Credentials;
use super::service::{LoginMethod, Service, Way};

impl Service {
    /// Sends a request with one of several passwords. If the BMC refuses the password, tries the next one. `proves` is true if a successful
    /// answer shows that the BMC has accepted the password.
    pub(super) fn with_several<T>(
        &mut self,
        proves: bool,
        request: impl Fn(&Client, &Credentials) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut was_renewed = false;
        loop {
            if self.tried.refused.len() == self.login.passwords.len() {
                return Err(self.all_refused());
            }
            let failure = match self.enter().and_then(|()| request(&self.client, &self.credentials)) {
                Ok(answer) => {
                    if proves && self.way == Some(Way::Basic) {
                        self.accept(Way::Basic);
                    }
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            let is_401 = failure.kind == FailureKind::Unauthorised;
            if is_401 && self.session.is_open() && !was_renewed {
                // A session that has ended is no refusal of the password.
                was_renewed = true;
                self.session.close(&self.client);
            } else if is_401 && !self.session.is_open() || self.may_be_about_the_password(&failure) {
                self.refused(failure);
            } else {
                return Err(failure);
            }
        }
    }

    /// Returns whether a 403 may mean a refused password, as it does on some BMCs. Once the BMC has accepted a password, a 403 is about the
    /// account's rights.
    fn may_be_about_the_password(&self, failure: &Failure) -> bool {
        failure.kind == FailureKind::Forbidden && self.tried.accepted.is_none()
    }

    fn refused(&mut self, failure: Failure) {
        self.client.note(&format!("{failure}; with the next password, if there is one"));
        self.tried.refused.push(self.at);
        if self.tried.accepted == Some(self.at) {
            self.tried.accepted = None;
        }
        self.refusal.get_or_insert(failure);
        let left = (0..self.login.passwords.len()).find(|at| !self.tried.refused.contains(at));
        self.at = left.unwrap_or(self.at);
        if self.way == Some(Way::Basic) {
            self.credentials = Credentials::basic(&self.login.user, &self.login.password(self.at));
        }
    }

    fn all_refused(&self) -> Failure {
        match &self.refusal {
            Some(why) if why.kind != FailureKind::Unauthorised => why.clone(),
            why => {
                let why = why.as_ref().map(ToString::to_string).unwrap_or_default();
                let text = format!("unable to log in, the BMC accepts neither line of password_file: {why}");
                Failure::new(FailureKind::Unauthorised, text)
            }
        }
    }

    /// Logs in with the present password: opens a session, or prepares basic authentication.
    fn enter(&mut self) -> Result<(), Failure> {
        let way = match self.way {
            Some(way) => way,
            None => self.first_way()?,
        };
        self.way = Some(way);
        if way == Way::Session && !self.session.is_open() {
            match self.open_session() {
                Ok(()) => self.accept(Way::Session),
                // If no session is available for now, the same password is tried by basic authentication.
                Err(none) if self.may_be_basic() && is_no_answer_to_the_password(&none) => {
                    if none.is_passing() {
                        self.refusal.get_or_insert(none);
                    }
                    self.way = Some(Way::Basic);
                    self.credentials = Credentials::basic(&self.login.user, &self.login.password(self.at));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn may_be_basic(&self) -> bool {
        self.login.method == LoginMethod::Auto && self.tried.way != Some(Way::Session)
    }

    fn first_way(&mut self) -> Result<Way, Failure> {
        match (self.login.method, self.login.way) {
            (LoginMethod::Basic, _) => Ok(Way::Basic),
            (LoginMethod::Session, _) => Ok(Way::Session),
            (LoginMethod::Auto, Some(way)) => Ok(way),
            (LoginMethod::Auto, None) => match self.sessions_collection() {
                Ok(_) => Ok(Way::Session),
                Err(none) if none.kind == FailureKind::Missing => Ok(Way::Basic),
                Err(other) => Err(other),
            },
        }
    }
}

fn is_no_answer_to_the_password(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        FailureKind::Missing | FailureKind::Refused | FailureKind::Garbled | FailureKind::Busy { .. }
    )
}
