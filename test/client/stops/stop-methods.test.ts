// A method that is added to the control is in the table of stops, or is said here to stop nothing.
import { expect, test } from "vitest";
import { BelayClient } from "../../../src/client/belay-client.ts";
import { ClientProcess } from "../../../src/client/process.ts";
import { ClientRun } from "../../../src/client/run.ts";
import { ClientQueue, ClientSession } from "../../../src/client/session.ts";
import { REACHES } from "./stop-methods.ts";

const CLASSES = { belay: BelayClient, session: ClientSession, run: ClientRun, process: ClientProcess };

const STOPS_NOTHING = [
  ...[
    "createSession",
    "prompt",
    "session",
    "sessions",
    "ids",
    "run",
    "call",
    "live",
    "findSession",
    "events",
    "status",
  ],
  // Letting go of a server stops nothing there.
  "close",
].map((name) => `belay.${name}`);
const OF_A_SESSION = [
  ...["row", "prompt", "call", "events", "pages", "transcript", "questions", "post", "setMode", "explain", "trim"],
  ...["findRun", "runs"],
].map((name) => `session.${name}`);
const OF_A_RUN = ["row", "text", "result", "view"].map((name) => `run.${name}`);
const OF_A_PROCESS = ["wait", "write", "endInput", "resize", "read", "follow"].map((name) => `process.${name}`);
const OF_A_QUEUE = ["list", "edit", "move", "steer"].map((name) => `queue.${name}`);

test("every method of the client is in the table of stops, or is known to stop nothing", () => {
  const methods = Object.entries({ ...CLASSES, queue: ClientQueue }).flatMap(([name, { prototype }]) =>
    Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([method, { value }]) =>
      method === "constructor" || typeof value !== "function" ? [] : [`${name}.${method}`],
    ),
  );
  const known = [...STOPS_NOTHING, ...OF_A_SESSION, ...OF_A_RUN, ...OF_A_PROCESS, ...OF_A_QUEUE];
  expect(methods.toSorted()).toEqual([...known, ...Object.keys(REACHES)].toSorted());
});
