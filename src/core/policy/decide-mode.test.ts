import { describe, expect, test } from "vitest";
import {
  cancelSession,
  close,
  park,
  recover,
  running,
  setMode,
  settleTurn,
  user,
} from "../../../test/fixtures/commands.ts";
import { given, givenNoSession } from "../../testing/given.ts";
import type { Recorded } from "../model/event.ts";
import { verify } from "../read/verify.ts";

const read = setMode("read-only");

describe("a mode is set", () => {
  test("it is recorded with the user that set it, and the receipt has its position", () => {
    given()
      .when({ ...read, by: "ann" })
      .then({ type: "session.mode_set", mode: "read-only", by: "ann" })
      .answers({ kind: "changed", mode: "read-only", seq: 2 });
    given().when(read).then({ type: "session.mode_set", mode: "read-only" });
    expect(given().lane.mode).toBeUndefined();
    expect(given(read, setMode("auto")).lane.mode).toBe("auto");
  });

  test("setting the same mode changes nothing, and the receipt reports it", () => {
    given(read).when(read).then().answers({ kind: "unchanged", mode: "read-only" });
  });

  test("G3: not of a session that was never created, nor of a closed one", () => {
    givenNoSession()
      .when(read)
      .then()
      .answers({ kind: "refused", code: "not_found", message: "There is no session ses_1." });
    given(close()).when(read).then().answers({ kind: "refused", code: "closed", message: "Session ses_1 is closed." });
  });

  test("G2: the same request under the same key is one event, whatever was set in between", () => {
    const once = { ...read, once: { key: "k", content: "c" } };
    const after = given(once, setMode("auto"));
    after.when(once).then().answers({ kind: "changed", mode: "read-only", seq: 2 });
    expect(after.lane.mode).toBe("auto");
  });

  test("it survives runs, stops, a park and a recovery", () => {
    const set = given(...running("run_a"), read);
    for (const after of [set.and(settleTurn("turn_a.1")), set.and(cancelSession()), set.and(park, recover())]) {
      expect(after.lane.mode).toBe("read-only");
    }
  });

  test("G3: a log in which the mode of a closed session was set is reported as broken", () => {
    const at = { at: 0 };
    const log: readonly Recorded[] = [
      { type: "session.created", sessionId: "ses_1", seq: 1, ...at },
      { type: "session.mode_set", mode: "auto", seq: 2, ...at },
      { type: "session.closed", reason: user, seq: 3, ...at },
    ];
    expect(verify(log)).toEqual([]);
    const late: Recorded = { type: "session.mode_set", mode: "ask", seq: 4, ...at };
    expect(verify([...log, late])).toMatchObject([{ guarantee: "G3", seq: 4 }]);
  });
});
