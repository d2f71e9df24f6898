//! (place in the flow)
