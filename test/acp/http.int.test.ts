// An editor over HTTP.
import { describe } from "vitest";
import { everyTest } from "./every-test.ts";

describe.each([1, 2] as const)("an editor over HTTP, version %d of the protocol", (version) =>
  everyTest("http", version),
);
