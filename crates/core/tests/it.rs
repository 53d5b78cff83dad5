//! The audit held against the truth of simulated worlds.

#[cfg(test)]
mod it {
    mod attributes;
    mod blame;
    mod json;
    mod quality;
    mod truth;
}
