//! The cost of the rule that decides a split, in time without writes when a machine is lost.

use super::description::Description;

/// Returns a sentence on how long etcd takes no writes because of `fencing_delay`.
pub fn of(description: &Description) -> String {
    let preferred = &description.preferred;
    let other = description.nodes.iter().map(|node| node.name.as_str()).find(|name| name != preferred);
    let other = other.unwrap_or("the other node");
    let delay = description.fencing_delay.as_secs();
    if description.race {
        return format!(
            "{preferred} wins a split by the BMCs' sessions, which costs no time; where a BMC shows none, {other} waits {delay} s before it fences \
             {preferred}"
        );
    }
    format!(
        "{preferred} wins a split because {other} waits {delay} s before it fences {preferred}: where {preferred} itself is lost, etcd takes no writes \
         for {delay} s more than where {other} is"
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::operate::setup::file;

    #[test]
    fn the_price_is_paid_where_the_preferred_node_is_lost_and_not_by_a_race() {
        let mut description = file::read(file::EXAMPLE).unwrap();
        description.fencing_delay = Duration::from_secs(20);
        let price = of(&description);
        assert!(price.contains("node2 waits 20 s before it fences node1: where node1 itself is lost"), "{price}");
        description.race = true;
        assert!(of(&description).contains("which costs no time"), "{}", of(&description));
    }
}
