//! Pages of simulated calls whose truth is known.

mod cases;
mod drawing;
pub(super) mod markup;
mod served;
mod shown;
mod site;
mod summed;
