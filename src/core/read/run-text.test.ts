// The text of a run, from its events.
import { expect, test } from "vitest";
import {
  call,
  cancelledBy,
  cancelRun,
  park,
  recover,
  running,
  settleAsking,
  settleCall,
  settleTurn,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { given } from "../../testing/given.ts";
import type { Command } from "../model/command.ts";
import type { TurnId } from "../model/ids.ts";
import { runText, type TextOptions } from "./run-text.ts";

const extend = (turnId: TurnId, text: string): Command => ({ type: "extend", turnId, text });

/** The text of run_a after these commands. */
const saidAfter = (...commands: readonly Command[]): Promise<string> => textAfter({}, ...commands);
const allAfter = (...commands: readonly Command[]): Promise<string> => textAfter({ all: true }, ...commands);

async function textAfter(options: TextOptions, ...commands: readonly Command[]): Promise<string> {
  const { events } = given(...running("run_a"), ...commands);
  return runText(
    (async function* () {
      yield* events;
    })(),
    options,
  );
}

test("is the text of its last turn alone, and on request that of all turns", async () => {
  expect(await saidAfter()).toBe("");
  const past = [
    extend("turn_a.1", "let "),
    call("call_a.1"),
    settleCall("call_a.1", { result: "a result" }),
    extend("turn_a.1", "me "),
    settleTurn("turn_a.1", { next: "turn", text: "let me see" }),
    settleTurn("turn_a.2", { next: "turn", text: ": " }),
    settleTurn("turn_a.3", { text: "done" }),
  ];
  expect(await saidAfter(...past)).toBe("done");
  expect(await allAfter(...past)).toBe("let me see\n\n: \n\ndone");
});

test("G17: of a turn whose end is unknown is the part that was recorded", async () => {
  const pieces = [extend("turn_a.1", "hel"), extend("turn_a.1", "lo")];
  expect(await saidAfter(...pieces)).toBe("hello");
  expect(await saidAfter(...pieces, recover("lose"))).toBe("hello");
  expect(await saidAfter(...pieces, park, cancelRun("run_a"))).toBe("hello");
});

test.each([[[recover()]], [[park, recover()]]])("omits a turn that was cut off and repeated", async (cut) => {
  const first = [settleTurn("turn_a.1", { next: "turn", text: "one " }), extend("turn_a.2", "half of t")];
  expect(await allAfter(...first, ...cut)).toBe("one ");
  expect(await allAfter(...first, ...cut, settleTurn("turn_a.3", { text: "two" }))).toBe("one \n\ntwo");
  const again = [...first, ...cut, extend("turn_a.3", "half of t"), ...cut];
  expect(await allAfter(...again, settleTurn("turn_a.4", { text: "two" }))).toBe("one \n\ntwo");
  expect(await saidAfter(...again, settleTurn("turn_a.4", { text: "two" }))).toBe("two");
});

test.each([[[recover()]], [[park, recover()]]])(
  "G17: includes a turn that had ended, although its calls were cut off",
  async (cut) => {
    const ended = settleAsking("turn_a.1", wanted("call_a.1"));
    const asking = { ...ended, end: { ...ended.end, text: "let me see: " } };
    expect(await allAfter(asking, ...cut, settleTurn("turn_a.2", { text: "gone" }))).toBe("let me see: \n\ngone");
  },
);

test("includes a turn that ended as stopped without a stop", async () => {
  const calls = [wanted("call_a.1", { idempotent: true })];
  const odd = settleTurn("turn_a.1", { outcome: cancelledBy(user), next: "turn", text: "one ", calls });
  expect(await allAfter(odd, recover(), settleCall("call_a.1"), settleTurn("turn_a.2", { text: "two" }))).toBe(
    "one \n\ntwo",
  );
});
