// An editor in the same process, over byte streams.
import { describe } from "vitest";
import { everyTest } from "./every-test.ts";

describe.each([1, 2] as const)("in memory, version %d of the protocol", (version) => everyTest("memory", version));
