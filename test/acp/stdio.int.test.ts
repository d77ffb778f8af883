// `belay acp` on stdin and stdout, as an editor starts it.
import { describe } from "vitest";
import { everyTest } from "./every-test.ts";

describe.each([1, 2] as const)(
  "belay acp on stdin and stdout, as an editor starts it, version %d of the protocol",
  (version) => everyTest("stdio", version),
);
