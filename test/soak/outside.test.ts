// What is seen of a process from outside, so that the same thing is counted as the same.
import { expect, test } from "vitest";
import { nameOf } from "./outside.ts";

test("what takes the place of another has its name: pipes, files that are removed, files begun anew", () => {
  expect(nameOf("pipe:[1234]")).toBe("pipe");
  expect(nameOf("/data/belay.db-wal (deleted)")).toBe("belay.db-wal");
  expect(nameOf("/data/audit/audit.000002.jsonl")).toBe(nameOf("/data/audit/audit.000001.jsonl"));
  expect(nameOf("/data/belay.db")).toBe("belay.db");
});
