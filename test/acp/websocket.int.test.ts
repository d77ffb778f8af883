// An editor over a WebSocket.
import { describe } from "vitest";
import { everyTest } from "./every-test.ts";

describe.each([1, 2] as const)("an editor over a WebSocket, version %d of the protocol", (version) =>
  everyTest("websocket", version),
);
