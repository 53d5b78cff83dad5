//! Pages of simulated calls whose truth is known.

mod cases;
mod drawing;
mod markup;
mod served;
mod shown;
