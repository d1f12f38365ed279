//! The Redfish client: HTTPS to a BMC, its systems and their power.
