//! One page of metrics, filled value by value.

use std::collections::BTreeMap;

use prometheus::{GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};

/// A page of Prometheus metrics that is being built.
#[derive(Default)]
pub(super) struct Page {
    registry: Registry,
    gauges: BTreeMap<String, GaugeVec>,
    counters: BTreeMap<String, IntCounterVec>,
}

/// A label's name and value.
type Label<'a> = (&'a str, &'a str);

impl Page {
    /// Adds a gauge with any value. The metric's name contains its unit, such as seconds or bytes.
    pub(super) fn value(&mut self, name: &str, help: &str, labels: &[Label<'_>], value: f64) {
        let gauge =
            self.gauge(name, help, labels).and_then(|gauge| gauge.get_metric_with_label_values(&values(labels)));
        match gauge {
            Ok(gauge) => gauge.set(value),
            Err(error) => log::error!("metric {name} cannot be added: {error}"),
        }
    }

    /// Adds a gauge that is 1 if `is_so` is true, else 0.
    pub(super) fn flag(&mut self, name: &str, help: &str, labels: &[Label<'_>], is_so: bool) {
        self.value(name, help, labels, if is_so { 1.0 } else { 0.0 });
    }

    /// Adds a gauge with an integer: seconds since 1970, or a number of things.
    pub(super) fn time(&mut self, name: &str, help: &str, labels: &[Label<'_>], value: u64) {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53, and Prometheus has no other numbers")]
        self.value(name, help, labels, value as f64);
    }

    /// Adds a counter, which never decreases.
    pub(super) fn count(&mut self, name: &str, help: &str, labels: &[Label<'_>], count: u64) {
        let counter =
            self.counter(name, help, labels).and_then(|counter| counter.get_metric_with_label_values(&values(labels)));
        match counter {
            Ok(counter) => counter.inc_by(count),
            Err(error) => log::error!("metric {name} cannot be added: {error}"),
        }
    }

    fn gauge(&mut self, name: &str, help: &str, labels: &[Label<'_>]) -> prometheus::Result<&GaugeVec> {
        if !self.gauges.contains_key(name) {
            let gauge = GaugeVec::new(Opts::new(name, help), &names(labels))?;
            self.registry.register(Box::new(gauge.clone()))?;
            self.gauges.insert(name.to_owned(), gauge);
        }
        self.gauges.get(name).ok_or_else(|| prometheus::Error::Msg("it is gone".to_owned()))
    }

    fn counter(&mut self, name: &str, help: &str, labels: &[Label<'_>]) -> prometheus::Result<&IntCounterVec> {
        if !self.counters.contains_key(name) {
            let counter = IntCounterVec::new(Opts::new(name, help), &names(labels))?;
            self.registry.register(Box::new(counter.clone()))?;
            self.counters.insert(name.to_owned(), counter);
        }
        self.counters.get(name).ok_or_else(|| prometheus::Error::Msg("it is gone".to_owned()))
    }

    /// Returns the metrics in Prometheus' text format, sorted by name and labels.
    pub(super) fn text(&self) -> String {
        let told = TextEncoder::new().encode_to_string(&self.registry.gather());
        told.unwrap_or_else(|error| {
            log::error!("the page of metrics cannot be encoded: {error}");
            String::new()
        })
    }
}

fn names<'a>(labels: &[Label<'a>]) -> Vec<&'a str> {
    labels.iter().map(|(name, _)| *name).collect()
}

fn values<'a>(labels: &[Label<'a>]) -> Vec<&'a str> {
    labels.iter().map(|(_, value)| *value).collect()
}
