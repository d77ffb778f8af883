// Which modes an agent may have, and the errors for unknown modes.
import { describe, expect, test } from "vitest";
import { MODE_CHARS_MAX, MODES_MAX, NOTE_CHARS_MAX, TITLE_CHARS_MAX } from "../core/limits.ts";
import type { Agent, AgentMode } from "../ports/agent.ts";
import { checkModes, modeInForce, modesOf } from "./modes.ts";

const ask: AgentMode = { id: "ask", name: "Ask" };
const auto: AgentMode = { id: "auto", name: "Auto" };

/** An agent with these modes, unchecked by the compiler. */
const agent = (said: object = {}): Agent => Object.assign(() => "x", said);
const many = (count: number): object => ({
  modes: Array.from({ length: count }, (_, index) => ({ id: `m${index}`, name: "x" })),
});

describe("the modes of an agent", () => {
  test.each<readonly [what: string, said: object]>([
    ["nothing", {}],
    ["an empty list", { modes: [] }],
    ["some, and which of them holds at first", { modes: [ask, auto], mode: "auto" }],
    ["as many as one can choose from", many(MODES_MAX)],
    [
      "ids of letters, digits and hyphens",
      {
        modes: [
          { id: "a", name: "x" },
          { id: "plan-2", name: "x" },
        ],
      },
    ],
    [
      "words as long as may be",
      {
        modes: [
          {
            ...{ id: "a".repeat(MODE_CHARS_MAX), name: "n".repeat(TITLE_CHARS_MAX) },
            description: "d".repeat(NOTE_CHARS_MAX),
          },
        ],
      },
    ],
  ])("may be %s", (_, said) => {
    expect(() => checkModes(agent(said))).not.toThrow();
  });

  const LIST = "The `modes` of an agent are a list.";
  const SHAPE = "A mode of an agent is an object with `id` and `name`.";
  const ID = "The `id` of a mode is a word of small letters, digits and hyphens, at most 64.";
  const NAME = "The mode ask has a `name` of 1 to 1024 characters.";
  const DESCRIPTION = "The `description` of the mode ask has at most 4096 characters.";
  const MODE = "The `mode` of an agent is one of its `modes`.";
  const ids = [undefined, 7, "", "Ask", "ask!", "-ask", "2fast", "two words", "a".repeat(MODE_CHARS_MAX + 1)];
  test.each<readonly [what: string, said: readonly object[], message: string]>([
    ["something else", [{ modes: "ask" }, { modes: null }, { modes: { ask } }], LIST],
    ["more than one can choose from", [many(MODES_MAX + 1)], "An agent has at most 32 modes."],
    ["words alone", [{ modes: ["ask"] }, { modes: [ask, null] }], SHAPE],
    ["modes with more", [{ modes: [{ ...ask, icon: "y" }] }], "A mode of an agent has no `icon`."],
    ["modes without a proper id", ids.map((id) => ({ modes: [{ id, name: "x" }] })), ID],
    [
      "modes without a proper name",
      [undefined, 7, "", " ", "n".repeat(TITLE_CHARS_MAX + 1)].map((name) => ({ modes: [{ id: "ask", name }] })),
      NAME,
    ],
    [
      "modes without a proper description",
      [3, null, "d".repeat(NOTE_CHARS_MAX + 1)].map((description) => ({ modes: [{ ...ask, description }] })),
      DESCRIPTION,
    ],
    ["two of one id", [{ modes: [ask, auto, ask] }], 'The agent has two modes "ask".'],
    ["others than the one that holds at first", [{ modes: [ask], mode: "plan" }, { mode: "ask" }], MODE],
  ])("must not be %s", (_, said, message) => {
    for (const one of said) {
      expect(() => checkModes(agent(one)), JSON.stringify(one)).toThrow(
        expect.objectContaining({ code: "invalid", message }),
      );
    }
  });
});

describe("the current mode", () => {
  test("is the one that was set, if the agent has it, otherwise the agent's default", () => {
    const both = agent({ modes: [ask, auto] });
    expect(modeInForce(both, "auto")).toBe("auto");
    expect(modeInForce(both, undefined)).toBe("ask");
    expect(modeInForce(both, "plan")).toBe("ask");
    expect(modeInForce(agent({ modes: [ask, auto], mode: "auto" }), "plan")).toBe("auto");
    expect(modeInForce(agent(), "ask")).toBeUndefined();
    expect(modesOf(both).inForce("auto")).toBe("auto");
  });

  test("is part of the list of modes", () => {
    expect(modesOf(agent({ modes: [ask, auto], mode: "auto" }))).toMatchObject({ all: [ask, auto], start: "auto" });
    expect(modesOf(agent())).toMatchObject({ all: [], start: undefined });
  });
});

describe("a request for a mode", () => {
  const said = (given: unknown, modes: readonly AgentMode[]): string | undefined =>
    modesOf(agent({ modes })).refusal(given)?.message;

  test("succeeds if it exists", () => {
    expect(said("ask", [ask, auto])).toBeUndefined();
    expect(said("auto", [ask, auto])).toBeUndefined();
    const long = "a".repeat(MODE_CHARS_MAX);
    expect(said(long, [{ id: long, name: "x" }])).toBeUndefined();
  });

  test("is refused with the existing modes and the nearest one", () => {
    expect(said("aks", [ask, auto])).toBe('There is no mode "aks". Did you mean ask? The modes are ask, auto.');
    expect(said("something", [ask, auto])).toBe('There is no mode "something". The modes are ask, auto.');
    expect(said("ask", [])).toBe('There is no mode "ask": this agent has no modes.');
  });

  test("is refused with the form of a mode", () => {
    for (const given of [7, null, undefined, ["ask"], "a".repeat(MODE_CHARS_MAX + 1)]) {
      expect(said(given, [ask])).toBe("A mode is a short word.");
    }
  });
});
