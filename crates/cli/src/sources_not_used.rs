//! Which sources of stamps a verdict had to do without.

use skewtap_core::verdict_json::SourcesJson;

/// In words, each source that could not be used, and why.
pub(crate) fn not_used(sources: &SourcesJson) -> Vec<String> {
    [
        ("kernel stamps", &sources.kernel_stamps),
        ("packets", &sources.capture),
        ("receive queues", &sources.queues),
        ("process samples", &sources.processes),
    ]
    .into_iter()
    .filter(|(_, state)| *state != "used")
    .map(|(name, state)| format!("{name}: {state}"))
    .collect()
}
