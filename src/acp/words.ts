// Sentences that both versions of the protocol say.

export const LOST = "The run was cut off, and what it did is not known. Nothing of it was repeated.";
