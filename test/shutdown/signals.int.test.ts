// A program that is ended in every situation and in every way, and the next start: what the log says is true, nothing
// that was accepted is missing, and what can continue continues.
import { describe, test } from "vitest";
import { checkCell, storesFolder } from "./lives.ts";
import { ENDS, SITUATIONS } from "./situations.ts";

const newPlace = storesFolder();

describe.each(ENDS.filter((end) => end !== "close()"))(
  "G25: after %s and the next start,",
  { timeout: 60_000 },
  (end) => {
    test.concurrent.each(SITUATIONS)("%s", (situation) => checkCell(newPlace(), situation, end));
  },
);
