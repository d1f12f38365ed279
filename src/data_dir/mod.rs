//! etcd's data dir, read offline: whose data it is, how far it reaches, and who its voters are.
